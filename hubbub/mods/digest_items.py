"""Mods that have something to say in a digest: what waits for somebody, and what was decided.

A mod with things that wait for people or come to an end (tasks, polls) is `DigestSource`; the mod
`digest` asks all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.operation import Calling

__all__ = ["DigestItem", "DigestSource", "items_of"]

log = get_logger(__name__)


class DigestItem(NamedTuple):
    """One line of a digest."""

    kind: Literal["waiting", "decided"]
    """waiting: for the reader, now. decided: closed or finished, since the time asked for."""
    thread: str
    """Canonical id of the thread that it belongs to: one that the reader reads."""
    id: str
    """Of the task, poll or whatever it is."""
    text: str
    """What it is, in one line."""


@runtime_checkable
class DigestSource(Protocol):
    """A mod that has news for digests."""

    name: ClassVar[str]

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """What waits for the caller now, and what was decided since `after` (seconds since the
        epoch) where the caller reads it; the latest first, at most `limit` of each kind."""
        ...


async def items_of(
    mods: Sequence[object], call: Calling, after: float, limit: int
) -> tuple[list[DigestItem], list[str]]:
    """The news of all mods that have some, and the names of those that have failed: one mod's
    failure is no reason to tell nothing of the others. Raises `OperationError` and
    `StoreUnavailable`, which are no failures of a mod."""
    told: list[DigestItem] = []
    failed: list[str] = []
    for mod in mods:
        if not isinstance(mod, DigestSource):
            continue
        try:
            told += [DigestItem(*each) for each in await mod.news(call, after, limit)]
        except (OperationError, StoreUnavailable):
            raise
        except Exception:  # a mod of others may raise anything
            log.exception("a mod has no news for a digest", failed=mod.name)
            failed.append(mod.name)
    return told, failed
