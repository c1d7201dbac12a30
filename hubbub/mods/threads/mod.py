"""The mod `threads`: titles, resolving, following and muting threads, and quotes that are true.

mods:
  - threads: {reopen: people}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.fields import BEYOND
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling, Commit, Statement, bad_request, operation
from hubbub.mods.repository import page_of, put
from hubbub.mods.threads.schemas import (
    Choice,
    ListThreadInfo,
    SetThreadTitle,
    ThreadChoice,
    ThreadInfo,
    ThreadInfos,
    ThreadState,
    WhichThread,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Draft, Message, Quote

__all__ = ["ThreadsConfig", "ThreadsMod", "excerpt_of", "stands_in", "title_of"]


class ThreadRow(NamedTuple):
    """What was said about a thread."""

    title: str | None = None
    titled_by: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None
    amendments: int = 0
    """Edits and deletions in it."""

    def but(self, values: Mapping[str, str | float | None]) -> ThreadRow:
        return ThreadRow(**{**self._asdict(), **values})

    def to_schema(self, thread: str) -> ThreadState:
        return ThreadState(thread_id=thread, **self._asdict())


class StoredChoice(NamedTuple):
    """What a participant has said about a thread, or one that it stands in."""

    choice: Choice
    thread: str


def choice_schema(thread: str, found: StoredChoice | None) -> ThreadChoice:
    return ThreadChoice(
        thread_id=thread,
        followed=found is not None and found.choice == "followed",
        muted=found is not None and found.choice == "muted",
        chosen_in=None if found is None else found.thread,
    )


def said_of(thread: str, **values: str | float | None) -> Statement:
    """What is said of a thread: fields of `ThreadRow`."""
    return put("threads_thread", "thread", thread=thread, **values)


def amended(thread: str) -> Statement:
    """One more edit or deletion in the thread."""
    sql = (
        "INSERT INTO threads_thread (thread, amendments) VALUES (?, 1) "
        "ON CONFLICT (thread) DO UPDATE SET amendments = amendments + 1"
    )
    return Statement(sql, (thread,))


def chosen(thread: str, participant: str, choice: Choice | None) -> Statement:
    """None: nothing any more."""
    if choice is None:
        sql = "DELETE FROM threads_choice WHERE thread = ? AND participant = ?"
        return Statement(sql, (thread, participant))
    sql = "INSERT OR REPLACE INTO threads_choice (thread, participant, choice) VALUES (?, ?, ?)"
    return Statement(sql, (thread, participant, choice))


_COLUMNS = ", ".join(ThreadRow._fields)


class ThreadRepository:
    """What is durable, as memory has it: read at the start, and changed after the commit."""

    def __init__(self, host: Host):
        self._host = host
        self._rows: dict[str, ThreadRow] = {}
        self._choices: dict[str, dict[str, Choice]] = {}
        """By thread and participant."""

    async def read(self) -> None:
        """All that is stored."""
        for thread, *rest in await self._host.rows(
            f"SELECT thread, {_COLUMNS} FROM threads_thread"
        ):
            self._rows[thread] = ThreadRow(*rest)
        sql = "SELECT thread, participant, choice FROM threads_choice"
        for thread, participant, choice in await self._host.rows(sql):
            self._choices.setdefault(thread, {})[participant] = choice

    async def read_again(self, thread: str) -> ThreadRow:
        """What is stored of a thread."""
        sql = f"SELECT {_COLUMNS} FROM threads_thread WHERE thread = ?"
        found = await self._host.rows(sql, thread)
        return ThreadRow(*found[0]) if found else ThreadRow()

    def row(self, thread: str) -> ThreadRow:
        return self._rows.get(thread, _NOTHING)

    def put(self, thread: str, row: ThreadRow) -> None:
        self._rows[thread] = row

    def choose(self, thread: str, participant: str, choice: Choice | None) -> None:
        of = self._choices.setdefault(thread, {})
        if choice is None:
            of.pop(participant, None)
        else:
            of[participant] = choice
        if not of:
            del self._choices[thread]

    @property
    def chosen(self) -> bool:
        """Whether anybody follows or has muted anything."""
        return bool(self._choices)

    def own(self, thread: str, participant: str) -> Choice | None:
        """What a participant has said about just this thread."""
        return self._choices.get(thread, {}).get(participant)

    def of(self, participant: str) -> Sequence[str]:
        """The threads about which a participant has said something."""
        return [thread for thread, of in self._choices.items() if participant in of]

    def choice(self, thread: str, participant: str) -> StoredChoice | None:
        """What holds for a participant in a thread: what it has said about that one, or else about
        the nearest one in which that stands."""
        for each in _upwards(thread):
            own = self.own(each, participant)
            if own is not None:
                return StoredChoice(own, each)
        return None


_NOTHING = ThreadRow()


def _upwards(thread: str) -> Iterator[str]:
    up: str | None = thread
    while up is not None:
        yield up
        up = thread_ids.parent(up)


class ThreadsConfig(ModConfig):
    reopen: Literal["all", "people", "nobody"] = "all"
    """Whose new message opens a resolved thread again."""
    excerpt: Annotated[int, Field(ge=20, le=10_000)] = 280
    """Characters of a message that stand in a quote of it which says no words."""
    longest_quote: Annotated[int, Field(ge=20, le=1_000_000)] = 4_000
    """Characters that a quote may have."""


_ELLIPSES = "….. "
"""What may stand after words that were cut."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_NO_WORD = re.compile(r"[\W_]+")


