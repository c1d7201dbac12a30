"""The mod `threads`: titles, resolving, following and muting of threads, and checked quotes.

mods:
  - threads: {reopen: people}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from hubbub.errors import LogDamaged, OperationError
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

__all__ = ["ThreadsConfig", "ThreadsMod", "excerpt_of", "is_quoted_from", "title_of"]


class ThreadRow(NamedTuple):
    """The stored state of a thread."""

    title: str | None = None
    titled_by: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None
    amendments: int = 0
    """Number of edits and deletions in it."""

    def with_values(self, values: Mapping[str, str | float | None]) -> ThreadRow:
        return ThreadRow(**{**self._asdict(), **values})

    def to_schema(self, thread: str) -> ThreadState:
        return ThreadState(thread_id=thread, **self._asdict())


class StoredChoice(NamedTuple):
    """A participant's choice for a thread, or for one that contains it."""

    choice: Choice
    thread: str


def choice_schema(thread: str, stored: StoredChoice | None) -> ThreadChoice:
    return ThreadChoice(
        thread_id=thread,
        followed=stored is not None and stored.choice == "followed",
        muted=stored is not None and stored.choice == "muted",
        chosen_in=None if stored is None else stored.thread,
    )


def put_thread(thread: str, **values: str | float | None) -> Statement:
    """Store these fields of `ThreadRow`."""
    return put("threads_thread", "thread", thread=thread, **values)


def count_amendment(thread: str) -> Statement:
    """Count one more edit or deletion in the thread."""
    sql = (
        "INSERT INTO threads_thread (thread, amendments) VALUES (?, 1) "
        "ON CONFLICT (thread) DO UPDATE SET amendments = amendments + 1"
    )
    return Statement(sql, (thread,))


def put_choice(thread: str, participant: str, choice: Choice | None) -> Statement:
    """Store a choice. None deletes it."""
    if choice is None:
        sql = "DELETE FROM threads_choice WHERE thread = ? AND participant = ?"
        return Statement(sql, (thread, participant))
    sql = "INSERT OR REPLACE INTO threads_choice (thread, participant, choice) VALUES (?, ?, ?)"
    return Statement(sql, (thread, participant, choice))


_COLUMNS = ", ".join(ThreadRow._fields)


class ThreadRepository:
    """The stored state in memory: read at the start, and updated after each commit."""

    def __init__(self, host: Host):
        self._host = host
        self._rows: dict[str, ThreadRow] = {}
        self._choices: dict[str, dict[str, Choice]] = {}
        """By thread and participant."""

    async def read(self) -> None:
        """Load everything."""
        for thread, *rest in await self._host.rows(
            f"SELECT thread, {_COLUMNS} FROM threads_thread"
        ):
            self._rows[thread] = ThreadRow(*rest)
        sql = "SELECT thread, participant, choice FROM threads_choice"
        for thread, participant, choice in await self._host.rows(sql):
            self._choices.setdefault(thread, {})[participant] = choice

    async def stored_row(self, thread: str) -> ThreadRow:
        """The row of a thread, from the store."""
        sql = f"SELECT {_COLUMNS} FROM threads_thread WHERE thread = ?"
        rows = await self._host.rows(sql, thread)
        return ThreadRow(*rows[0]) if rows else ThreadRow()

    def row(self, thread: str) -> ThreadRow:
        return self._rows.get(thread, _EMPTY)

    def put(self, thread: str, row: ThreadRow) -> None:
        self._rows[thread] = row

    def choose(self, thread: str, participant: str, choice: Choice | None) -> None:
        by_participant = self._choices.setdefault(thread, {})
        if choice is None:
            by_participant.pop(participant, None)
        else:
            by_participant[participant] = choice
        if not by_participant:
            del self._choices[thread]

    @property
    def has_choices(self) -> bool:
        """Whether any participant follows or muted any thread."""
        return bool(self._choices)

    def own(self, thread: str, participant: str) -> Choice | None:
        """A participant's choice for exactly this thread."""
        return self._choices.get(thread, {}).get(participant)

    def chosen_by(self, participant: str) -> Sequence[str]:
        """The threads for which a participant stored a choice."""
        return [thread for thread, choices in self._choices.items() if participant in choices]

    def choice(self, thread: str, participant: str) -> StoredChoice | None:
        """The choice that applies to a participant in a thread: the one for that thread, or else
        for the nearest thread that contains it."""
        for each in _with_ancestors(thread):
            own = self.own(each, participant)
            if own is not None:
                return StoredChoice(own, each)
        return None


