"""Turns: agents record what they do; people look into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller, Recording
from hubbub.network.records import Record, StepRecorded, TurnBegun, TurnEnded, WakesTaken
from hubbub.network.speaking import cause_position
from hubbub.network.stored import StoredTurn
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import (
    BeginTurn,
    BeginTurnResult,
    Done,
    EndTurn,
    ListTurns,
    ReadTurn,
    RecordStep,
    Turns,
    TurnSummary,
)
from hubbub.protocol.turns import Step, Turn, TurnEnd, TurnStart

if TYPE_CHECKING:
    from hubbub.network.hub import Hub

__all__ = [
    "begin_turn",
    "end_turn",
    "list_turns",
    "read_turn",
    "readable_turn",
    "record_step",
    "summarised",
]

RECORD = 0.1
"""What a record costs of the rate limit: an agent at work makes several for each thing it says."""

MOST_REASON = 500
"""Characters of a turn's reason that its notice repeats; the turn's record has all of it."""

NO_ANSWER = {
    "finished": "{agent} has read this and decided not to answer{reason}.",
    "no_action": "{agent} gave no usable answer{reason}.",
    "max_steps": "{agent} ran out of steps before it answered{reason}.",
    "timeout": "{agent} ran out of time before it answered{reason}.",
    "loop_detected": "{agent} repeated itself and was stopped before it answered{reason}.",
    "cancelled": "{agent} was stopped before it answered{reason}.",
    "model_error": "{agent} could not reach its model{reason}.",
    "handler_error": "{agent} failed while it worked on this{reason}.",
}
"""The notice to a person who waits, by the turn's outcome."""


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=BeginTurnResult)
def begin_turn(call: Caller, args: BeginTurn) -> Recording:
    """Record that a turn begins, or begins again after a crash; tells what was done before."""
    start, hub = args.start, call.hub
    _own_turn(call, start.id)
    seqs = _positions(hub, start.messages)
    if not seqs:
        raise OperationError(ErrorCode.BAD_REQUEST, f"start.messages: {_WOKEN_BY}")
    begun = TurnBegun(start.id, call.participant, hub.clock.now(), start.model_dump_json(), seqs)

    async def answer() -> BeginTurnResult:
        stored = await _stored(hub, start.id)
        steps = tuple(Step.model_validate_json(step) for step in stored.steps)
        return BeginTurnResult(attempts=stored.attempts, steps=steps)

    return Recording(lambda head: [begun], answer)


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
def record_step(call: Caller, args: RecordStep) -> Recording:
    """Record a step of a running turn; the same number again replaces it. The wakes of the messages
    that were let in before it belong to the turn from then on."""
    _own_turn(call, args.turn)
    seqs = _positions(call.hub, [steering.message for steering in args.step.steered])
    if seqs is None:
        raise OperationError(ErrorCode.BAD_REQUEST, f"step.steered: {_WOKEN_BY}")
    records: list[Record] = [StepRecorded(args.turn, args.step.n, args.step.model_dump_json())]
    if seqs:
        records.append(WakesTaken(args.turn, call.participant, seqs))
    return Recording(lambda head: records, Done())


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
def end_turn(call: Caller, args: EndTurn) -> Recording:
    """Record how a turn ended. A person who still waits for an answer is told by the hub."""
    hub, end = call.hub, args.end
    _own_turn(call, end.id)
    ended = TurnEnded(end.id, hub.clock.now(), end.model_dump_json())

    async def answer() -> Done:
        stored = await _stored(hub, end.id)
        if stored.ended_at == ended.ended_at:  # else it had ended before: this repeats the call
            _count(hub, end, stored)
        await _tell_who_waits(hub, stored, end)
        return Done()

    return Recording(lambda head: [ended], answer)


def _count(hub: Hub, end: TurnEnd, stored: StoredTurn) -> None:
    hub.metrics.turns[end.outcome] += 1
    for step in map(Step.model_validate_json, stored.steps):
        hub.metrics.tokens_in += step.tokens_in
        hub.metrics.tokens_out += step.tokens_out


async def _tell_who_waits(hub: Hub, stored: StoredTurn, end: TurnEnd) -> None:
    """Post one notice, where they stand, for the messages that required a reply and got none.

    What the turn has sent counts as the answer to what woke it, and to what it was steered by
    before it was sent.
    """
    waiting = defaultdict[str, list[Message]](list)
    for id in _unanswered(stored):
        message = await _awaits_reply(hub, stored, id)
        if message is not None:
            waiting[message.thread_id].append(message)
    told = end.reason if len(end.reason) <= MOST_REASON else f"{end.reason[:MOST_REASON]}…"
    reason = f" ({told})" if told else ""
    text = NO_ANSWER[end.outcome].format(agent=stored.agent, reason=reason)
    for thread_id, messages in waiting.items():
        details: dict[str, JsonValue] = {
            "code": end.outcome,
            "agent": stored.agent,
            "turn": stored.id,
            "messages": [message.id for message in messages],
        }
        once = f"notice:{stored.id}:{messages[0].seq}"[:200]
        people = dict.fromkeys(message.sender_id for message in messages)
        hub.writes.notice(thread_id, text, details, once, to=people)


