"""Several workers on one board, all at once, with a store that fails and a hub that comes back:
each task has one holder at most, waits for what it depends on, and says what the last step made."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hubbub.mods.api import Mod
from hubbub.mods.tasks.mod import TasksConfig, TasksMod
from tests.interaction.peers import DEADLINE_S, Frame
from tests.stateful.mod_life import FAILING, ModMachine, as_test

pytestmark = pytest.mark.behaviour("M-141", "M-142", "M-143", "M-152")
WORKERS = {"ann": "human", "bot": "agent", "dot": "agent"}
ACTIONS = ("claim", "claim", "release", "finish", "cancel", "reopen", "assign", "needs", "title")
STEPS: dict[str, tuple[set[str], str]] = {
    # from which states a step leads to which one
    "claimed": ({"open"}, "claimed"),
    "assigned": ({"open", "claimed"}, "claimed"),
    "released": ({"claimed"}, "open"),
    "finished": ({"open", "claimed"}, "done"),
    "cancelled": ({"open", "claimed"}, "cancelled"),
    "reopened": ({"done", "cancelled"}, "open"),
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


DEEDS = st.builds(
    Deed,
    st.sampled_from(sorted(WORKERS)),
    st.sampled_from(ACTIONS),
    st.integers(0, 4),
    st.lists(st.integers(0, 4), max_size=2).map(tuple),
    st.sampled_from(sorted(WORKERS)),
    st.booleans(),
)


class TasksMachine(ModMachine):
    """The model: each task as the steps that were accepted have made it."""

    people = WORKERS

    def mods(self) -> list[Mod]:
        return [TasksMod(TasksConfig(time_limit=DEADLINE_S))]

    def prepare(self) -> None:
        self.accepted: dict[tuple[str, int], str] = {}
        """Who was told that it made this version of this task."""
        for n in range(5):
            self.run(self.value("ann", "create_task", title=f"{n}", thread="channel.desk"))

    @rule(deeds=st.lists(DEEDS, min_size=1, max_size=6), failing=FAILING)
    def work(self, deeds: list[Deed], failing: int) -> None:
        self.breathe(failing, lambda: self.do_all(deeds))

    async def do_all(self, deeds: list[Deed]) -> None:
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
        name, args = f"{deed.action}_task", dict[str, Any](task=f"t{deed.task + 1}")
        if deed.action == "assign":
            args["to"] = deed.to
        elif deed.action == "needs":
            name, args["depends_on"] = "update_task", [f"t{n + 1}" for n in deed.other]
        elif deed.action == "title":
            name, args["title"] = "update_task", f"{self.cids}"
        return await self.repeated(deed.who, name, deed.twice, **args)

    async def check(self) -> None:
        listed = (await self.value("bot", "list_tasks"))["tasks"]
        tasks = {task["id"]: task for task in listed}
        assert sorted(tasks) == [f"t{n + 1}" for n in range(5)]
        over = {id for id, task in tasks.items() if task["state"] in ("done", "cancelled")}
        for id, task in tasks.items():
            details = await self.value("dot", "read_task", task=id, limit=200)
            assert details["task"] == task
            assert set(task["waits_for"]) == set(task["depends_on"]) - over
            self.check_history(id, task, details["history"][::-1])
        assert_no_circle({id: task["depends_on"] for id, task in tasks.items()})
        ready = (await self.value("ann", "list_tasks", ready=True))["tasks"]
        open_ = [task["id"] for task in listed if task["state"] == "open"]
        assert [task["id"] for task in ready] == open_

    def check_history(self, id: str, task: Frame, history: list[Frame]) -> None:
        assert [each["version"] for each in history] == list(range(1, task["version"] + 1))
        state, owner = "open", None
        for each in history[1:]:
            what, by = each["what"], each["by"]
            if what != "updated":
                before, after = STEPS[what]
                assert state in before, f"{what} when it was {state}"
                state = after
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


TestTasks = as_test(TasksMachine, 20)
