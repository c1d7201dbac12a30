"""Types for ids, positions and times in the inputs and outputs of mods' operations."""

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
"""Greater than any id number or position."""

Position = Annotated[int, Field(ge=1, le=BEYOND)]
"""Position of a message in the log or in its thread."""
Limit = Annotated[int, Field(ge=1, le=200)]
"""Maximum number of results in one answer."""
Line = r"^[^\x00-\x1f\x7f]+$"
"""Pattern for text in one line."""


def id_pattern(letter: str) -> str:
    """Pattern for ids that consist of a letter and a number, such as t3."""
    return rf"^{letter}[1-9][0-9]{{0,17}}$"


MessageId = Annotated[str, Field(pattern=id_pattern("m"))]


class ListInput(Input):
    """Input of a list that goes back in time. `before` is the id of a listed item."""

    thread: ThreadRef | None = None
    """Only items of this thread."""
    before: str | None = None
    """Only items created before the one with this id."""
    limit: Limit = 50
    """Maximum number of results."""


def named_thread(name: str) -> str:
    """The canonical id of a thread named in settings. Raises a pydantic validation error."""
    thread = thread_ids.canonical(name, "")
    if thread is None:
        raise wrong(f"{name!r} is not a thread: use channel_name, broadcast, direct or mod_name")
    return thread


def number_of(id: str) -> int:
    """The number in an id such as t3."""
    return int(id[1:])


def number_before(id: str | None) -> int:
    """The exclusive upper bound for a list with this `before`."""
    return BEYOND if id is None else number_of(id)


def _parse_iso(value: object) -> object:
    """Accepts all of ISO 8601."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value.strip().upper())
    except ValueError:
        text = "expected a time or a date, for example 2026-01-31T09:00 or 2026-01-31"
        raise wrong(text) from None


def _with_zone(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


Time = Annotated[datetime, BeforeValidator(_parse_iso), AfterValidator(_with_zone)]
"""A time, or a date, which means its start. UTC if no zone is given."""


def _parse_zoned(value: object) -> object:
    """Accepts all of ISO 8601 with a time zone."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value.strip().upper())
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise wrong("expected a time and its zone, for example 2026-01-31T09:00+01:00")
    return time


def _check_utc(time: datetime) -> datetime:
    """Raises an error for a time that UTC cannot represent."""
    try:
        time.astimezone(UTC)
    except OverflowError:
        raise wrong("this time does not exist in UTC, which ends with the year 9999") from None
    return time


Moment = Annotated[AwareDatetime, BeforeValidator(_parse_zoned), AfterValidator(_check_utc)]
"""A time with its own zone."""


@overload
def time_of(seconds: float) -> datetime: ...
@overload
def time_of(seconds: float | None) -> datetime | None: ...
def time_of(seconds: float | None) -> datetime | None:
    """The time for seconds since the epoch, as stored in tables. None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def seconds_of(time: datetime | None) -> float | None:
    """The inverse of `time_of`."""
    return None if time is None else time.timestamp()


# Fields of answers, converted from table columns.


def _from_seconds(value: object) -> object:
    return time_of(value) if isinstance(value, int | float) else value


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


At = Annotated[AwareDatetime, BeforeValidator(_from_seconds)]
"""A time, stored in tables as seconds since the epoch."""
Texts = Annotated[tuple[str, ...], BeforeValidator(_from_json)]
"""Texts, stored in tables as a JSON list."""
