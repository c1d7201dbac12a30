"""Ids, positions and times as operations of mods are given them, and as they answer them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, overload

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from hubbub.config.units import wrong
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import ThreadRef
from hubbub.protocol.operations import Input

BEYOND = 2**62
"""More than any number or position."""

Position = Annotated[int, Field(ge=1, le=BEYOND)]
"""Of a message, in the log or in its thread."""
Limit = Annotated[int, Field(ge=1, le=200)]
"""How many one answer has at most."""
Line = r"^[^\x00-\x1f\x7f]+$"
"""A pattern: text in one line."""


def id_pattern(letter: str) -> str:
    """Of ids that are a letter and a number, such as t3."""
    return rf"^{letter}[1-9][0-9]{{0,17}}$"


MessageId = Annotated[str, Field(pattern=id_pattern("m"))]


class ListInput(Input):
    """What a list is asked for that goes back in time; `before` is an id of such things."""

    thread: ThreadRef | None = None
    """Only those of this thread."""
    before: str | None = None
    """Only those that were created before this one."""
    limit: Limit = 50
    """How many at most."""


def named_thread(name: str) -> str:
    """The canonical id of a thread in settings. Raises what pydantic takes for a mistake."""
    found = thread_ids.canonical(name, "")
    if found is None:
        raise wrong(f"{name!r} is no thread: write channel_name, broadcast, direct or mod_name")
    return found


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
"""A time that keeps its zone."""


@overload
def time_of(seconds: float) -> datetime: ...
@overload
def time_of(seconds: float | None) -> datetime | None: ...
def time_of(seconds: float | None) -> datetime | None:
    """The moment that tables keep as seconds since the epoch; None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def seconds_of(time: datetime | None) -> float | None:
    """The same the other way."""
    return None if time is None else time.timestamp()


# What answers have, made of the columns of tables.


def _from_seconds(value: object) -> object:
    return time_of(value) if isinstance(value, int | float) else value


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


At = Annotated[AwareDatetime, BeforeValidator(_from_seconds)]
"""A moment; in tables seconds since the epoch."""
Texts = Annotated[tuple[str, ...], BeforeValidator(_from_json)]
"""Texts; in tables a JSON list."""
