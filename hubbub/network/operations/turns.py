"""Turns: agents record what they do; people look into it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller, Recording
from hubbub.network.control.turn_account import TurnAccount
from hubbub.network.lives import NO_LIVES, Lives
from hubbub.network.people.ending_notices import listed
from hubbub.network.people.running import over
from hubbub.network.people.silence import Silence, silences
from hubbub.network.people.waiting import asker, taken_up, unanswered
from hubbub.network.queries import LatestTurns, TurnById, WakeOf
from hubbub.network.records import (
    Record,
    StepRecorded,
    TurnBegun,
    TurnEnded,
    TurnLeft,
    WakesTaken,
)
from hubbub.network.speaking import cause_position
from hubbub.network.stored import StoredTurn
from hubbub.network.turn_record import turn_record
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import (
    BeginTurn,
    BeginTurnResult,
    Done,
    EndTurn,
    LeaveTurn,
    ListTurns,
    ReadTurn,
    RecordStep,
    Turns,
    TurnSummary,
)
from hubbub.protocol.turns import Step, Turn, TurnEnd

if TYPE_CHECKING:
    from hubbub.network.hub import Hub

__all__ = [
    "begin_turn",
    "end_turn",
    "leave_turn",
    "list_turns",
    "read_turn",
    "readable_turn",
    "record_step",
    "summarised",
    "tell_again",
    "turn_account",
]

RECORD = 0.1
"""What a record costs of the rate limit: an agent at work makes several for each thing it says."""

LATELY = 128
"""Turns that a hub which starts looks through: more cannot have ended in the moment it died."""

_BACKTICKS = re.compile("`+")

MOST_REASON = 500
"""Characters of a turn's reason that its notice repeats; the turn's record has all of it."""

MOST_NAMED, MOST_TOLD = 20, 3
"""Agents whose silence a notice names, and of how many of them it says what went wrong."""

MENTION = "Mention an agent to get an answer, or to be told why there is none."

NO_ANSWER = {
    "finished": "{agent} has read this and decided not to answer{reason}.",
    "no_action": "{agent} gave no usable answer{reason}.",
    "max_steps": "{agent} ran out of steps before it answered{reason}.",
    "timeout": "{agent} ran out of time before it answered{reason}.",
    "loop_detected": "{agent} repeated itself and was stopped before it answered{reason}.",
    "cancelled": "{agent} was stopped before it answered{reason}.",
    "model_error": "{agent} got no answer from its model{reason}.",
    "handler_error": "{agent} failed while it worked on this{reason}.",
    "budget_exhausted": "{agent} has used up its budget before it answered{reason}.",
}
"""The notice to a person who waits, by the turn's outcome."""


