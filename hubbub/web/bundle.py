"""Joins ES modules into one file, so that a page of a hundred modules is fetched with one request.

Each module becomes a function with the lines of its source: imports and exports are rewritten in
their places, lines of comments are empty, and a source map leads every line back to its file.
`loader.js` runs the functions.
The first bundle has what the page imports when it starts; what a module asks for with `import()`
is a bundle of its own, without what the first one has.

It reads the plain forms of `import` and `export`, at the beginning of a line or as minifiers write
them. What else would need a parser is refused, and so are cycles: a bundle never differs silently
from its modules.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["BundleError", "Bundles"]

_LOADER = Path(__file__).with_name("loader.js")
_IMPORT = re.compile(
    r"""import(?<=[\s;}]import)\s*(?:(?P<default>\w+)?\s*,?\s*"""
    r"""(?P<names>{[^}]*}|\*\s*as\s+\w+)?\s*from\s*)?["'](?P<path>\.[^"']+)["'];?"""
)
_EXPORT = re.compile(
    r"""export(?<=[\s;}]export)(?:"""
    r"""\s*(?P<list>{[^}]*})(?:\s*from\s*["'](?P<path>\.[^"']+)["'])?;?"""
    r"""|(?<=\nexport) (?P<is_default>default )?"""
    r"""(?=(?:async )?(?:function\*?|class|const) (?P<name>\w+))"""
    r"""|(?P<value> default\b))"""
)
_COMMENT = re.compile(
    r"\n[ \t]*(?://[^\n]*|/\*(?!\*/)(?!!|[^/]*?Copyright)(?:[^*]|\*(?!/))*\*/[ \t]*)(?=\n)"
)
"""Whole lines; not the notice of a licence. (A template must have no line that looks like one.)"""
_LOAD = re.compile(r"""import\(\s*["'](?P<path>\.[^"']+)["']\s*\)""")
_LEFT = re.compile(r"\n(?:import\b(?!\()|export\b).*|import\.meta.*")
# Each of these begins with a fixed word, which the engine finds at the speed of a search.
_AS = re.compile(r"([\w$]+)\s+as\s+([\w$]+)")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class BundleError(ValueError):
    """A module cannot be bundled: it is missing, imports itself, or has a form that is not read."""


class Bundles:
    """The bundles of one page, in the folder `bundles/` beside its modules."""

    def __init__(self, first: str, sources: Mapping[str, str]):
        """`first` is the module that the page starts with; `sources` the text of every module by
        its path. Raises BundleError."""
        self._first, self._sources = first, sources
        self._at_start = self.imported(first)

    def imported(self, entry: str) -> list[str]:
        """The modules that `entry` imports, however deep, and itself: each after what it imports.

        Raises BundleError.
        """
        found: dict[str, bool] = {}  # name -> whether all that it imports is there

        def visit(name: str, by: str) -> None:
            if not found.get(name, True):
                raise BundleError(f"{name} imports itself by way of {by}")
            if name in found:
                return
            if name not in self._sources:
                raise BundleError(f"{by} imports {name}, which does not exist")
            found[name] = False
            for path in _paths(self._sources[name]):
                visit(_resolve(name, path), name)
            del found[name]
            found[name] = True  # dicts have the order in which this was written

        visit(entry, entry)
        return list(found)

    def script(self, entry: str) -> str:
        """The text of the bundle of `entry`. Raises BundleError."""
        names = self._members(entry)
        bodies = "\n".join(_runner(name, self._sources[name]) for name in names)
        start = f'\nneed("{entry}");' if entry == self._first else ""
        mapping = f"//# sourceMappingURL={posixpath.basename(entry)}.map"
        return f"{self._head(entry)}define({{\n{bodies}\n}});{start}\n{mapping}\n"

    def source_map(self, entry: str) -> str:
        """Where each line of that text comes from, as browsers read it. Raises BundleError."""
        names, up = self._members(entry), "../" * (entry.count("/") + 1)
        lines = [""] * (self._head(entry).count("\n") + 1)
        last = 0  # the line of its source that the mapping before was about
        for n, name in enumerate(names):
            count = self._sources[name].rstrip().count("\n") + 1
            first_line = f"A{_digits(min(n, 1))}{_digits(-last)}A"
            lines += ["", first_line, *["AACA"] * (count - 1), ""]
            last = count - 1
        found = {"version": 3, "sources": [up + name for name in names], "names": []}
        return json.dumps({**found, "mappings": ";".join(lines)})

    def _members(self, entry: str) -> list[str]:
        if entry == self._first:
            return self._at_start
        there = set(self._at_start)
        return [name for name in self.imported(entry) if name not in there]

    def _head(self, entry: str) -> str:
        if entry == self._first:
            return _LOADER.read_text(encoding="utf-8")
        return f'import {{ define }} from "./{"../" * entry.count("/")}{self._first}";\n'


def _paths(text: str) -> list[str]:
    """What a module imports when it loads, not what it asks for later."""
    text = f"\n{text}"
    found = [each["path"] for form in (_IMPORT, _EXPORT) for each in form.finditer(text)]
    return [path for path in found if path]


def _resolve(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _runner(name: str, text: str) -> str:
    """A module as a function, with as many lines as its source between its first and its last."""
    exported: dict[str, str] = {}

    def need(path: str) -> str:
        return f'$need("{_resolve(name, path)}")'

    def take(each: re.Match[str]) -> str:
        names = each["names"] or ""
        if names.startswith("*"):
            names = names.split()[-1]
        elif each["default"]:
            names = f"{{ default: {each['default']}, {names.strip('{ }')} }}"
        names = _AS.sub(r"\1: \2", names)
        return f"const {names} = {need(each['path'])};" if names else f"{need(each['path'])};"

    def give(each: re.Match[str]) -> str:
        if each["value"]:
            return "$exports.default ="
        if each["name"]:
            exported["default" if each["is_default"] else each["name"]] = each["name"]
            return ""
        of = f"{need(each['path'])}." if each["path"] else ""
        for item in filter(None, map(str.strip, each["list"].strip("{}").split(","))):
            inner, _, outer = item.partition(" as ")
            exported[outer or inner] = f"{of}{inner}"
        return "\n" * each[0].count("\n")

    text = _COMMENT.sub(lambda each: "\n" * each[0].count("\n"), f"\n{text.rstrip()}")
    text = _EXPORT.sub(give, _IMPORT.sub(take, text))
    text = _LOAD.sub(lambda each: f'$load("{_resolve(name, each["path"])}")', text)
    text = text.replace("import.meta.url", "$url")
    if left := _LEFT.search(text):
        raise BundleError(f"{name}: cannot bundle {left[0].strip()!r}")
    pairs = ", ".join(f"{outer}: {inner}" for outer, inner in exported.items())
    end = f"Object.assign($exports, {{ {pairs} }});" if pairs else ""
    return f'"{name}"($exports, $need, $load, $url) {{{text}\n{end} }},'


def _digits(number: int) -> str:
    """A number as source maps write it: base 64 digits of 5 bits, low first, the sign lowest."""
    rest, digits = (-number << 1) | 1 if number < 0 else number << 1, ""
    while True:
        rest, digit = rest >> 5, rest & 31
        digits += _DIGITS[digit | 32 if rest else digit]
        if not rest:
            return digits
