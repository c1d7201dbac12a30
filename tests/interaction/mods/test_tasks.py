"""Boards and tasks in a running network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.tasks.mod import TasksConfig, TasksMod
from hubbub.mods.tasks.repository import RETRY_DELAY_S
from tests.interaction.mods.workspace import (
    DESK,
    NoNotices,
    advance,
    at_time,
    hub_messages,
    refusal,
    refused,
    workspace,
)
from tests.interaction.peers import DEADLINE_S, Network, Peer, soon
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


def tasks(**settings: Any) -> list[TasksMod]:
    return [TasksMod(TasksConfig(time_limit=DEADLINE_S, **settings))]


async def create(peer: Peer, title: str = "Write", **more: Any) -> str:
    where = {} if "board" in more else {"thread": DESK}
    task = await peer.call("create_task", title=title, **where, **more)
    return str(task["id"])


async def ids(peer: Peer, **which: Any) -> list[str]:
    return [task["id"] for task in (await peer.call("list_tasks", **which))["tasks"]]


async def read(peer: Peer, task: str) -> Any:
    return (await peer.call("read_task", task=task))["task"]


async def state(peer: Peer, task: str) -> tuple[str, str | None]:
    answer = await read(peer, task)
    return answer["state"], answer.get("owner")


async def notices(network: Network, peer: Peer, count: int = 0) -> list[str]:
    messages = await hub_messages(network, peer, count)
    return [each["text_representation"] for each in messages]


# Boards and tasks -------------------------------------------------------------------------------


@pytest.mark.behaviour("M-140", "M-148")
async def test_readers_are_signalled_as_a_task_is_created_claimed_and_finished() -> None:
    async with workspace(tasks(announce=True), "ann", "bot", "cat") as (network, ann, bot, cat):
        id = await create(ann, description="All of it", labels=["text"], priority="high")
        (board,) = (await bot.call("list_boards"))["boards"]
        assert (board["name"], board["thread_id"], board["active"]) == ("", DESK, 1)
        assert await ids(bot, ready=True) == [id]
        claimed = await bot.call("claim_task", task=id)
        assert (claimed["state"], claimed["owner"], claimed["version"]) == ("claimed", "bot", 2)
        assert await bot.call("claim_task", task=id) == claimed
        done = await bot.call("finish_task", task=id, result="d1\nis done")
        assert (done["state"], done["owner"]) == ("done", "bot")
        answer = await ann.call("read_task", task=id)
        assert (answer["description"], answer["result"]) == ("All of it", "d1\nis done")
        history = [(each["what"], each["by"]) for each in answer["history"]]
        assert history == [("finished", "bot"), ("claimed", "bot"), ("created", "ann")]
        assert (await ann.call("list_boards"))["boards"][0]["over"] == 1
        signals = [(await ann.signal("mod.tasks"))["data"] for _ in range(3)]
        assert [(s["kind"], s["data"]["task"], s["data"]["state"]) for s in signals] == [
            ("created", id, "open"), ("claimed", id, "claimed"), ("finished", id, "done"),
        ]  # fmt: skip
        assert await notices(network, ann) == [f'bot finished {id} "Write": d1 is done']
        (event,) = await bot.sync()
        assert event.get("wake") is None
        await cat.sync()
        assert not [s for s in cat.signals if s["type"] == "mod.tasks"]


@pytest.mark.behaviour("M-140")
async def test_a_thread_has_one_default_board_and_others_by_name() -> None:
    async with workspace(tasks(max_boards=3), "ann", "bot") as (_, ann, bot):
        both = await asyncio.gather(create(ann), create(bot))
        assert len({(await read(ann, task))["board"] for task in both}) == 1
        refs = [await ann.post("create_board", thread=DESK, name="Ideas") for _ in range(2)]
        first, second = [await ann.answer(ref) for ref in refs]
        assert "already has a board 'Ideas': b2" in second["message"]
        idea = await create(bot, "Think", board=first["value"]["id"])
        assert await ids(ann, board=first["value"]["id"]) == [idea]
        assert await ids(ann, thread=DESK) == sorted([*both, idea], reverse=True)
        await ann.call("create_board", thread=DESK, name="More")
        assert await refused(ann, "create_board", thread=DESK, name="Too many") == "limit"
        names = [board["name"] for board in (await ann.call("list_boards", limit=2))["boards"]]
        assert names == ["More", "Ideas"]


@pytest.mark.behaviour("M-141")
async def test_one_of_two_simultaneous_claims_wins_and_the_other_names_it() -> None:
    async with workspace(tasks(), "ann", "bot", "dot") as (_, ann, bot, dot):
        id = await create(ann)
        refs = [(each, await each.post("claim_task", task=id)) for each in (bot, dot)]
        answers = [await each.answer(ref) for each, ref in refs]
        (winner,) = (frame["value"]["owner"] for frame in answers if frame["op"] == "result")
        (error,) = (frame for frame in answers if frame["op"] == "error")
        assert error["code"] == "conflict"
        assert error["details"] == {"task": id, "state": "claimed", "held_by": winner}
        assert f'{id} "Write" is held by {winner}' in error["message"]
        assert await state(ann, id) == ("claimed", winner)


@pytest.mark.behaviour("M-142")
async def test_a_task_waits_for_its_dependencies_which_form_no_cycle() -> None:
    async with workspace(tasks(), "ann", "bot", "cat") as (_, ann, bot, cat):
        first, other = await create(ann, "Write"), await create(ann, "Draw")
        last = await create(ann, "Print", depends_on=[first, other], owner="bot")
        assert await state(ann, last) == ("blocked", "bot")
        assert await ids(bot, ready=True) == [other, first]
        assert await ids(bot, state="blocked") == [last]
        await bot.call("claim_task", task=first)
        for name in ("claim_task", "finish_task"):
            error = await refusal(bot, name, task=last)
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

        a = await create(ann, "A")
        b = await create(ann, "B", depends_on=[a])
        c = await create(ann, "C", depends_on=[b])
        error = await refusal(ann, "update_task", task=a, depends_on=[c])
        assert (error.code, error.details["cycle"]) == ("bad_request", [a, c, b, a])
        assert f'{a} "A" -> {c} "C" -> {b} "B" -> {a} "A"' in str(error)
        error = await refusal(ann, "update_task", task=a, depends_on=[a])
        assert error.details["cycle"] == [a, a]
        one, two = await create(ann, "1"), await create(ann, "2")
        refs = [
            (ann, await ann.post("update_task", task=one, depends_on=[two])),
            (bot, await bot.post("update_task", task=two, depends_on=[one])),
        ]
        assert sorted([(await each.answer(ref))["op"] for each, ref in refs]) == ["error", "result"]

        hidden = await cat.call("create_task", title="Sleep", thread="channel.attic")
        for other in (hidden["id"], "t99"):
            args = {"title": "x", "thread": DESK, "depends_on": [other]}
            error = await refusal(ann, "create_task", **args)
            assert (error.code, "Sleep" in str(error)) == ("not_found", False)


STATES = ("open", "claimed", "blocked", "done", "cancelled")
STEPS: dict[str, tuple[tuple[str, str | None] | None, ...]] = {
    # state and owner after ann's step on a task in each of these states; None is a conflict
    "claim_task": (("claimed", "ann"), ("claimed", "ann"), None, None, None),
    "release_task": (None, ("open", None), None, None, None),
    "finish_task": (("done", "ann"), ("done", "ann"), None, None, None),
    "cancel_task": (("cancelled", None), ("cancelled", "ann"), ("cancelled", None), None, None),
    "reopen_task": (None, None, None, ("open", None), ("open", None)),
    "assign_task": (("claimed", "bot"), ("claimed", "bot"), ("blocked", "bot"), None, None),
}
LEADS_TO = {"claimed": "claim_task", "done": "finish_task", "cancelled": "cancel_task"}


@pytest.mark.behaviour("M-143")
async def test_each_state_allows_the_steps_of_its_table() -> None:
    async with workspace(tasks(), "ann") as (_, ann):
        for name, ends in STEPS.items():
            for before, after in zip(STATES, ends, strict=True):
                needs = [await create(ann)] if before == "blocked" else []
                id = await create(ann, depends_on=needs)
                if before in LEADS_TO:
                    await ann.call(LEADS_TO[before], task=id)
                was = await read(ann, id)
                answer = await ann.ask(name, task=id, **({"to": "bot"} if "assign" in name else {}))
                if after is None:
                    assert answer["code"] == "conflict", (name, before)
                    assert await read(ann, id) == was
                else:
                    task = answer["value"]
                    assert (task["state"], task.get("owner")) == after, (name, before)
                    assert await state(ann, id) == after


# Changes ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-144")
async def test_a_task_is_updated_unless_it_has_changed_meanwhile() -> None:
    clock = HandClock()
    async with workspace(tasks(), "ann", "bot", clock=clock) as (_, ann, bot):
        id = await create(ann, due=at_time(clock.wall + 60), labels=["a"])
        new = {"title": "Rewrite", "description": "better", "priority": "low", "labels": ["b"]}
        task = await bot.call("update_task", task=id, version=1, due="none", note="hm", **new)
        assert [task[key] for key in ("title", "priority", "labels", "version")] == [
            "Rewrite", "low", ["b"], 2,
        ]  # fmt: skip
        assert "due" not in task
        error = await refusal(ann, "update_task", task=id, version=1, title="Mine")
        assert (error.code, error.details["version"]) == ("conflict", 2)
        await ann.call("update_task", task=id, title="Mine")
        page = await bot.call("read_task", task=id, limit=2)
        assert (page["task"]["title"], page["description"]) == ("Mine", "better")
        assert [each["note"] for each in page["history"]] == ["", "hm"]
        assert page["more"]
        rest = await bot.call("read_task", task=id, before=2)
        assert [each["what"] for each in rest["history"]] == ["created"]
        past = at_time(clock.wall - 1)
        assert await refused(ann, "update_task", task=id, due=past) == "bad_request"
        args = {"title": "Write", "thread": DESK}
        first = await ann.call("create_task", cid="c1", **args)
        assert await ann.call("create_task", cid="c1", **args) == first
        done = await ann.call("finish_task", cid="c2", task=first["id"])
        assert await ann.call("finish_task", cid="c2", task=first["id"]) == done
        assert await ids(ann) == [first["id"], id]


@pytest.mark.behaviour("M-145")
async def test_a_held_task_is_changed_only_by_holder_author_and_owners() -> None:
    async with workspace(tasks(), "ann", "bot", "dot", "olga") as (_, ann, bot, dot, olga):
        for who in (bot, dot, ann, olga):
            for name in ("release_task", "finish_task", "cancel_task", "assign_task"):
                args = {"to": "dot"} if name == "assign_task" else {}
                id = await create(ann)
                await bot.call("claim_task", task=id)
                if who is not dot:
                    await who.call(name, task=id, **args)
                    continue
                error = await refusal(who, name, task=id, **args)
                assert (error.code, "held by bot" in str(error)) == ("forbidden", True)
                assert await state(ann, id) == ("claimed", "bot")
                await dot.call("update_task", task=id, title="x")


@pytest.mark.behaviour("M-145")
async def test_a_task_is_assigned_to_readers_and_a_persons_choice_wakes_an_agent() -> None:
    async with workspace(tasks(), "ann", "bot", "cat") as (network, ann, bot, _):
        id = await create(ann)
        for other in ("cat", "nobody"):
            assert await refused(ann, "assign_task", task=id, to=other) == "unknown_participant"
            args = {"title": "x", "thread": DESK, "owner": other}
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


# Views ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-147")
async def test_lists_are_paged_and_filtered() -> None:
    async with workspace(tasks(max_active=5), "ann", "bot") as (_, ann, bot):
        created = [await create(ann, f"task {n}") for n in range(5)]
        assert await refused(ann, "create_task", title="6", thread=DESK) == "limit"
        await bot.call("claim_task", task=created[0])
        await bot.call("finish_task", task=created[1])
        page = await ann.call("list_tasks", limit=3)
        assert ([task["id"] for task in page["tasks"]], page["more"]) == (created[:1:-1], True)
        page = await ann.call("list_tasks", before=created[2], board="b1")
        assert ([task["id"] for task in page["tasks"]], page["more"]) == (created[1::-1], False)
        assert await ids(ann, owner="bot", state="claimed") == created[:1]
        assert await ids(ann, state="open") == await ids(ann, ready=True) == created[:1:-1]
        assert await refused(ann, "list_tasks", ready=True, state="done") == "bad_request"
        assert await ids(ann, board="b1", thread="broadcast") == []
        for wrong in ({"title": "a\nb"}, {"title": "x" * 201}, {"labels": ["x"] * 11}):
            args = {"title": "x", "thread": DESK, **wrong}
            assert await refused(ann, "create_task", **args) == "bad_request"
        assert await refused(ann, "create_task", title="x") == "bad_request"


@pytest.mark.behaviour("M-147")
async def test_a_board_is_rendered_as_escaped_markdown() -> None:
    clock = HandClock()
    async with workspace(tasks(), "ann", "bot", clock=clock) as (_, ann, bot):
        a = await create(ann, "Write *it* [now](x)", due=at_time(clock.wall + 60), priority="high")
        await create(ann, "Print", depends_on=[a], labels=["press"])
        c = await create(ann, "Plan")
        await bot.call("claim_task", task=a)
        await bot.call("finish_task", task=c)
        clock.wall += 120
        markdown = await bot.call("board_as_markdown", board="b1")
        assert (markdown["text"], markdown["cut"]) == (
            "# Tasks (b1)\n\n"
            "## In progress\n\n"
            "- [ ] t1 Write \\*it\\* \\[now\\](x) "
            "(bot, high, overdue since 2027-01-15 08:01 UTC)\n\n"
            "## Blocked\n\n- [ ] t2 Print (waits for t1, press)\n\n"
            "## Done\n\n- [x] t3 Plan (bot)\n",
            False,
        )
        empty = await ann.call("create_board", thread=DESK, name="None")
        markdown = await bot.call("board_as_markdown", board=empty["id"])
        assert markdown["text"] == "# None (b2)\n\nNo tasks.\n"


# Notices and releases -----------------------------------------------------------------------------


@pytest.mark.behaviour("M-149", "M-152")
async def test_an_overdue_task_is_announced_once_across_restarts(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(tasks(), "ann", store=store, clock=clock) as (network, ann):
        early = await create(ann, "Early", due=at_time(clock.wall + 60), owner="ann")
        late = await create(ann, "Late", due=at_time(clock.wall + 600))
        done = await create(ann, "Done", due=at_time(clock.wall + 60))
        await ann.call("finish_task", task=done)
        advance(network, clock, 61)
        assert await notices(network, ann, 1) == [f'{early} "Early" is overdue (owner: ann).']
        advance(network, clock, 61)
    clock.wall += 1000
    async with workspace(tasks(), "ann", store=store, clock=clock) as (network, ann):
        assert (await notices(network, ann, 2))[1:] == [f'{late} "Late" is overdue.']
        assert (await read(ann, late))["overdue"]
        assert await state(ann, early) == ("claimed", "ann")
        assert await create(ann) == "t4"
        assert len((await ann.call("list_boards"))["boards"]) == 1
        await ann.call("update_task", task=early, due=at_time(clock.wall + 60))
        advance(network, clock, 61)
        assert len(await notices(network, ann, 3)) == 3


@pytest.mark.behaviour("M-149")
async def test_a_rejected_overdue_notice_is_not_posted_again() -> None:
    clock, rule = HandClock(), NoNotices("is overdue")
    async with workspace([*tasks(), rule], "ann", clock=clock) as (network, ann):
        task = await create(ann, due=at_time(clock.wall + 60))
        advance(network, clock, 61)
        async with soon():
            await rule.rejected.get()
        for _ in range(3):
            advance(network, clock, RETRY_DELAY_S + 1)
            await ann.call("read_task", task=task)
        assert rule.rejected.empty()


@pytest.mark.behaviour("M-149", "M-152")
async def test_a_failed_write_leaves_nothing_and_its_notice_is_posted_later() -> None:
    clock, store, mods = HandClock(), MoodyStore(), tasks()
    async with workspace(mods, "ann", "bot", store=store, clock=clock) as (network, ann, bot):
        for name, args in (("create_task", {"title": "x"}), ("create_board", {"name": "x"})):
            store.failing = 1
            assert await refused(ann, name, thread=DESK, **args) == "store_unavailable"
        id = await create(ann, due=at_time(clock.wall + 60))
        store.failing = 1
        assert await refused(ann, "claim_task", task=id) == "store_unavailable"
        assert (await bot.call("claim_task", task=id))["owner"] == "bot"
        assert await ids(ann) == [id]
        assert len((await ann.call("list_boards"))["boards"]) == 1
        assert not len(mods[0]._queues)
        store.deaf = True
        asked = store.asked
        advance(network, clock, 61)
        await store.until(lambda: store.asked > asked)
        store.deaf, store.failing = False, 1
        advance(network, clock, 61)
        await store.until(lambda: store.failing == 0)
        assert await notices(network, ann) == []
        advance(network, clock, 61)
        assert len(await notices(network, ann, 1)) == 1


@pytest.mark.behaviour("M-150")
async def test_tasks_of_a_long_absent_agent_are_released(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    mods = tasks(release_after=600)
    async with workspace(mods, "ann", "bot", store=store, clock=clock) as (network, ann, bot):
        held, mine = await create(ann, owner="bot"), await create(ann, owner="ann")
        await bot.close()
        await network.gone("bot")
        advance(network, clock, 500)
        bot = await network.join("bot", "agent")
        advance(network, clock, 500)
        await network.quiet()
        assert await state(ann, held) == ("claimed", "bot")
        await bot.close()
        await network.gone("bot")
        advance(network, clock, 601)
        assert await notices(network, ann, 1) == [
            f'{held} "Write" was released because its owner bot is away.'
        ]
        assert await state(ann, held) == ("open", None)
        assert await state(ann, mine) == ("claimed", "ann")
        again = await create(ann, owner="bot")
    mods = tasks(release_after=600)
    async with workspace(mods, "ann", store=store, clock=clock) as (network, ann):
        advance(network, clock, 601)
        await notices(network, ann, 2)
        assert await state(ann, again) == ("open", None)


# Requests ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-151")
async def test_a_request_is_a_task_that_ends_with_it() -> None:
    clock = HandClock()
    async with workspace(tasks(), "ann", "bot", "dot", clock=clock) as (network, ann, bot, dot):
        for end, outcome in (("result", ""), ("failed", "reported"), ("timeout", "timeout")):
            sent = await bot.call("delegate", to="dot", task="Count them\nall", deadline_s=60)
            id = (await ids(dot))[0]
            task = await read(dot, id)
            assert (task["title"], task["state"], task["owner"]) == ("Count them", "claimed", "dot")
            assert (task["request"], task["created_by"]) == (sent["id"], "bot")
            assert await ids(ann) == []
            for name in ("release", "finish", "cancel", "reopen", "update"):
                error = await refusal(dot, f"{name}_task", task=id)
                assert error.code == "conflict"
                assert f"the request {sent['id']}" in str(error)
            if end == "timeout":
                clock.wall += 61
                network.hub.look()
            else:
                await dot.call("report", request=sent["id"], status=end, text="forty-two")
            changes = [(await bot.signal("mod.tasks"))["data"]["kind"] for _ in range(2)]
            assert changes == ["created", "finished" if end == "result" else "cancelled"]
            answer = await bot.call("read_task", task=id)
            assert answer["task"]["state"] == ("done" if end == "result" else "cancelled")
            last = answer["history"][0]
            by = "hub" if end == "timeout" else "dot"
            assert (last["version"], last["note"], last["by"]) == (2, outcome, by)
            assert ("forty-two" in answer["result"]) == (end != "timeout")
