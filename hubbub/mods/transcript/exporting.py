"""What of the log goes into a transcript, a part at a time, as far as the caller may read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling
from hubbub.mods.transcript.words import ExportTranscript
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, ThreadPage

__all__ = ["Part", "part_of", "subject_of"]

AT_ONCE = 50
"""Messages that are read at once."""


class Part(NamedTuple):
    """Some messages, oldest first, each with its position among what is exported."""

    messages: Sequence[tuple[int, Message]]
    upto: int
    """All up to this position are among them."""
    last: int
    """Where the transcript ends: what is said meanwhile does not come into it."""


def subject_of(args: ExportTranscript) -> str:
    """What it is a transcript of. Raises `OperationError` unless that is one thing."""
    given = [args.thread, args.interaction, "All that was said" if args.everything else None]
    found = [each for each in given if each is not None]
    if len(found) != 1:
        raise OperationError(
            ErrorCode.BAD_REQUEST, "name one of these: thread, interaction, everything"
        )
    return found[0]


async def part_of(
    host: Host, call: Calling, args: ExportTranscript, after: int, last: int | None
) -> Part:
    """The next part after a position. Raises `OperationError` for what the caller may not read."""
    if args.thread is not None:
        return await _of_thread(host, call, args.thread, after, last)
    if args.interaction is not None:
        return await _of_interaction(host, call, args.interaction, after, last or host.head)
    if not call.owner:
        text = "everything: only an owner of the network may export it all"
        raise OperationError(ErrorCode.FORBIDDEN, text)
    last = host.head if last is None else last
    messages, upto = await host.readable(call, after, AT_ONCE)
    return _cut([(message.seq, message) for message in messages], upto, last)


async def _of_thread(host: Host, call: Calling, thread: str, after: int, last: int | None) -> Part:
    if last is None:
        newest = await _page(host, call, thread, None, 1)
        last = newest[-1].tseq if newest else 0
    wanted = min(AT_ONCE, last - after)
    messages: Sequence[Message] = ()
    while wanted > 0:
        messages = await _page(host, call, thread, after + wanted + 1, wanted)
        if not messages or messages[0].tseq == after + 1:
            break
        wanted = messages[0].tseq - after - 1  # long messages: a page has the last ones of them
    upto = messages[-1].tseq if messages else last
    return _cut([(message.tseq, message) for message in messages], upto, last)


async def _page(
    host: Host, call: Calling, thread: str, before: int | None, limit: int
) -> Sequence[Message]:
    args = {"before": before} if before is not None else {}
    page = await host.ask(call, "read_thread", thread=thread, limit=limit, **args)
    assert isinstance(page, ThreadPage), "the hub's own operation"
    return page.messages


async def _of_interaction(
    host: Host, call: Calling, interaction: str, after: int, last: int
) -> Part:
    args = {"after": after} if after else {}
    page = await host.ask(call, "read_interaction", id=interaction, **args)
    assert isinstance(page, InteractionPage), "the hub's own operation"
    upto = page.upto if page.more else last
    return _cut([(message.seq, message) for message in page.messages], upto, last)


def _cut(messages: Sequence[tuple[int, Message]], upto: int, last: int) -> Part:
    return Part([each for each in messages if each[0] <= last], min(upto, last), last)
