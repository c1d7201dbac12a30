"""The mod `polls`: questions with options to vote on, with the result posted as a message.

mods:
  - polls: {max_open: 20}
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.digest.schemas import DigestItem
from hubbub.mods.fields import number_before, number_of, seconds_of
from hubbub.mods.host import Alarm
from hubbub.mods.operation import (
    Calling,
    Commit,
    Statement,
    bad_request,
    conflict,
    forbidden,
    operation,
    over_limit,
)
from hubbub.mods.polls.schemas import (
    CreatePoll,
    ListPolls,
    Outcome,
    Poll,
    PollOf,
    PollOption,
    Polls,
    PollSummary,
    Vote,
    Voted,
)
from hubbub.mods.repository import AMONG, Repository, columns, from_row, insert, listed
from hubbub.protocol.codes import ErrorCode

__all__ = ["PollsConfig", "PollsMod", "result_of", "result_text"]


_VOTERS = "(SELECT count(DISTINCT voter) FROM polls_vote WHERE poll = polls_poll.id)"
_COLUMNS = columns(
    PollSummary,
    id="'p' || id",
    thread_id="thread",
    state="iif(closed_at IS NULL, 'open', 'closed')",
    voters=f"coalesce(voters, {_VOTERS})",
)
_IN_STATE = {"open": " AND closed_at IS NULL", "closed": " AND closed_at IS NOT NULL", None: ""}
_VOTES_OF = "(SELECT 1 FROM polls_vote WHERE poll = polls_poll.id AND voter = ?)"
_WITHOUT_VOTE_OF = f"closed_at IS NULL AND NOT EXISTS {_VOTES_OF} ORDER BY id DESC"
_CLOSED_SINCE = "closed_at >= ? ORDER BY closed_at DESC"
_poll = from_row(PollSummary)


class PollRepository(Repository):
    async def poll(self, id: int) -> PollSummary | None:
        return await self.one(_poll, f"SELECT {_COLUMNS} FROM polls_poll WHERE id = ?", id)

    async def of_threads(
        self,
        threads: Collection[str],
        state: Literal["open", "closed"] | None,
        before: int,
        limit: int,
    ) -> tuple[tuple[PollSummary, ...], bool]:
        """Polls of these threads with numbers below `before`, latest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM polls_poll WHERE thread {AMONG} "
            f"AND id < ?{_IN_STATE[state]} ORDER BY id DESC LIMIT ?"
        )
        return await self.page(_poll, sql, listed(threads), before, limit=limit)

    async def which(
        self, threads: Collection[str], condition: str, value: str | float, limit: int
    ) -> list[PollSummary]:
        """The first polls of these threads that fulfil the condition, in its order."""
        sql = f"SELECT {_COLUMNS} FROM polls_poll WHERE thread {AMONG} AND {condition} LIMIT ?"
        return await self.all(_poll, sql, listed(threads), value, limit)

    async def open_in(self, thread: str) -> int:
        """The number of open polls in the thread."""
        sql = "SELECT count(*) FROM polls_poll WHERE thread = ? AND closed_at IS NULL"
        return int(await self.value(sql, thread))

    # Votes ------------------------------------------------------------------------------------

    async def counts(self, poll: PollSummary) -> list[int]:
        """The votes for each option: the final count of a closed poll, or the current one."""
        sql = (
            "SELECT option, count(*) FROM polls_vote WHERE poll = ? GROUP BY option"
            if poll.state == "open"
            else "SELECT option, votes FROM polls_count WHERE poll = ?"
        )
        votes: dict[int, int] = dict(await self._host.rows(sql, number_of(poll.id)))
        return [votes.get(place, 0) for place in range(len(poll.options))]

    async def voters(self, poll: PollSummary, most: int) -> Mapping[int, Sequence[str]]:
        """Voters by the index of the option, sorted by id, at most `most` each."""
        sql = (
            "SELECT option, voter FROM (SELECT option, voter, row_number() OVER "
            "(PARTITION BY option ORDER BY voter) AS place FROM polls_vote WHERE poll = ?) "
            "WHERE place <= ? ORDER BY voter"
        )
        voters = defaultdict[int, list[str]](list)
        for option, voter in await self._host.rows(sql, number_of(poll.id), most):
            voters[option].append(voter)
        return voters

    async def of_voter(self, poll: PollSummary, voter: str) -> list[int]:
        """The indexes of the options that the participant votes for."""
        sql = "SELECT option FROM polls_vote WHERE poll = ? AND voter = ? ORDER BY option"
        return await self.all(int, sql, number_of(poll.id), voter)

    # Closing ----------------------------------------------------------------------------------

    async def due(self, now: float, limit: int) -> list[int]:
        """Open polls whose deadline has passed."""
        sql = (
            "SELECT id FROM polls_poll WHERE deadline <= ? AND closed_at IS NULL "
            "ORDER BY deadline LIMIT ?"
        )
        return await self.all(int, sql, now, limit)

    async def next_deadline(self, now: float) -> float | None:
        """The earliest deadline after `now`."""
        sql = "SELECT min(deadline) FROM polls_poll WHERE deadline > ? AND closed_at IS NULL"
        deadline: float | None = await self.value(sql, now)
        return deadline

    async def unannounced(self, limit: int) -> list[PollSummary]:
        """Closed polls whose result has not been posted yet."""
        sql = (
            f"SELECT {_COLUMNS} FROM polls_poll WHERE told = 0 AND closed_at IS NOT NULL "
            "ORDER BY closed_at LIMIT ?"
        )
        return await self.all(_poll, sql, limit)


