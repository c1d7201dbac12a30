"""The mod `search`: full-text search over messages and the searchable items of other mods.

mods:
  - documents
  - search
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from hubbub.errors import LogDamaged, OperationError, StoreUnavailable
from hubbub.ids import parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling, Statement, bad_request, operation
from hubbub.mods.search.schemas import FoundItem, SearchFor, SearchHits
from hubbub.mods.text_search import (
    Findable,
    Searchable,
    SearchHit,
    SearchQuery,
    indexable,
    snippet_of,
    words_of,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = ["SearchMod"]

_TEXT = "INSERT INTO search_text (rowid, text) VALUES (?, ?)"
_MESSAGE = "INSERT INTO search_message VALUES (?, ?, ?, ?, ?, ?)"

# For a message that may be indexed already, or whose amendments may have been indexed before it.
_TEXT_ONCE = """
INSERT INTO search_text (rowid, text)
SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM search_message WHERE row = ?1)
"""
_MESSAGE_ONCE = """
INSERT INTO search_message
SELECT ?1, iif(EXISTS (SELECT 1 FROM search_amendment WHERE message = ?2), NULL, ?2), ?3, ?4, ?5, ?6
WHERE NOT EXISTS (SELECT 1 FROM search_message WHERE row = ?1)
"""

# An amended message keeps its sender and time.
_AMENDED = """
INSERT OR IGNORE INTO search_message
SELECT ?1, NULL, ?3, ?4, coalesce(max(m.sender), ?5), coalesce(max(m.at), ?6)
FROM search_message AS m WHERE m.row = ?2
"""
_AMENDMENT = "INSERT OR IGNORE INTO search_amendment VALUES (?, ?, ?)"
_SHOWS = """
UPDATE search_message SET shows = iif(
    row = (SELECT max(row) FROM search_amendment WHERE message = ?1)
    AND NOT EXISTS (SELECT 1 FROM search_amendment WHERE message = ?1 AND deleted), ?1, NULL)
WHERE row = ?1 OR row IN (SELECT row FROM search_amendment WHERE message = ?1)
"""

_FOUND = """
SELECT m.shows, m.thread, m.sender, m.at, bm25(search_text) AS score
FROM search_text CROSS JOIN search_message AS m ON m.row = search_text.rowid
WHERE search_text MATCH ? AND m.shows IS NOT NULL AND m.row <= ?
    AND m.{place} IN (SELECT value FROM json_each(?)){more}
