"""`load_skill`: gives a model the instructions of a skill that its prompt only names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.context import Note
from hubbub.agents.skills.files import LONGEST_BODY, Skill
from hubbub.agents.tools.base import CallSite, ReadingTool, ToolFailed
from hubbub.agents.tools.registry import Registry
from hubbub.agents.tools.tuning import Tuning

__all__ = ["LOAD_SKILL", "LoadSkill", "skills_of"]

LOAD_SKILL = "load_skill"


class LoadSkill(ReadingTool):
    """The tool. Its result is not cut: half of an instruction may say the opposite of the whole."""

    name = LOAD_SKILL
    tuning = Tuning(budget=LONGEST_BODY)  # a token has a character at least

    def __init__(self, skills: Mapping[str, Skill]):
        self._skills = dict(skills)
        self.spec = ToolSpec(
            LOAD_SKILL,
            "Get the instructions of a skill, before work of that kind. Follow them.",
            {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "Of the skill."}},
                "required": ["name"],
                "additionalProperties": False,
            },
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """The skills as a prompt names them."""
        return tuple(Note(skill.name, skill.description) for skill in self._skills.values())

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The skill's instructions. Raises `ToolFailed` with near names for an unknown one."""
        name = str(arguments["name"]).strip()
        skill = self._skills.get(name)
        if skill is None:
            folded = {known.casefold(): known for known in self._skills}
            near = [folded[n] for n in get_close_matches(name.casefold(), folded, 3, 0.4)]
            words = f"there is no skill {name[:80]!r}; there are: {', '.join(self._skills)}"
            raise ToolFailed(words, error="unknown_skill", near=near)
        return skill.body


def skills_of(registry: Registry) -> tuple[Note, ...]:
    """The skills that an agent with these tools may load, as its prompt names them."""
    entry = registry.get(LOAD_SKILL)
    return entry.tool.notes if entry is not None and isinstance(entry.tool, LoadSkill) else ()
