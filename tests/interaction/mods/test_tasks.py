"""Boards with tasks, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.mods.tasks.duties import AGAIN_S, MOST_TRIES
from hubbub.mods.tasks.mod import TasksMod
from hubbub.mods.tasks.settings import TasksConfig
from hubbub.protocol.messages import Draft
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.hand_clock import HandClock
from tests.interaction.mods.workplace import (
    DESK,
    KINDS,
    at_time,
    later,
    refused,
    refusing,
    workplace,
)
from tests.interaction.peers import DEADLINE_S, Network, Peer, eventually, soon
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-140")(
    mod_contract(TasksMod, {"announce": True, "release_after": "1h"})
)


def tasks(**settings: Any) -> list[TasksMod]:
    return [TasksMod(TasksConfig(time_limit=DEADLINE_S, **settings))]


async def create(peer: Peer, title: str = "Write", **more: Any) -> str:
    where = {} if "board" in more else {"thread": DESK}
    task = await peer.call("create_task", title=title, **where, **more)
    return str(task["id"])


async def ids(peer: Peer, **which: Any) -> list[str]:
    return [task["id"] for task in (await peer.call("list_tasks", **which))["tasks"]]


async def state(peer: Peer, task: str) -> tuple[str, str | None]:
    found = (await peer.call("read_task", task=task))["task"]
    return found["state"], found.get("owner")


async def notices(network: Network, peer: Peer) -> list[str]:
    """What the mod has said in the desk's thread by now."""
    await network.quiet()
    page = await peer.call("read_thread", thread=DESK, limit=100)
    return [m["text_representation"] for m in page["messages"] if m["sender_id"] == "hub"]


# Boards and tasks -------------------------------------------------------------------------------


@pytest.mark.behaviour("M-140")
async def test_a_task_is_created_on_the_board_of_its_thread_claimed_and_finished() -> None:
    async with workplace(tasks(), "ann", "bot") as (_, ann, bot):
        id = await create(ann, description="All of it", labels=["text"], priority="high")
        (board,) = (await bot.call("list_boards"))["boards"]
        assert (board["name"], board["thread_id"], board["active"]) == ("", DESK, 1)
        assert await ids(bot, ready=True) == [id]
        claimed = await bot.call("claim_task", task=id)
        assert (claimed["state"], claimed["owner"], claimed["version"]) == ("claimed", "bot", 2)
        assert await bot.call("claim_task", task=id) == claimed
        done = await bot.call("finish_task", task=id, result="d1")
        assert (done["state"], done["owner"]) == ("done", "bot")
        read = await ann.call("read_task", task=id)
        assert (read["description"], read["result"]) == ("All of it", "d1")
        history = [(each["what"], each["by"]) for each in read["history"]]
        assert history == [("finished", "bot"), ("claimed", "bot"), ("created", "ann")]
        assert (await ann.call("list_boards"))["boards"][0]["over"] == 1


@pytest.mark.behaviour("M-140")
async def test_a_thread_has_one_board_of_its_own_and_others_by_name() -> None:
    async with workplace(tasks(max_boards=3), "ann", "bot") as (_, ann, bot):
        both = await asyncio.gather(create(ann), create(bot))
        assert len({(await ann.call("read_task", task=t))["task"]["board"] for t in both}) == 1
        refs = [await ann.post("create_board", thread=DESK, name="Ideas") for _ in range(2)]
        first, second = [await ann.answer(ref) for ref in refs]
        first = first["value"]
        assert "already: b2" in second["message"]
        idea = await create(bot, "Think", board=first["id"])
        assert await ids(ann, board=first["id"]) == [idea]
        assert await ids(ann, thread=DESK) == sorted([*both, idea], reverse=True)
        await ann.call("create_board", thread=DESK, name="More")
        assert await refused(ann, "create_board", thread=DESK, name="Too many") == "limit"
        names = [board["name"] for board in (await ann.call("list_boards", limit=2))["boards"]]
        assert names == ["More", "Ideas"]


@pytest.mark.behaviour("M-141")
async def test_of_two_who_claim_a_task_at_once_one_gets_it_and_the_other_hears_of_whom() -> None:
    async with workplace(tasks(), "ann", "bot", "dot") as (_, ann, bot, dot):
        for _ in range(5):
            id = await create(ann)
            refs = [(each, await each.post("claim_task", task=id)) for each in (bot, dot)]
            answers = [await each.answer(ref) for each, ref in refs]
            (won,) = (frame["value"]["owner"] for frame in answers if frame["op"] == "result")
            (lost,) = (frame for frame in answers if frame["op"] == "error")
            assert lost["code"] == "conflict"
            assert lost["details"] == {"task": id, "state": "claimed", "held_by": won}
            assert f'{id} "Write" is held by {won}' in lost["message"]
            assert await state(ann, id) == ("claimed", won)


