"""Several workers change tasks at once, with store failures and restarts: each task has at most one
owner, waits for its dependencies, and is in the state of its last accepted step."""

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
    # the states in which it is allowed, and the next state
    "claimed": ({"open"}, "claimed"),
    "assigned": ({"open", "claimed"}, "claimed"),
    "released": ({"claimed"}, "open"),
    "finished": ({"open", "claimed"}, "done"),
    "cancelled": ({"open", "claimed"}, "cancelled"),
    "reopened": ({"done", "cancelled"}, "open"),
}


class Step(NamedTuple):
    """A step that a worker requests."""

    who: str
    action: str
    task: int
    other: tuple[int, ...]
    """For `needs`: the new dependencies."""
    to: str
    twice: bool


REQUESTS = st.builds(
    Step,
    st.sampled_from(sorted(WORKERS)),
    st.sampled_from(ACTIONS),
    st.integers(0, 4),
    st.lists(st.integers(0, 4), max_size=2).map(tuple),
    st.sampled_from(sorted(WORKERS)),
    st.booleans(),
)


class TasksMachine(ModMachine):
    """The model: the workers whose steps were accepted, by task and version."""

    people = WORKERS

    def mods(self) -> list[Mod]:
        return [TasksMod(TasksConfig(time_limit=DEADLINE_S))]

    def prepare(self) -> None:
        self.accepted: dict[tuple[str, int], str] = {}
        for n in range(5):
            self.run(self.value("ann", "create_task", title=f"{n}", thread="channel.desk"))

    @rule(steps=st.lists(REQUESTS, min_size=1, max_size=6), failing=FAILING)
    def work(self, steps: list[Step], failing: int) -> None:
        self.at_once(failing, lambda: self.do_all(steps))

    async def do_all(self, steps: list[Step]) -> None:
        done = zip(steps, await asyncio.gather(*map(self.do, steps)), strict=True)
        # A claim of a task just assigned to the caller returns that version, so claims come last.
        for step, answers in sorted(done, key=lambda each: each[0].action == "claim"):
            versions = set[int]()
            for answer in answers:
                if answer["op"] == "error":
                    codes = ("store_unavailable", "conflict", "forbidden", "bad_request")
                    assert answer["code"] in codes, answer
                    continue
                task = answer["value"]
                again = step.action == "claim" and (task["id"], task["version"]) in self.accepted
                if not again:
                    versions.add(task["version"])
                if step.action in ("claim", "assign"):
                    assert task["owner"] == (step.who if step.action == "claim" else step.to)
            assert len(versions) <= 1, "a step made two versions"
            for version in versions:
                key = (f"t{step.task + 1}", version)
                assert self.accepted.setdefault(key, step.who) == step.who, "another worker's step"

    async def do(self, step: Step) -> list[Frame]:
        name, args = f"{step.action}_task", dict[str, Any](task=f"t{step.task + 1}")
        if step.action == "assign":
            args["to"] = step.to
        elif step.action == "needs":
            name, args["depends_on"] = "update_task", [f"t{n + 1}" for n in step.other]
        elif step.action == "title":
            name, args["title"] = "update_task", f"{self.cids}"
        return await self.repeated(step.who, name, step.twice, **args)

    async def check(self) -> None:
        listed = (await self.value("bot", "list_tasks"))["tasks"]
        tasks = {task["id"]: task for task in listed}
        assert sorted(tasks) == [f"t{n + 1}" for n in range(5)]
        ended = {id for id, task in tasks.items() if task["state"] in ("done", "cancelled")}
        for id, task in tasks.items():
            details = await self.value("dot", "read_task", task=id, limit=200)
            assert details["task"] == task
            assert set(task["waits_for"]) == set(task["depends_on"]) - ended
            self.check_history(id, task, details["history"][::-1])
        assert_no_cycle({id: task["depends_on"] for id, task in tasks.items()})
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
                assert state in before, f"{what} while {state}"
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
        assert versions <= set(range(2, task["version"] + 1)), "an accepted step is missing"


def assert_no_cycle(needs: dict[str, list[str]]) -> None:
    left = dict(needs)
    while left:
        free = [id for id, of in left.items() if not set(of) & left.keys()]
        assert free, f"a cycle in {left}"
        for id in free:
            del left[id]


TestTasks = as_test(TasksMachine, 20)
