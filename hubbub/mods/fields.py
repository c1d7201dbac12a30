"""Ids, positions and times as operations of mods are given them, and as they answer them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, overload

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

__all__ = [
    "BEYOND",
    "MessageId",
    "Moment",
    "Position",
    "Time",
    "id_pattern",
    "number_before",
    "number_of",
    "time_of",
]

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


def _understood(given: object) -> object:
    """Whatever ISO 8601 allows."""
    if not isinstance(given, str):
        return given
    try:
        return datetime.fromisoformat(given.strip())
    except ValueError:
        return given


def _with_zone(given: datetime) -> datetime:
    return given if given.tzinfo else given.replace(tzinfo=UTC)


Time = Annotated[datetime, BeforeValidator(_understood), AfterValidator(_with_zone)]
"""A time, or a day for its beginning; UTC where no zone is given."""


def _in_utc(given: datetime) -> datetime:
    """Raises `ValueError` for a time of which UTC has none."""
    try:
        given.astimezone(UTC)
    except OverflowError:
        raise ValueError("there is no such time in UTC, whose years end with 9999") from None
    return given


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time with its zone that is kept."""


@overload
def time_of(seconds: float) -> datetime: ...
@overload
def time_of(seconds: float | None) -> datetime | None: ...
def time_of(seconds: float | None) -> datetime | None:
    """The moment that tables keep as seconds since the epoch; None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