@pytest.mark.behaviour("M-142")
async def test_a_task_waits_for_its_dependencies_and_cannot_be_claimed_before() -> None:
    async with workplace(tasks(), "ann", "bot") as (_, ann, bot):
        first, other = await create(ann, "Write"), await create(ann, "Draw")
        last = await create(ann, "Print", depends_on=[first, other], owner="bot")
        assert await state(ann, last) == ("blocked", "bot")
        assert await ids(bot, ready=True) == [other, first]
        assert await ids(bot, state="blocked") == [last]
        await bot.call("claim_task", task=first)
        for name in ("claim_task", "finish_task"):
            error = await refusing(bot, name, task=last)
            assert error.code == "conflict"
            assert f'waits for {first} "Write" (held by bot), {other} "Draw" (open)' in str(error)
            assert error.details["waits_for"] == [first, other]
        await bot.call("finish_task", task=first)
        await ann.call("cancel_task", task=other, note="no pictures")
        assert await state(ann, last) == ("claimed", "bot")
        await ann.call("reopen_task", task=first)
        assert await state(ann, last) == ("blocked", "bot")
        await ann.call("update_task", task=last, depends_on=[])
        assert (await bot.call("finish_task", task=last))["state"] == "done"


@pytest.mark.behaviour("M-142")
async def test_dependencies_in_a_circle_are_refused_with_the_names_in_it() -> None:
    async with workplace(tasks(), "ann", "bot") as (_, ann, bot):
        a = await create(ann, "A")
        b = await create(ann, "B", depends_on=[a])
        c = await create(ann, "C", depends_on=[b])
        error = await refusing(ann, "update_task", task=a, depends_on=[c])
        assert error.code == "bad_request"
        assert error.details["cycle"] == [a, c, b, a]
        assert f'{a} "A" -> {c} "C" -> {b} "B" -> {a} "A"' in str(error)
        error = await refusing(ann, "update_task", task=a, depends_on=[a])
        assert error.details["cycle"] == [a, a]
        one, two = await create(ann, "1"), await create(ann, "2")
        refs = [
            (ann, await ann.post("update_task", task=one, depends_on=[two])),
            (bot, await bot.post("update_task", task=two, depends_on=[one])),
        ]
        assert sorted([(await each.answer(ref))["op"] for each, ref in refs]) == ["error", "result"]


@pytest.mark.behaviour("M-142")
async def test_a_task_depends_on_tasks_of_its_own_thread_only() -> None:
    async with workplace(tasks(), "ann", "cat") as (_, ann, cat):
        theirs = await cat.call("create_task", title="Sleep", thread="channel.attic")
        for other in (theirs["id"], "t99"):
            error = await refusing(ann, "create_task", title="x", thread=DESK, depends_on=[other])
            assert error.code == "not_found"
            assert "Sleep" not in str(error)


STEPS = {
    # what is asked of a task in this state, and what it becomes: None is a conflict
    ("open", "claim_task"): ("claimed", "ann"),
    ("open", "release_task"): None,
    ("open", "finish_task"): ("done", "ann"),
    ("open", "cancel_task"): ("cancelled", None),
    ("open", "reopen_task"): None,
    ("open", "assign_task"): ("claimed", "bot"),
    ("claimed", "claim_task"): ("claimed", "ann"),
    ("claimed", "release_task"): ("open", None),
    ("claimed", "finish_task"): ("done", "ann"),
    ("claimed", "cancel_task"): ("cancelled", "ann"),
    ("claimed", "reopen_task"): None,
    ("claimed", "assign_task"): ("claimed", "bot"),
    ("blocked", "claim_task"): None,
    ("blocked", "release_task"): None,
    ("blocked", "finish_task"): None,
    ("blocked", "cancel_task"): ("cancelled", None),
    ("blocked", "reopen_task"): None,
    ("blocked", "assign_task"): ("blocked", "bot"),
    ("done", "claim_task"): None,
    ("done", "release_task"): None,
    ("done", "finish_task"): None,
    ("done", "cancel_task"): None,
    ("done", "reopen_task"): ("open", None),
    ("done", "assign_task"): None,
    ("cancelled", "claim_task"): None,
    ("cancelled", "release_task"): None,
    ("cancelled", "finish_task"): None,
    ("cancelled", "cancel_task"): None,
    ("cancelled", "reopen_task"): ("open", None),
    ("cancelled", "assign_task"): None,
}
LEADS_TO = {"claimed": "claim_task", "done": "finish_task", "cancelled": "cancel_task"}


