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
    """Markdown that agents search. `knowledge: [handbook]` is short for `folders`."""

    folders: list[str] = []
    """Folders to search recursively for files that end in .md or .markdown. Names that start with a
    dot are skipped, and links to other places are not followed."""
    max_file: Size = 1024 * 1024
    """Maximum bytes of a file; larger ones are skipped, with a note."""
    max_files: Annotated[int, Field(ge=1, le=100_000)] = 5000
    """Maximum number of files."""
    max_size: Size = 64 * 1024 * 1024
    """Maximum bytes of all files together."""
    auto: Annotated[int, Field(ge=0, le=20)] = 0
    """The number of passages in every prompt that best match the incoming messages. The tool
    `search_knowledge` finds more."""
    auto_tokens: Size = 800
    """Maximum tokens of these passages together; those that do not fit are left out."""

    def joined(self, other: KnowledgeConfig) -> KnowledgeConfig:
        """Both combined: all folders, and the greater of each limit."""
        return KnowledgeConfig(
            folders=list(dict.fromkeys([*self.folders, *other.folders])),
            max_file=max(self.max_file, other.max_file),
            max_files=max(self.max_files, other.max_files),
            max_size=max(self.max_size, other.max_size),
            auto=max(self.auto, other.auto),
            auto_tokens=max(self.auto_tokens, other.auto_tokens),
        )


def _folders(value: object) -> object:
    """Expand `[handbook]` to the map it is short for."""
    return {"folders": value} if isinstance(value, list) else value


_TEXTS: JsonValue = {"type": "array", "items": {"type": "string"}}
Knowledge = Annotated[
    KnowledgeConfig,
    BeforeValidator(_folders),
    WithJsonSchema({"anyOf": [_TEXTS, KnowledgeConfig.model_json_schema()]}),
]
"""A list of folders, or a map with more settings."""


def check_knowledge(document: YamlDocument, loc: Loc, section: Mapping[str, JsonValue]) -> None:
    """Report missing folders of `section["knowledge"]`."""
    folders = section.get("knowledge")
    here: Loc = (*loc, "knowledge")
    if isinstance(folders, dict):
        folders, here = folders.get("folders"), (*here, "folders")
    for place, name in texts(folders, here):
        folder = Path(name)
        if folder.is_file():
            text = f"{shown_path(folder)} is a file; expected a folder of Markdown files"
            document.report(place, text)
        elif not folder.is_dir():
            text = f"the folder {shown_path(folder)} does not exist{_suggestion(folder)}"
            document.report(place, text)


def check_skills(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    """Report missing files and folders of an agent's `skills`."""
    for place, name in texts(agent.get("skills"), (*loc, "skills")):
        path = Path(name)
        if not path.exists():
            noun = "file" if path.suffix else "folder"
            text = f"the {noun} {shown_path(path)} does not exist{_suggestion(path)}"
            document.report(place, text)


def texts(value: JsonValue, loc: Loc) -> Iterator[tuple[Loc, str]]:
    """The strings of a list at `loc`, each with its place."""
    for n, item in enumerate(value) if isinstance(value, list) else ():
        if isinstance(item, str):
            yield (*loc, n), item


def _suggestion(path: Path) -> str:
    """A hint at a similar name in the same folder."""
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = closest(path.name, beside)
    return f"; did you mean '{near}'?" if near else ""
