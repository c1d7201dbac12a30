"""Search, digest, and who can do something: what is asked, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hubbub.cli.chat.lines import Note
from hubbub.cli.chat.text import one_line
from hubbub.cli.control.words import moment
from hubbub.cli.output import counted
from hubbub.cli.workplace import works
from hubbub.cli.workplace.told import Told, done, table
from hubbub.errors import UserError
from hubbub.mods.digest.schemas import Digest, ThreadDigest, Visit
from hubbub.mods.directory.schemas import FoundAgent, FoundAgents
from hubbub.mods.search.schemas import FoundItem, SearchHits

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker
    from hubbub.cli.control.told import Shown

__all__ = ["Finding", "agent_notes", "digest_notes", "hit_notes"]


class Finding:
    """Looks for what was said, what is new, and who can help."""

    def __init__(self, asker: Asker):
        self._asker = asker
        self._next: tuple[str, str] | None = None  # the query of the last search, and its cursor
        self._upto: int | None = None  # what the last digest told of

    async def do(self, work: works.OfFinding) -> Told:
        """Do it. Raises `UserError`, `OperationError`."""
        match work:
            case works.Search(query):
                return await self._search(query)
            case works.Digest():
                return await self._mark() if work.mark else await self._digest(work.since)
            case works.Find(need):
                found = await self._asker.ask(FoundAgents, "find_agent", need=need, people=True)
                return Told(agent_notes(found))
            case _:
                assert_never(work)

    async def _search(self, query: str) -> Told:
        cursor = ""
        if not query:
            if self._next is None:
                raise UserError("there is no next page; /search <words> searches")
            query, cursor = self._next
        hits = await self._asker.ask(SearchHits, "search", query=query, cursor=cursor)
        self._next = (query, hits.cursor) if hits.more else None
        self._asker.known.seen.note((hit.id, hit.title) for hit in hits.hits if hit.title)
        return Told(hit_notes(hits, self._asker.shown))

    async def _digest(self, since: str) -> Told:
        found = await self._asker.ask(Digest, "digest", since=since)
        self._upto = found.upto
        return Told(digest_notes(found, self._asker.shown))

    async def _mark(self) -> Told:
        if self._upto is None:
            raise UserError("look at it first: /digest")
        await self._asker.ask(Visit, "mark_visit", upto=self._upto)
        return done("the next digest begins here")


def hit_notes(found: SearchHits, shown: Shown) -> list[Note]:
    """Two lines a hit: where it stands, and how it reads there."""
    notes: list[Note] = []
    for hit in found.hits:
        notes += [Note(_hit_head(hit, shown)), Note(f"    {one_line(hit.snippet)}", "plain")]
    if not found.hits:
        notes.append(Note("nothing found"))
    if found.indexing:
        notes.append(Note("earlier messages are still being indexed: some may be missing"))
    if found.note:
        notes.append(Note(found.note))
    if found.more:
        notes.append(Note("/search shows what comes next"))
    return notes


def _hit_head(hit: FoundItem, shown: Shown) -> str:
    outside = "[outside]" if hit.outside else ""
    parts = (hit.id, one_line(hit.title), hit.by, shown(hit.thread_id), moment(hit.at), outside)
    return "  ".join(part for part in parts if part)


def digest_notes(found: Digest, shown: Shown) -> list[Note]:
    """What waits, what was decided, then each thread."""
    notes = []
    for waits in found.waiting:
        by = f" from {waits.by}" if waits.by else ""
        notes.append(Note(one_line(f"! {waits.kind} {waits.id}{by}: {waits.text}"), "plain"))
    notes += [Note(one_line(f"* {decided}"), "plain") for decided in found.decided]
    for thread in found.threads:
        notes += _of_thread(thread, shown)
    if not (found.threads or found.waiting or found.decided):
        notes.append(Note("nothing new"))
    if found.more:
        notes.append(Note("there is something new in other threads, too"))
    if found.note:
        notes.append(Note(found.note))
    if found.threads:
        notes.append(Note("/digest mark: the next one begins behind this"))
    return notes


def _of_thread(thread: ThreadDigest, shown: Shown) -> list[Note]:
    count = counted(thread.count, "message", "messages")
    more = "" if thread.counted else "more than "
    mentions = f", {counted(thread.mentions, 'mention', 'mentions')}" if thread.mentions else ""
    who = ", ".join(f"{each.id} {each.count}" for each in thread.speakers)
    head = Note(f"{shown(thread.thread_id)}: {more}{count}{mentions} ({who})")
    if thread.summary:
        return [head, Note(f"    {one_line(thread.summary)}", "plain")]
    lines = [thread.first, thread.last] if thread.count > 1 else [thread.first]
    return [
        head,
        *(Note(f"    {line.id} {line.by}: {one_line(line.text)}", "plain") for line in lines),
    ]


def agent_notes(found: FoundAgents) -> list[Note]:
    """Who fits, the best first; or what to do if nobody does."""
    if not found.agents:
        return [Note(found.advice.replace("list_agents shows", "/who shows") or "nobody")]
    rows = [
        (agent.id, _state(agent), ", ".join(agent.why), agent.cost, agent.description)
        for agent in found.agents
    ]
    return table(("NAME", "STATE", "FITS", "COST", ""), rows)


def _state(agent: FoundAgent) -> str:
    if not agent.present:
        return "away"
    return f"busy ({agent.open})" if agent.open else "free"