@pytest.mark.behaviour("M-143")
@pytest.mark.parametrize(("before", "name"), STEPS)
async def test_each_state_allows_what_its_table_says(before: str, name: str) -> None:
    async with workplace(tasks(), "ann") as (_, ann):
        needs = [await create(ann)] if before == "blocked" else []
        id = await create(ann, depends_on=needs)
        if before in LEADS_TO:
            await ann.call(LEADS_TO[before], task=id)
        version = (await ann.call("read_task", task=id))["task"]["version"]
        args = {"to": "bot"} if name == "assign_task" else {}
        after = STEPS[before, name]
        if after is None:
            assert await refused(ann, name, task=id, **args) == "conflict"
            read = (await ann.call("read_task", task=id))["task"]
            assert (read["state"], read["version"]) == (before, version)
        else:
            made = await ann.call(name, task=id, **args)
            assert (made["state"], made.get("owner")) == after
            assert await state(ann, id) == after


# Changes ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-144")
async def test_what_a_task_says_is_changed_unless_somebody_has_changed_it_meanwhile() -> None:
    clock = HandClock()
    async with workplace(tasks(), "ann", "bot", clock=clock) as (_, ann, bot):
        id = await create(ann, due=at_time(clock.wall + 60), labels=["a"])
        new = {"title": "Rewrite", "description": "better", "priority": "low", "labels": ["b"]}
        made = await bot.call("update_task", task=id, version=1, due="none", note="hm", **new)
        assert {key: made[key] for key in ("title", "priority", "labels", "version")} == {
            "title": "Rewrite", "priority": "low", "labels": ["b"], "version": 2,
        }  # fmt: skip
        assert "due" not in made
        error = await refusing(ann, "update_task", task=id, version=1, title="Mine")
        assert (error.code, error.details["version"]) == ("conflict", 2)
        await ann.call("update_task", task=id, title="Mine")
        read = await bot.call("read_task", task=id, limit=2)
        assert (read["task"]["title"], read["description"]) == ("Mine", "better")
        assert [each["note"] for each in read["history"]] == ["", "hm"]
        assert read["more"]
        rest = await bot.call("read_task", task=id, before=2)
        assert [each["what"] for each in rest["history"]] == ["created"]
        past = at_time(clock.wall - 1)
        assert await refused(ann, "update_task", task=id, due=past) == "bad_request"


@pytest.mark.behaviour("M-144")
async def test_a_write_that_is_repeated_with_its_cid_happens_once() -> None:
    async with workplace(tasks(), "ann") as (_, ann):
        args = {"title": "Write", "thread": DESK}
        first = await ann.call("create_task", cid="c1", **args)
        assert await ann.call("create_task", cid="c1", **args) == first
        done = await ann.call("finish_task", cid="c2", task=first["id"])
        assert await ann.call("finish_task", cid="c2", task=first["id"]) == done
        assert await ids(ann) == [first["id"]]


@pytest.mark.behaviour("M-145")
async def test_what_somebody_holds_is_changed_by_holder_author_and_owners_only() -> None:
    async with workplace(tasks(), "ann", "bot", "dot", "olga") as (_, ann, bot, dot, olga):
        for who, allowed in ((bot, True), (dot, False), (ann, True), (olga, True)):
            for name, args in (
                ("release_task", {}),
                ("finish_task", {}),
                ("cancel_task", {}),
                ("assign_task", {"to": "dot"}),
            ):
                id = await create(ann)
                await bot.call("claim_task", task=id)
                if allowed:
                    await who.call(name, task=id, **args)
                else:
                    error = await refusing(who, name, task=id, **args)
                    assert error.code == "forbidden"
                    assert "held by bot" in str(error)
                    assert await state(ann, id) == ("claimed", "bot")
                await ann.call("update_task", task=id, title="x")


