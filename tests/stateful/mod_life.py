"""Shared by the state machines of mods: a hub with the mod, on a store that fails temporarily."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.mods.api import Mod
from tests.examples import examples
from tests.interaction.mods.workspace import QUICK
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

__all__ = ["FAILING", "ModMachine", "as_test"]

T = TypeVar("T")

FAILING = st.sampled_from([0, 0, 0, 1, 2])
"""The number of commits that fail, as on a full disk."""


class ModMachine(RuleBasedStateMachine):
    """`people` join with their kinds at each start of the hub.

    A machine makes its first calls in `prepare`, its further ones with `at_once`, and asserts in
    `check` what must hold while nothing is in flight.
    """

    people: ClassVar[Mapping[str, str]] = {"ann": "human", "bob": "human", "cat": "human"}
    channels: ClassVar[Mapping[str, Sequence[str] | str]] = {"desk": "all"}

    def mods(self) -> list[Mod]:
        raise NotImplementedError

    def prepare(self) -> None:
        """Called before the first rule."""

    async def check(self) -> None:
        """Asserts what must hold while nothing is in flight."""

    @initialize()
    def start(self) -> None:
        if hasattr(self, "life"):
            return  # another initial rule called it already
        self.folder = TemporaryDirectory()
        self.clock = HandClock()
        self.cids = 0
        self.begin()
        self.prepare()

    def begin(self) -> None:
        place = f"sqlite:{Path(self.folder.name) / 'x.db'}"
        members = {name: {"members": who} for name, who in self.channels.items()}
        file = config(network={**QUICK, "store": place}, channels=members)
        self.store = MoodyStore(place)
        self.life = HubLife(file, self.store, self.mods(), clock=self.clock)
        self.peers: dict[str, Peer] = {
            name: self.run(self.life.network.join(name, kind)) for name, kind in self.people.items()
        }

    def run(self, work: Awaitable[T]) -> T:
        return self.life.run(work)

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.folder.cleanup()

    def cid(self) -> str:
        self.cids += 1
        return f"c{self.cids}"

    async def ask(self, who: str, name: str, /, **args: Any) -> Frame:
        return await self.peers[who].ask(name, **args)

    async def value(self, who: str, name: str, /, **args: Any) -> Any:
        return await self.peers[who].call(name, **args)

    async def repeated(self, who: str, name: str, twice: bool, /, **args: Any) -> list[Frame]:
        """The answers to a call, repeated with its cid if `twice`, as after a lost connection."""
        peer, cid = self.peers[who], self.cid()
        refs = [await peer.post(name, cid=cid, **args) for _ in range(1 + twice)]
        return [await peer.answer(ref) for ref in refs]

    @rule()
    def restart(self) -> None:
        self.life.end()
        self.begin()
        self.run(self.check())

    def at_once(self, failing: int, work: Callable[[], Awaitable[None]]) -> None:
        """Runs `work` while the store fails `failing` times, then the check."""
        self.store.failing = failing
        self.run(work())
        self.store.failing = 0
        self.run(self.check())


def as_test(machine: type[RuleBasedStateMachine], count: int, steps: int = 12) -> Any:
    """The machine as a test, with `count` examples in the profile `full`, else a few."""
    case, number = machine.TestCase, max(3, examples(count))
    case.settings = settings(max_examples=number, stateful_step_count=steps, deadline=None)
    return case