_EMPTY = ThreadRow()


def _with_ancestors(thread: str) -> Iterator[str]:
    up: str | None = thread
    while up is not None:
        yield up
        up = thread_ids.parent(up)


class ThreadsConfig(ModConfig):
    reopen: Literal["all", "people", "nobody"] = "all"
    """Whose new messages reopen a resolved thread."""
    excerpt: Annotated[int, Field(ge=20, le=10_000)] = 280
    """Length in characters of the excerpt used for a quote without text."""
    longest_quote: Annotated[int, Field(ge=20, le=1_000_000)] = 4_000
    """Maximum length of a quote in characters."""


_ELLIPSES = "….. "
"""Characters that can follow a truncated quote."""
# Without backtracking, and no part passes the beginning of another link: a text of 60,000 brackets
# must not block the hub.
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)")
_NO_WORD = re.compile(r"[\W_]+")


def excerpt_of(text: str, longest: int) -> str:
    """The beginning of a text: whole words, at most `longest` characters."""
    text = text.strip()
    if len(text) <= longest:
        return text
    excerpt = text[: longest + 1].rpartition(" ")[0].rstrip()
    return excerpt if len(excerpt) > longest // 2 else text[:longest]


def is_quoted_from(quote: str, text: str) -> bool:
    """Whether the words of a quote occur in the text, in this order and without gaps.

    Text selected from rendered Markdown lacks its markup, so only words are compared. A truncated
    quote can end with an ellipsis.
    """
    bare = quote.strip().rstrip(_ELLIPSES) or quote.strip()
    if bare in text:
        return True
    words = _words(bare)
    return bool(words) and (words in _words(text) or words in _words(_LINK.sub(r"\1", text)))


def _words(text: str) -> str:
    return _NO_WORD.sub(" ", text).strip()


def quote_error(message: Message, quote: Quote) -> str | None:
    """Why the quote is not valid for the message. None if it is."""
    if message.amends is not None:
        of = message.amends.message_id
        return f"quote: {message.id} is an edit of {of}; quote {of} instead"
    if message.amended == "deleted":
        return f"quote: {message.id} was deleted"
    if quote.text.strip() and not is_quoted_from(quote.text, message.text):
        return f"quote: this text does not occur in {message.id}; omit it to quote the beginning"
    return None


MAX_TITLE = 80
"""Maximum length of an automatic title in characters."""
_TITLE_SOURCE = 1_000
"""Number of characters of a text that are searched for its first sentence."""
_MARKS = re.compile(r"^(?:[#>*+\-\s]+|\d+[.)]\s+)|[*_`~]{1,3}")
_SENTENCE = re.compile(r"(?<=[.!?…])\s|(?<=[。！？])")


def title_of(text: str) -> str | None:
    """The first sentence of a text in one line, without Markdown. None if there is none."""
    for line in text[:_TITLE_SOURCE].splitlines():
        plain = " ".join(_MARKS.sub("", _LINK.sub(r"\1", line)).split())
        sentence = _SENTENCE.split(plain, maxsplit=1)[0]
        if sentence:
            return _shorten_title(sentence)
    return None


def _shorten_title(sentence: str) -> str:
    if len(sentence) <= MAX_TITLE:
        return sentence
    title = sentence[: MAX_TITLE - 1].rpartition(" ")[0]
    return f"{title if len(title) > MAX_TITLE // 2 else sentence[: MAX_TITLE - 1]}…"