@pytest.mark.behaviour("M-145")
async def test_a_task_is_given_to_who_reads_the_thread_only_and_a_person_wakes_an_agent() -> None:
    async with workplace(tasks(), "ann", "bot", "cat") as (network, ann, bot, _):
        id = await create(ann)
        for nobody in ("cat", "nobody"):
            assert await refused(ann, "assign_task", task=id, to=nobody) == "unknown_participant"
            args = {"title": "x", "thread": DESK, "owner": nobody}
            assert await refused(ann, "create_task", **args) == "unknown_participant"
        given = await ann.call("assign_task", task=id, to="bot", note="you know it")
        assert given["owner"] == "bot"
        await network.quiet()
        (event,) = await bot.take(1)
        assert (event["message"]["sender_id"], event["message"]["mentions"]) == ("ann", ["bot"])
        assert event["wake"]["reply"] == "required"
        history = (await ann.call("read_task", task=id))["history"]
        assert history[0]["note"] == "bot: you know it"
        await bot.call("assign_task", task=id, to="dot")
        await network.quiet()
        assert await bot.texts() == []
        new = await create(ann, "Print", owner="bot")
        await network.quiet()
        assert await bot.texts() == [f'@bot, please do {new} "Print".']


OPERATIONS: dict[str, dict[str, Any]] = {
    "read_task": {},
    "update_task": {"title": "x"},
    "claim_task": {},
    "release_task": {},
    "finish_task": {},
    "cancel_task": {},
    "reopen_task": {},
    "assign_task": {"to": "bot"},
}


@pytest.mark.behaviour("M-146")
@pytest.mark.parametrize("who", ["cat", "olga"])
async def test_who_does_not_read_the_thread_is_told_that_there_is_nothing(who: str) -> None:
    async with workplace(tasks(), "ann", who) as (_, ann, other):
        id = await create(ann)
        if who == "olga":
            await other.call("leave_channel", channel="desk")
        assert await ids(other) == []
        assert (await other.call("list_boards"))["boards"] == []
        for name, args in OPERATIONS.items():
            there, gone = [await refusing(other, name, task=task, **args) for task in (id, "t999")]
            assert there.code == gone.code == "not_found"
            assert str(there) == str(gone).replace("t999", id)
        for name in ("board_as_markdown", "list_tasks"):
            assert await refused(other, name, board="b1") == "not_found"
        for name, args in (
            ("create_task", {"title": "x"}),
            ("create_board", {"name": "x"}),
            ("list_tasks", {}),
            ("list_boards", {}),
        ):
            assert await refused(other, name, thread=DESK, **args) == "unknown_thread"
        assert await refused(other, "create_task", title="x", board="b1") == "not_found"


# Views ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-147")
async def test_lists_come_in_pages_and_are_narrowed() -> None:
    async with workplace(tasks(max_active=5), "ann", "bot") as (_, ann, bot):
        made = [await create(ann, f"task {n}") for n in range(5)]
        assert await refused(ann, "create_task", title="6", thread=DESK) == "limit"
        await bot.call("claim_task", task=made[0])
        await bot.call("finish_task", task=made[1])
        page = await ann.call("list_tasks", limit=3)
        assert [task["id"] for task in page["tasks"]] == made[:1:-1]
        assert page["more"]
        page = await ann.call("list_tasks", before=made[2], board="b1")
        assert [task["id"] for task in page["tasks"]] == made[1::-1]
        assert not page["more"]
        assert await ids(ann, owner="bot", state="claimed") == made[:1]
        assert await ids(ann, state="open") == await ids(ann, ready=True) == made[:1:-1]
        assert await refused(ann, "list_tasks", ready=True, state="done") == "bad_request"
        assert await ids(ann, board="b1", thread="broadcast") == []
        for wrong in ({"title": "a\nb"}, {"title": "x" * 201}, {"labels": ["x"] * 11}):
            args = {"title": "x", "thread": DESK, **wrong}
            assert await refused(ann, "create_task", **args) == "bad_request"
        assert await refused(ann, "create_task", title="x") == "bad_request"


@pytest.mark.behaviour("M-147")
async def test_a_board_is_read_as_markdown_whatever_its_titles_say() -> None:
    clock = HandClock()
    async with workplace(tasks(), "ann", "bot", clock=clock) as (_, ann, bot):
        a = await create(ann, "Write *it* [now](x)", due=at_time(clock.wall + 60), priority="high")
        b = await create(ann, "Print", depends_on=[a], labels=["press"])
        c = await create(ann, "Plan")
        await bot.call("claim_task", task=a)
        await bot.call("finish_task", task=c)
        clock.wall += 120
        told = await bot.call("board_as_markdown", board="b1")
        assert told["text"] == (
            "# Tasks (b1)\n\n"
            "## In work\n\n"
            f"- [ ] {a} Write \\*it\\* \\[now\\](x) "
            "(bot, high, overdue since 2027-01-15 08:01 UTC)\n\n"
            "## Blocked\n\n"
            f"- [ ] {b} Print (waits for {a}, press)\n\n"
            "## Done\n\n"
            f"- [x] {c} Plan (bot)\n"
        )
        assert not told["cut"]
        empty = await ann.call("create_board", thread=DESK, name="None")
        told = await bot.call("board_as_markdown", board=empty["id"])
        assert told["text"] == "# None (b2)\n\nNo tasks.\n"


