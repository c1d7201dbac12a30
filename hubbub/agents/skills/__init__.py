"""Instructions that a model loads when it needs them."""

from __future__ import annotations

from hubbub.agents.skills.files import Skill, load_skills, read_skill
from hubbub.agents.skills.tool import LOAD_SKILL, LoadSkill, skills_of

__all__ = ["LOAD_SKILL", "LoadSkill", "Skill", "load_skills", "read_skill", "skills_of"]
