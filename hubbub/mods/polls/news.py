"""What the mod `polls` has to say in a digest."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.mods.digesting import News
from hubbub.mods.ids import BEYOND
from hubbub.mods.polls.shelf import Shelf
from hubbub.mods.polls.tally import result_of

__all__ = ["news_of"]


async def news_of(
    shelf: Shelf, threads: Collection[str], reader: str, after: float, limit: int
) -> Sequence[News]:
    """Polls in which the reader has not voted, and those that have ended since `after`."""
    found: list[News] = []
    for row in await shelf.of_threads(threads, "open", BEYOND, limit):
        if not await shelf.of_voter(row, reader):
            text = f"poll p{row.id}: {row.question}"
            found.append(News("waiting", row.thread, f"p{row.id}", text))
    for row in await shelf.of_threads(threads, "closed", BEYOND, limit):
        if row.closed_at is not None and row.closed_at >= after:
            result = result_of(await shelf.counts(row), row.voters, row.quorum)
            won = ", ".join(row.options[place] for place in result.winners) or "no result"
            text = f"poll p{row.id}: {row.question} {won}"
            found.append(News("decided", row.thread, f"p{row.id}", text))
    return found
