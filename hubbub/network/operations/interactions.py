"""What one message set in motion, followed through the log."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.ids import parse_interaction_id
from hubbub.mods.operation import operation
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.operations.turns import summarised
from hubbub.network.operations.wakes import reply_need
from hubbub.network.ports import StoredWake
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, InteractionWake, ReadInteraction

__all__ = ["read_interaction"]


@operation(tool=False)
async def read_interaction(call: Caller, args: ReadInteraction) -> InteractionPage:
    """Follow an interaction through the log: its messages that you may read, whom they woke, and,
    for owners, the turns that began with them."""
    opened = parse_interaction_id(args.id)
    if opened is None:
        text = f"{args.id!r} is no interaction id; they look like i42"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    hub, head = call.hub, call.hub.log.head
    await _check_opened(call, args.id, opened)
    after = max(opened - 1, args.after or 0)
    stored = await hub.store.interaction(args.id, after, head)
    messages = [Message.model_validate_json(body) for no, body in stored.found if _sees(call, no)]
    page = InteractionPage(
        id=args.id,
        messages=tuple(messages),
        hidden=len(stored.found) - len(messages),
        upto=stored.upto,
        more=stored.upto < head,
    )
    if not messages and not (page.more or args.after or call.owner):
        raise _unknown(args.id)  # none of it is the caller's
    wakes = await hub.store.wakes([message.seq for message in messages]) if messages else {}
    told = [_told(seq, agent, wake) for (seq, agent), wake in wakes.items() if wake.turn]
    update: dict[str, object] = {"wakes": tuple(told)}
    if call.owner:
        taken = {wake.taken for wake in wakes.values() if wake.taken}
        turns = await hub.store.turns_called(sorted(taken)) if taken else ()
        update["turns"] = tuple(map(summarised, turns))
    return page.model_copy(update=update)


async def _check_opened(call: Caller, interaction: str, opened: int) -> None:
    """Raises `OperationError` unless the message at `opened` opened an interaction."""
    hub = call.hub
    body = await hub.store.message(opened) if opened <= hub.log.head else None
    if body is None or Message.model_validate_json(body).interaction_id != interaction:
        raise _unknown(interaction)


def _unknown(interaction: str) -> OperationError:
    return OperationError(
        ErrorCode.UNKNOWN_INTERACTION, f"there is no interaction {interaction} for you"
    )


def _sees(call: Caller, thread_no: int) -> bool:
    thread = call.hub.state.threads.by_no(thread_no)
    return call.participant == OPERATOR or call.hub.state.may_read(thread, call.participant)


def _told(seq: int, agent: str, wake: StoredWake) -> InteractionWake:
    return InteractionWake(
        message_id=f"m{seq}",
        agent=agent,
        reason=wake.reason,
        reply=reply_need(wake) or "optional",
        turn=wake.taken or wake.turn or "",
        state=wake.state or "",
    )
