"""Every operation of every built-in mod x every role x member or not x own or other's object.

The tables are in `permissions/`, one file per mod; its `__init__.py` tells how to add an entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import get_args

import pytest
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.config.models import ChannelConfig, HumanConfig, Limits, NetworkConfig, NetworkFile
from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.built_in import BUILT_IN
from hubbub.mods.loader import find_mod
from hubbub.mods.settings import settings_of
from hubbub.network.auth import new_token
from hubbub.protocol.messages import Kind
from hubbub.testing.network import LocalNetwork
from tests.interaction.mods import permissions
from tests.interaction.mods.permissions import Entry, Role, Who, ask

ROLES: tuple[Role, ...] = get_args(Role)
KINDS: Mapping[Role, Kind] = {
    "owner": "human",
    "person": "human",
    "agent": "agent",
    "service": "service",
}
CALLERS = [Who(*each) for each in product(ROLES, (True, False), (True, False))]
UNKNOWN = ("not_found", "unknown_thread", "unknown_message", "not_a_member", "forbidden")
"""What somebody is told who does not read the thread."""


@dataclass(frozen=True)
class Table:
    """What a mod promises about who may call what."""

    mod: str
    entries: Mapping[str, Entry] = field(default_factory=dict)
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    beside: Sequence[str] = ()

    @classmethod
    def of(cls, mod: str) -> Table:
        place = f"{permissions.__name__}.{mod}"
        if find_spec(place) is None:
            return cls(mod)
        module = import_module(place)
        more = getattr(module, "SETTINGS", {}), getattr(module, "BESIDE", ())
        return cls(mod, module.ENTRIES, *more)

    def mods(self) -> list[Mod]:
        """The mod, after those that it needs."""
        kind = find_mod(self.mod).kind
        needed = dict.fromkeys((*kind.requires, *self.beside))
        before = [each for name in needed for each in Table.of(name).mods()]
        # It is not about time, which a busy machine takes for anything.
        settings = {"time_limit": 30.0, **self.settings}
        return [*before, kind(settings_of(kind, settings))]


TABLES = [Table.of(name) for name in BUILT_IN]
CASES = [(table, name) for table in TABLES for name in table.entries]


@pytest.mark.behaviour("M-60")
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.mod)
def test_every_operation_of_a_mod_says_who_may_call_it(table: Table) -> None:
    operations = {operation.name for operation in table.mods()[-1].operations()}
    assert set(table.entries) == operations, (
        f"tests/interaction/mods/permissions/{table.mod}.py needs an entry for each of these"
    )


@pytest.mark.behaviour("M-60")
@pytest.mark.parametrize(("table", "name"), CASES, ids=lambda each: getattr(each, "mod", each))
async def test_an_operation_is_for_those_who_may_and_for_nobody_else(
    table: Table, name: str
) -> None:
    file = NetworkFile(
        network=NetworkConfig(
            auth="tokens", limits=Limits(calls_per_second=1_000_000, burst=1_000_000)
        ),
        humans={f"owner_{place}": HumanConfig(roles=["owner"]) for place in ("in", "out")},
        channels={"desk": ChannelConfig()},
    )
    async with LocalNetwork(file, mods=table.mods()) as network:
        people = await _everybody(network)
        wrong = [await _wrong(people, table.entries[name], name, who) for who in CALLERS]
        assert [told for told in wrong if told] == []
        assert not network.hub.mods.failures


async def _everybody(network: LocalNetwork) -> Mapping[str, Client]:
    """All callers by name, and `other`, whose objects are nobody's own."""
    people = {"other": await _joined(network, "other", "human")}
    for role in ROLES:
        for place in ("in", "out"):
            client = await _joined(network, f"{role}_{place}", KINDS[role])
            people[f"{role}_{place}"] = client
            if place == "out":
                await client.call("leave_channel", channel="desk")
    return people


async def _joined(network: LocalNetwork, name: str, kind: Kind) -> Client:
    """With a token: in an open network everybody but agents is an owner."""
    token = new_token()
    network.hub.joining.add_token(name, token)
    return await network.join(name, kind, token=token)


async def _wrong(people: Mapping[str, Client], entry: Entry, name: str, who: Who) -> str:
    """What is wrong with the answer to a call, in a sentence; empty if nothing is."""
    caller = people[who.name]
    id = await _made(people, entry, who)
    may = entry.allowed(who)
    try:
        answer = await ask(caller, name, **entry.args(id))
    except OperationError as error:
        if may or entry.found is not None:
            return f"{who} may, and is told {error.code}: {error.message}"
        if who.member:
            return "" if error.code in entry.refused else f"{who} is told {error.code}"
        return await _differs(caller, entry, name, who, id, error)
    if entry.found is not None:
        if entry.found(answer, id) != may:
            return f"{who} {'finds nothing' if may else 'finds it'}: {answer}"
        return ""
    return "" if may else f"{who} may not, and is answered: {answer}"


async def _made(people: Mapping[str, Client], entry: Entry, who: Who) -> str:
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
    caller: Client, entry: Entry, name: str, who: Who, id: str, error: OperationError
) -> str:
    """Whether an outsider learns from the words that the object is there."""
    if error.code not in UNKNOWN:
        return f"{who} is told {error.code}: {error.message}"
    if not entry.missing:
        return ""
    with pytest.raises(OperationError) as caught:
        await ask(caller, name, **entry.args(entry.missing))
    nothing = caught.value
    told = error.message
    for one, other in zip(id.split(), entry.missing.split(), strict=True):
        told = told.replace(one, other)
    if (error.code, told) == (nothing.code, nothing.message):
        return ""
    return f"{who} is told {error.message!r}, and {nothing.message!r} if it were not there"
