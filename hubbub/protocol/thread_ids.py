"""Thread ids: canonical on the wire, relative where a participant reads them.

    canonical                     shown to alice            what it is
    dm.alice.bob                  direct_bob                a direct conversation
    dm.alice.bob.carol            direct_bob+carol          the same, up to 8 participants
    channel.general               channel_general           a channel
    broadcast                     broadcast                 everyone
    mod.tasks                     mod_tasks                 a mod's own thread
    channel.general.t42           channel_general.t42       the replies to message m42

Ids contain no dots and no participant is named `t5`, so a canonical id splits unambiguously, and
every part is a valid NATS token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

__all__ = [
    "BROADCAST",
    "ID_PATTERN",
    "ID_RULE",
    "MAX_GROUP",
    "MAX_LENGTH",
    "RESERVED_IDS",
    "ThreadKind",
    "canonical",
    "channel",
    "depth",
    "direct",
    "is_channel_name",
    "is_id",
    "is_participant_id",
    "kind_of",
    "members_of",
    "mod",
    "parent",
    "relative",
    "reply_thread",
    "root",
    "within",
]

ThreadKind = Literal["direct", "channel", "broadcast", "mod"]

ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
ID_RULE = "1 to 64 ASCII letters, digits, '-' or '_'"
"""`ID_PATTERN` in words."""
BROADCAST = "broadcast"
MAX_GROUP = 8
MAX_LENGTH = 1024
"""Characters of a thread id: enough for a group of the longest names and the deepest replies."""
RESERVED_IDS = frozenset({"hub", "operator", "broadcast", "all", "everyone", "here"})
"""Names that no participant can have: `hub` is the network itself, `operator` the user that runs it
(the CLI joins with that name), and the others mean everyone."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_CANONICAL = re.compile(
    r"(?P<root>dm(?:\.[A-Za-z0-9_-]{1,64}){2,8}|(?:channel|mod)\.[A-Za-z0-9_-]{1,64}|broadcast)"
    r"(?P<replies>(?:\.t[1-9][0-9]{0,17})*)\Z"
)
_RELATIVE = re.compile(
    r"(?P<kind>direct|channel|mod)_(?P<name>[A-Za-z0-9_+-]+)(?P<replies>(?:\.t[1-9][0-9]{0,17})*)\Z"
)
_REPLY = re.compile(r"\.t[1-9][0-9]{0,17}\Z")
_LIKE_A_THREAD = re.compile(r"(?:direct|channel|mod)_")


def is_id(text: str) -> bool:
    """Whether `text` has the form of an id (of a participant, channel or mod)."""
    return _ID.match(text) is not None


def is_participant_id(text: str) -> bool:
    """Whether `text` is a valid name for a participant.

    Besides the reserved names, it cannot be like `t5`, as `dm.ann.bob.t5` would be ambiguous, or
    like a thread, as `direct_bob` refers to bob.
    """
    return (
        is_id(text)
        and text not in RESERVED_IDS
        and not _REPLY.match("." + text)
        and not _LIKE_A_THREAD.match(text)
    )


def is_channel_name(text: str) -> bool:
    """Whether `text` is a valid name for a channel: an id that does not look like a thread."""
    return is_id(text) and not _LIKE_A_THREAD.match(text)


def direct(participants: Iterable[str]) -> str:
    """The direct thread of 2 to 8 participants, including the caller."""
    return "dm." + ".".join(sorted(participants))


def channel(name: str) -> str:
    return f"channel.{name}"


def mod(name: str) -> str:
    """The thread of a mod."""
    return f"mod.{name}"


def reply_thread(thread_id: str, seq: int) -> str:
    """The thread of replies to the message at `seq` in `thread_id`."""
    return f"{thread_id}.t{seq}"


def parent(thread_id: str) -> str | None:
    """The parent of a reply thread; None for any other thread."""
    end = _parent_end(thread_id, len(thread_id))
    return thread_id[:end] if end else None


def within(thread_id: str, top: str) -> bool:
    """Whether the thread is `top`, or a reply thread at any depth in it."""
    if not thread_id.startswith(top):
        return False
    end = len(thread_id)
    while end > len(top):
        end = _parent_end(thread_id, end)
    return end == len(top)


def depth(thread_id: str) -> int:
    """The nesting depth of reply threads; 0 for a conversation or channel itself."""
    levels, end = 0, len(thread_id)
    while end := _parent_end(thread_id, end):
        levels += 1
    return levels


def root(thread_id: str) -> str:
    """The conversation, channel, broadcast or mod thread that contains `thread_id`."""
    end = len(thread_id)
    while up := _parent_end(thread_id, end):
        end = up
    return thread_id[:end]


def _parent_end(thread_id: str, end: int) -> int:
    """Where the parent of `thread_id[:end]` ends; 0 if that is not a reply thread."""
    dot = thread_id.rfind(".", 0, end)
    if dot < 0 or not _REPLY.fullmatch(thread_id, dot, end):
        return 0
    # channel.t5 is a channel named t5
    return dot if thread_id.find(".", 0, dot) >= 0 or thread_id[:dot] == BROADCAST else 0


def kind_of(thread_id: str) -> ThreadKind:
    head = thread_id.partition(".")[0]
    if head == "dm":
        return "direct"
    return head  # type: ignore[return-value]  # a canonical id starts with one of the kinds


def members_of(thread_id: str) -> tuple[str, ...]:
    """The participants of a direct thread, sorted; empty for the other kinds."""
    top = root(thread_id)
    return tuple(top.split(".")[1:]) if top.startswith("dm.") else ()


def relative(thread_id: str, reader: str) -> str:
    """The id of a thread as shown to `reader`."""
    top = root(thread_id)
    replies = thread_id[len(top) :]
    if top.startswith("dm."):
        return "direct_" + "+".join(p for p in members_of(top) if p != reader) + replies
    return top.replace(".", "_", 1) + replies


def canonical(thread_id: str, reader: str) -> str | None:
    """The canonical form of a thread id that `reader` gave in either form; None if it is
    invalid."""
    if len(thread_id) > MAX_LENGTH:
        return None
    if _CANONICAL.match(thread_id):
        top = root(thread_id)
        replies = thread_id[len(top) :]
        return _conversation(members_of(top), replies) if top.startswith("dm.") else thread_id
    match = _RELATIVE.match(thread_id)
    if match is None:
        return None
    kind, name, replies = match["kind"], match["name"], match["replies"]
    if kind != "direct":
        return f"{kind}.{name}{replies}" if is_id(name) else None
    return _conversation((*name.split("+"), reader), replies)


def _conversation(members: Iterable[str], replies: str) -> str | None:
    """The direct thread of these members, in any order; None if they cannot have one."""
    named = set(members)
    possible = all(is_id(name) and not _REPLY.match("." + name) for name in named)
    return direct(named) + replies if possible and 2 <= len(named) <= MAX_GROUP else None
