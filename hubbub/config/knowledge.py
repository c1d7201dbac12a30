"""Knowledge and skills in the YAML: folders that agents search, instructions that they load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from hubbub.config.problems import closest, shown_path
from hubbub.config.source import Loc, YamlDocument
from hubbub.config.units import Section, Size

__all__ = ["Knowledge", "KnowledgeConfig", "check_knowledge", "check_skills", "texts"]


class KnowledgeConfig(Section):
    """Markdown that agents search. `knowledge: [handbook]` is short for its folders alone."""

    folders: list[str] = []
    """Searched with all that is below them: files that end in .md or .markdown. What begins with a
    dot is left out, and links that lead elsewhere are not followed."""
    max_file: Size = 1024 * 1024
    """Bytes of a file; larger ones are left out, and said to be."""
    max_files: Annotated[int, Field(ge=1, le=100_000)] = 5000
    """Files in all."""
    max_size: Size = 64 * 1024 * 1024
    """Bytes of all files together."""
    auto: Annotated[int, Field(ge=0, le=20)] = 0
    """Passages that every prompt shows: those that match best what has come in. The tool
    `search_knowledge` gives more."""
    auto_tokens: Size = 800
    """Of these passages together; what has no room is left out."""

    def joined(self, other: KnowledgeConfig) -> KnowledgeConfig:
        """Both: all folders, each once, and of each limit the greater."""
        return KnowledgeConfig(
            folders=list(dict.fromkeys([*self.folders, *other.folders])),
            max_file=max(self.max_file, other.max_file),
            max_files=max(self.max_files, other.max_files),
            max_size=max(self.max_size, other.max_size),
            auto=max(self.auto, other.auto),
            auto_tokens=max(self.auto_tokens, other.auto_tokens),
        )


def _folders(value: object) -> object:
    """`[handbook]` as the map that it is short for."""
    return {"folders": value} if isinstance(value, list) else value


_TEXTS: JsonValue = {"type": "array", "items": {"type": "string"}}
Knowledge = Annotated[
    KnowledgeConfig,
    BeforeValidator(_folders),
    WithJsonSchema({"anyOf": [_TEXTS, KnowledgeConfig.model_json_schema()]}),
]
"""A list of folders, or a map that says more about them."""


def check_knowledge(document: YamlDocument, loc: Loc, section: Mapping[str, JsonValue]) -> None:
    """Report the folders of `section["knowledge"]` that are not there."""
    given = section.get("knowledge")
    here: Loc = (*loc, "knowledge")
    if isinstance(given, dict):
        given, here = given.get("folders"), (*here, "folders")
    for place, name in texts(given, here):
        folder = Path(name)
        if folder.is_file():
            said = f"{shown_path(folder)} is a file; knowledge is a folder of Markdown files"
            document.report(place, said)
        elif not folder.is_dir():
            said = f"the folder {shown_path(folder)} does not exist{_meant(folder)}"
            document.report(place, said)


def check_skills(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    """Report the files and folders of an agent's `skills` that are not there."""
    for place, name in texts(agent.get("skills"), (*loc, "skills")):
        path = Path(name)
        if not path.exists():
            noun = "file" if path.suffix else "folder"
            document.report(place, f"the {noun} {shown_path(path)} does not exist{_meant(path)}")


def texts(value: JsonValue, loc: Loc) -> Iterator[tuple[Loc, str]]:
    """The texts of a list at `loc`, each with its place."""
    for n, item in enumerate(value) if isinstance(value, list) else ():
        if isinstance(item, str):
            yield (*loc, n), item


def _meant(path: Path) -> str:
    """What stands beside it under a similar name."""
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = closest(path.name, beside)
    return f"; did you mean '{near}'?" if near else ""
