"""Skills: named instructions with a description, which a model loads when it needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import JsonValue

from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.files import read_prompt_file
from hubbub.agents.tools.base import CallSite, ReadingTool, ToolFailed
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.registry import ToolRegistry
from hubbub.agents.tools.schema import ToolArguments
from hubbub.config.problems import closest, shown_path
from hubbub.errors import ConfigError
from hubbub.protocol.thread_ids import ID_RULE, is_id
from hubbub.wording import near

__all__ = ["LOAD_SKILL", "LoadSkill", "Skill", "load_skills", "read_skill", "skills_of"]

LONGEST_BODY = 64 * 1024
"""Characters of a skill's instructions. A longer skill is refused, not cut."""
_MARK = "---"
_FILE_OF_FOLDER = "SKILL.md"
_FORM = "begin it with a line ---, then name: and description:, then a line ---"


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for one kind of work."""

    name: str
    """1 to 64 ASCII letters, digits, '-' or '_'."""
    description: str
    """When to load it, in one line: all that a model knows before it does."""
    body: str
    path: Path


def load_skills(places: Sequence[Path]) -> dict[str, Skill]:
    """The skills in files and folders, by name, in their order.

    Raises `ConfigError` with file and line for an invalid skill, and for two skills with one name.
    """
    skills: dict[str, Skill] = {}
    for path in dict.fromkeys(path for place in places for path in _files(place)):
        skill = read_skill(path)
        other = skills.get(skill.name)
        if other is not None:
            problem = f"there is a skill '{skill.name}' already, in {shown_path(other.path)}"
            raise ConfigError(problem, shown_path(path))
        skills[skill.name] = skill
    return skills


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    paths = [path for path in place.glob("*.md") if not path.name.startswith(".")]
    paths += place.glob(f"*/{_FILE_OF_FOLDER}")
    if not paths:
        raise ConfigError(f"has no skills: no *.md and no */{_FILE_OF_FOLDER}", shown_path(place))
    return sorted(paths)


def read_skill(path: Path) -> Skill:
    """Read a skill from a file. Raises `ConfigError` with file and line."""
    lines = _read(path).splitlines()
    if not lines or lines[0].rstrip() != _MARK:
        raise _wrong(f"a skill needs a front matter: {_FORM}", path, 1)
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _MARK), None)
    if end is None:
        raise _wrong("the front matter has no end: put a line --- below it", path, 1)
    keys = _front_matter("\n".join(lines[1:end]), path)
    name, at = keys.one("name")
    if not is_id(name):
        raise _wrong(f"'{name}' cannot be the name of a skill: expected {ID_RULE}", path, at)
    description = " ".join(keys.one("description")[0].split())
    body = "\n".join(lines[end + 1 :]).strip()
    if not body:
        raise _wrong("the skill has no instructions below its front matter", path, end + 1)
    if len(body) > LONGEST_BODY:
        problem = f"the skill has {len(body)} characters; at most {LONGEST_BODY} can be loaded"
        raise _wrong(problem, path, None)
    return Skill(name, description, body, path)


def _read(path: Path) -> str:
    try:
        return read_prompt_file(path)
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise _wrong("is not UTF-8 text", path, line) from None
    except OSError as exc:
        raise _wrong(f"cannot be read: {exc.strerror or exc}", path, None) from None


@dataclass(frozen=True, slots=True)
class _FrontMatter:
    """Keys with their texts and lines. Unknown keys are ignored."""

    values: dict[str, tuple[str, int]]
    path: Path

    def one(self, key: str) -> tuple[str, int]:
        """The text of a key and its line. Raises `ConfigError` when it is missing or empty."""
        text, line = self.values.get(key, ("", 1))
        if text.strip():
            return text.strip(), line
        near = closest(key, self.values) if key not in self.values else None
        hint = f" (there is '{near}')" if near else ""
        line = self.values[near][1] if near else line
        raise _wrong(f"the front matter needs the key '{key}', with a text{hint}", self.path, line)


def _front_matter(text: str, path: Path) -> _FrontMatter:
    """Parse the front matter, which starts in the file's second line."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 2 if exc.problem_mark else 1
        raise _wrong(f"the front matter is not valid YAML: {exc.problem}", path, line) from None
    except yaml.YAMLError as exc:  # a character that YAML does not allow
        problem = " ".join(str(exc).split())
        raise _wrong(f"the front matter is not valid YAML: {problem}", path, 1) from None
    if not isinstance(root, yaml.MappingNode):
        raise _wrong("the front matter needs the keys name and description", path, 1)
    values: dict[str, tuple[str, int]] = {}
    for key, value in root.value:
        # The raw text: a skill may be called `no` or `2024`.
        text = value.value if isinstance(value, yaml.ScalarNode) else ""
        if isinstance(key, yaml.ScalarNode):
            values[key.value] = (text, key.start_mark.line + 2)
    return _FrontMatter(values, path)


def _wrong(message: str, path: Path, line: int | None) -> ConfigError:
    return ConfigError(message, shown_path(path), line)


# `load_skill`: loads the instructions of a skill that the prompt only names.


LOAD_SKILL = "load_skill"


class SkillRequest(ToolArguments):
    """The arguments of `load_skill`."""

    name: str
    """Of the skill."""


class LoadSkill(ReadingTool):
    """The tool. Its result is never cut: half an instruction may say the opposite of the whole."""

    name = LOAD_SKILL
    overrides = ToolOverrides(budget=LONGEST_BODY)  # a token has at least one character

    def __init__(self, skills: Mapping[str, Skill]):
        self._skills = dict(skills)
        self.spec = SkillRequest.spec_of(
            LOAD_SKILL, "Get the instructions of a skill, before work of that kind. Follow them."
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """The skills as a prompt lists them."""
        return tuple(Note(skill.name, skill.description) for skill in self._skills.values())

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The skill's instructions. Raises `ToolFailed` with similar names for an unknown skill."""
        name = SkillRequest.read(arguments).name.strip()
        skill = self._skills.get(name)
        if skill is None:
            meant = list(near(name, self._skills, 3, 0.4))
            message = f"there is no skill {name[:80]!r}; there are: {', '.join(self._skills)}"
            raise ToolFailed(message, error="unknown_skill", near=meant)
        return skill.body


def skills_of(registry: ToolRegistry) -> tuple[Note, ...]:
    """The skills that an agent with these tools may load, as its prompt lists them."""
    entry = registry.get(LOAD_SKILL)
    return entry.tool.notes if entry is not None and isinstance(entry.tool, LoadSkill) else ()