# Statements -------------------------------------------------------------------------------------


def insert_poll(poll: PollSummary) -> Sequence[Statement]:
    fields = poll.model_dump(
        include={"question", "secret", "multiple", "quorum", "created_by"}, mode="json"
    )
    return [
        insert(
            "polls_poll",
            id=number_of(poll.id),
            thread=poll.thread_id,
            options=json.dumps(poll.options, ensure_ascii=False),
            created_at=poll.created_at.timestamp(),
            deadline=seconds_of(poll.deadline),
            **fields,
        )
    ]


def replace_vote(poll: int, voter: str, places: Collection[int], now: float) -> Sequence[Statement]:
    """Replace the participant's votes. Writes nothing if the poll has ended."""
    still_open = (
        "UPDATE polls_poll SET changes = changes + 1 "
        "WHERE id = ? AND closed_at IS NULL AND (deadline IS NULL OR deadline > ?)"
    )
    return [
        Statement(still_open, (poll, now), rows=1),
        Statement("DELETE FROM polls_vote WHERE poll = ? AND voter = ?", (poll, voter)),
        *(insert("polls_vote", poll=poll, voter=voter, option=place) for place in places),
    ]


def close(poll: int, by: str, at: float) -> Sequence[Statement]:
    """Close the poll if it is open, and store the counts. Votes of a secret poll are deleted."""
    end = (
        f"UPDATE polls_poll SET closed_at = ?, closed_by = ?, voters = {_VOTERS} "
        "WHERE id = ? AND closed_at IS NULL"
    )
    count = (
        "INSERT INTO polls_count SELECT poll, option, count(*) FROM polls_vote "
        "WHERE poll = ? GROUP BY option"
    )
    delete_secret = (
        "DELETE FROM polls_vote WHERE poll = ? "
        "AND EXISTS (SELECT 1 FROM polls_poll WHERE id = poll AND secret)"
    )
    return [
        Statement(end, (at, by, poll), rows=1),
        Statement(count, (poll,)),
        Statement(delete_secret, (poll,)),
    ]


def mark_announced(poll: str) -> Sequence[Statement]:
    """Record that the result has been posted."""
    return [Statement("UPDATE polls_poll SET told = 1 WHERE id = ?", (number_of(poll),))]


def check_poll(args: CreatePoll, now: float) -> None:
    """Raises `OperationError` for duplicate or empty options, or a deadline in the past."""
    texts = {_normalized(option) for option in args.options}
    if len(texts) < len(args.options) or "" in texts:
        raise bad_request("options: must be different and not empty")
    if args.deadline is not None and args.deadline.timestamp() <= now:
        raise bad_request(f"deadline: {args.deadline:%Y-%m-%d %H:%M %Z} is in the past")


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def places_of(poll: PollSummary, choices: Sequence[str]) -> Sequence[int]:
    """The indexes of the chosen options. Raises `OperationError`."""
    by_name = {str(n): n - 1 for n in range(1, len(poll.options) + 1)}
    by_name |= {_normalized(text): place for place, text in enumerate(poll.options)}
    unknown = [choice for choice in choices if _normalized(choice) not in by_name]
    if unknown:
        names = ", ".join(f"{n}: {text}" for n, text in enumerate(poll.options, 1))
        raise bad_request(f"options: {poll.id} has no {unknown[0]!r}; options are {names}")
    places = sorted({by_name[_normalized(choice)] for choice in choices})
    if len(places) > 1 and not poll.multiple:
        raise bad_request(f"options: {poll.id} allows only one option")
    return places


class PollResult(NamedTuple):
    outcome: Outcome
    winners: Sequence[int]
    """The indexes of the options with the most votes. Empty without a quorum or votes."""


