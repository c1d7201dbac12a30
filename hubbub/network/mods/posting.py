"""Messages of mods on their way into the log: waiting for their place, and from transcripts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.host import Restored
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.services.channels import new_channel
from hubbub.protocol import thread_ids

__all__ = ["Position", "restored"]


class Position:
    """A waiter that is told the position alone."""

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


async def restored(kernel: Kernel, call: Caller, messages: Sequence[Restored]) -> list[int]:
    """Their positions, in their order, when all are durable. Raises `OperationError` and
    `StoreUnavailable` for the first that is refused; those before it are in the log then."""
    for thread in dict.fromkeys(thread_ids.root(each.draft.thread_id) for each in messages):
        if thread_ids.kind_of(thread) == "channel":
            await _ensure_channel(kernel, call, thread.partition(".")[2])
    waiting: list[Position] = []
    refused: OperationError | None = None
    for draft, interaction, hop, once, digest in messages:
        position = Position()
        try:
            kernel.router.check_size(draft.content, draft.text_representation)
            entry = Entry(draft, position, cid=once, digest=digest)
            await kernel.writes.restore(entry, interaction, hop)
        except OperationError as error:
            refused = error
            break
        waiting.append(position)
    found = await asyncio.gather(*(each.seq for each in waiting), return_exceptions=True)
    for index, each in enumerate((*found, refused)):
        if isinstance(each, OperationError):
            raise OperationError(each.code, each.message, details={**each.details, "index": index})
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if isinstance(each, int)]


async def _ensure_channel(kernel: Kernel, call: Caller, name: str) -> None:
    """A channel that there is not yet is made, with the caller as its member. Raises
    `OperationError` if there are as many as may be, and `StoreUnavailable`."""
    state = kernel.state
    if name in state.making:
        await kernel.log.write(lambda head: ())  # until it is known what became of it
    if name in state.channels:
        return
    members = [] if call.participant == OPERATOR else [call.participant]
    await kernel.writes.write(new_channel(kernel, name, "", members))
