"""Receipts: who a message reached, which agents it woke and why, and the work that followed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from hubbub.errors import LogDamaged, OperationError
from hubbub.ids import parse_interaction_id
from hubbub.mods.operation import bad_request, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import (
    InteractionMessages,
    IsMember,
    MembersAt,
    TurnsById,
    WakeOf,
    WakesAt,
)
from hubbub.network.routing import unknown_interaction
from hubbub.network.service import Service
from hubbub.network.services.launcher import LauncherService
from hubbub.network.services.messages import find_message
from hubbub.network.services.requests import RequestService
from hubbub.network.services.turns.notices import reaches
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.state import ParticipantState
from hubbub.network.stored import StoredTurn, StoredWake
from hubbub.network.threads import Thread
from hubbub.network.wakes import SENTENCES, Reason, explain_absence
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message, ReplyNeed, Wake
from hubbub.protocol.operations import (
    Envelope,
    ExplainWake,
    InteractionPage,
    InteractionWake,
    ReadInteraction,
    ReadReceipts,
    Receipt,
    Receipts,
    WakeExplanation,
    WakeResponse,
)
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = ["DECLINE", "ReceiptService", "WakeAnswer", "answer_to"]

MAX_RECEIPTS = 200
"""Readers in one answer."""


class _WakeReason(NamedTuple):
    reason: Reason
    reply: ReplyNeed | None
    """None if it does not wake."""


class ReceiptService(Service):
    """Shows what happened to a message."""

    def __init__(
        self,
        kernel: Kernel,
        turns: TurnService,
        requests: RequestService,
        launcher: LauncherService,
    ):
        super().__init__(kernel)
        self._turns, self._requests, self._launcher = turns, requests, launcher

    @operation(tool=False)
    async def explain_wake(self, call: Caller, args: ExplainWake) -> WakeExplanation:
        """Explain why a message woke an agent, or why it did not."""
        # An owner learns why an agent woke, without seeing the message.
        message = await find_message(self.kernel, call, args.message_id, unseen=call.owner)
        participant = self.state.get(args.agent)
        if participant is None or participant.kind != "agent":
            raise OperationError(
                ErrorCode.UNKNOWN_PARTICIPANT, f"no agent is named {args.agent[:64]!r}"
            )
        stored = await self.store.read(WakeOf(args.agent, message.seq))
        received = stored is not None or await self._received(call, args.agent, message)
        why = _explain(participant, message, stored, received=received)
        wake = None
        if why.reply is not None and stored is not None and stored.turn is not None:
            wake = Wake(reason=why.reason, reply=why.reply, turn=stored.turn)
        return WakeExplanation(
            agent=args.agent,
            message_id=message.id,
            woken=wake is not None,
            reason=why.reason,
            explanation=SENTENCES[why.reason],
            wake=wake,
            state=stored.state if stored else None,
        )

    async def _received(self, call: Caller, agent: str, message: Message) -> bool:
        """Whether a message reached an agent that it does not name."""
        thread = self.state.threads.ensure(message.thread_id)
        if thread.scope is None:
            return agent in thread.members
        return await self.store.read(IsMember(agent, thread.scope, message.seq))

    @operation(tool=False)
    async def read_receipts(self, call: Caller, args: ReadReceipts) -> Receipts:
        """Show what happened to a message for each reader of its thread: whether it was delivered
        and read, which agents it woke and why, the turns it started, and whether they answered."""
        message = await find_message(self.kernel, call, args.id, look=True)
        state = self.state
        thread = state.threads.ensure(message.thread_id)
        states = (state.get(name) for name in state.readers(thread, message.sender_id))
        readers = sorted(
            (each for each in states if each), key=lambda each: (each.kind != "agent", each.id)
        )
        shown = readers[:MAX_RECEIPTS]
        wakes = await self.store.read(WakesAt([message.seq]))
        turns = sorted({wake.taken for wake in wakes.values() if wake.taken})
        begun = await self.store.read(TurnsById(turns)) if turns else ()
        answers = {turn.id: await self._answer_to(message, turn) for turn in begun}
        reached = await self._reached(thread, shown, message)
        return Receipts(
            message_id=message.id,
            thread_id=message.thread_id,
            receipts=tuple(
                self._receipt(
                    call, who, message, wakes.get((message.seq, who.id)), answers, who.id in reached
                )
                for who in shown
            ),
            more=len(readers) > len(shown),
        )

    async def _reached(
        self, thread: Thread, readers: Collection[ParticipantState], message: Message
    ) -> Collection[str]:
        """The readers who received the message, without those who joined later."""
        scope, members = thread.scope, self.state.members
        if scope is None:
            return thread.members
        names = [who.id for who in readers]
        if all((members.since(name, scope) or 0) < message.seq for name in names):
            return names
        return await self.store.read(MembersAt(scope, message.seq))

    async def _answer_to(self, message: Message, turn: StoredTurn) -> WakeAnswer:
        """How the turn responded, and whether that reached the message's sender."""
        answer = answer_to(message.seq, turn)
        if answer.answer != "answered":
            return answer
        for seq in turn.sent:
            body = await self.store.message(seq) if answer.step == 1 or seq > message.seq else None
            if body is not None and reaches(
                Message.model_validate_json(body), message.thread_id, message.sender_id
            ):
                return answer
        return answer._replace(answer="elsewhere")

    def _receipt(
        self,
        call: Caller,
        who: ParticipantState,
        message: Message,
        stored: StoredWake | None,
        answers: Mapping[str, WakeAnswer],
        received: bool,
    ) -> Receipt:
        state = self.state
        why = _explain(who, message, stored, received=received)
        read = None
        if who.kind == "human":
            thread = state.threads.ensure(message.thread_id)
            read = received and state.marks.get(who.id, thread.no) >= message.tseq
        done = answers.get(stored.taken or "", WakeAnswer()) if stored else WakeAnswer()
        return Receipt(
            participant=who.id,
            kind=who.kind,
            present=who.id in state.presence,
            delivered=received and who.cursor >= message.seq,
            read=read,
            woken=why.reply is not None,
            reason=why.reason,
            explanation=SENTENCES[why.reason],
            turn=(stored.taken or stored.turn) if stored else None,
            state=stored.state if stored else None,
            step=done.step,
            answer=done.answer,
            outcome=done.outcome,
            tokens_in=done.tokens_in,
            tokens_out=done.tokens_out,
            cost_usd=done.cost_usd,
        )

    # Interactions -----------------------------------------------------------------------------

    @operation(tool=False)
    async def read_interaction(self, call: Caller, args: ReadInteraction) -> InteractionPage:
        """Follow an interaction through the log: the messages you can read and the agents they
        woke. For owners also the senders and recipients of the other messages, and all turns."""
        opened = parse_interaction_id(args.id)
        if opened is None:
            raise bad_request(f"{args.id!r} is not an interaction id; they look like i42")
        head = self.kernel.log.head
        await self._check_opened(args.id, opened)
        after = max(opened - 1, args.after or 0)
        stored = await self.store.read(InteractionMessages(args.id, after, head))
        messages, hidden = self._sorted(call, stored.rows)
        more = stored.upto < head
        if not messages and not (more or args.after or call.owner):
            raise unknown_interaction(args.id)  # the caller can see none of it
        envelopes = [Envelope.model_validate_json(body) for body in hidden]
        seqs = [message.seq for message in messages] + [each.seq for each in envelopes]
        wakes = await self.store.read(WakesAt(seqs)) if seqs else {}
        is_open = self._requests.any_open(seqs) or any(map(self._is_pending, wakes.items()))
        if not is_open and self.kernel.log.head > head:
            # Work that was open during the read may have ended since, with a message that wakes.
            later = InteractionMessages(args.id, head, self.kernel.log.head)
            is_open = bool((await self.store.read(later)).rows)
        visible = seqs if call.owner else seqs[: len(messages)]
        taken = {wake.taken for wake in wakes.values() if wake.taken} if call.owner else set()
        turns = await self.store.read(TurnsById(sorted(taken))) if taken else ()
        return InteractionPage(
            id=args.id,
            messages=tuple(await self.kernel.pipeline.shown(messages)),
            hidden=len(hidden),
            envelopes=tuple(envelopes) if call.owner else (),
            wakes=tuple(
                _interaction_wake(seq, agent, wake)
                for (seq, agent), wake in wakes.items()
                if wake.turn and seq in visible
            ),
            turns=tuple(self._turns.summarised(turn) for turn in turns),
            open=is_open,
            upto=stored.upto,
            more=more,
        )

    def _is_pending(self, woken: tuple[tuple[int, str], StoredWake]) -> bool:
        (_, agent), wake = woken
        if wake.state not in ("pending", "running"):
            return False
        # An agent that starts or restarts is not present, but will work on it soon.
        return agent in self.state.presence or self._launcher.runs(agent)

    async def _check_opened(self, interaction: str, opened: int) -> None:
        """Raises `OperationError` unless the message at `opened` opened an interaction, or is
        damaged: the later ones are still readable."""
        try:
            body = await self.store.message(opened) if opened <= self.kernel.log.head else None
        except LogDamaged:
            return
        if body is None or Message.model_validate_json(body).interaction_id != interaction:
            raise unknown_interaction(interaction)

    def _sorted(
        self, call: Caller, rows: Iterable[tuple[int, bytes]]
    ) -> tuple[Sequence[Message], Sequence[bytes]]:
        messages, hidden = list[Message](), list[bytes]()
        for thread_no, body in rows:
            if call.may_look(self.state.threads.by_no(thread_no)):
                messages.append(Message.model_validate_json(body))
            else:
                hidden.append(body)
        return messages, hidden


