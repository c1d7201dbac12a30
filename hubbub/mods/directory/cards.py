"""Cards as the directory tells them: what somebody came with, and what it has changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from hubbub.mods.directory.words import AgentCard, UpdateCard
from hubbub.mods.searching import indexable
from hubbub.protocol.messages import Participant

__all__ = ["Changes", "changed", "digest_of", "told", "words"]

Changes = Mapping[str, JsonValue]
"""Fields of a card that its participant has changed, by name."""

LONGEST = 2_000
"""Characters of one field: cards that participants come with may hold anything."""
MOST_SKILLS = 50
_FIELDS = ("description", "skills", "inputs", "cost", "availability")


def changed(before: Changes, update: UpdateCard) -> Changes:
    """What is changed afterwards. An empty field is taken back."""
    given = update.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in {**before, **given}.items() if value}


def told(participant: Participant, changes: Changes) -> AgentCard:
    card: dict[str, Any] = {**participant.card.model_dump(mode="json"), **changes}
    # Any: JSON, whose fields the participant names.
    skills = card.get("skills") or ()
    return AgentCard(
        id=participant.id,
        kind=participant.kind,
        present=participant.present,
        description=_text(card.get("description")),
        skills=tuple(_text(skill) for skill in skills[:MOST_SKILLS]),
        inputs=_text(card.get("inputs")),
        cost=_text(card.get("cost")),
        availability=_text(card.get("availability")),
        more={name: value for name, value in card.items() if name not in _FIELDS},
    )


def _text(value: JsonValue) -> str:
    """A field that may be anything, as text."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(map(str, value))
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:LONGEST]


def words(card: AgentCard) -> tuple[str, str, str]:
    """What is searched of a card: its name, its skills, the rest."""
    more = json.dumps(card.more, ensure_ascii=False)[:LONGEST] if card.more else ""
    about = "\n".join((card.description, card.inputs, card.availability, more))
    return card.id, indexable("\n".join(card.skills)), indexable(about)


def digest_of(searched: tuple[str, str, str]) -> str:
    return hashlib.sha256("\0".join(searched).encode()).hexdigest()[:32]
