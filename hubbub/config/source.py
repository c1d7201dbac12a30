"""YAML as plain data with places: each key and each item has its file and line.

Uses the core schema of YAML 1.2 (`no` and `on` are strings, `1:30` is not a number), rejects
duplicate keys and expands environment references. Independent of the network's models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import JsonValue

from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError
from hubbub.wording import shortened

__all__ = ["Loc", "MissingVariable", "SourceLocation", "YamlDocument", "expand", "parse", "refers"]

_OPEN = "${"
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_MOST_LEVELS = 8
"""Nesting depth of references in defaults."""
_SHOWN = 60


class MissingVariable(Exception):
    """An unset variable without a default, or an invalid reference. The message is for the user."""


def refers(text: str) -> bool:
    """Whether `text` contains a reference."""
    return _OPEN in text


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references expanded. As in a shell, a `:-` default also replaces an empty
    value, and is only expanded if needed. Raises `MissingVariable`.
    """
    return _expand(text, environ, _MOST_LEVELS)


def _expand(text: str, environ: Mapping[str, str], levels: int) -> str:
    if not levels:
        raise MissingVariable(f"'{_cut(text)}': references are nested too deeply")
    pieces: list[str] = []
    at = 0
    while (start := text.find(_OPEN, at)) >= 0:
        if text.startswith("$", start - 1) and start > at:
            pieces += text[at : start - 1], _OPEN
            at = start + len(_OPEN)
            continue
        end = _closing(text, start)
        pieces += text[at:start], _value(text[start + len(_OPEN) : end], environ, levels)
        at = end + 1
    return "".join((*pieces, text[at:]))


def _closing(text: str, start: int) -> int:
    """The index of the closing brace of the reference at `start`. Raises `MissingVariable`."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    raise MissingVariable(
        f"'{_cut(text[start:])}' has no closing brace: write ${{NAME}} or ${{NAME:-default}} "
        "(or $${ for a literal ${)"
    )


def _value(body: str, environ: Mapping[str, str], levels: int) -> str:
    parts = _BODY.fullmatch(body)
    if parts is None:
        raise MissingVariable(
            f"'{_cut(f'${{{body}}}')}' is not a valid reference: write ${{NAME}} or "
            "${NAME:-default} (or $${ for a literal ${)"
        )
    name, default = parts["name"], parts["default"]
    value = environ.get(name)
    if default is not None:
        return value or _expand(default, environ, levels - 1)
    if value is None:
        raise MissingVariable(
            f"the environment variable {name} is not set: set it, or provide a default with "
            f"${{{name}:-default}}"
        )
    return value


def _cut(text: str) -> str:
    return shortened(text, _SHOWN)


Loc = tuple[str | int, ...]
"""The path of a value in the data: keys and indexes from the root."""

_MAX_NODES = 100_000
_MAX_DEPTH = 64


class SourceLocation(NamedTuple):
    """A place in a file; lines count from 1."""

    file: Path
    line: int


@dataclass
class YamlDocument:
    """A file as data, with the places of its values and its problems."""

    data: dict[str, JsonValue] = field(default_factory=dict)
    places: dict[Loc, SourceLocation] = field(default_factory=dict)
    problems: list[ConfigError] = field(default_factory=list)
    broken: set[Loc] = field(default_factory=set)
    """Values that could not be read: None in the data, with their problem already reported."""

    def place(self, loc: Loc) -> SourceLocation:
        """The place of `loc`, or of the nearest enclosing value that has one."""
        while loc and loc not in self.places:
            loc = loc[:-1]
        return self.places[loc]

    def problem(self, loc: Loc, message: str) -> ConfigError:
        """An error about the value at `loc`, to raise or report."""
        file, line = self.place(loc)
        return ConfigError(message, shown_path(file), line, loc)

    def report(self, loc: Loc, message: str) -> None:
        self.problems.append(self.problem(loc, message))


class _CoreLoader(yaml.SafeLoader):
    """PyYAML with the scalars of YAML 1.2, so that a channel can be called `no`."""


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first
    )


def parse(path: Path, environ: Mapping[str, str], text: str | None = None) -> YamlDocument:
    """Read one file without its includes; `text` replaces its content.

    Raises `ConfigError` if the file cannot be read or is not YAML; the rest is in `problems`.
    """
    name = shown_path(path)
    try:
        text = path.read_text(encoding="utf-8") if text is None else text
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", name) from None
    except IsADirectoryError:
        raise ConfigError("is a folder; name a YAML file", name) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", name) from None
    try:
        loader = _CoreLoader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _syntax(error, name, text) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", name) from None
    return _Builder(path, environ, loader).document(root)


def _syntax(error: yaml.YAMLError, name: str, text: str) -> ConfigError:
    """The parser's error as one sentence."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ConfigError(f"is not valid YAML: {' '.join(str(error).split())}", name)
    what = getattr(error, "problem", None) or "is not valid YAML"
    line = mark.line + 1
    rows = text.splitlines()
    hint = ""
    if mark.line < len(rows) and re.search(r"[\[{,]\s*[^\"']*\$\{", rows[mark.line]):
        hint = '; quote "${…}" inside { } and [ ]'
    elif "\t" in rows[mark.line] if mark.line < len(rows) else False:
        hint = "; indent with spaces, not tabs"
    elif "mapping values" in what:
        hint = (
            "; check the indentation here and above, write a space after the colon of a key, and "
            "quote texts with ': '"
        )
    return ConfigError(f"is not valid YAML: {what}{hint}", name, line)


