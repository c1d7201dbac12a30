"""Every operation of every built-in mod x every role x member or not x own or other's object.

The tables are in `permissions.py`, which tells how to add an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import get_args

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.loader import BUILT_IN, find_mod, settings_of
from tests.interaction.mods.permissions import TABLES, Entry, Role, Who
from tests.interaction.mods.workspace import DESK, QUICK, refused, refusing, workspace
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stop_harness import let_in

KINDS = {"owner": "human", "person": "human", "agent": "agent", "service": "service"}
ROLES: tuple[Role, ...] = get_args(Role)
CALLERS = [Who(*each) for each in product(ROLES, (True, False), (True, False))]
UNKNOWN = ("not_found", "unknown_thread", "unknown_message", "not_a_member", "forbidden")
"""What somebody is told who does not read the thread."""
FILE = config(
    network={"auth": "tokens", **QUICK},
    humans={f"owner_{place}": {"roles": ["owner"]} for place in ("in", "out")},
    channels={"desk": {}},
)


def mods_for(name: str) -> list[Mod]:
    """The mod, after those that it needs."""
    kind, table = find_mod(name).kind, TABLES[name]
    before = [mod for each in (*kind.requires, *table.beside) for mod in mods_for(each)]
    # It is not about time, which a busy machine takes for anything.
    return [*before, kind(settings_of(kind, {"time_limit": 30.0, **table.settings}))]


@pytest.mark.behaviour("M-46", "M-60", "M-82", "M-97", "M-146", "M-156", "M-207", "M-223", "M-232")
@pytest.mark.parametrize("name", BUILT_IN)
async def test_an_operation_is_for_those_who_may_and_for_nobody_else(name: str) -> None:
    mods, entries = mods_for(name), TABLES[name].entries
    assert set(entries) == {operation.name for operation in mods[-1].operations()}, (
        f"the table of {name} in permissions.py needs an entry for each of these"
    )
    async with Networks(sockets=False).start(FILE, mods=mods) as network:
        people = await _everybody(network)
        wrong = [
            f"{operation}: {told}"
            for operation, entry in entries.items()
            for who in CALLERS
            if (told := await _wrong(people, entry, operation, who))
        ]
        assert wrong == []
        assert not network.hub.services.mods.failures


@pytest.mark.behaviour("M-60", "M-146", "M-156")
async def test_what_is_listed_of_a_thread_or_board_is_for_its_readers() -> None:
    names = ("documents", "files", "polls", "reactions", "search", "tasks", "threads")
    mods = [mod for name in names for mod in mods_for(name)]
    async with workspace(mods, "ann", "cat") as (_, ann, cat):
        await ann.call("create_task", thread=DESK, title="x")
        for name in (
            "list_boards", "list_documents", "list_files", "list_polls", "list_reactions",
            "list_tasks", "list_thread_info",
        ):  # fmt: skip
            assert await refused(cat, name, thread=DESK) == "unknown_thread", name
        assert await refused(cat, "search", query="x", thread=DESK) == "unknown_thread"
        for name, args in (("list_tasks", {}), ("create_task", {"title": "x"})):
            assert await refused(cat, name, board="b1", **args) == "not_found"


async def _everybody(network: Network) -> Mapping[str, Peer]:
    """All callers by name, and `other`, whose objects are nobody's own; each with a token, for in
    an open network everybody but agents is an owner."""
    people = {"other": await let_in(network, "other")}
    for role, place in product(ROLES, ("in", "out")):
        peer = people[f"{role}_{place}"] = await let_in(network, f"{role}_{place}", KINDS[role])
        if place == "out":
            await peer.call("leave_channel", channel="desk")
    return people


async def _wrong(people: Mapping[str, Peer], entry: Entry, name: str, who: Who) -> str:
    """What is wrong with the answer to a call, in a sentence; empty if nothing is."""
    caller = people[who.name]
    id = await _made(people, entry, who)
    may = entry.allowed(who)
    try:
        answer = await caller.call(name, **entry.args(id))
    except OperationError as error:
        if may or entry.found is not None:
            return f"{who} may, and is told {error.code}: {error.message}"
        if who.member:
            return "" if error.code == entry.refused else f"{who} is told {error.code}"
        return await _differs(caller, entry, name, who, id, error)
    if entry.found is not None:
        if entry.found(answer, id) != may:
            return f"{who} {'finds nothing' if may else 'finds it'}: {answer}"
        return ""
    return "" if may else f"{who} may not, and is answered: {answer}"


async def _made(people: Mapping[str, Peer], entry: Entry, who: Who) -> str:
    """The object: of the caller itself, who may have left since, or of somebody else."""
    if entry.maker or not who.own:
        return await entry.make(people[entry.maker or "other"])
    caller = people[who.name]
    if who.member:
        return await entry.make(caller)
    await caller.call("join_channel", channel="desk")
    id = await entry.make(caller)
    await caller.call("leave_channel", channel="desk")
    return id


async def _differs(
    caller: Peer, entry: Entry, name: str, who: Who, id: str, error: OperationError
) -> str:
    """Whether an outsider learns from the words that the object is there."""
    if error.code not in UNKNOWN:
        return f"{who} is told {error.code}: {error.message}"
    if not entry.missing:
        return ""
    nothing = await refusing(caller, name, **entry.args(entry.missing))
    told = error.message
    for one, other in zip(id.split(), entry.missing.split(), strict=True):
        told = told.replace(one, other)
    if (error.code, told) == (nothing.code, nothing.message):
        return ""
    return f"{who} is told {error.message!r}, and {nothing.message!r} if it were not there"
