"""What could come next while a person types what mods bring."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cli.workplace.attached import file_id
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known

__all__ = ["paths", "work_choices"]

Choice = tuple[str, str]
"""A word and what is to be known of it."""
EMOJI = (
    ("👍", "thumbs up"), ("👎", "thumbs down"), ("❤️", "heart"), ("🎉", "hooray"), ("👀", "looking"),
    ("✅", "done"), ("🙏", "thanks"), ("😄", "smile"), ("🚀", "rocket"), ("❓", "question"),
)  # fmt: skip
MOST = 100
"""Files of a folder that are offered."""
_OF = {
    ("task", 0): "t",
    ("claim", 0): "t",
    ("done", 0): "t",
    ("vote", 0): "p",
    ("polls", 0): "p",
    ("closepoll", 0): "p",
    ("doc", 0): "d",
    ("diff", 0): "d",
}
"""The kind of thing that a command takes, by the number of words before it."""


def work_choices(command: str, words: list[str], known: Known) -> Iterable[Choice]:
    """The words that may follow the `words` typed after `command`; empty for other commands."""
    if (kind := _OF.get((command, len(words)))) is not None:
        return known.seen.of(kind)
    match command, words:
        case ("react" | "history", []):
            return _messages(known)
        case ("edit" | "delete", []):
            return _messages(known, known.me)
        case ("react", [_]):
            return EMOJI
        case ("delete", [_]):
            return [("yes", "it is gone for everybody")]
        case ("get", []):
            return _files(known)
        case ("tasks", []):
            more = [("mine", "what you hold"), ("ready", "what can be claimed")]
            return [*more, ("board", "by state, of this thread"), *known.seen.of("b")]
        case ("vote", [poll]):
            options = known.seen.options.get(poll, ())
            return [(str(n), option) for n, option in enumerate(options, 1)]
        case ("digest", []):
            return [("mark", "the next one begins behind this")]
    return ()


def _messages(known: Known, sender: str | None = None) -> Iterator[Choice]:
    for message in reversed(list(known.thread(known.current).messages.values())):
        if sender in (None, message.sender_id) and message.amended != "deleted":
            yield message.id, f"{message.sender_id}: {message.text}"


def _files(known: Known) -> Iterable[Choice]:
    """Those that were attached here, the latest first, then others that were seen."""
    here: list[Message] = list(known.thread(known.current).messages.values())
    attached = ((file_id(item), item.name) for m in reversed(here) for item in m.attachments)
    found = {file: name for file, name in attached if file is not None}
    return (found | {id: name for id, name in known.seen.of("f") if id not in found}).items()


def paths(typed: str) -> list[Choice]:
    """Files and folders of this machine that begin as `typed`, hidden ones only if asked for. None
    with a space in it: it would need quotes."""
    folder, slash, begun = typed.rpartition("/")
    place = Path(folder + slash).expanduser() if slash else Path()
    try:
        with os.scandir(place) as entries:
            found = sorted(
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(begun)
                and " " not in entry.name
                and (begun or not entry.name.startswith("."))
            )
    except OSError:
        return []
    return [
        (f"{folder}{slash}{name}{'/' if is_folder else ''}", "folder" if is_folder else "")
        for name, is_folder in found[:MOST]
    ]