ORDER BY score, m.row DESC LIMIT ? OFFSET ?
"""


def index_statements(message: Message, *, again: bool = False) -> Sequence[Statement]:
    """The rows for a message that enters the log. `again`: the message or its amendments may be
    indexed already."""
    row, text = message.seq, indexable(_text(message))
    scope, at = thread_ids.root(message.thread_id), message.sent_at.timestamp()
    where = (scope, message.thread_id, message.sender_id, at)
    texts = [Statement(_TEXT_ONCE if again else _TEXT, (row, text))] if text else []
    amends = message.amends
    if amends is None:
        return [*texts, Statement(_MESSAGE_ONCE if again else _MESSAGE, (row, row, *where))]
    original = parse_message_id(amends.message_id) or 0
    return [
        *(() if amends.kind == "deleted" else texts),
        Statement(_AMENDED, (row, original, *where)),
        Statement(_AMENDMENT, (original, row, int(amends.kind == "deleted"))),
        Statement(_SHOWS, (original,)),
    ]


def _text(message: Message) -> str:
    names = (attachment.name for attachment in message.attachments)
    return "\n".join((message.text, *names)) if message.attachments else message.text


class MessageIndex:
    """The full-text index of the log."""

    def __init__(self, host: Host):
        self._host = host

    async def indexed_upto(self, head: int) -> int:
        """The position up to which every entry is indexed."""
        ((done,),) = await self._host.rows("SELECT done FROM search_state")
        sql = "SELECT count(*) FROM search_message WHERE row > ? AND row <= ?"
        ((count,),) = await self._host.rows(sql, done, head)
        return head if count == head - done else int(done)

    async def add(self, messages: Sequence[Message], done: int) -> None:
        """Index messages of the log, and record that everything up to `done` is indexed. Raises
        `StoreUnavailable`."""
        statements = [
            each for message in messages for each in index_statements(message, again=True)
        ]
        await self._host.write(
            [*statements, Statement("UPDATE search_state SET done = ?", (done,))]
        )

    async def find(
        self, search: SearchQuery, *, everywhere: bool, upto: int
    ) -> Sequence[SearchHit]:
        """Matching messages without their texts, best first. `everywhere`: search all threads of
        the reader. `upto`: ignore entries after this position."""
        threads = {*map(thread_ids.root, search.threads)} if everywhere else search.threads
        more, values = search.conditions("m.sender", "m.at")
        sql = _FOUND.format(place="scope" if everywhere else "thread", more=more)
        places = json.dumps(sorted(threads))
        rows = await self._host.rows(
            sql, search.words.match, upto, places, *values, search.limit, search.skip
        )
        return [
            SearchHit("messages", f"m{seq}", thread, sender, at, "", "", -score)
            for seq, thread, sender, at, score in rows
        ]


log = get_logger(__name__)

BATCH = 200
"""Log entries indexed per transaction."""
RETRY_DELAY_S = 10.0
"""Seconds before indexing is retried after the store failed."""
_INDEX = "index"

Kinds: Sequence[Findable] = ("messages", "documents", "files")


class _Page(NamedTuple):
    """The state of a paginated search."""

    upto: int
    """The last log position when the search began, so that later entries do not shift pages."""
    returned: Mapping[Findable, int]
    """Number of hits returned so far, by kind."""

    @property
    def cursor(self) -> str:
        return ".".join(map(str, (self.upto, *(self.returned.get(kind, 0) for kind in Kinds))))


class SearchMod(Mod):
    """Full-text search over the messages, documents and files that the caller can read, best match
    first.

    It covers the threads that the caller can read at that moment, and never the direct threads of
    others, not even for owners. Only the latest text of an edited message is searched; deleted
    messages are not found.
    """

    name = "search"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._index: MessageIndex
        self._started_at = 0
        """Entries after this log position are indexed as they enter the log."""
        self._done = 0
        """Everything up to this position is indexed."""

    # The index ----------------------------------------------------------------------------

    async def start(self) -> None:
        self._index = MessageIndex(self.host)
        self._started_at = self.host.head
        self._done = await self._index.indexed_upto(self._started_at)
        if self._done < self._started_at:
            self.host.spawn(self._catch_up())

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return index_statements(message)

    def on_timer(self, key: str) -> None:
        if key == _INDEX:
            self.host.spawn(self._catch_up())

    async def _catch_up(self) -> None:
        """Index entries from before this start, in batches."""
        try:
            while self._done < self._started_at:
                limit = min(BATCH, self._started_at - self._done)
                messages, done = await self._read(limit)
                await self._index.add(messages, done)
                self._done = done
        except StoreUnavailable:
            self.host.at(self.host.now() + RETRY_DELAY_S, _INDEX)

    async def _read(self, limit: int) -> tuple[Sequence[Message], int]:
        """The next messages, and the position up to which they go. Damaged entries are skipped."""
        try:
            messages = await self.host.log(self._done, limit)
            return messages, messages[-1].seq if messages else self._started_at
        except LogDamaged as damage:
            intact = damage.seq - 1 - self._done
            return (await self.host.log(self._done, intact) if intact > 0 else ()), damage.seq

    # Searching ----------------------------------------------------------------------------

    @operation(cost=2.0)
    async def search(self, call: Calling, args: SearchFor) -> SearchHits:
        """Search your messages, shared documents and files for words, best match first. Use it to
        look up earlier messages and decisions in any of your threads."""
        sources = self._sources(args.kinds)
        page = self._page(args.cursor)
        everywhere, threads = args.thread is None, list(self._threads(call, args.thread))

        async def search_kind(kind: Findable) -> Sequence[SearchHit] | None:
            search = SearchQuery(
                words=words_of(args.query),
                threads=threads,
                by=args.by,
                after=_seconds(args.after),
                before=_seconds(args.before),
                skip=page.returned.get(kind, 0),
                limit=args.limit + 1,
            )
            source = sources[kind]
            if source is None:
                return await self._index.find(search, everywhere=everywhere, upto=page.upto)
            return await _search_source(source, search)

        results = dict(zip(sources, await asyncio.gather(*map(search_kind, sources)), strict=True))
        failed = [kind for kind, hits in results.items() if hits is None]
        merged = sorted(
            (h for hits in results.values() for h in hits or ()), key=lambda h: -h.score
        )
        best = merged[: args.limit]
        returned = {k: page.returned.get(k, 0) + sum(hit.kind == k for hit in best) for k in Kinds}
        more = len(merged) > len(best)
        shown = await asyncio.gather(*(self._shown(call, args, hit) for hit in best))
        hits = tuple(hit for hit in shown if hit is not None)
        return SearchHits(
            hits=hits,
            more=more,
            cursor=_Page(page.upto, returned).cursor if more else "",
            indexing="messages" in sources and self._done < self._started_at,
            untrusted=any(hit.untrusted for hit in hits),
            note=f"not searched because a mod failed: {', '.join(failed)}" if failed else "",
        )

    def _sources(self, kinds: Sequence[Findable]) -> Mapping[Findable, Searchable | None]:
        """The mod to search for each kind, None for this mod itself. Raises `OperationError` for a
        kind that the network does not have."""
        sources: dict[Findable, Searchable | None] = {"messages": None}
        sources |= {mod.finds: mod for mod in self.host.mods() if isinstance(mod, Searchable)}
        for kind in kinds:
            if kind not in sources:
                raise bad_request(
                    f"kinds: this network has no {kind}; available: {', '.join(sources)}"
                )
        return {kind: source for kind, source in sources.items() if not kinds or kind in kinds}

    def _page(self, cursor: str) -> _Page:
        if not cursor:
            return _Page(self.host.head, {})
        upto, *returned = map(int, cursor.split("."))
        return _Page(upto, dict(zip(Kinds, returned, strict=True)))

    def _threads(self, call: Calling, thread: str | None) -> Sequence[str]:
        """The threads to search. Raises `OperationError` for one that the caller cannot read."""
        own = self.host.threads_of(call.participant)
        if thread is None:
            return list(own)
        top = self.host.thread(call, thread)
        return [id for id in own if thread_ids.within(id, top)]

    async def _shown(self, call: Calling, args: SearchFor, hit: SearchHit) -> FoundItem | None:
        """The hit for the answer. None for a message that is no longer readable, or for a notice of
        the hub if the caller is an agent."""
        snippet, untrusted = hit.snippet, hit.untrusted
        if hit.kind == "messages":
            try:
                message = await self.host.message(call, hit.id)
            except OperationError:
                return None  # the reader left the thread during the search
            except LogDamaged as damage:
                return _found(hit, str(damage), hit.untrusted)
            if message.amended == "deleted" or (message.is_notice and call.kind == "agent"):
                return None
            snippet = await snippet_of(words_of(args.query), message.text)
            untrusted = message.untrusted
        return _found(hit, snippet, untrusted)


def _found(hit: SearchHit, snippet: str, untrusted: bool) -> FoundItem:
    return FoundItem(
        kind=hit.kind,
        id=hit.id,
        thread_id=hit.thread,
        by=hit.by,
        at=time_of(hit.at),
        snippet=snippet,
        title=hit.title,
        untrusted=untrusted,
    )


async def _search_source(source: Searchable, search: SearchQuery) -> Sequence[SearchHit] | None:
    """The hits of another mod. None if it fails, so that the other sources still count."""
    try:
        return await source.found(search)
    except (OperationError, StoreUnavailable):
        raise
    except Exception:
        log.exception("a mod cannot be searched", kind=source.finds)
        return None


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
