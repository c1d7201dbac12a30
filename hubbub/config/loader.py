"""Loads a YAML file as a checked network, and reports all problems at once, with their places."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue, ValidationError

from hubbub.config.agent_files import files_in, path_of
from hubbub.config.checks import cross_check
from hubbub.config.explain import explain
from hubbub.config.models import NetworkFile
from hubbub.config.paths import anchor_paths
from hubbub.config.problems import ConfigProblems, nearest, shown_path
from hubbub.config.source import Loc, SourceLocation, YamlDocument, parse
from hubbub.config.units import ListenAddress, parse_address
from hubbub.errors import ConfigError

__all__ = ["LoadedConfig", "load"]

_NAMED = ("channels", "models", "mcp_servers", "agents", "humans", "bridges")


@dataclass(frozen=True)
class LoadedConfig:
    """A valid config. Its paths are absolute."""

    path: Path
    file: NetworkFile
    document: YamlDocument

    @property
    def address(self) -> ListenAddress:
        return parse_address(self.file.network.listen)

    def problem(self, loc: Loc, message: str) -> ConfigError:
        """An error about the value at `loc`, with file and line, for checks after loading."""
        return self.document.problem(loc, message)


def load(
    path: Path | str,
    *,
    environ: Mapping[str, str] = os.environ,
    mods: Collection[str] | None = None,
    overrides: Mapping[str, str] | None = None,
    texts: Mapping[Path, str | None] = MappingProxyType({}),
) -> LoadedConfig:
    """Read a config, follow its includes, replace variables, validate and check it.

    `mods` are the available mods (None accepts any name); `overrides` replace keys of the section
    `network`, for example `listen`; `texts` replace the contents of files, with None for a deleted
    file of the agent folder. Raises `ConfigProblems` with all problems, or `ConfigError` if a file
    cannot be read.
    """
    start = Path(path).absolute()
    if not start.exists():
        raise ConfigError(f"does not exist{_existing(start)}", shown_path(start))
    document = _merged(start.resolve(), environ, texts, ())
    _add_agents(document, start.resolve(), environ, texts)
    _fill_empty(document.data)
    _override(document, overrides or {})
    file = _validated(document)
    cross_check(document, mods)
    if document.problems or file is None:
        raise ConfigProblems(document.problems)
    return LoadedConfig(start.resolve(), file, document)


DEFAULT_NAME = "hubbub.yaml"
"""The config's default file name."""
_NETWORK = re.compile(rb"^network:", re.MULTILINE)


def _existing(path: Path) -> str:
    """A hint that names an existing config."""
    folders = [path.parent, path.parent / "configs", Path.cwd() / "configs"]
    files = [f for folder in folders if folder.is_dir() for f in folder.glob("*.y*ml")]
    near = nearest(path.name, [f.name for f in files])
    networks = [f for f in path.parent.glob("*.y*ml") if _NETWORK.search(f.read_bytes())]
    if len(networks) == 1 and path.name == DEFAULT_NAME:
        return f"; did you mean {shown_path(networks[0])}?"
    match = next((f for f in files if f"'{f.name}'" in near), None)
    return f"; did you mean {shown_path(match)}?" if match else "; create one with `hubbub init`"


def _merged(
    path: Path,
    environ: Mapping[str, str],
    texts: Mapping[Path, str | None],
    chain: tuple[Path, ...],
) -> YamlDocument:
    """The file merged over its includes, and later includes over earlier ones."""
    document = parse(path, environ, texts.get(path))
    anchor_paths(document)
    includes = _includes(document)
    below = YamlDocument(places={(): document.places[()]})
    for n, name in enumerate(includes):
        target = (path.parent / name).resolve()
        if target == path or target in chain:
            names = " → ".join(p.name for p in (*chain, path, target))
            document.report(("include", n), f"includes itself: {names}")
        elif not target.is_file():
            message = f"the included file {shown_path(target)} does not exist"
            document.report(("include", n), message)
        else:
            _lay_over(below, _merged(target, environ, texts, (*chain, path)))
    _lay_over(below, document)
    return below


def _add_agents(
    document: YamlDocument,
    start: Path,
    environ: Mapping[str, str],
    texts: Mapping[Path, str | None],
) -> None:
    """Add the files of the agent folder, each with the agent it is named after."""
    folder = path_of(document.data, start)
    if folder is None:
        return
    for file in sorted({*files_in(folder), *(each for each in texts if each.parent == folder)}):
        if file in texts and texts[file] is None:
            continue
        part, name = parse(file, environ, texts.get(file)), file.stem
        sections = part.data.get("agents")
        if [*part.data] != ["agents"] or not isinstance(sections, dict) or [*sections] != [name]:
            text = f"expected the agent that the file is named after, `agents: {{{name}: ...}}`"
            part.report((), text)
        elif ("agents", name) in document.places:
            other = shown_path(document.place(("agents", name)).file)
            part.report(("agents", name), f"the agent '{name}' is also defined in {other}")
        else:
            _limit_tools(sections[name], document.data)
            anchor_paths(part)
            _lay_over(document, part)
            continue
        document.problems += part.problems


def _limit_tools(section: JsonValue, data: Mapping[str, JsonValue]) -> None:
    """Give an agent that chooses no tools those that the folder allows, not all."""
    network = data.get("network")
    folder = network.get("agent_folder") if isinstance(network, dict) else None
    allowed = folder.get("tools") if isinstance(folder, dict) else None
    if allowed is None or not isinstance(section, dict) or section.get("kind", "llm") != "llm":
        return
    if section.get("tools") is None:
        section["tools"] = list(allowed) if isinstance(allowed, list) else allowed


def _includes(document: YamlDocument) -> list[str]:
    value = document.data.pop("include", [])
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return [str(name) for name in names]
    if ("include",) not in document.broken:
        document.report(("include",), "include: expected a list of files")
    return []


def _lay_over(below: YamlDocument, above: YamlDocument) -> None:
    """Merge `above` into `below`: maps key by key, anything else as a whole."""
    _merge_map(below.data, above.data, (), below.places)
    below.places.update(above.places)
    below.broken |= above.broken
    below.problems += above.problems


def _merge_map(
    below: dict[str, JsonValue],
    above: Mapping[str, JsonValue],
    loc: Loc,
    places: dict[Loc, SourceLocation],
) -> None:
    for key, value in above.items():
        old = below.get(key)
        where = (*loc, key)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge_map(old, value, where, places)
            continue
        for stale in [p for p in places if len(p) > len(where) and p[: len(where)] == where]:
            del places[stale]
        below[key] = value


def _fill_empty(data: dict[str, JsonValue]) -> None:
    """`general:` with nothing below it means all defaults."""
    for key in [key for key, value in data.items() if value is None]:
        del data[key]
    for key in _NAMED:
        section = data.get(key)
        if isinstance(section, dict):
            data[key] = {name: {} if entry is None else entry for name, entry in section.items()}


def _override(document: YamlDocument, overrides: Mapping[str, str]) -> None:
    network = document.data.setdefault("network", {})
    if isinstance(network, dict):
        network.update(overrides)
        document.broken -= {("network", key) for key in overrides}


def _validated(document: YamlDocument) -> NetworkFile | None:
    try:
        return NetworkFile.model_validate(document.data)
    except ValidationError as error:
        document.problems += explain(error, NetworkFile, document)
        return None
