"""Times as people and models write them in arguments, and as they are answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, overload

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

__all__ = ["Moment", "Time", "time_of"]


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