def _quoted(text: str) -> str:
    """Words of others as code in Markdown: what reads like a mention or a link there is none."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=BeginTurnResult)
async def begin_turn(call: Caller, args: BeginTurn) -> Recording | BeginTurnResult:
    """Record that a turn begins, or begins again after a crash; tells what was done before."""
    start, hub = args.start, call.hub
    _own_turn(call, start.id)
    seqs = _positions(hub, start.messages)
    if not seqs:
        raise OperationError(ErrorCode.BAD_REQUEST, f"start.messages: {_WOKEN_BY}")
    account = await turn_account(call, start.id)
    thread_id = hub.state.threads.by_no(account.thread_no).id
    # Where it works the hub knows itself: notices about the turn are posted there.
    start = start.model_copy(update={"thread_id": thread_id})
    runs = hub.state.turns.get(start.id) is not None
    stored = await hub.store.read(TurnById(start.id)) if runs else None
    stored = await _check_goes_on(call, start.id) or stored
    if account.over:  # it has ended already, and is not begun once more
        ended = await hub.store.read(TurnById(start.id))
        if ended is not None:
            return _begun(ended)
        account = await turn_account(call, start.id)  # what ended had not begun: no turn knows it
    lives = stored.lives if stored is not None else NO_LIVES
    lives = lives.begun(args.life, len(stored.sent) if stored is not None else 0)
    if stored is not None and lives.over:
        return _end_of_lives(call, stored, lives)
    _may_begin(call, start.id, thread_id)  # from here on nothing is waited for
    now, recorded = hub.clock.now(), start.model_dump_json()
    begun = TurnBegun(start.id, call.participant, now, recorded, seqs, lives)
    charge = hub.control.turns.begin(account)

    async def answer() -> BeginTurnResult:
        return _begun(await _stored(hub, start.id))

    def records(head: int) -> Sequence[Record]:
        return [begun, *charge.records()] if charge is not None else [begun]

    def committed() -> None:
        hub.state.turns.begun(start.id, call.participant, thread_id, args.life)
        if charge is not None:
            charge.committed()

    first = BeginTurnResult(attempts=1) if stored is None else answer
    return Recording(records, first, committed, charge.failed if charge is not None else None)


def _end_of_lives(call: Caller, stored: StoredTurn, lives: Lives) -> Recording:
    """The turn has cost too many processes: it ends, instead of beginning once more."""
    reason = f"its process died {lives.deaths} times in the middle of it"
    end = TurnEnd(id=stored.id, outcome="handler_error", reason=reason, by="hub")
    return _ending(call.hub, end, over(stored.id, "hub", reason))


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
async def leave_turn(call: Caller, args: LeaveTurn) -> Recording:
    """Tell that the process works on a turn no more without having died in it: the agent is
    stopped, or the turn waits for a person. The next begin goes on with it."""
    _own_turn(call, args.turn)
    return Recording(lambda head: [TurnLeft(args.turn, args.life)], Done())


def _begun(stored: StoredTurn) -> BeginTurnResult:
    steps = tuple(Step.model_validate_json(step) for step in stored.steps)
    return BeginTurnResult(attempts=stored.attempts, steps=steps)


async def turn_account(call: Caller, turn: str) -> TurnAccount:
    """What a turn of the caller's costs so far, and whose budget it uses.

    Raises `OperationError`, also for a message that has not woken the caller: nobody is to use up
    what others may spend.
    """
    turns = call.hub.control.turns
    known = turns.find(turn)
    if known is not None and known.agent == call.participant and not turns.is_loading(turn):
        return known
    _own_turn(call, turn)
    async with turns.loading(turn):
        return turns.find(turn) or await _loaded_account(call, turn)


async def _loaded_account(call: Caller, turn: str) -> TurnAccount:
    seq, _ = cause_position(turn, call.participant)
    woken_by = await call.hub.writes.causes.ancestor(seq)
    if woken_by is None or not await _has_woken(call, seq, woken_by.thread_no):
        raise _unknown(turn)
    return await call.hub.control.turns.load(
        turn, call.participant, woken_by.thread_no, woken_by.interaction
    )


async def _has_woken(call: Caller, seq: int, thread_no: int) -> bool:
    """Whether the message at `seq` woke the caller, however long ago.

    Raises `OperationError` if it has not and a stop is in the way.
    """
    hub, me = call.hub, call.participant
    if hub.queues.holds(me, seq):
        return True
    wake = await hub.store.read(WakeOf(me, seq))
    if wake is not None and wake.reply is None:  # it has reached the caller, who may know
        hub.state.halts.refuse(me, hub.state.threads.by_no(thread_no).id)
    return wake is not None and wake.reply is not None


def _may_begin(call: Caller, turn: str, thread_id: str) -> None:
    """Raises `OperationError` if nothing is to begin in the thread."""
    hub = call.hub
    hub.state.halts.refuse(call.participant, thread_id)
    if hub.state.turns.get(turn) is None:
        hub.latching.count(thread_id, turn)


async def _check_goes_on(call: Caller, turn: str) -> StoredTurn | None:
    """The turn's record, if it is not known to run and has begun before. Raises `OperationError` if
    the turn was ended in its agent's place."""
    hub = call.hub
    await hub.ending.quiet()
    hub.state.turns.check(turn)
    if hub.state.turns.get(turn) is not None:
        return None
    stored = await hub.store.read(TurnById(turn))  # ended perhaps before the hub started
    end = TurnEnd.model_validate_json(stored.end) if stored and stored.end else None
    if end is not None and end.by is not None:
        raise over(turn, end.by, end.reason)
    await hub.ending.quiet()  # it may have been stopped while the disk was asked
    hub.state.turns.check(turn)
    return stored


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
async def record_step(call: Caller, args: RecordStep) -> Recording:
    """Record a step of a running turn; the same number again replaces it. The wakes of the messages
    that were let in before it belong to the turn from then on."""
    _own_turn(call, args.turn)
    seqs = _positions(call.hub, [steering.message for steering in args.step.steered])
    if seqs is None:
        raise OperationError(ErrorCode.BAD_REQUEST, f"step.steered: {_WOKEN_BY}")
    account = await turn_account(call, args.turn)
    await _check_goes_on(call, args.turn)
    made: list[Record] = [StepRecorded(args.turn, args.step.n, args.step.model_dump_json())]
    if seqs:
        made.append(WakesTaken(args.turn, call.participant, seqs))
    charge = call.hub.control.turns.step(account, args.step, args.settles)
    return Recording(
        lambda head: [*made, *charge.records()], Done(), charge.committed, charge.failed
    )


@operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
async def end_turn(call: Caller, args: EndTurn) -> Recording:
    """Record how a turn ended. A person who still waits for an answer is told by the hub."""
    end = args.end.model_copy(update={"by": None})
    _own_turn(call, end.id)
    await _check_goes_on(call, end.id)
    return _ending(call.hub, end)


