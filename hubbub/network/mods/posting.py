"""Messages that a mod posts: as drafts, and waiting for their place in the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Asker, Entry
from hubbub.network.speaking import Sender
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import Speech

__all__ = ["Position", "opening", "posted", "said_again"]


def opening(
    thread: Thread,
    content: Mapping[str, JsonValue],
    text: str,
    *,
    timer_of: str,
    wakes: Sequence[str],
    outside: bool,
) -> Draft:
    """A message of the hub that opens an interaction, because a timer of `timer_of` has come."""
    return Draft(
        sender_id="hub",
        sender_kind="system",
        thread_id=thread.id,
        type=thread.type,
        content=dict(content),
        text_representation=text,
        recipients=thread_ids.members_of(thread.id),
        mentions=tuple(dict.fromkeys(wakes)),
        outside=outside,
        timer_of=timer_of,
    )


def said_again(
    kernel: Kernel,
    caller: Caller,
    thread: Thread,
    message: Message,
    content: JsonValue,
    text: str | None,
    speech: Speech,
) -> Draft:
    """Another content for a message, said by who has sent it if that is the caller or if the caller
    has spoken for it, else by the caller. Whom it mentions is not called by it."""
    sender = Sender(caller.participant, caller.kind)
    if message.spoken_by == caller.participant:
        known = kernel.state.get(message.sender_id)
        assert known is not None, "whoever has spoken is known"
        sender = Sender(known.id, known.kind, caller.participant)
    draft = kernel.speaker.draft(sender, thread, content, speech, text_representation=text)
    draft.mentions, draft.unresolved = (), ()
    return draft


async def posted(start: Callable[[Asker], Coroutine[Any, Any, None] | None]) -> int:
    """The position of the message that `start` brings into the log; of the first one, where its
    cid was used before. Raises `OperationError` and `StoreUnavailable`.
    """
    asker = Position()
    later = start(asker)
    if later is not None:
        await later
    return await asker.seq


class Position:
    """An asker that is told the position alone."""

    def __init__(self) -> None:
        self.seq: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        self._settle(entry.seq)

    def repeated(self, ref: str, value: bytes) -> None:
        self._settle(int(json.loads(value)["seq"]))

    def failed(self, ref: str, error: Exception) -> None:
        if not self.seq.done():
            self.seq.set_exception(error)

    def _settle(self, seq: int) -> None:
        if not self.seq.done():
            self.seq.set_result(seq)