def result_of(votes: Sequence[int], voters: int, quorum: int) -> PollResult:
    """The result, from the votes for each option."""
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
    """The result as posted in the thread."""
    outcome, winners = result_of(votes, voters, quorum)
    names = [f'"{options[place]}"' for place in winners]
    match outcome:
        case "decided":
            head = names[0]
        case "tie":
            head = f"a tie between {', '.join(names[:-1])} and {names[-1]}"
        case "no_quorum":
            head = f"no result, because {voters} voted and the quorum is {quorum}"
        case "no_votes":
            head = "no votes"
    ranked = sorted(zip(votes, options, strict=True), key=lambda each: -each[0])
    counts = "".join(f"\n- {text}: {count}" for count, text in ranked) if voters else ""
    return f'The poll "{question}" has ended: {head}.{counts}'


RETRY_DELAY_S = 60.0
"""Seconds before closing or posting is retried after the store failed."""
BATCH = 200
"""Polls processed per round."""
NAMED = 100
"""Maximum number of voters listed per option."""


class PollsConfig(ModConfig):
    max_open: Annotated[int, Field(ge=1)] = 50
    """Maximum number of open polls per thread."""
    announce: bool = True
    """Whether each new poll is announced in its thread. The message wakes no agent."""


class PollsMod(Mod):
    """Polls: a question with options, open or secret, for the readers of a thread. The result is
    posted there.

    People and agents vote, and can change their vote until the poll ends: at its deadline, or when
    its author or an owner closes it. A secret poll never shows who voted for what.
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

    async def start(self) -> None:
        self._store = PollRepository(self.host)
        self._deadlines = Alarm(self.host, "deadline")
        self._last = await self._store.last("polls_poll")
        self._deadlines.at(self.host.now())  # some may have passed while the hub was down

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_polls(self, call: Calling, args: ListPolls) -> Polls:
        """List the polls that you can read and vote in."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        polls, more = await self._store.of_threads(threads, args.state, before, args.limit)
        return Polls(polls=polls, more=more)

    @operation()
    async def read_poll(self, call: Calling, args: PollOf) -> Poll:
        """Read a poll: its options and the current votes. A secret poll shows only the number of
        voters while it is open, and never who voted for what."""
        return await self._read(call, await self._find(call, args.poll))

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """`DigestSource.news`: open polls in which the caller has not voted, and closed polls."""
        threads, me = self.host.threads_of(call.participant), call.participant
        items = [
            DigestItem("waiting", each.thread_id, each.id, f"poll {each.id}: {each.question}")
            for each in await self._store.which(threads, _WITHOUT_VOTE_OF, me, limit)
        ]
        for poll in await self._store.which(threads, _CLOSED_SINCE, after, limit):
            result = result_of(await self._store.counts(poll), poll.voters, poll.quorum)
            won = ", ".join(poll.options[place] for place in result.winners) or "no result"
            text = f"poll {poll.id}: {poll.question} {won}"
            items.append(DigestItem("decided", poll.thread_id, poll.id, text))
        return items

    async def _find(self, call: Calling, id: str) -> PollSummary:
        """The poll, if the caller reads its thread. Raises `OperationError`."""
        poll = await self._store.poll(number_of(id))
        return self.host.visible(call, poll, f"poll {id}", "list_polls")

    async def _read(self, call: Calling, poll: PollSummary) -> Poll:
        is_closed = poll.state == "closed"
        votes = await self._store.counts(poll)
        voters = {} if poll.secret else await self._store.voters(poll, NAMED)
        result = result_of(votes, poll.voters, poll.quorum) if is_closed else None
        options = [
            PollOption(
                number=place + 1,
                text=text,
                votes=votes[place] if is_closed or not poll.secret else None,
                voters=tuple(voters.get(place, ())),
            )
            for place, text in enumerate(poll.options)
        ]
        return Poll(
            poll=poll,
            options=tuple(options),
            mine=tuple(n + 1 for n in await self._store.of_voter(poll, call.participant)),
            outcome=result.outcome if result else None,
            winners=tuple(poll.options[place] for place in (result.winners if result else ())),
        )

    # Creating and voting ----------------------------------------------------------------------

    @operation(permission="write", output=PollSummary)
    async def create_poll(self, call: Calling, args: CreatePoll) -> Commit:
        """Ask the readers of a thread to vote. The result is posted there at the deadline or when
        you close the poll. It wakes no agent: to wake voters, mention them in a message."""
        thread, now = self.host.thread(call, args.thread), self.host.now()
        check_poll(args, now)
        if await self._store.open_in(thread) >= self.config.max_open:
            raise over_limit(
                f"{self.config.max_open} polls are open in this thread; close one first"
            )
        self._last += 1
        poll = PollSummary(
            **args.model_dump(exclude={"thread"}),
            id=f"p{self._last}",
            thread_id=thread,
            state="open",
            created_by=call.participant,
            created_at=now,
        )
        return Commit(insert_poll(poll), poll, applied=partial(self._created, poll))

    def _created(self, poll: PollSummary) -> None:
        self._deadlines.at(seconds_of(poll.deadline))
        self._signal(poll, "created", poll.created_by)
        if self.config.announce:
            lines = "".join(f"\n{n}. {text}" for n, text in enumerate(poll.options, 1))
            end = poll.deadline and poll.deadline.astimezone(UTC)
            until = f" until {end:%Y-%m-%d %H:%M} UTC" if end else ""
            kind = "secret poll" if poll.secret else "poll"
            text = f"{poll.created_by} asks{until} ({kind} {poll.id}): {poll.question}{lines}"
            self.host.notice(poll.thread_id, text, {"poll": poll.id}, f"opened:{poll.id}", to=())

    # Idempotent because repeating a vote changes nothing, and so that only the vote is stored: a
    # call stored by its cid would reveal the vote even in a secret poll.
    @operation(permission="write", output=Voted, idempotent=True)
    async def vote(self, call: Calling, args: Vote) -> Commit:
        """Vote in a poll, or change your vote while it is open."""
        poll = await self._find(call, args.poll)
        return self._change_vote(call, poll, places_of(poll, args.options))

    @operation(permission="write", output=Voted, idempotent=True)
    async def retract_vote(self, call: Calling, args: PollOf) -> Commit:
        """Withdraw your vote in a poll while it is open."""
        return self._change_vote(call, await self._find(call, args.poll), ())

    def _change_vote(self, call: Calling, poll: PollSummary, places: Sequence[int]) -> Commit:
        if poll.state == "closed":
            raise _has_ended(poll)
        # Naming the voter of a secret poll would reveal the vote, together with the counts.
        by = None if poll.secret else call.participant
        return Commit(
            replace_vote(number_of(poll.id), call.participant, places, self.host.now()),
            Voted(poll=poll.id, options=tuple(place + 1 for place in places)),
            conflict=_has_ended(poll),
            applied=partial(self._signal, poll, "voted", by),
        )

    def _signal(self, poll: PollSummary, what: str, by: str | None) -> None:
        data: JsonValue = {"poll": poll.id, "question": poll.question, "by": by}
        self.host.signal(poll.thread_id, what, data)

    # Closing ----------------------------------------------------------------------------------

    @operation(permission="write", idempotent=True)
    async def close_poll(self, call: Calling, args: PollOf) -> Poll:
        """Close a poll that you created, before its deadline. Closing a closed poll changes
        nothing."""
        poll = await self._find(call, args.poll)
        if call.participant != poll.created_by and not call.owner:
            whose = f"{args.poll} belongs to {poll.created_by}"
            raise forbidden(f"{whose}; only its author and owners can close it")
        if poll.state == "open":
            await self._close(number_of(poll.id), call.participant)
        return await self._read(call, await self._find(call, args.poll))

    async def _close(self, id: int, by: str) -> None:
        """Close the poll if it is open. Its result is posted next."""
        try:
            await self.host.write(close(id, by, self.host.now()))
        except OperationError as error:
            if error.code != ErrorCode.CONFLICT:
                raise
            return  # it was closed concurrently
        poll = await self._store.poll(id)
        assert poll is not None, "it was just written"
        self._signal(poll, "closed", by)
        self._deadlines.at(self.host.now())

    def on_timer(self, key: str) -> None:
        self._deadlines.rung()
        self.host.spawn(self._close_due())

    async def _close_due(self) -> None:
        """Close polls that are due, and post outstanding results."""
        now = self.host.now()
        try:
            due = await self._store.due(now, BATCH)
            for id in due:
                await self._close(id, "hub")
            unannounced = await self._store.unannounced(BATCH)
            for poll in unannounced:
                await self._announce(poll)
            more = BATCH in (len(due), len(unannounced))
            self._deadlines.at(now if more else await self._store.next_deadline(now))
        except StoreUnavailable:
            self._deadlines.at(now + RETRY_DELAY_S)
            raise

    async def _announce(self, poll: PollSummary) -> None:
        """Post the result, once because of its key, and mark it as announced."""
        options, votes = poll.options, await self._store.counts(poll)
        outcome, winners = result_of(votes, poll.voters, poll.quorum)
        details: dict[str, JsonValue] = {
            "poll": poll.id,
            "outcome": outcome,
            "winners": [options[place] for place in winners],
            "votes": dict(zip(options, votes, strict=True)),
            "voters": poll.voters,
        }
        text = result_text(poll.question, options, votes, poll.voters, poll.quorum)
        thread, once = poll.thread_id, f"result:{poll.id}"
        with suppress(OperationError):  # another mod rejects it, which is final
            await self.host.post_notice(thread, text, details, once, to=(poll.created_by,))
        await self.host.write(mark_announced(poll.id))


def _has_ended(poll: PollSummary) -> OperationError:
    text = f'the poll {poll.id} "{poll.question}" has ended; use read_poll for the result'
    return conflict(text, poll=poll.id)