async def _awaits_reply(hub: Hub, stored: StoredTurn, message_id: str) -> Message | None:
    """The message, if somebody waits for what the agent says to it."""
    seq = parse_message_id(message_id) or 0
    wake = await hub.store.wake(stored.agent, seq)
    body = await hub.store.message(seq)
    if wake is None or wake.reply != "required" or body is None:
        return None
    return Message.model_validate_json(body)


def _unanswered(stored: StoredTurn) -> list[str]:
    """The messages that the turn was about and said nothing after."""
    start = TurnStart.model_validate_json(stored.start)
    found = [] if stored.sent else list(start.messages)
    last = max(stored.sent, default=0)
    for step in map(Step.model_validate_json, stored.steps):
        found += [s.message for s in step.steered if (parse_message_id(s.message) or 0) > last]
    return list(dict.fromkeys(found))


@operation(tool=False)
async def list_turns(call: Caller, args: ListTurns) -> Turns:
    """List the latest turns, newest first: of everybody for an owner, else your own. `before` pages
    back in time."""
    agent = args.agent if call.owner else call.participant
    if args.before is not None:
        await readable_turn(call, args.before)
    stored = await call.hub.store.turns(agent, args.limit + 1, args.before)
    page = stored[: args.limit]
    return Turns(turns=tuple(map(summarised, page)), more=len(stored) > len(page))


@operation(tool=False)
async def read_turn(call: Caller, args: ReadTurn) -> Turn:
    """Read the whole record of a turn: prompt, steps, tool calls and results, outcome."""
    return _turn(await readable_turn(call, args.id))


_WOKEN_BY = "needs the ids of the messages that woke you"


def _positions(hub: Hub, messages: Sequence[str]) -> tuple[int, ...] | None:
    """The positions of these messages; None if one of them is no message of the log."""
    seqs = tuple(parse_message_id(message) or 0 for message in messages)
    return seqs if all(1 <= seq <= hub.log.head for seq in seqs) else None


def _own_turn(call: Caller, turn: str) -> None:
    """Raises `OperationError` unless the id is of a turn that the hub gave to the caller."""
    seq, named = cause_position(turn, call.participant)
    if named is None or seq > call.hub.log.head:
        raise OperationError(
            ErrorCode.BAD_REQUEST, f"{turn[:100]!r} is no turn of yours; the wake names it"
        )


def _unknown(turn: str) -> OperationError:
    return OperationError(ErrorCode.UNKNOWN_TURN, f"there is no turn {turn[:100]!r} for you")


async def _stored(hub: Hub, turn: str) -> StoredTurn:
    stored = await hub.store.turn(turn)
    if stored is None:
        raise _unknown(turn)
    return stored


async def readable_turn(call: Caller, turn: str) -> StoredTurn:
    """The turn, if the caller may read it. Raises `OperationError`."""
    stored = await _stored(call.hub, turn)
    if not call.owner and stored.agent != call.participant:
        raise _unknown(turn)
    return stored


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _turn(stored: StoredTurn) -> Turn:
    ended = _time(stored.ended_at) if stored.ended_at is not None else None
    return Turn(
        start=TurnStart.model_validate_json(stored.start),
        agent=stored.agent,
        started_at=_time(stored.started_at),
        attempts=stored.attempts,
        steps=tuple(Step.model_validate_json(step) for step in stored.steps),
        end=TurnEnd.model_validate_json(stored.end) if stored.end is not None else None,
        ended_at=ended,
        sent=tuple(f"m{seq}" for seq in stored.sent),
    )


def summarised(stored: StoredTurn) -> TurnSummary:
    """A turn as lists show it."""
    turn = _turn(stored)
    duration = None
    if turn.ended_at is not None:
        duration = round((turn.ended_at - turn.started_at).total_seconds() * 1000, 1)
    return TurnSummary(
        id=stored.id,
        agent=turn.agent,
        thread_id=turn.start.thread_id,
        started_at=turn.started_at,
        duration_ms=duration,
        outcome=turn.end.outcome if turn.end else None,
        reason=turn.end.reason if turn.end else "",
        model=turn.start.model,
        steps=len(turn.steps),
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        cost_usd=turn.cost_usd,
    )