def excerpt_of(text: str, longest: int) -> str:
    """How a text begins: whole words, as far as `longest` characters go."""
    text = text.strip()
    if len(text) <= longest:
        return text
    words = text[: longest + 1].rpartition(" ")[0].rstrip()
    return words if len(words) > longest // 2 else text[:longest]


def stands_in(quote: str, text: str) -> bool:
    """Whether the words of a quote stand in the text, in this order and without others between.

    What is selected where Markdown is shown has none of its marks, so only words count, and what
    was cut may end with an ellipsis.
    """
    bare = quote.strip().rstrip(_ELLIPSES) or quote.strip()
    if bare in text:
        return True
    words = _words(bare)
    return bool(words) and (words in _words(text) or words in _words(_LINK.sub(r"\1", text)))


def _words(text: str) -> str:
    return _NO_WORD.sub(" ", text).strip()


def why_not(message: Message, quote: Quote) -> str | None:
    """Why a message cannot be quoted so; None if it can."""
    if message.amends is not None:
        of = message.amends.message_id
        return f"quote: {message.id} only changes {of}: quote {of} itself"
    if message.amended == "deleted":
        return f"quote: {message.id} was deleted"
    if quote.text.strip() and not stands_in(quote.text, message.text):
        return f"quote: these words do not stand in {message.id}; leave them out to quote its start"
    return None


LONGEST = 80
"""Characters."""
_LOOKED_AT = 1_000
"""Characters of a text in which its first sentence is looked for."""
_MARKS = re.compile(r"^(?:[#>*+\-\s]+|\d+[.)]\s+)|[*_`~]{1,3}")
_SENTENCE = re.compile(r"(?<=[.!?…])\s|(?<=[。！？])")


def title_of(text: str) -> str | None:
    """The first sentence of a text in one line, without its Markdown; None if it has none."""
    for line in text[:_LOOKED_AT].splitlines():
        plain = " ".join(_MARKS.sub("", _LINK.sub(r"\1", line)).split())
        sentence = _SENTENCE.split(plain, maxsplit=1)[0]
        if sentence:
            return _cut(sentence)
    return None


