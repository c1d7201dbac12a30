"""Each operation of each built-in mod x role x member or not x own object or another's.

The tables are in `permissions.py`, which explains how to add an entry.
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
from tests.interaction.mods.workspace import DESK, QUICK, refusal, refused, workspace
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stop_harness import let_in

KINDS = {"owner": "human", "person": "human", "agent": "agent", "service": "service"}
ROLES: tuple[Role, ...] = get_args(Role)
CALLERS = [Who(*each) for each in product(ROLES, (True, False), (True, False))]
UNKNOWN = ("not_found", "unknown_thread", "unknown_message", "not_a_member", "forbidden")
"""The codes for callers that do not read the thread."""
FILE = config(
    network={"auth": "tokens", **QUICK},
    humans={f"owner_{place}": {"roles": ["owner"]} for place in ("in", "out")},
    channels={"desk": {}},
)


def mods_for(name: str) -> list[Mod]:
    """The mod, after the mods that it requires."""
    kind, table = find_mod(name).kind, TABLES[name]
    before = [mod for each in (*kind.requires, *table.beside) for mod in mods_for(each)]
    # A generous time limit, since a busy machine can be slow.
    return [*before, kind(settings_of(kind, {"time_limit": 30.0, **table.settings}))]


@pytest.mark.behaviour("M-46", "M-60", "M-82", "M-97", "M-146", "M-156", "M-207", "M-223", "M-232")
@pytest.mark.parametrize("name", BUILT_IN)
async def test_each_operation_is_allowed_for_exactly_the_permitted_callers(name: str) -> None:
    mods, entries = mods_for(name), TABLES[name].entries
    assert set(entries) == {operation.name for operation in mods[-1].operations()}, (
        f"the table of {name} in permissions.py needs an entry for each operation"
    )
    async with Networks(sockets=False).start(FILE, mods=mods) as network:
        people = await _join_callers(network)
        problems = [
            f"{operation}: {problem}"
            for operation, entry in entries.items()
            for who in CALLERS
            if (problem := await _problem(people, entry, operation, who))
        ]
        assert problems == []
        assert not network.hub.services.mods.failures


@pytest.mark.behaviour("M-60", "M-146", "M-156")
async def test_lists_of_a_thread_or_board_are_only_for_its_readers() -> None:
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


async def _join_callers(network: Network) -> Mapping[str, Peer]:
    """All callers by name, and `other`, who owns the objects of others. Each has a token, since
    everyone except agents is an owner of an open network."""
    people = {"other": await let_in(network, "other")}
    for role, place in product(ROLES, ("in", "out")):
        peer = people[f"{role}_{place}"] = await let_in(network, f"{role}_{place}", KINDS[role])
        if place == "out":
            await peer.call("leave_channel", channel="desk")
    return people


async def _problem(people: Mapping[str, Peer], entry: Entry, name: str, who: Who) -> str:
    """The problem with the answer to a call, or an empty text."""
    caller = people[who.name]
    id = await _make_object(people, entry, who)
    allowed = entry.allowed(who)
    try:
        answer = await caller.call(name, **entry.args(id))
    except OperationError as error:
        if allowed or entry.found is not None:
            return f"{who} is allowed, but gets {error.code}: {error.message}"
        if who.member:
            return "" if error.code == entry.refused else f"{who} gets {error.code}"
        return await _leak(caller, entry, name, who, id, error)
    if entry.found is not None:
        if entry.found(answer, id) != allowed:
            return f"{who} {'does not find it' if allowed else 'finds it'}: {answer}"
        return ""
    return "" if allowed else f"{who} is not allowed, but gets {answer}"


async def _make_object(people: Mapping[str, Peer], entry: Entry, who: Who) -> str:
    """Create the object of the call, owned by the caller, who can have left since, or another."""
    if entry.maker or not who.own:
        return await entry.make(people[entry.maker or "other"])
    caller = people[who.name]
    if who.member:
        return await entry.make(caller)
    await caller.call("join_channel", channel="desk")
    id = await entry.make(caller)
    await caller.call("leave_channel", channel="desk")
    return id


async def _leak(
    caller: Peer, entry: Entry, name: str, who: Who, id: str, error: OperationError
) -> str:
    """The problem if the error shows an outsider that the object exists."""
    if error.code not in UNKNOWN:
        return f"{who} gets {error.code}: {error.message}"
    if not entry.missing:
        return ""
    missing = await refusal(caller, name, **entry.args(entry.missing))
    message = error.message
    for one, other in zip(id.split(), entry.missing.split(), strict=True):
        message = message.replace(one, other)
    if (error.code, message) == (missing.code, missing.message):
        return ""
    return f"{who} gets {error.message!r}, but {missing.message!r} for an unknown object"
