"""Ids and positions as operations of mods are given them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["BEYOND", "MessageId", "Position", "id_pattern", "number_before", "number_of"]

BEYOND = 2**62
"""More than any number or position."""

Position = Annotated[int, Field(ge=1, le=BEYOND)]
"""Of a message, in the log or in its thread."""


def id_pattern(letter: str) -> str:
    """Of ids that are a letter and a number, such as t3."""
    return rf"^{letter}[1-9][0-9]{{0,17}}$"


MessageId = Annotated[str, Field(pattern=id_pattern("m"))]


def number_of(id: str) -> int:
    """The number in an id of such a pattern."""
    return int(id[1:])


def number_before(id: str | None) -> int:
    """The number below which a list begins that may name one of its ids as `before`."""
    return BEYOND if id is None else number_of(id)
