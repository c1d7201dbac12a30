"""Several workers on one board, all at once, with a store that fails and a hub that comes back:
each task has one holder at most, waits for what it depends on, and says what the last step made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hubbub.mods.tasks.mod import TasksMod
from hubbub.mods.tasks.settings import TasksConfig
from tests.examples import examples
from tests.interaction.peers import DEADLINE_S, Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

WORKERS = {"ann": "human", "bot": "agent", "dot": "agent"}
FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    channels={"desk": {"members": "all"}},
)
ACTIONS = ("claim", "claim", "release", "finish", "cancel", "reopen", "assign", "needs", "title")
LEADS_TO = {
    "claimed": "claimed",
    "assigned": "claimed",
    "released": "open",
    "finished": "done",
    "cancelled": "cancelled",
    "reopened": "open",
}
FROM = {
    "claimed": {"open"},
    "assigned": {"open", "claimed"},
    "released": {"claimed"},
    "finished": {"open", "claimed"},
    "cancelled": {"open", "claimed"},
    "reopened": {"done", "cancelled"},
}


class Deed(NamedTuple):
    """What somebody is about to do with a task."""

    who: str
    action: str
    task: int
    other: tuple[int, ...]
    """For `needs`: the tasks that it is to depend on."""
    to: str
    twice: bool
    """Asked for a second time with its cid, as after a lost connection."""


DEEDS = st.builds(
    Deed,
    st.sampled_from(sorted(WORKERS)),
    st.sampled_from(ACTIONS),
    st.integers(0, 4),
    st.lists(st.integers(0, 4), max_size=2).map(tuple),
    st.sampled_from(sorted(WORKERS)),
    st.booleans(),
)


class TasksMachine(RuleBasedStateMachine):
    """The model: each task as the steps that were accepted have made it."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.cids = 0
        self.accepted: dict[tuple[str, int], str] = {}
        """Who was told that it made this version of this task."""
        self.begin()
        for n in range(5):
            made = self.life.run(
                self.ask("ann", "create_task", title=f"{n}", thread="channel.desk")
            )
            assert made["value"]["id"] == f"t{n + 1}"

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        self.life = HubLife(FILE, self.store, [TasksMod(TasksConfig(time_limit=DEADLINE_S))])
        self.peers: dict[str, Peer] = {
            name: self.life.run(self.life.network.join(name, kind))
            for name, kind in WORKERS.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.folder.cleanup()

    async def ask(self, who: str, name: str, **args: Any) -> Frame:
        peer = self.peers[who]
        return await peer.answer(await peer.post(name, **args))

    @rule()
    @precondition(lambda self: len(self.accepted) > 2)
    def restart(self) -> None:
        self.life.end()
        self.begin()
        self.life.run(self.check())

    @rule(deeds=st.lists(DEEDS, min_size=1, max_size=6), failing=st.sampled_from([0, 0, 0, 1, 2]))
    def one_breath(self, deeds: list[Deed], failing: int) -> None:
        self.store.failing = failing
        self.life.run(self.breathe(deeds))
        self.store.failing = 0
        self.life.run(self.check())

    async def breathe(self, deeds: list[Deed]) -> None:
        """All at once."""
        done = zip(deeds, await asyncio.gather(*map(self.do, deeds)), strict=True)
        # Who claims what somebody has given it meanwhile is answered with that version: so last.
        for deed, answers in sorted(done, key=lambda each: each[0].action == "claim"):
            made = set[int]()
            for answer in answers:
                if answer["op"] == "error":
                    codes = ("store_unavailable", "conflict", "forbidden", "bad_request")
                    assert answer["code"] in codes, answer
                    continue
                task = answer["value"]
                again = deed.action == "claim" and (task["id"], task["version"]) in self.accepted
                if not again:
                    made.add(task["version"])
                if deed.action in ("claim", "assign"):
                    assert task["owner"] == (deed.who if deed.action == "claim" else deed.to)
            assert len(made) <= 1, "one step, one version"
            for version in made:
                key = (f"t{deed.task + 1}", version)
                assert self.accepted.setdefault(key, deed.who) == deed.who, "nobody else's version"

    async def do(self, deed: Deed) -> list[Frame]:
        self.cids += 1
        args: dict[str, Any] = {"task": f"t{deed.task + 1}", "cid": f"c{self.cids}"}
        name = f"{deed.action}_task"
        if deed.action == "assign":
            args["to"] = deed.to
        elif deed.action == "needs":
            name, args["depends_on"] = "update_task", [f"t{n + 1}" for n in deed.other]
        elif deed.action == "title":
            name, args["title"] = "update_task", f"{self.cids}"
        peer = self.peers[deed.who]
        refs = [await peer.post(name, **args) for _ in range(1 + deed.twice)]
        return [await peer.answer(ref) for ref in refs]

    async def check(self) -> None:
        """What must hold whenever nothing is under way."""
        listed = (await self.ask("bot", "list_tasks"))["value"]["tasks"]
        tasks = {task["id"]: task for task in listed}
        assert sorted(tasks) == [f"t{n + 1}" for n in range(5)]
        over = {id for id, task in tasks.items() if task["state"] in ("done", "cancelled")}
        for id, task in tasks.items():
            details = (await self.ask("dot", "read_task", task=id, limit=200))["value"]
            assert details["task"] == task
            assert set(task["waits_for"]) == set(task["depends_on"]) - over
            self.check_history(id, task, details["history"][::-1])
        assert_no_circle({id: task["depends_on"] for id, task in tasks.items()})
        ready = (await self.ask("ann", "list_tasks", ready=True))["value"]["tasks"]
        assert [task["id"] for task in ready] == [
            task["id"] for task in listed if task["state"] == "open"
        ]

    def check_history(self, id: str, task: Frame, history: list[Frame]) -> None:
        assert [each["version"] for each in history] == list(range(1, task["version"] + 1))
        state, owner = "open", None
        for each in history[1:]:
            what, by = each["what"], each["by"]
            if what != "updated":
                assert state in FROM[what], f"{what} when it was {state}"
                state = LEADS_TO[what]
                owner = {
                    "claimed": by,
                    "assigned": each["note"],
                    "finished": owner or by,
                    "cancelled": owner,
                }.get(what)
            assert self.accepted.get((id, each["version"]), by) == by
        blocked = bool(task["waits_for"]) and state in ("open", "claimed")
        assert (task["state"], task.get("owner")) == ("blocked" if blocked else state, owner)
        versions = {version for name, version in self.accepted if name == id}
        assert versions <= set(range(2, task["version"] + 1)), "what was accepted is there"


def assert_no_circle(needs: dict[str, list[str]]) -> None:
    left = dict(needs)
    while left:
        free = [id for id, of in left.items() if not set(of) & left.keys()]
        assert free, f"a circle in {left}"
        for id in free:
            del left[id]


TestTasks = pytest.mark.behaviour("M-141", "M-142", "M-143", "M-152")(TasksMachine.TestCase)
TestTasks.settings = settings(max_examples=examples(40), stateful_step_count=12, deadline=None)
