"""Turns: agents record their work, and people inspect it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.ids import message_id, parse_message_id
from hubbub.mods.operation import Commit, bad_request, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.queries import LatestTurns, MissingParts, PromptsOf, TurnById
from hubbub.network.records import (
    PartStored,
    Record,
    StepRecorded,
    TurnBegun,
    TurnEnded,
    TurnLeft,
    WakesTaken,
)
from hubbub.network.routing import own_turn, unknown_turn
from hubbub.network.running_turns import NO_LIVES, EndedTurn, TurnProcesses, ended_error
from hubbub.network.service import Service
from hubbub.network.services.approvals import ApprovalService
from hubbub.network.services.budgets.budgets import BudgetService
from hubbub.network.services.requests import RequestService
from hubbub.network.services.stops import StopService
from hubbub.network.services.turns.ending import Ending, turn_record
from hubbub.network.services.turns.notices import (
    Silence,
    handled_messages,
    joined_names,
    shown_end,
    silences,
    unanswered,
)
from hubbub.network.services.turns.questions import FollowedQuestion, OpenQuestions
from hubbub.network.stored import StoredTurn
from hubbub.network.wakes import SENTENCES
from hubbub.protocol import thread_ids
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
from hubbub.protocol.turns import PromptParts, Step, Turn, TurnEnd, TurnStart, part_id
from hubbub.wording import shortened

__all__ = ["TurnService"]

RECORD = 0.1
"""A record's cost against the rate limit: a working agent writes several for each message it
sends."""

RECENT_TURNS = 128
"""Turns that a starting hub checks for missing notices: no more can have ended just as it
crashed."""

_BACKTICKS = re.compile("`+")

MAX_REASON = 500
"""Characters of a turn's reason that its notice quotes; the turn's record has the full text."""

MAX_NAMED, MAX_FAILURES = 20, 3
"""Silent agents that a notice lists, and how many of them it gives the failure for."""

MENTION = "Mention an agent to get an answer, or the reason there is none."

NO_ANSWER = {
    "finished": "{agent} read this and decided not to answer{reason}.",
    "no_action": "{agent} gave no usable answer{reason}.",
    "max_steps": "{agent} reached its limit before it answered{reason}.",
    "timeout": "{agent} ran out of time before it answered{reason}.",
    "loop_detected": "{agent} repeated itself and was stopped before it answered{reason}.",
    "cancelled": "{agent} was stopped before it answered{reason}.",
    "model_error": "{agent} got no answer from its model{reason}.",
    "handler_error": "{agent} failed while it worked on this{reason}.",
    "budget_exhausted": "{agent} used up its budget before it answered{reason}.",
}
"""The notice to a waiting person, by the turn's outcome."""


