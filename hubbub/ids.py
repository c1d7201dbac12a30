"""Identifiers: ULIDs from clients, log positions from the hub.

A message is named by its position (`m42` is the message at seq 42), the interaction that it opened
`i42`, and the turn that it starts `<agent>-m42`: short enough for a model to copy without error,
unique within the network, and without an index of their own (docs/decisions/0001).
"""

from __future__ import annotations

import re
import uuid
from os import urandom
from time import time_ns

__all__ = [
    "interaction_id",
    "message_id",
    "new_ulid",
    "parse_interaction_id",
    "parse_message_id",
    "turn_id",
    "write_id",
]

_MESSAGE = re.compile(r"m([1-9][0-9]{0,17})\Z")
_INTERACTION = re.compile(r"i([1-9][0-9]{0,17})\Z")


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PLACES = range(125, -1, -5)


def new_ulid() -> str:
    """A new ULID: 48 bits of milliseconds and 80 random ones, in 26 characters that sort by
    time."""
    value = time_ns() // 1_000_000 << 80 | int.from_bytes(urandom(10))
    return "".join([_DIGITS[value >> place & 31] for place in _PLACES])


def message_id(seq: int) -> str:
    return f"m{seq}"


def parse_message_id(text: str) -> int | None:
    """The seq in a message id, or None if `text` is not one."""
    match = _MESSAGE.match(text)
    return int(match[1]) if match else None


def interaction_id(seq: int) -> str:
    """The interaction opened by the message at `seq`."""
    return f"i{seq}"


def parse_interaction_id(text: str) -> int | None:
    match = _INTERACTION.match(text)
    return int(match[1]) if match else None


def turn_id(agent: str, seq: int) -> str:
    """The turn of `agent` that the message at `seq` starts; the same after a crash."""
    return f"{agent}-m{seq}"


def write_id(turn: str, step: int, call: int) -> str:
    """The `cid` of a write of a turn, which is the same when the turn is repeated."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn}/{step}/{call}"))
