"""The mod `polls`: a question, options, votes, and the result as a message.

mods:
  - polls: {max_open: 20}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.digest_items import DigestItem
from hubbub.mods.fields import BEYOND, number_before, number_of
from hubbub.mods.host import Alarm
from hubbub.mods.operation import Calling, Commit, operation
from hubbub.mods.polls import repository
from hubbub.mods.polls.repository import PollRepository, PollRow
from hubbub.mods.polls.schemas import (
    ClosePoll,
    CreatePoll,
    ListPolls,
    Outcome,
    Poll,
    PollOption,
    Polls,
    PollSummary,
    ReadPoll,
    RetractVote,
    Vote,
    Voted,
)
from hubbub.mods.repository import page_of
from hubbub.mods.rows import Statement
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, History, Message

__all__ = ["PollsConfig", "PollsMod", "result_of", "result_text"]


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


def places_of(row: PollRow, choices: Sequence[str]) -> Sequence[int]:
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


class PollResult(NamedTuple):
    outcome: Outcome
    winners: Sequence[int]
    """The places of the options with most votes; empty without a quorum or votes."""


def result_of(votes: Sequence[int], voters: int, quorum: int) -> PollResult:
    """The result of the votes for each option."""
    if voters == 0:
        return PollResult("no_votes", ())
    if voters < quorum:
        return PollResult("no_quorum", ())
    most = max(votes)
    winners = [place for place, count in enumerate(votes) if count == most]
    return PollResult("decided" if len(winners) == 1 else "tie", winners)


def result_text(
    question: str, options: Sequence[str], votes: Sequence[int], voters: int, quorum: int
) -> str:
    """The result as the thread reads it."""
    outcome, winners = result_of(votes, voters, quorum)
    names = [f'"{options[place]}"' for place in winners]
    match outcome:
        case "decided":
            head = names[0]
        case "tie":
            head = f"a tie between {', '.join(names[:-1])} and {names[-1]}"
        case "no_quorum":
            head = f"no result, for {voters} have voted and {quorum} were needed"
        case "no_votes":
            head = "nobody has voted"
    ranked = sorted(zip(votes, options, strict=True), key=lambda each: -each[0])
    counts = "".join(f"\n- {text}: {count}" for count, text in ranked) if voters else ""
    return f'The poll "{question}" has ended: {head}.{counts}'


async def news_of(
    store: PollRepository, threads: Collection[str], reader: str, after: float, limit: int
) -> Sequence[DigestItem]:
    """Polls in which the reader has not voted, and those that have ended since `after`."""
    found: list[DigestItem] = []
    for row in await store.of_threads(threads, "open", BEYOND, limit):
        if not await store.of_voter(row, reader):
            text = f"poll p{row.id}: {row.question}"
            found.append(DigestItem("waiting", row.thread, f"p{row.id}", text))
    for row in await store.of_threads(threads, "closed", BEYOND, limit):
        if row.closed_at is not None and row.closed_at >= after:
            result = result_of(await store.counts(row), row.voters, row.quorum)
            won = ", ".join(row.options[place] for place in result.winners) or "no result"
            text = f"poll p{row.id}: {row.question} {won}"
            found.append(DigestItem("decided", row.thread, f"p{row.id}", text))
    return found


AGAIN_S = 60.0
"""Seconds until what could not be closed or told, because the disk refused it, is tried again."""
MOST_TRIES = 12
"""How often a result is tried to be told again; a mod may refuse it each time."""
AT_ONCE = 200
"""Polls that are looked at in one go."""
NAMED = 100
"""Voters of one option that are named."""


class PollsConfig(ModConfig):
    max_open: Annotated[int, Field(ge=1)] = 50
    """Polls of one thread that are open at the same time."""
    announce: bool = True
    """Whether the thread gets a message of each new poll. It wakes nobody."""


class PollsMod(Mod):
    """Polls: a question with options, open or secret, for those who read a thread. The result
    becomes a message there.

    People and agents vote, and may change their vote until the end: the deadline, or when the
    author or an owner closes the poll. Of a secret poll nobody is told who votes for what.
    """

    name = "polls"
    Config = PollsConfig
    config: PollsConfig
    migrations = "tables"

    def __init__(self, config: PollsConfig):
        super().__init__(config)
        self._store: PollRepository
        self._deadlines: Alarm
        self._last = 0
        self._tries = Counter[int]()

    async def start(self) -> None:
        self._store = PollRepository(self.host)
        self._deadlines = Alarm(self.host, "deadline")
        self._last = await self._store.last()
        self._deadlines.at(self.host.now())  # what has ended while the hub was down

    # What is asked ----------------------------------------------------------------------------

    @operation()
    async def list_polls(self, call: Calling, args: ListPolls) -> Polls:
        """List the polls that you may read and vote in."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        rows = await self._store.of_threads(threads, args.state, before, args.limit + 1)
        page, more = page_of(rows, args.limit)
        return Polls(polls=tuple(row.to_schema() for row in page), more=more)

    @operation()
    async def read_poll(self, call: Calling, args: ReadPoll) -> Poll:
        """Read a poll: its options, and how it stands. A secret one tells only how many have voted,
        until it ends, and never who has voted for what."""
        return await self._read(call, await self._find(call, args.poll))

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """`DigestSource.news`."""
        threads = self.host.threads_of(call.participant)
        return await news_of(self._store, threads, call.participant, after, limit)

    async def _find(self, call: Calling, id: str) -> PollRow:
        """The poll, if the caller reads its thread. Raises `OperationError`."""
        row = await self._store.poll(number_of(id))
        return self.host.visible(call, row, f"poll {id}", "list_polls")

    async def _read(self, call: Calling, row: PollRow) -> Poll:
        over = row.closed_at is not None
        votes = await self._store.counts(row)
        voters = {} if row.secret else await self._store.voters(row, NAMED)
        result = result_of(votes, row.voters, row.quorum) if over else None
        options = [
            PollOption(
                number=place + 1,
                text=text,
                votes=votes[place] if over or not row.secret else None,
                voters=tuple(voters.get(place, ())),
            )
            for place, text in enumerate(row.options)
        ]
        return Poll(
            poll=row.to_schema(),
            options=tuple(options),
            mine=tuple(n + 1 for n in await self._store.of_voter(row, call.participant)),
            outcome=result.outcome if result else None,
            winners=tuple(row.options[place] for place in (result.winners if result else ())),
        )

    # Creating and voting ----------------------------------------------------------------------

    @operation(permission="write", output=PollSummary)
    async def create_poll(self, call: Calling, args: CreatePoll) -> Commit:
        """Ask those who read a thread to vote. The result becomes a message there, at the deadline
        or when you close the poll. Nobody is woken: mention those who are to vote in a message."""
        thread, now = self.host.thread(call, args.thread), self.host.now()
        check_poll(args, now)
        if await self._store.open_in(thread) >= self.config.max_open:
            text = f"{self.config.max_open} polls are open in this thread; close some"
            raise OperationError(ErrorCode.LIMIT, text)
        self._last += 1
        row = PollRow(
            id=self._last,
            thread=thread,
            question=args.question,
            texts=json.dumps(args.options, ensure_ascii=False),
            secret=int(args.secret),
            multiple=int(args.multiple),
            quorum=args.quorum,
            created_by=call.participant,
            created_at=now,
            deadline=args.deadline.timestamp() if args.deadline else None,
            closed_at=None,
            closed_by=None,
            voters=0,
        )
        return Commit(repository.created(row), row.to_schema(), applied=partial(self._created, row))

    def _created(self, row: PollRow) -> None:
        self._deadlines.at(row.deadline)
        self._signal(row, "created", row.created_by)
        if self.config.announce:
            lines = "".join(f"\n{n}. {text}" for n, text in enumerate(row.options, 1))
            until = f" until {row.to_schema().deadline:%Y-%m-%d %H:%M} UTC" if row.deadline else ""
            kind = "secret poll" if row.secret else "poll"
            text = f"{row.created_by} asks{until} ({kind} p{row.id}): {row.question}{lines}"
            self.host.notice(row.thread, text, {"poll": f"p{row.id}"}, f"opened:p{row.id}", to=())

    # Repeating a vote changes nothing, and nothing of it is to be kept but the vote: a call that is
    # remembered by its cid would tell what it voted for, also of a secret poll.
    @operation(permission="write", output=Voted, idempotent=True)
    async def vote(self, call: Calling, args: Vote) -> Commit:
        """Vote in a poll, or change your vote while it is open."""
        row = await self._find(call, args.poll)
        places = places_of(row, args.options)
        return self._changing(call, row, places)

    @operation(permission="write", output=Voted, idempotent=True)
    async def retract_vote(self, call: Calling, args: RetractVote) -> Commit:
        """Take back your vote in a poll while it is open."""
        return self._changing(call, await self._find(call, args.poll), ())

    def _changing(self, call: Calling, row: PollRow, places: Sequence[int]) -> Commit:
        voter, now = call.participant, self.host.now()
        if row.closed_at is not None:
            raise _over(row)
        # A secret poll does not tell who votes when, either: that and the count would be enough.
        by = None if row.secret else voter
        return Commit(
            repository.voted(row.id, voter, places, now),
            Voted(poll=f"p{row.id}", options=tuple(place + 1 for place in places)),
            conflict=_over(row),
            applied=partial(self._signal, row, "voted", by),
        )

    def _signal(self, row: PollRow, what: str, by: str | None) -> None:
        data: JsonValue = {"poll": f"p{row.id}", "question": row.question, "by": by}
        self.host.signal(row.thread, what, data)

    # Ending -----------------------------------------------------------------------------------

    @operation(permission="write", idempotent=True)
    async def close_poll(self, call: Calling, args: ClosePoll) -> Poll:
        """End a poll that you have created, before its deadline. One that has ended stays as it
        is."""
        row = await self._find(call, args.poll)
        if call.participant != row.created_by and not call.owner:
            text = f"{args.poll} is {row.created_by}'s: only its author and owners may close it"
            raise OperationError(ErrorCode.FORBIDDEN, text)
        if row.closed_at is None:
            await self._close(row.id, call.participant)
        return await self._read(call, await self._find(call, args.poll))

    async def _close(self, poll: int, by: str) -> None:
        """End the poll, if it has not, and tell its thread the result."""
        try:
            await self.host.keep(repository.closed(poll, by, self.host.now()))
        except OperationError as error:
            if error.code != ErrorCode.CONFLICT:
                raise
            return  # somebody has, at the same time
        row = await self._store.poll(poll)
        assert row is not None, "it was written"
        self._deadlines.at(self.host.now() + AGAIN_S)  # if the disk refuses the message
        self._signal(row, "closed", by)
        await self._tell(row)

    async def _tell(self, row: PollRow) -> None:
        """The result as a message: by its key it is posted one time, and then marked as told."""
        options, votes = row.options, await self._store.counts(row)
        outcome, winners = result_of(votes, row.voters, row.quorum)
        details: dict[str, JsonValue] = {
            "poll": f"p{row.id}",
            "outcome": outcome,
            "winners": [options[place] for place in winners],
            "votes": dict(zip(options, votes, strict=True)),
            "voters": row.voters,
        }
        text = result_text(row.question, options, votes, row.voters, row.quorum)
        self.host.notice(row.thread, text, details, f"result:p{row.id}", to=(row.created_by,))

    async def _tell_again(self, row: PollRow) -> None:
        """The last time, too, nobody knows whether it is taken; it is left at that."""
        self._tries[row.id] += 1
        await self._tell(row)
        if self._tries[row.id] >= MOST_TRIES:
            # Written behind the message: a disk that takes this has taken that.
            await self.host.keep([repository.announced(row.id)])
            del self._tries[row.id]

    def watches(self, draft: Draft) -> bool:
        return draft.sender_kind == "system" and not isinstance(draft.purpose, History)

    def on_stored(self, message: Message) -> Sequence[Statement]:
        content = message.content
        if not isinstance(content, dict) or content.get("mod") != self.name:
            return ()
        poll = content.get("poll")
        if isinstance(poll, str) and "outcome" in content:
            return [repository.announced(number_of(poll))]
        return ()

    def on_timer(self, key: str) -> None:
        self._deadlines.rung()
        self.host.spawn(self._end())

    async def _end(self) -> None:
        """End what is due, and tell what was not told: by an earlier run of the hub, say."""
        now = self.host.now()
        try:
            due = await self._store.due(now, AT_ONCE)
            for poll in due:
                await self._close(poll, "hub")
            unannounced = await self._store.unannounced(AT_ONCE)
            for poll in unannounced:
                row = await self._store.poll(poll)
                if row is not None:
                    await self._tell_again(row)
            self._deadlines.at(await self._store.next_deadline(now))
        except StoreUnavailable:
            self._deadlines.at(now + AGAIN_S)
            raise
        if due or unannounced:
            self._deadlines.at(now if len(due) == AT_ONCE else now + AGAIN_S)


def _over(row: PollRow) -> OperationError:
    text = f'the poll p{row.id} "{row.question}" has ended; read_poll tells the result'
    return OperationError(ErrorCode.CONFLICT, text, details={"poll": f"p{row.id}"})