class TurnService(Service):
    """Records agents' turns, and notifies waiting people of turns that end without an answer."""

    def __init__(
        self,
        kernel: Kernel,
        ending: Ending,
        *,
        budgets: BudgetService,
        stops: StopService,
        approvals: ApprovalService,
        requests: RequestService,
    ):
        super().__init__(kernel)
        self._ending, self._budgets, self._stops = ending, budgets, stops
        self._approvals, self._requests = approvals, requests
        self.questions = OpenQuestions(kernel.store, kernel.state, kernel.queues, requests)
        self._draining = False

    def begin(self) -> None:
        self.kernel.spawn(self.kernel.until_readable(self._repost_notices))

    def close(self) -> None:
        self._draining = True

    @operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=BeginTurnResult)
    async def begin_turn(self, call: Caller, args: BeginTurn) -> Commit[Record] | BeginTurnResult:
        """Record that a turn begins, or resumes after a crash; returns the steps recorded so
        far."""
        start = args.start
        own_turn(start.id, call.participant, self.kernel.log.head)
        seqs = self._positions(start.messages)
        if not seqs:
            raise bad_request(f"start.messages: {_WOKEN_BY}")
        parts = await self._parts(call.participant, args.prompt)
        account = await self._budgets.account(call, start.id)
        thread_id = self.state.threads.by_no(account.thread_no).id
        # The hub determines the thread itself, as it posts the turn's notices there.
        start = start.model_copy(update={"thread_id": thread_id})
        runs = self.state.turns.get(start.id) is not None
        stored = await self.store.read(TurnById(start.id)) if runs else None
        stored = await self._check_running(start.id) or stored
        if account.has_ended:  # the turn has ended and does not begin again
            ended = await self.store.read(TurnById(start.id))
            if ended is not None:
                return _begun(ended)
            # Only a wake ended, before any turn began.
            account = await self._budgets.account(call, start.id)
        lives = stored.lives if stored is not None else NO_LIVES
        lives = lives.begun(args.life, len(stored.sent) if stored is not None else 0)
        if stored is not None and lives.over:
            return self._end_crashing(stored, lives)
        self._check_may_begin(call, start.id, thread_id)  # no await from here on
        now, recorded = self.kernel.clock.now(), start.model_dump_json()
        prompts = (_digests(args.prompt.system), _digests(args.prompt.user))
        begun = TurnBegun(start.id, call.participant, now, recorded, seqs, lives, *prompts)
        charge = self._budgets.turns.begin(account)

        async def answer() -> BeginTurnResult:
            return _begun(await self._stored(start.id))

        def records(head: int) -> Sequence[Record]:
            return [*parts, begun, *charge.records()]

        def applied() -> None:
            self.state.turns.begun(start.id, call.participant, thread_id)
            charge.applied()

        first = BeginTurnResult(attempts=1) if stored is None else answer
        return Commit(records, first, applied, charge.released)

    async def _parts(self, agent: str, prompt: PromptParts) -> Sequence[PartStored]:
        """The parts to store. Raises `OperationError` if any other part is not stored yet."""
        texts = {part_id(text): text for text in prompt.texts}
        others = {*prompt.system, *prompt.user} - texts.keys()
        if others:
            missing = await self.store.read(MissingParts(agent, [_digests([o]) for o in others]))
            if missing:
                raise bad_request(_NO_TEXT)
        return [PartStored(agent, _digests([id]), text) for id, text in texts.items()]

    def _end_crashing(self, stored: StoredTurn, lives: TurnProcesses) -> Commit[Record]:
        """End a turn that crashed too many processes, instead of beginning it again."""
        reason = f"its process died {lives.deaths} times while working on it"
        end = TurnEnd(id=stored.id, outcome="handler_error", reason=reason, by="hub")
        return self._end(end, ended_error(stored.id, "hub", reason))

    @operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
    async def leave_turn(self, call: Caller, args: LeaveTurn) -> Commit[Record]:
        """Report that the process no longer works on a turn, but did not crash: the agent is
        stopped, or the turn waits for a person. The next `begin_turn` resumes it."""
        own_turn(args.turn, call.participant, self.kernel.log.head)
        return Commit([TurnLeft(args.turn, args.life)], Done())

    def _check_may_begin(self, call: Caller, turn: str, thread_id: str) -> None:
        self.state.stops.refuse(call.participant, thread_id)
        if self.state.turns.get(turn) is None:
            self._stops.count(thread_id, turn)

    async def _check_running(self, turn: str) -> StoredTurn | None:
        """The record of a turn that began before but is not running in memory. Raises
        `OperationError` if the turn was ended on its agent's behalf."""
        await self._ending.wait_until_idle()
        self.state.turns.check(turn)
        if self.state.turns.get(turn) is not None:
            return None
        stored = await self.store.read(TurnById(turn))  # it may have ended before the hub started
        end = TurnEnd.model_validate_json(stored.end) if stored and stored.end else None
        if end is not None and end.by is not None:
            raise ended_error(turn, end.by, end.reason)
        await self._ending.wait_until_idle()  # it may have been stopped during the read
        self.state.turns.check(turn)
        return stored

    @operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
    async def record_step(self, call: Caller, args: RecordStep) -> Commit[Record]:
        """Record a step of a turn; the same number again replaces it. The turn takes over the wakes
        of the messages that steered it before this step. A step can follow its agent's own end of
        the turn, as one that is refused temporarily is sent again later."""
        own_turn(args.turn, call.participant, self.kernel.log.head)
        seqs = self._positions([steering.message for steering in args.step.steered])
        if seqs is None:
            raise bad_request(f"step.steered: {_WOKEN_BY}")
        account = await self._budgets.account(call, args.turn)
        await self._check_running(args.turn)
        written: list[Record] = [StepRecorded(args.turn, args.step.n, args.step.model_dump_json())]
        if seqs:
            written.append(WakesTaken(args.turn, call.participant, seqs))
        charge = self._budgets.turns.step(account, args.step, args.settles)
        return Commit(
            lambda head: [*written, *charge.records()], Done(), charge.applied, charge.released
        )

    @operation(permission="write", tool=False, idempotent=True, cost=RECORD, output=Done)
    async def end_turn(self, call: Caller, args: EndTurn) -> Commit[Record]:
        """Record how a turn ended. The hub notifies a person who still waits for an answer."""
        end = args.end.model_copy(update={"by": None})
        own_turn(end.id, call.participant, self.kernel.log.head)
        await self._check_running(end.id)
        return self._end(end)

    def _end(self, end: TurnEnd, refused: OperationError | None = None) -> Commit[Record]:
        """Write the end and notify everyone concerned; the agent gets `refused` as its answer."""
        ended = TurnEnded(end.id, self.kernel.clock.now(), end.model_dump_json())

        async def answer() -> Done:
            stored = await self._stored(end.id)
            if stored.ended_at is None:  # it began after this was written
                raise unknown_turn(end.id)
            if stored.ended_at == ended.ended_at:  # else it ended before, and this is a repeat
                self.kernel.metrics.turn_ended(
                    end.outcome, map(Step.model_validate_json, stored.steps)
                )
                if self.kernel.pipeline.watches_turns:
                    prompts = await self.store.read(PromptsOf(end.id))
                    self.kernel.pipeline.turn_ended(turn_record(stored, prompts))
                if self.kernel.fanout.people:
                    start = TurnStart.model_validate_json(stored.start)
                    self.kernel.notifications.turn_ended(
                        stored.id, stored.agent, start.thread_id, end.outcome
                    )
            await self._notify_waiting(stored, end)
            messages = handled_messages(stored)
            self._requests.turn_over(stored.agent, stored.id, messages, end)
            self._post_silences(self.questions.turn_ended(stored.agent, messages, end))
            if refused is not None:
                raise refused
            return Done()

        def applied() -> None:
            self.state.turns.ended(end.id)
            self._budgets.turns.end(end.id)
            self._approvals.cancel_of([end.id])

        return Commit([ended], answer, applied)

    async def _repost_notices(self) -> None:
        """After a start, post the notices of the latest turns that a crash may have prevented. A
        notice that is in the log is not posted twice."""
        await self.questions.load(self.kernel.log)
        for stored in await self.store.read(LatestTurns(None, RECENT_TURNS)):
            end = TurnEnd.model_validate_json(stored.end) if stored.end is not None else None
            if end is None or self._draining:
                continue
            # Others got their notice in the commit that ended them.
            if end.by is None or end.outcome == "handler_error":
                await self._notify_waiting(stored, end)
        self._post_silences(self.questions.take_unanswerable())

    # Questions that were passed on --------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """Follow the questions in committed messages."""
        self._post_silences(self.questions.committed(entries))

    def turns_ended(self, ended: Sequence[EndedTurn]) -> None:
        """Close the questions of turns and wakes that were ended on their agents' behalf."""
        for each in ended:
            end = TurnEnd(id=each.turn, outcome="cancelled", reason=each.reason, by=each.by)
            message = each.turn.rpartition("-")[2]
            self._post_silences(self.questions.turn_ended(each.agent, [message], end))

    def _post_silences(self, questions: Sequence[FollowedQuestion]) -> None:
        """Post a notice for each of these questions, which can no longer be answered."""
        for each in questions:
            ends = sorted(each.ends.items(), key=lambda end: end[0])
            refused = sorted(each.refused.items())
            self._post_silence(Silence(each.seq, each.thread_id, each.person, ends, refused))

    async def _notify_waiting(self, stored: StoredTurn, end: TurnEnd) -> None:
        """Post one notice per thread for the messages that required a reply and got none."""
        waiting = defaultdict[str, list[Message]](list)
        finished = end.outcome == "finished"
        for message in await unanswered(self.store, stored, finished=finished):
            waiting[message.thread_id].append(message)
            self.questions.close(message.id)
        for thread_id, messages in waiting.items():
            shown = shown_end(self.kernel, end, thread_id)
            details: dict[str, JsonValue] = {
                "code": end.outcome,
                "agent": stored.agent,
                "reason": shortened(shown.reason, MAX_REASON),
                "turn": stored.id,
                "messages": [message.id for message in messages],
            }
            once = f"notice:{stored.id}:{messages[0].seq}"[:200]
            people = dict.fromkeys(message.author for message in messages)
            text = _no_answer(stored.agent, shown)
            self.kernel.writes.notice(thread_id, text, details, once, to=people)
        for silence in await silences(self.store, stored):
            self._post_silence(silence)

    def _post_silence(self, silence: Silence) -> None:
        """Post one notice in the message's thread, whichever turn was the last to end."""
        agents = [agent for agent, _ in silence.ends]
        failed = [
            (agent, shown_end(self.kernel, end, silence.thread_id))
            for agent, end in silence.ends
            if end.outcome != "finished"
        ][:MAX_FAILURES]
        if len(agents) == 1:
            text = f"{agents[0]} was woken by this and did not answer."
        else:
            text = f"None of the agents woken by this answered: {joined_names(agents, MAX_NAMED)}."
        refused = [
            f"A later message did not wake {agent}: {SENTENCES[reason]}."
            for agent, reason in silence.refused[:MAX_FAILURES]
        ]
        direct = thread_ids.kind_of(silence.thread_id) == "direct"
        advice = [] if direct else [MENTION]
        details: dict[str, JsonValue] = {
            "code": "silence",
            "agents": list[JsonValue](agents),
            "outcomes": {agent: end.outcome for agent, end in silence.ends},
            "reasons": {agent: shortened(end.reason, MAX_REASON) for agent, end in failed},
            "turns": {agent: end.id for agent, end in failed},
            "messages": [message_id(silence.seq)],
        }
        self.kernel.writes.notice(
            silence.thread_id,
            " ".join([text, *(_no_answer(agent, end) for agent, end in failed), *refused, *advice]),
            details,
            f"silence:{silence.seq}",
            to=[silence.person],
        )

    @operation(tool=False)
    async def list_turns(self, call: Caller, args: ListTurns) -> Turns:
        """List the latest turns, newest first: all turns for an owner, otherwise your own. `before`
        pages back in time."""
        agent = args.agent if call.owner else call.participant
        if args.before is not None:
            await self.readable_turn(call, args.before)
        stored = await self.store.read(LatestTurns(agent, args.limit + 1, args.before))
        page = stored[: args.limit]
        summaries = tuple(self.summarised(turn) for turn in page)
        return Turns(turns=summaries, more=len(stored) > len(page))

    @operation(tool=False)
    async def read_turn(self, call: Caller, args: ReadTurn) -> Turn:
        """Read the whole record of a turn: prompt, steps, tool calls and results, outcome."""
        stored = await self.readable_turn(call, args.id)
        return turn_record(stored, await self.store.read(PromptsOf(args.id)))

    def _positions(self, messages: Sequence[str]) -> tuple[int, ...] | None:
        """The positions of these messages; None if one of them is not in the log."""
        seqs = tuple(parse_message_id(message) or 0 for message in messages)
        return seqs if all(1 <= seq <= self.kernel.log.head for seq in seqs) else None

    async def _stored(self, turn: str) -> StoredTurn:
        stored = await self.store.read(TurnById(turn))
        if stored is None:
            raise unknown_turn(turn)
        return stored

    async def readable_turn(self, call: Caller, turn: str) -> StoredTurn:
        """The turn. Raises `OperationError` unless the caller may read it."""
        stored = await self._stored(turn)
        if not call.owner and stored.agent != call.participant:
            raise unknown_turn(turn)
        return stored

    def summarised(self, stored: StoredTurn) -> TurnSummary:
        """The turn as an item of a list."""
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
            waits_for=() if turn.end else self._approvals.waiting_of(stored.id),
            model=turn.start.model,
            steps=len(turn.steps),
            calls=sum(len(step.calls) for step in turn.steps),
            tokens_in=turn.tokens_in,
            tokens_out=turn.tokens_out,
            cost_usd=turn.cost_usd,
        )


def _quoted(text: str) -> str:
    """Text from others as Markdown code, so that no mention or link in it takes effect."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _begun(stored: StoredTurn) -> BeginTurnResult:
    steps = tuple(Step.model_validate_json(step) for step in stored.steps)
    return BeginTurnResult(attempts=stored.attempts, steps=steps)


def _no_answer(agent: str, end: TurnEnd) -> str:
    reason = f" ({_quoted(shortened(end.reason, MAX_REASON))})" if end.reason else ""
    return NO_ANSWER[end.outcome].format(agent=agent, reason=reason)


def _digests(parts: Sequence[str]) -> bytes:
    return bytes.fromhex("".join(parts))


_NO_TEXT = "prompt: the text of some parts was never sent; send the texts of all parts"
_WOKEN_BY = "needs the ids of the messages that woke you"
