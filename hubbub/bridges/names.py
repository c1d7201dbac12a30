"""What a person of another chat is called here."""

from __future__ import annotations

import hashlib
import re

__all__ = ["is_puppet", "puppet_name"]

_PLAIN = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*\Z")
_MOST = 24
"""Characters of a name that are kept: with a bridge's name and the digest it stays an id."""


def puppet_name(bridge: str, person: str) -> str:
    """The participant that stands for `person`, an id of the other chat.

    No two people have the same one: an id that cannot stand as it is gets a digest behind `--`,
    which no plain one contains.
    """
    if _PLAIN.match(person) and len(person) <= _MOST:
        return f"{bridge}-{person}"
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", person).strip("-")[:_MOST].rstrip("-")
    return f"{bridge}-{readable}--{hashlib.sha256(person.encode()).hexdigest()[:16]}"


def is_puppet(bridge: str, participant: str) -> bool:
    """Whether a participant of this name stands for a person of the bridge's other chat."""
    return participant.startswith(f"{bridge}-")
