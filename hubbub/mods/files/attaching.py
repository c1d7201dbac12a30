"""Attachments of messages that name files of the network."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence

from hubbub.errors import OperationError
from hubbub.mods.files.catalog import Kept, is_id
from hubbub.mods.files.reading import way_to_read
from hubbub.mods.files.vault import Vault
from hubbub.mods.ids import number_of
from hubbub.protocol.messages import Attachment, Message

__all__ = ["ATTACHED", "SCHEME", "file_id", "shown", "stamped"]

SCHEME = "file:"
ATTACHED = 20
"""Files that one message may have."""


def file_id(attachment: Attachment) -> str | None:
    """What stands where a file's id should; None: the attachment is none of the network's files."""
    scheme, rest = attachment.uri[: len(SCHEME)], attachment.uri[len(SCHEME) :]
    return rest if scheme.lower() == SCHEME else None


async def stamped(
    attachments: Sequence[Attachment], files: Mapping[str, Kept], vault: Vault, room: int
) -> tuple[Attachment, ...]:
    """The attachments with what is true of their files, and how their texts begin: `room`
    characters in all, in equal parts. What is cut ends in "…"."""
    readable = {id: kept for id, kept in files.items() if kept.lines}
    share = room // len(readable) if readable else 0
    stamps = {id: await _stamp(kept, vault, share) for id, kept in files.items()}
    given = ((file_id(each), each) for each in attachments)
    return tuple(each if id is None else stamps[id] for id, each in given)


async def _stamp(kept: Kept, vault: Vault, share: int) -> Attachment:
    how, excerpt = way_to_read(kept.media_type), None
    if kept.lines and share and how is not None:
        try:
            begins = await asyncio.to_thread(vault.text, kept.sha256, how, share + 1)
            excerpt = begins if len(begins) <= share else f"{begins[:share]}…"
        except OperationError:
            excerpt = None  # it is damaged: who reads the file is told
    return Attachment(
        name=kept.name,
        media_type=kept.media_type,
        uri=f"{SCHEME}f{kept.id}",
        size=kept.size,
        excerpt=excerpt,
    )


def shown(message: Message, files: Container[int]) -> Message:
    """The message with marks on attachments whose files are gone, and without their texts."""
    attachments = tuple(_marked(each, files) for each in message.attachments)
    if attachments == message.attachments:
        return message
    return message.model_copy(update={"attachments": attachments})


def _marked(attachment: Attachment, files: Container[int]) -> Attachment:
    id = file_id(attachment)
    if id is None or (is_id(id) and number_of(id) in files):
        return attachment
    return Attachment(
        name=attachment.name,
        media_type=attachment.media_type,
        uri=attachment.uri,
        size=attachment.size,
        gone=True,
    )
