"""What one message set in motion, followed through the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubbub.errors import OperationError
from hubbub.ids import parse_interaction_id
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import InteractionMessages, TurnsById, WakesAt
from hubbub.network.service import Service
from hubbub.network.services.receipts import reply_need
from hubbub.network.services.requests.requests import RequestService
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.stored import StoredWake
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Envelope, InteractionPage, InteractionWake, ReadInteraction

__all__ = ["InteractionService"]


class InteractionService(Service):
    """Follows what one message set in motion through the log."""

    def __init__(self, kernel: Kernel, turns: TurnService, requests: RequestService):
        super().__init__(kernel)
        self._turns, self._requests = turns, requests

    @operation(tool=False)
    async def read_interaction(self, call: Caller, args: ReadInteraction) -> InteractionPage:
        """Follow an interaction through the log: its messages that you may read, whom they woke,
        and, for owners, who wrote the others to whom, and the turns that began with them all."""
        opened = parse_interaction_id(args.id)
        if opened is None:
            text = f"{args.id!r} is no interaction id; they look like i42"
            raise OperationError(ErrorCode.BAD_REQUEST, text)
        head = self.kernel.log.head
        await self._check_opened(args.id, opened)
        after = max(opened - 1, args.after or 0)
        stored = await self.store.read(InteractionMessages(args.id, after, head))
        messages, hidden = self._sorted(call, stored.found)
        more = stored.upto < head
        if not messages and not (more or args.after or call.owner):
            raise _unknown(args.id)  # none of it is the caller's
        envelopes = [Envelope.model_validate_json(body) for body in hidden]
        seqs = [message.seq for message in messages] + [each.seq for each in envelopes]
        wakes = await self.store.read(WakesAt(seqs)) if seqs else {}
        goes_on = self._requests.any_open(seqs) or any(map(self._goes_on, wakes.items()))
        if not goes_on and self.kernel.log.head > head:
            # What was open when the messages were read may have ended since, by one that wakes.
            later = InteractionMessages(args.id, head, self.kernel.log.head)
            goes_on = bool((await self.store.read(later)).found)
        told = seqs if call.owner else seqs[: len(messages)]
        taken = {wake.taken for wake in wakes.values() if wake.taken} if call.owner else set()
        turns = await self.store.read(TurnsById(sorted(taken))) if taken else ()
        return InteractionPage(
            id=args.id,
            messages=tuple(await self.kernel.pipeline.shown(messages)),
            hidden=len(hidden),
            envelopes=tuple(envelopes) if call.owner else (),
            wakes=tuple(
                _told(seq, agent, wake)
                for (seq, agent), wake in wakes.items()
                if wake.turn and seq in told
            ),
            turns=tuple(self._turns.summarised(turn) for turn in turns),
            open=goes_on,
            upto=stored.upto,
            more=more,
        )

    def _goes_on(self, woken: tuple[tuple[int, str], StoredWake]) -> bool:
        (_, agent), wake = woken
        return wake.state in ("pending", "running") and agent in self.state.presence

    async def _check_opened(self, interaction: str, opened: int) -> None:
        """Raises `OperationError` unless the message at `opened` opened an interaction."""
        body = await self.store.message(opened) if opened <= self.kernel.log.head else None
        if body is None or Message.model_validate_json(body).interaction_id != interaction:
            raise _unknown(interaction)

    def _sorted(
        self, call: Caller, found: Iterable[tuple[int, bytes]]
    ) -> tuple[Sequence[Message], Sequence[bytes]]:
        """The messages that the caller may read, and the bodies of the others."""
        messages, hidden = list[Message](), list[bytes]()
        for thread_no, body in found:
            if call.may_look(self.state.threads.by_no(thread_no)):
                messages.append(Message.model_validate_json(body))
            else:
                hidden.append(body)
        return messages, hidden


def _unknown(interaction: str) -> OperationError:
    return OperationError(
        ErrorCode.UNKNOWN_INTERACTION, f"there is no interaction {interaction} for you"
    )


def _told(seq: int, agent: str, wake: StoredWake) -> InteractionWake:
    return InteractionWake(
        message_id=f"m{seq}",
        agent=agent,
        reason=wake.reason,
        reply=reply_need(wake) or "optional",
        turn=wake.taken or wake.turn or "",
        state=wake.state or "",
    )
