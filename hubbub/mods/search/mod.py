"""The mod `search`: full-text search over messages, and over what other mods let be found.

mods:
  - documents
  - search
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from hubbub.errors import LogDamaged, OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.mods.rows import Statement
from hubbub.mods.search.index import Index, indexed
from hubbub.mods.search.words import Found, SearchFor, SearchHits
from hubbub.mods.searching import Findable, Hit, Search, Searchable, snippet_of, words_of
from hubbub.mods.times import time_of
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["SearchMod"]

log = get_logger(__name__)

PIECE = 200
"""Entries of the log that are indexed in one transaction."""
AGAIN_S = 10.0
"""Until indexing goes on after the store has refused."""
_INDEX = "index"

Kinds: Sequence[Findable] = ("messages", "documents", "files")


class _Page(NamedTuple):
    """How far a search has been given out."""

    upto: int
    """The last position of the log when it began: what came later does not shift its pages."""
    given: Mapping[Findable, int]

    @property
    def cursor(self) -> str:
        return ".".join(map(str, (self.upto, *(self.given.get(kind, 0) for kind in Kinds))))


class SearchMod(Mod):
    """Full-text search over the messages, documents and files that the asker may read, the best
    first.

    It finds what the asker may read at that moment, in its own threads: never the direct threads
    of others, for owners neither. Of an edited message only the latest text is found, of a deleted
    one nothing.
    """

    name = "search"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._index: Index
        self._before = 0
        """What is behind this position was indexed as it entered the log."""
        self._done = 0
        """Everything up to this position is indexed."""

    # The index ----------------------------------------------------------------------------

    async def start(self) -> None:
        self._index = Index(self.host)
        self._before = self.host.head
        self._done = await self._index.done(self._before)
        if self._done < self._before:
            self.host.spawn(self._catch_up())

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return indexed(message)

    def on_timer(self, key: str) -> None:
        if key == _INDEX:
            self.host.spawn(self._catch_up())

    async def _catch_up(self) -> None:
        """Index what is in the log from before this start, in pieces."""
        try:
            while self._done < self._before:
                limit = min(PIECE, self._before - self._done)
                messages, done = await self._read(limit)
                await self._index.keep(messages, done)
                self._done = done
        except StoreUnavailable:
            self.host.at(self.host.now() + AGAIN_S, _INDEX)

    async def _read(self, limit: int) -> tuple[Sequence[Message], int]:
        """The next messages, and up to where they go. What is damaged cannot be found."""
        try:
            messages = await self.host.log(self._done, limit)
            return messages, messages[-1].seq if messages else self._before
        except LogDamaged as damage:
            whole = damage.seq - 1 - self._done
            return (await self.host.log(self._done, whole) if whole > 0 else ()), damage.seq

    # Searching ----------------------------------------------------------------------------

    @operation(cost=2.0)
    async def search(self, call: Calling, args: SearchFor) -> SearchHits:
        """Search your messages, shared documents and files for words; the best hits come first.
        Use it to find what was said or decided earlier, in any of your threads."""
        sources = self._sources(args.kinds)
        page = self._page(args.cursor)
        whole, threads = args.thread is None, list(self._threads(call, args.thread))

        async def asked(kind: Findable) -> Sequence[Hit] | None:
            search = Search(
                words=words_of(args.query),
                threads=threads,
                by=args.by,
                after=_seconds(args.after),
                before=_seconds(args.before),
                skip=page.given.get(kind, 0),
                limit=args.limit + 1,
            )
            source = sources[kind]
            if source is None:
                return await self._index.found(search, whole=whole, upto=page.upto)
            return await _asked(source, search)

        found = dict(zip(sources, await asyncio.gather(*map(asked, sources)), strict=True))
        failed = [kind for kind, hits in found.items() if hits is None]
        merged = sorted((h for hits in found.values() for h in hits or ()), key=lambda h: -h.score)
        best = merged[: args.limit]
        given = {k: page.given.get(k, 0) + sum(hit.kind == k for hit in best) for k in Kinds}
        more = len(merged) > len(best)
        shown = await asyncio.gather(*(self._shown(call, args, hit) for hit in best))
        hits = tuple(hit for hit in shown if hit is not None)
        return SearchHits(
            hits=hits,
            more=more,
            cursor=_Page(page.upto, given).cursor if more else "",
            indexing="messages" in sources and self._done < self._before,
            outside=any(hit.outside for hit in hits),
            note=f"not searched, because a mod has failed: {', '.join(failed)}" if failed else "",
        )

    def _sources(self, kinds: Sequence[Findable]) -> Mapping[Findable, Searchable | None]:
        """Who is asked for what; None: this mod itself. Raises `OperationError` for kinds that
        the network does not have."""
        sources: dict[Findable, Searchable | None] = {"messages": None}
        sources |= {mod.finds: mod for mod in self.host.mods() if isinstance(mod, Searchable)}
        for kind in kinds:
            if kind not in sources:
                raise OperationError(
                    ErrorCode.BAD_REQUEST,
                    f"kinds: this network has no {kind}; there are: {', '.join(sources)}",
                )
        return {kind: source for kind, source in sources.items() if not kinds or kind in kinds}

    def _page(self, cursor: str) -> _Page:
        if not cursor:
            return _Page(self.host.head, {})
        upto, *given = map(int, cursor.split("."))
        return _Page(upto, dict(zip(Kinds, given, strict=True)))

    def _threads(self, call: Calling, thread: str | None) -> Sequence[str]:
        """Those to look in. Raises `OperationError` for one that the caller does not read."""
        own = self.host.threads_of(call.participant)
        if thread is None:
            return list(own)
        top = self.host.thread(call, thread)
        return [id for id in own if thread_ids.within(id, top)]

    async def _shown(self, call: Calling, args: SearchFor, hit: Hit) -> Found | None:
        """The hit as it is answered; None for a message that is gone meanwhile, or that is a notice
        of the hub and not for agents."""
        snippet, title, outside = hit.snippet, hit.title, hit.outside
        if hit.kind == "messages":
            try:
                message = await self.host.message(call, hit.id)
            except OperationError:
                return None  # the reader has left the thread while we looked
            if message.amended == "deleted" or (message.is_notice and call.kind == "agent"):
                return None
            snippet = await snippet_of(words_of(args.query), message.text)
            outside = message.outside
        return Found(
            kind=hit.kind,
            id=hit.id,
            thread_id=hit.thread,
            by=hit.by,
            at=time_of(hit.at),
            snippet=snippet,
            title=title,
            outside=outside,
        )


async def _asked(source: Searchable, search: Search) -> Sequence[Hit] | None:
    """What another mod finds; None if it fails, which is no reason to find nothing else."""
    try:
        return await source.found(search)
    except (OperationError, StoreUnavailable):
        raise
    except Exception:
        log.exception("a mod cannot be searched", kind=source.finds)
        return None


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