def _ending(hub: Hub, end: TurnEnd, refused: OperationError | None = None) -> Recording:
    """Write the end, and tell those whom it concerns; `refused` is what its agent is told."""
    ended = TurnEnded(end.id, hub.clock.now(), end.model_dump_json())

    async def answer() -> Done:
        stored = await _stored(hub, end.id)
        if stored.ended_at is None:  # it has begun only since this was written
            raise _unknown(end.id)
        if stored.ended_at == ended.ended_at:  # else it had ended before: this repeats the call
            hub.metrics.turn_ended(end.outcome, map(Step.model_validate_json, stored.steps))
            if hub.mods.pipeline.watches_turns:
                hub.mods.pipeline.turn_ended(turn_record(stored))
        await _tell_who_waits(hub, stored, end)
        hub.requests.turn_over(stored.agent, stored.id, taken_up(stored), end)
        if refused is not None:
            raise refused
        return Done()

    def committed() -> None:
        hub.state.turns.ended(end.id)
        hub.control.turns.over(end.id)
        hub.approvals.cancel_of([end.id])

    return Recording(lambda head: [ended], answer, committed)


async def tell_again(hub: Hub) -> None:
    """After a start: tell of the turns that ended last what may not have been told any more. A
    notice that was posted is not posted twice."""
    for stored in await hub.store.read(LatestTurns(None, LATELY)):
        end = TurnEnd.model_validate_json(stored.end) if stored.end is not None else None
        if end is None or hub.draining:
            continue
        if end.by is None or end.outcome == "handler_error":  # else told in the commit of the end
            await _tell_who_waits(hub, stored, end)


async def _tell_who_waits(hub: Hub, stored: StoredTurn, end: TurnEnd) -> None:
    """Post one notice, where they stand, for the messages that required a reply and got none."""
    waiting = defaultdict[str, list[Message]](list)
    for message in await unanswered(hub.store, stored):
        waiting[message.thread_id].append(message)
    text = _no_answer(stored.agent, end)
    for thread_id, messages in waiting.items():
        details: dict[str, JsonValue] = {
            "code": end.outcome,
            "agent": stored.agent,
            "turn": stored.id,
            "messages": [message.id for message in messages],
        }
        once = f"notice:{stored.id}:{messages[0].seq}"[:200]
        people = dict.fromkeys(map(asker, messages))
        hub.writes.notice(thread_id, text, details, once, to=people)
    for silence in await silences(hub.store, stored):
        _tell_of_silence(hub, silence)


def _no_answer(agent: str, end: TurnEnd) -> str:
    """Why the agent's turn has brought no answer."""
    told = end.reason if len(end.reason) <= MOST_REASON else f"{end.reason[:MOST_REASON]}…"
    reason = f" ({_quoted(told)})" if told else ""
    return NO_ANSWER[end.outcome].format(agent=agent, reason=reason)


def _tell_of_silence(hub: Hub, silence: Silence) -> None:
    """Post one notice where the message stands, whichever turn was the last to end."""
    message, ends = silence
    agents = [agent for agent, _ in ends]
    failed = [_no_answer(agent, end) for agent, end in ends if end.outcome != "finished"]
    if len(agents) == 1:
        text = f"{agents[0]} was woken by this and has not answered."
    else:
        text = f"None of those woken by this has answered: {listed(agents, MOST_NAMED)}."
    advice = [] if message.type == "direct" else [MENTION]
    details: dict[str, JsonValue] = {
        "code": "silence",
        "agents": list[JsonValue](agents),
        "messages": [message.id],
    }
    hub.writes.notice(
        message.thread_id,
        " ".join([text, *failed[:MOST_TOLD], *advice]),
        details,
        f"silence:{message.seq}",
        to=[asker(message)],
    )


@operation(tool=False)
async def list_turns(call: Caller, args: ListTurns) -> Turns:
    """List the latest turns, newest first: of everybody for an owner, else your own. `before` pages
    back in time."""
    agent = args.agent if call.owner else call.participant
    if args.before is not None:
        await readable_turn(call, args.before)
    stored = await call.hub.store.read(LatestTurns(agent, args.limit + 1, args.before))
    page = stored[: args.limit]
    told = tuple(summarised(call.hub, turn) for turn in page)
    return Turns(turns=told, more=len(stored) > len(page))


@operation(tool=False)
async def read_turn(call: Caller, args: ReadTurn) -> Turn:
    """Read the whole record of a turn: prompt, steps, tool calls and results, outcome."""
    return turn_record(await readable_turn(call, args.id))


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
    stored = await hub.store.read(TurnById(turn))
    if stored is None:
        raise _unknown(turn)
    return stored


async def readable_turn(call: Caller, turn: str) -> StoredTurn:
    """The turn, if the caller may read it. Raises `OperationError`."""
    stored = await _stored(call.hub, turn)
    if not call.owner and stored.agent != call.participant:
        raise _unknown(turn)
    return stored


def summarised(hub: Hub, stored: StoredTurn) -> TurnSummary:
    """A turn as lists show it."""
    turn = turn_record(stored)
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
        waits_for=() if turn.end else hub.approvals.waiting_of(stored.id),
        model=turn.start.model,
        steps=len(turn.steps),
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        cost_usd=turn.cost_usd,
    )
