"""What belongs to a message, in a few words. Pure."""

from __future__ import annotations

import re

from hubbub.cli.chat.text import one_line
from hubbub.cli.workplace.told import size_words
from hubbub.protocol.messages import Attachment

__all__ = ["attachment_words", "file_id"]

_OURS = re.compile(r"file:(f[1-9]\d*)")


def file_id(attachment: Attachment) -> str | None:
    """The id of a file of this network; None for what lies elsewhere."""
    found = _OURS.fullmatch(attachment.uri)
    return None if found is None else found[1]


def attachment_words(attachment: Attachment) -> str:
    """`[f3 notes.md, text/markdown, 1.2 kB]`; of what lies elsewhere its address. Safe to show."""
    name, file = one_line(attachment.name), file_id(attachment)
    if file is None:
        return f"[{name}: {one_line(attachment.uri)}]"
    if attachment.gone:
        return f"[{one_line(file)} {name}, deleted]"
    known = [f"{one_line(file)} {name}", one_line(attachment.media_type)]
    if attachment.size is not None:
        known.append(size_words(attachment.size))
    return f"[{', '.join(known)}]"