class _Builder:
    """Turns one file's nodes into a YamlDocument."""

    def __init__(self, path: Path, environ: Mapping[str, str], loader: _CoreLoader):
        self._path, self._environ, self._loader = path, environ, loader
        self._document = YamlDocument()
        self._count = 0

    def document(self, root: yaml.Node | None) -> YamlDocument:
        line = root.start_mark.line + 1 if root else 1
        self._document.places[()] = SourceLocation(self._path, line)
        if root is None or _is_null(root):
            return self._document
        if not isinstance(root, yaml.MappingNode):
            self._document.report((), "expected keys such as network:, agents:, channels:")
            return self._document
        data = self._value(root, ())
        assert isinstance(data, dict)
        self._document.data = data
        return self._document

    def _value(self, node: yaml.Node, loc: Loc) -> JsonValue:
        self._count += 1
        if self._count > _MAX_NODES or len(loc) > _MAX_DEPTH:
            raise self._document.problem(loc, "is nested too deeply or expands to too many values")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, loc)
            case yaml.SequenceNode():
                return [self._item(child, (*loc, n)) for n, child in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._scalar(node, loc)
        raise self._document.problem(loc, f"has the unknown tag {node.tag}")

    def _item(self, node: yaml.Node, loc: Loc) -> JsonValue:
        self._document.places[loc] = SourceLocation(self._path, node.start_mark.line + 1)
        return self._value(node, loc)

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, JsonValue]:
        result: dict[str, JsonValue] = {}
        for key, child in self._pairs(node, loc):
            line = key.start_mark.line + 1
            where = (*loc, key.value)
            if key.value in result:
                first = self._document.places[where].line
                self._report(line, f"duplicate key '{key.value}' (first in line {first})")
                continue
            self._document.places[where] = SourceLocation(self._path, line)
            result[key.value] = self._value(child, where)
        return result

    def _pairs(
        self, node: yaml.MappingNode, loc: Loc
    ) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries with string keys; merge keys (`<<`) come last and do not override."""
        merged: list[tuple[yaml.ScalarNode, yaml.Node]] = []
        own: set[str] = set()
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._report(line, "a key must be text")
            elif key.value == "<<" and key.style is None:
                merged += self._merge_key(child, loc)
            else:
                own.add(key.value)
                yield key, child
        for key, child in merged:
            if key.value not in own:
                own.add(key.value)
                yield key, child

    def _merge_key(self, node: yaml.Node, loc: Loc) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        if len(loc) > _MAX_DEPTH:
            raise self._document.problem(loc, "merges itself")
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in nodes:
            self._count += 1
            if not isinstance(source, yaml.MappingNode) or self._count > _MAX_NODES:
                self._report(node.start_mark.line + 1, "'<<' needs a map, or a list of maps")
            else:
                yield from self._pairs(source, (*loc, "<<"))

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> JsonValue:
        text, tag = node.value, node.tag
        if refers(text):
            try:
                text = expand(text, self._environ)
            except MissingVariable as error:
                self._document.broken.add(loc)
                self._report(node.start_mark.line + 1, str(error))
                return None
            if node.style is None:
                resolve = self._loader.resolve
                tag = resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        return self._typed(text, tag.rpartition(":")[2], node)

    def _typed(self, text: str, tag: str, node: yaml.ScalarNode) -> JsonValue:
        match tag:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int" | "float" if (number := _number(text)) is not None:
                return number
            case "int" | "float":
                self._report(node.start_mark.line + 1, "the number is too large")
                return None
        self._report(node.start_mark.line + 1, f"unknown tag {node.tag}")
        return None

    def _report(self, line: int, message: str) -> None:
        self._document.problems.append(ConfigError(message, shown_path(self._path), line))


def _number(text: str) -> int | float | None:
    """The number in YAML's core schema; None if it overflows a float."""
    if text[:2] in ("0x", "0o"):
        return int(text, 0)
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else value


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")