def _explain(
    who: ParticipantState, message: Message, stored: StoredWake | None, *, received: bool
) -> _WakeReason:
    """Why a message woke a participant or did not, from its delivery row if there is one."""
    if stored is not None:
        return _WakeReason(Reason(stored.reason), stored.reply)
    if received and who.kind != "agent" and message.sender_id != who.id:
        return _WakeReason(Reason.NOT_AN_AGENT, None)
    reason = explain_absence(
        own=message.sender_id == who.id,
        received=received,
        type=message.type,
        sender_kind=message.sender_kind,
        amends=message.amends is not None,
        imported=message.imported,
        timer=message.timer_of is not None,
    )
    return _WakeReason(reason, None)


DECLINE = "decline"
"""The tool with which an agent declines a request."""


class WakeAnswer(NamedTuple):
    """The fields of `Receipt` that come from the turn."""

    step: int | None = None
    answer: WakeResponse | None = None
    outcome: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


def answer_to(seq: int, turn: StoredTurn) -> WakeAnswer:
    """How the turn responded to the message at `seq`.

    Any message it sends once the message was in its prompt counts as an answer, to any recipient:
    an agent that delegates the work is not silent.
    """
    steps = [Step.model_validate_json(step) for step in turn.steps]
    end = TurnEnd.model_validate_json(turn.end) if turn.end is not None else None
    shown = _shown(seq, turn, steps)
    if shown is None:
        return WakeAnswer(outcome=end.outcome if end else None)
    # The waking messages are in the prompt before the turn sends anything, even late ones.
    has_sent = bool(turn.sent) if shown == 1 else max(turn.sent, default=0) > seq
    answer: WakeResponse | None = None
    if any(_declines(step) for step in steps if step.n >= shown):
        answer = "declined"
    elif has_sent:
        answer = "answered"
    elif end is not None:
        answer = "silent"
    costs = [step.cost_usd for step in steps if step.cost_usd is not None]
    return WakeAnswer(
        shown,
        answer,
        end.outcome if end else None,
        sum(step.tokens_in for step in steps) or None,
        sum(step.tokens_out for step in steps) or None,
        sum(costs) if costs else None,
    )


def _shown(seq: int, turn: StoredTurn, steps: list[Step]) -> int | None:
    """The first step whose prompt has the message; None if there is none yet."""
    id = f"m{seq}"
    if id in TurnStart.model_validate_json(turn.start).messages:
        return 1
    return next((s.n for s in steps if any(each.message == id for each in s.steered)), None)


def _declines(step: Step) -> bool:
    return any(
        call.name == DECLINE and call.result is not None and call.error is None
        for call in step.calls
    )


def _interaction_wake(seq: int, agent: str, wake: StoredWake) -> InteractionWake:
    return InteractionWake(
        message_id=f"m{seq}",
        agent=agent,
        reason=wake.reason,
        reply=wake.reply or "optional",
        turn=wake.taken or wake.turn or "",
        state=wake.state or "",
    )
