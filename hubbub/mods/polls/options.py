"""The options of a poll: which may stand side by side, and which of them somebody means."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.polls.shelf import Row
from hubbub.mods.polls.words import CreatePoll
from hubbub.protocol.codes import ErrorCode

__all__ = ["check_poll", "places_of"]


def check_poll(args: CreatePoll, now: float) -> None:
    """Raises `OperationError` for options that read the same, or a deadline that has passed."""
    seen = {_same(option) for option in args.options}
    if len(seen) < len(args.options) or "" in seen:
        raise OperationError(ErrorCode.BAD_REQUEST, "options: each must say something of its own")
    if args.deadline is not None and args.deadline.timestamp() <= now:
        text = f"deadline: {args.deadline:%Y-%m-%d %H:%M %Z} has passed"
        raise OperationError(ErrorCode.BAD_REQUEST, text)


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


def places_of(row: Row, choices: Sequence[str]) -> Sequence[int]:
    """The places of the options that somebody votes for. Raises `OperationError`."""
    options = row.options
    by_name = {str(n): n - 1 for n in range(1, len(options) + 1)}
    by_name |= {_same(text): place for place, text in enumerate(options)}
    unknown = [choice for choice in choices if _same(choice) not in by_name]
    if unknown:
        names = ", ".join(f"{n}: {text}" for n, text in enumerate(options, 1))
        text = f"options: p{row.id} has no {unknown[0]!r}, but {names}"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    places = sorted({by_name[_same(choice)] for choice in choices})
    if len(places) > 1 and not row.multiple:
        raise OperationError(ErrorCode.BAD_REQUEST, f"options: p{row.id} takes one of them only")
    return places