class ThreadsMod(Mod):
    """Reply threads that have titles and can be resolved and reopened, threads that can be followed
    and muted, and quotes that are checked against the quoted message.
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
        why = quote_error(message, quote)
        if why is not None:
            return Reject(why)
        if not quote.text.strip():
            text = excerpt_of(message.text, self.config.excerpt)
            quote = Quote(message_id=message.id, text=text)
        untrusted = draft.untrusted or message.untrusted
        return Replace(draft.replace(quote=quote, untrusted=untrusted))

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        if not self._store.has_choices or _is_awaited(draft):
            return ()
        return [a for a in agents if a not in draft.mentions and self._mutes(a, draft.thread_id)]

    def _mutes(self, participant: str, thread: str) -> bool:
        stored = self._store.choice(thread, participant)
        return stored is not None and stored.choice == "muted"

    def watches(self, draft: Draft) -> bool:
        row = self._store.row(draft.thread_id)
        return draft.amends is not None or row.resolved_by is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        thread = message.thread_id
        if message.amends is not None:
            return [count_amendment(thread)] if thread_ids.parent(thread) is not None else ()
        if self._store.row(thread).resolved_by is None or not self._reopens(message):
            return ()
        self.host.spawn(self._refresh(thread))
        return [put_thread(thread, resolved_by=None, resolved_at=None)]

    def _reopens(self, message: Message) -> bool:
        if message.sender_kind == "system" or self.config.reopen == "nobody":
            return False
        by_person = message.sender_kind == "human" or message.sent_by is not None
        return by_person or self.config.reopen == "all"

    async def _refresh(self, thread: str) -> None:
        """Reload the thread after the current batch was written or failed."""
        await self.host.write(())  # waits for the batch
        before, row = self._store.row(thread), await self._store.stored_row(thread)
        self._store.put(thread, row)
        if before.resolved_by != row.resolved_by:
            self._signal(thread, row, "reopened")

    # Titles and resolving ---------------------------------------------------------------------

    @operation(permission="write", output=ThreadState)
    def set_thread_title(self, call: Calling, args: SetThreadTitle) -> Commit:
        """Set the title of a reply thread. Without one, it is titled by the beginning of its first
        message."""
        thread = self._reply_thread(call, args.thread)
        title = " ".join(args.title.split()) or None
        by = None if title is None else call.participant
        return self._set(thread, "titled", title=title, titled_by=by)

    @operation(permission="write", output=ThreadState)
    def resolve_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Mark a reply thread as resolved: its question is answered or its matter settled. Send any
        final message first, because a new message can reopen the thread."""
        thread = self._reply_thread(call, args.thread)
        row = self._store.row(thread)
        if row.resolved_by is not None:
            return Commit((), row.to_schema(thread))
        by, at = call.participant, self.host.now()
        return self._set(thread, "resolved", resolved_by=by, resolved_at=at)

    @operation(permission="write", output=ThreadState)
    def reopen_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Reopen a resolved reply thread."""
        thread = self._reply_thread(call, args.thread)
        row = self._store.row(thread)
        if row.resolved_by is None:
            return Commit((), row.to_schema(thread))
        return self._set(thread, "reopened", resolved_by=None, resolved_at=None)

    def _reply_thread(self, call: Calling, name: str) -> str:
        """Raises `OperationError`."""
        thread = self.host.thread(call, name)
        if thread_ids.parent(thread) is None:
            raise bad_request(f"thread: {name[:200]} is not a reply thread (see `reply`)")
        return thread

    def _set(self, thread: str, what: str, **values: str | float | None) -> Commit:
        def applied() -> None:
            row = self._store.row(thread).with_values(values)  # it may have changed since
            self._store.put(thread, row)
            self._signal(thread, row, what)

        answer = self._store.row(thread).with_values(values).to_schema(thread)
        return Commit([put_thread(thread, **values)], answer, applied=applied)

    def _signal(self, thread: str, row: ThreadRow, what: str) -> None:
        """Signal the new state to the readers of the thread."""
        data = row.to_schema(thread).model_dump(mode="json", exclude_none=True)
        self.host.signal(thread, what, data)

    # Following and muting ---------------------------------------------------------------------

    @operation(permission="write", output=ThreadChoice)
    def follow_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Follow a thread: you are notified of new messages in it, even if you muted the channel or
        conversation that contains it. Following alone does not wake an agent."""
        return self._choose(call, args.thread, "followed")

    @operation(permission="write", output=ThreadChoice)
    def unfollow_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Stop following a thread."""
        return self._unchoose(call, args.thread, "followed")

    @operation(permission="write", output=ThreadChoice)
    def mute_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Mute a thread, a channel or a conversation, with its reply threads: you still receive its
        messages, but only those that mention you wake or notify you."""
        return self._choose(call, args.thread, "muted")

    @operation(permission="write", output=ThreadChoice)
    def unmute_thread(self, call: Calling, args: WhichThread) -> Commit:
        """Unmute a thread."""
        return self._unchoose(call, args.thread, "muted")

    def _choose(self, call: Calling, name: str, choice: Choice) -> Commit:
        thread, me = self.host.thread(call, name), call.participant
        schema = choice_schema(thread, StoredChoice(choice, thread))
        return self._store_choice(me, schema, choice)

    def _unchoose(self, call: Calling, name: str, choice: Choice) -> Commit:
        thread, me = self.host.thread(call, name), call.participant
        if self._store.own(thread, me) != choice:
            return Commit((), choice_schema(thread, self._store.choice(thread, me)))
        up = thread_ids.parent(thread)
        schema = choice_schema(thread, self._store.choice(up, me) if up is not None else None)
        return self._store_choice(me, schema, None)

    def _store_choice(self, me: str, schema: ThreadChoice, choice: Choice | None) -> Commit:
        def applied() -> None:
            self._store.choose(schema.thread_id, me, choice)
            data = schema.model_dump(mode="json", exclude_none=True)
            self.host.signal(schema.thread_id, "chosen", data, to=(me,))

        return Commit([put_choice(schema.thread_id, me, choice)], schema, applied=applied)

    # Lists ------------------------------------------------------------------------------------

    @operation()
    async def list_thread_info(self, call: Calling, args: ListThreadInfo) -> ThreadInfos:
        """List your reply threads with their titles, state, number of replies and last activity,
        and the threads that you follow or muted."""
        threads = self._listed(call, args.thread)
        before = args.before or BEYOND
        candidates = [
            (latest.seq, thread)
            for thread in threads
            if self._is_wanted(call, thread, args) and (latest := self.host.latest(thread)).tseq
            if latest.seq < before
        ]
        page, more = page_of(nlargest(args.limit + 1, candidates), args.limit)
        infos = [await self._info(call, thread) for _, thread in page]
        return ThreadInfos(threads=tuple(infos), more=more)

    def _listed(self, call: Calling, name: str | None) -> Iterable[str]:
        """The threads that the list covers. Raises `OperationError`."""
        me, chosen = call.participant, set(self._store.chosen_by(call.participant))
        mine = self.host.threads_of(me)
        if name is None:
            return [t for t in mine if t in chosen or thread_ids.parent(t) is not None]
        top = self.host.thread(call, name)
        return [t for t in mine if thread_ids.within(t, top)]

    def _is_wanted(self, call: Calling, thread: str, args: ListThreadInfo) -> bool:
        if args.followed:
            stored = self._store.choice(thread, call.participant)
            if stored is None or stored.choice != "followed":
                return False
        resolved = self._store.row(thread).resolved_by is not None
        return args.state == "all" or resolved == (args.state == "resolved")

    async def _info(self, call: Calling, thread: str) -> ThreadInfo:
        row, latest = await self._store.stored_row(thread), self.host.latest(thread)
        stored = self._store.choice(thread, call.participant)
        last = next(iter(await self.host.page(thread, None, 1)), None)
        return ThreadInfo(
            **row.to_schema(thread).model_dump(),
            **choice_schema(thread, stored).model_dump(exclude={"thread_id"}),
            automatic=await self._automatic(call, thread),
            replies=max(0, latest.tseq - row.amendments),
            last_seq=latest.seq,
            last_by=None if last is None else last.sent_by or last.sender_id,
            last_at=None if last is None else last.sent_at,
        )

    async def _automatic(self, call: Calling, thread: str) -> str | None:
        """The beginning of the message that the thread replies to. None if it cannot be read."""
        up = thread_ids.parent(thread)
        if up is None:
            return None
        try:
            message = await self.host.message(call.participant, f"m{thread[len(up) + 2 :]}")
        except (LogDamaged, OperationError):
            return None
        return title_of(message.text)


def _is_awaited(draft: Draft) -> bool:
    """Whether the message is as direct as a mention: its sender waits for the answer, or it is the
    recipient's own timer."""
    return draft.request is not None or draft.awaits or draft.timer_of is not None