def _cut(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    words = sentence[: LONGEST - 1].rpartition(" ")[0]
    return f"{words if len(words) > LONGEST // 2 else sentence[: LONGEST - 1]}…"


class ThreadsMod(Mod):
    """Reply threads with titles that are resolved and opened again, threads that are followed and
    muted, and quotes whose words stand in what they quote.
    """

    name = "threads"
    Config = ThreadsConfig
    config: ThreadsConfig
    migrations = "tables"

    def __init__(self, config: ThreadsConfig):
        super().__init__(config)
        self._store: ThreadRepository

    async def start(self) -> None:
        self._store = ThreadRepository(self.host)
        await self._store.read()

    # Messages ---------------------------------------------------------------------------------

    async def on_references(self, draft: Draft) -> Verdict:
        quote = draft.quote
        if quote is None:
            return PASS
        if len(quote.text) > self.config.longest_quote:
            return Reject(f"quote: at most {self.config.longest_quote} characters")
        try:
            message = await self.host.message(draft.sender_id, quote.message_id)
        except OperationError as error:
            return Reject(f"quote: {error.message}")
        why = why_not(message, quote)
        if why is not None:
            return Reject(why)
        if quote.text.strip():
            return PASS
        text = excerpt_of(message.text, self.config.excerpt)
        return Replace(draft.replace(quote=Quote(message_id=message.id, text=text)))

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        if not self._store.chosen or _waits_for_it(draft):
            return ()
        return [a for a in agents if a not in draft.mentions and self._mutes(a, draft.thread_id)]

    def _mutes(self, participant: str, thread: str) -> bool:
        found = self._store.choice(thread, participant)
        return found is not None and found.choice == "muted"

    def watches(self, draft: Draft) -> bool:
        row = self._store.row(draft.thread_id)
        return draft.amends is not None or row.resolved_by is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        thread = message.thread_id
        if message.amends is not None:
            return [amended(thread)] if thread_ids.parent(thread) is not None else ()
        if self._store.row(thread).resolved_by is None or not self._reopens(message):
            return ()
        self.host.spawn(self._look_again(thread))
        return [said_of(thread, resolved_by=None, resolved_at=None)]

    def _reopens(self, message: Message) -> bool:
        if message.sender_kind == "system" or self.config.reopen == "nobody":
            return False
        by_person = message.sender_kind == "human" or message.spoken_by is not None
        return by_person or self.config.reopen == "all"

    async def _look_again(self, thread: str) -> None:
        """Take over what the batch has written that is being made; or nothing, if it failed."""
        await self.host.keep(())  # comes after it
        before, row = self._store.row(thread), await self._store.read_again(thread)
        self._store.put(thread, row)
        if before.resolved_by != row.resolved_by:
            self._tell(thread, row, "reopened")

    # Titles, and what is resolved -------------------------------------------------------------

    @operation(permission="write", output=ThreadState)
    def set_thread_title(self, call: Calling, args: SetThreadTitle) -> Commit:
        """Set the title of a reply thread. Without it, it is called as its first message
        begins."""
        thread = self._reply_thread(call, args.thread)
        title = " ".join(args.title.split()) or None
        by = None if title is None else call.participant
        return self._say(thread, "titled", title=title, titled_by=by)

    @operation(permission="write", output=ThreadState)
    def resolve_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Mark a reply thread as resolved: its question is answered, its matter settled. Say what
        you have to say before: a new message may open it again."""
        thread = self._reply_thread(call, args.thread)
        row = self._store.row(thread)
        if row.resolved_by is not None:
            return Commit((), row.to_schema(thread))
        by, at = call.participant, self.host.now()
        return self._say(thread, "resolved", resolved_by=by, resolved_at=at)

    @operation(permission="write", output=ThreadState)
    def reopen_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Open a resolved reply thread again."""
        thread = self._reply_thread(call, args.thread)
        row = self._store.row(thread)
        if row.resolved_by is None:
            return Commit((), row.to_schema(thread))
        return self._say(thread, "reopened", resolved_by=None, resolved_at=None)

    def _reply_thread(self, call: Calling, name: str) -> str:
        """Raises `OperationError`."""
        thread = self.host.thread(call, name)
        if thread_ids.parent(thread) is None:
            raise bad_request(f"thread: {name[:200]} is no reply thread (see `reply`)")
        return thread

    def _say(self, thread: str, what: str, **values: str | float | None) -> Commit:
        def applied() -> None:
            row = self._store.row(thread).but(values)  # others may have changed it meanwhile
            self._store.put(thread, row)
            self._tell(thread, row, what)

        answer = self._store.row(thread).but(values).to_schema(thread)
        return Commit([said_of(thread, **values)], answer, applied=applied)

    def _tell(self, thread: str, row: ThreadRow, what: str) -> None:
        """Those who have it open are told."""
        told = row.to_schema(thread).model_dump(mode="json", exclude_none=True)
        self.host.signal(thread, what, told)

    # Following and muting ---------------------------------------------------------------------

    @operation(permission="write", output=ThreadChoice)
    def follow_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Follow a thread: you are told of what is new in it, also where you have muted the channel
        or conversation that it stands in. By itself that wakes no agent."""
        return self._choose(call, args.thread, "followed")

    @operation(permission="write", output=ThreadChoice)
    def unfollow_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Stop following a thread."""
        return self._unchoose(call, args.thread, "followed")

    @operation(permission="write", output=ThreadChoice)
    def mute_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Mute a thread, a channel or a conversation, and the reply threads in it: you get its
        messages, but only those that mention you wake you or call for your attention."""
        return self._choose(call, args.thread, "muted")

    @operation(permission="write", output=ThreadChoice)
    def unmute_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Unmute a thread."""
        return self._unchoose(call, args.thread, "muted")

    def _choose(self, call: Calling, name: str, choice: Choice) -> Commit:
        thread, me = self.host.thread(call, name), call.participant
        told = choice_schema(thread, StoredChoice(choice, thread))
        return self._chosen(me, told, choice)

    def _unchoose(self, call: Calling, name: str, choice: Choice) -> Commit:
        thread, me = self.host.thread(call, name), call.participant
        if self._store.own(thread, me) != choice:
            return Commit((), choice_schema(thread, self._store.choice(thread, me)))
        up = thread_ids.parent(thread)
        told = choice_schema(thread, self._store.choice(up, me) if up is not None else None)
        return self._chosen(me, told, None)

    def _chosen(self, me: str, told: ThreadChoice, choice: Choice | None) -> Commit:
        def applied() -> None:
            self._store.choose(told.thread_id, me, choice)
            data = told.model_dump(mode="json", exclude_none=True)
            self.host.signal(told.thread_id, "chosen", data, to=(me,))

        return Commit([chosen(told.thread_id, me, choice)], told, applied=applied)

    # Lists ------------------------------------------------------------------------------------

    @operation()
    async def list_thread_info(self, call: Calling, args: ListThreadInfo) -> ThreadInfos:
        """List your reply threads with their titles: which are resolved, how many replies they
        have, when something happened there last, and what you follow or have muted."""
        threads = self._named(call, args.thread)
        before = args.before or BEYOND
        found = [
            (latest.seq, thread)
            for thread in threads
            if self._is_wanted(call, thread, args) and (latest := self.host.latest(thread)).tseq
            if latest.seq < before
        ]
        page, more = page_of(nlargest(args.limit + 1, found), args.limit)
        infos = [await self._info(call, thread) for _, thread in page]
        return ThreadInfos(threads=tuple(infos), more=more)

    def _named(self, call: Calling, name: str | None) -> Iterable[str]:
        """The threads that a list is about. Raises `OperationError`."""
        me, chosen = call.participant, set(self._store.of(call.participant))
        mine = self.host.threads_of(me)
        if name is None:
            return [t for t in mine if t in chosen or thread_ids.parent(t) is not None]
        top = self.host.thread(call, name)
        return [t for t in mine if thread_ids.within(t, top)]

    def _is_wanted(self, call: Calling, thread: str, args: ListThreadInfo) -> bool:
        if args.followed:
            found = self._store.choice(thread, call.participant)
            if found is None or found.choice != "followed":
                return False
        resolved = self._store.row(thread).resolved_by is not None
        return args.state == "all" or resolved == (args.state == "resolved")

    async def _info(self, call: Calling, thread: str) -> ThreadInfo:
        row, latest = await self._store.read_again(thread), self.host.latest(thread)
        found = self._store.choice(thread, call.participant)
        last = next(iter(await self.host.page(thread, None, 1)), None)
        return ThreadInfo(
            **row.to_schema(thread).model_dump(),
            **choice_schema(thread, found).model_dump(exclude={"thread_id"}),
            automatic=await self._automatic(call, thread),
            replies=max(0, latest.tseq - row.amendments),
            last_seq=latest.seq,
            last_by=None if last is None else last.spoken_by or last.sender_id,
            last_at=None if last is None else last.sent_at,
        )

    async def _automatic(self, call: Calling, thread: str) -> str | None:
        """How the message begins under which the thread stands; None where nothing can be said."""
        up = thread_ids.parent(thread)
        if up is None:
            return None
        try:
            message = await self.host.message(call.participant, f"m{thread[len(up) + 2 :]}")
        except OperationError:
            return None
        return title_of(message.text)


def _waits_for_it(draft: Draft) -> bool:
    """Whether whoever gets it was asked by name, as by a mention: somebody waits for the answer, or
    its own timer has come."""
    return draft.request is not None or draft.awaits or draft.timer_of is not None
