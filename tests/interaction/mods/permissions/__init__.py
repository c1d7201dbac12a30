"""Who may call what: one table per mod, which `test_permission_matrix.py` holds the mod to.

A mod `polls` has its table in `polls.py` beside this file, with one entry for each operation:

    ENTRIES = {
        "create_poll": Entry(make=thread, args=lambda thread: {"to": thread, "question": "?"}),
        "vote": Entry(make=poll, args=lambda id: {"id": id, "option": 1}, missing="p999"),
        "close_poll": Entry(make=poll, args=lambda id: {"id": id}, allowed=AUTHORS, missing="p999"),
        "list_polls": Entry(make=poll, found=lambda answer, id: id in ids(answer["polls"])),
    }

* `make` makes the object that the call is about in the thread `THREAD`, with the client of whom it
  shall belong to, and returns its id. Two ids (a document and its comment) are one text with a
  blank between them. `thread` is for operations that are about the thread itself.
* `maker` names the caller who makes all of them, where not everybody can.
* `args` are the call's arguments for the object. They must be ones that succeed, for those who may.
* `allowed` says who may: `READERS` of the thread (the default), `AUTHORS` who still read it,
  `AUTHORS_AND_OWNERS`, `OWNERS` of the network, `EVERYBODY`, or any function of a `Who`.
* `missing` is an id that no object has. Who does not read the thread is then told in the same words
  as if the object were not there.
* `found` is for lists: everybody may call, and who may not see the object does not find it.
* `refused` are the codes for those who read the thread, and yet may not (`forbidden`).

`SETTINGS` in the file are the mod's settings for this, if it needs any; `BESIDE` names mods that
are in the network too, besides those that it requires. Each call is made by eight
callers (owner, person, agent, service; each in the thread and out of it), about an object of its
own and about one of somebody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hubbub.client import Client

__all__ = [
    "AUTHORS",
    "AUTHORS_AND_OWNERS",
    "EVERYBODY",
    "OWNERS",
    "READERS",
    "THREAD",
    "Answer",
    "Args",
    "Entry",
    "Who",
    "ask",
    "thread",
]

THREAD = "channel.desk"

Role = Literal["owner", "person", "agent", "service"]
Answer = dict[str, Any]
"""As JSON: what a test picks from it, it knows to be there."""
Args = Mapping[str, object]


@dataclass(frozen=True)
class Who:
    """A caller, and how it stands to the object."""

    role: Role
    member: bool
    """Whether it reads the thread."""
    own: bool
    """Whether it has made the object."""

    @property
    def name(self) -> str:
        return f"{self.role}_{'in' if self.member else 'out'}"

    def __str__(self) -> str:
        return f"{self.name} ({'own' if self.own else 'other'})"


Rule = Callable[[Who], bool]


def READERS(who: Who) -> bool:
    return who.member


def AUTHORS(who: Who) -> bool:
    return who.member and who.own


def AUTHORS_AND_OWNERS(who: Who) -> bool:
    return who.member and (who.own or who.role == "owner")


def OWNERS(who: Who) -> bool:
    return who.role == "owner"


def EVERYBODY(who: Who) -> bool:
    return True


async def ask(client: Client, name: str, /, **args: object) -> Answer:
    """Call an operation. Raises `OperationError`."""
    answer = await client.call(name, **args)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    return answer


async def thread(client: Client) -> str:
    """The thread itself is what the call is about."""
    return THREAD


@dataclass(frozen=True)
class Entry:
    """Of one operation; what the parts mean is told above."""

    make: Callable[[Client], Awaitable[str]] = thread
    maker: str = ""
    args: Callable[[str], Args] = lambda id: {}
    allowed: Rule = READERS
    missing: str = ""
    found: Callable[[Answer, str], bool] | None = None
    refused: Collection[str] = ("forbidden",)