@pytest.mark.behaviour("M-148")
async def test_each_change_is_told_to_those_who_read_the_thread_and_to_nobody_else() -> None:
    async with workplace(tasks(announce=True), "ann", "bot", "cat") as (network, ann, bot, cat):
        id = await create(ann)
        await bot.call("claim_task", task=id)
        await bot.call("finish_task", task=id, result="it\nis done")
        kinds = []
        for _ in range(3):
            data = (await ann.signal("mod.tasks"))["data"]
            kinds.append((data["kind"], data["data"]["task"], data["data"]["state"]))
        assert kinds == [
            ("created", id, "open"),
            ("claimed", id, "claimed"),
            ("finished", id, "done"),
        ]
        assert await notices(network, ann) == [f'bot has finished {id} "Write": it is done']
        (event,) = await bot.sync()
        assert "wake" not in event or event["wake"] is None
        await cat.sync()
        assert not [s for s in cat.signals if s["type"] == "mod.tasks"]


# What the mod does by itself ----------------------------------------------------------------------


@pytest.mark.behaviour("M-149")
async def test_the_thread_is_told_once_of_what_is_overdue_across_restarts(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workplace(tasks(), "ann", store=store, clock=clock) as (network, ann):
        early = await create(ann, "Early", due=at_time(clock.wall + 60), owner="ann")
        late = await create(ann, "Late", due=at_time(clock.wall + 600))
        done = await create(ann, "Done", due=at_time(clock.wall + 60))
        await ann.call("finish_task", task=done)
        later(network, clock, 61)
        await until_told(network, ann, 1)
        assert await notices(network, ann) == [f'{early} "Early" is overdue (ann has it).']
        later(network, clock, 61)
    clock.wall += 1000
    async with workplace(tasks(), "ann", store=store, clock=clock) as (network, ann):
        told = await until_told(network, ann, 2)
        assert told[1:] == [f'{late} "Late" is overdue.']
        read = (await ann.call("read_task", task=late))["task"]
        assert read["overdue"]
        await ann.call("update_task", task=early, due=at_time(clock.wall + 60))
        later(network, clock, 61)
        assert len(await until_told(network, ann, 3)) == 3


class NoNews(Mod):
    """A mod that lets nobody say that something is overdue."""

    name = "no_news"

    def __init__(self) -> None:
        super().__init__(ModConfig())
        self.refused = 0

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "system" and "is overdue" in (draft.text_representation or ""):
            self.refused += 1
            return Reject("no such news here")
        return PASS


@pytest.mark.behaviour("M-149")
async def test_an_overdue_task_that_a_mod_lets_nobody_tell_of_is_not_told_for_ever() -> None:
    clock, rule = HandClock(), NoNews()
    async with workplace([*tasks(), rule], "ann", clock=clock) as (network, ann):
        task = await create(ann, due=at_time(clock.wall + 60))
        async with soon():
            while rule.refused <= MOST_TRIES:
                later(network, clock, AGAIN_S + 1)
                await ann.call("read_task", task=task)
        for _ in range(3):
            later(network, clock, AGAIN_S + 1)
            await ann.call("read_task", task=task)
        assert rule.refused == MOST_TRIES + 1


async def until_told(network: Network, peer: Peer, count: int) -> list[str]:
    """The notices when there are so many, and no more come."""
    told: list[str] = []
    async with soon():
        while len(told) < count:
            told = await notices(network, peer)
    return await notices(network, peer)


@pytest.mark.behaviour("M-149")
async def test_what_the_disk_refuses_to_tell_is_told_later() -> None:
    clock, store = HandClock(), MoodyStore()
    async with workplace(tasks(), "ann", store=store, clock=clock) as (network, ann):
        await create(ann, due=at_time(clock.wall + 60))
        store.deaf = True
        later(network, clock, 61)
        asked = store.asked
        await eventually(lambda: store.asked > asked)
        store.deaf = False
        store.failing = 1
        later(network, clock, 61)
        await eventually(lambda: store.failing == 0)
        assert await notices(network, ann) == []
        later(network, clock, 61)
        assert len(await until_told(network, ann, 1)) == 1


@pytest.mark.behaviour("M-150")
async def test_what_an_agent_holds_is_released_when_it_is_away_for_long(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    mods = tasks(release_after=600)
    async with workplace(mods, "ann", "bot", store=store, clock=clock) as (network, ann, bot):
        held, mine = await create(ann, owner="bot"), await create(ann, owner="ann")
        await bot.close()
        await network.gone("bot")
        later(network, clock, 500)
        bot = await network.join("bot", "agent")
        later(network, clock, 500)
        await network.quiet()
        assert await state(ann, held) == ("claimed", "bot")
        await bot.close()
        await network.gone("bot")
        later(network, clock, 601)
        assert await until_told(network, ann, 1) == [
            f'{held} "Write" is released: bot, who held it, is away.'
        ]
        assert await state(ann, held) == ("open", None)
        assert await state(ann, mine) == ("claimed", "ann")
        again = await create(ann, owner="bot")
    mods = tasks(release_after=600)
    async with workplace(mods, "ann", store=store, clock=clock) as (network, ann):
        later(network, clock, 601)
        await until_told(network, ann, 2)
        assert await state(ann, again) == ("open", None)


# Requests ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-151")
@pytest.mark.parametrize("end", ["result", "failed", "timeout"])
async def test_a_request_is_a_task_that_ends_as_it_does(end: str) -> None:
    clock = HandClock()
    async with workplace(tasks(), "ann", "bot", "dot", clock=clock) as (network, ann, bot, dot):
        sent = await bot.call("delegate", to="dot", task="Count them\nall of them", deadline_s=60)
        (task,) = (await dot.call("list_tasks"))["tasks"]
        assert (task["title"], task["state"], task["owner"]) == ("Count them", "claimed", "dot")
        assert (task["request"], task["created_by"]) == (sent["id"], "bot")
        assert await ids(ann) == []
        for name in ("release_task", "finish_task", "cancel_task", "reopen_task", "update_task"):
            error = await refusing(dot, name, task=task["id"])
            assert error.code == "conflict"
            assert f"the request {sent['id']}" in str(error)
        if end == "timeout":
            clock.wall += 61
            network.hub.requests.look()
        else:
            await dot.call("report", request=sent["id"], status=end, text="forty-two")
        await until_state(network, bot, task["id"], "done" if end == "result" else "cancelled")
        read = await bot.call("read_task", task=task["id"])
        outcome = {"result": "", "failed": "reported", "timeout": "timeout"}[end]
        last = read["history"][0]
        assert (last["version"], last["note"]) == (2, outcome)
        assert last["by"] == ("hub" if end == "timeout" else "dot")
        assert ("forty-two" in read["result"]) == (end != "timeout")
        kinds = [(await bot.signal("mod.tasks"))["data"]["kind"] for _ in range(2)]
        assert kinds == ["created", "finished" if end == "result" else "cancelled"]


async def until_state(network: Network, peer: Peer, task: str, expected: str) -> None:
    async with soon():
        while (await state(peer, task))[0] != expected:
            await network.quiet()


# What goes wrong --------------------------------------------------------------------------------


@pytest.mark.behaviour("M-152")
async def test_what_the_store_refuses_leaves_nothing_and_holds_nobody_up() -> None:
    store, mods = MoodyStore(), tasks()
    async with workplace(mods, "ann", "bot", store=store) as (_, ann, bot):
        for name, args in (
            ("create_task", {"title": "x", "thread": DESK}),
            ("create_board", {"name": "x", "thread": DESK}),
        ):
            store.failing = 1
            assert await refused(ann, name, **args) == "store_unavailable"
        id = await create(ann)
        store.failing = 1
        assert await refused(ann, "claim_task", task=id) == "store_unavailable"
        assert (await bot.call("claim_task", task=id))["owner"] == "bot"
        assert await ids(ann) == [id]
        assert len((await ann.call("list_boards"))["boards"]) == 1
        assert not len(mods[0]._queues)


@pytest.mark.behaviour("M-152")
async def test_tasks_are_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    for n in (1, 2):
        async with workplace(tasks(), *KINDS, store=store) as (_, _olga, ann, *_others):
            assert await create(ann) == f"t{n}"
            assert len((await ann.call("list_boards"))["boards"]) == 1
            if n == 1:
                await ann.call("claim_task", task="t1")
            assert await state(ann, "t1") == ("claimed", "ann")
