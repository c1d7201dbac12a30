"""Reminders, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.mods.schedule.mod import ScheduleConfig, ScheduleMod
from hubbub.mods.settings import settings_of
from hubbub.protocol.messages import Draft
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.accounts import HandClock
from tests.interaction.agent_rig import Rig, call, finish, says, send
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-200")(mod_contract(ScheduleMod))

NETWORKS = Networks(sockets=False)
DESK = {"desk": {"members": ["ann", "bob", "bot", "calc"]}, "other": {"members": ["bob"]}}


def file(**network: Any) -> Any:
    limits = {"limits": {"burst": 10_000, "calls_per_second": 10_000}}
    return config(
        network={**limits, **network}, channels=DESK, humans={"olga": {"roles": ["owner"]}}
    )


FILE = file()


def mod(**settings: JsonValue) -> ScheduleMod:
    return ScheduleMod(ScheduleConfig.model_validate(settings))


async def refused(peer: Peer, name: str, **args: Any) -> Frame:
    answer = await peer.ask(name, **args)
    assert answer["op"] == "error", answer
    return answer


async def pass_(network: Network, clock: HandClock, seconds: float) -> None:
    """So much later, when all that is due then has been said."""
    clock.at += seconds
    network.hub.mods.look()
    schedule = network.hub.mods.pipeline.mods[0]
    assert isinstance(schedule, ScheduleMod)
    await eventually(lambda: not schedule._book.coming)
    await network.quiet()


async def said(peer: Peer) -> list[Frame]:
    """What reminders have said to the participant since it was asked last."""
    return [event for event in await peer.sync() if event["message"].get("timer_of")]


async def mine(peer: Peer, **args: Any) -> list[Any]:
    found: list[Any] = (await peer.call("list_reminders", **args))["reminders"]
    return found


def texts(events: list[Frame]) -> list[str]:
    return [event["message"]["text_representation"].partition("\n")[0] for event in events]


@pytest.mark.behaviour("M-200")
async def test_an_agent_wakes_itself_later() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        bot = await network.join("bot", "agent", turns=True)
        set_ = await bot.call("remind", text="Look at the build", when="in 10m")
        assert (set_["of"], set_["wakes"], set_["repeats"]) == ("bot", ["bot"], False)
        await pass_(network, clock, 599)
        assert await said(bot) == []
        await pass_(network, clock, 1)
        [event] = await said(bot)
        message = event["message"]
        assert (message["sender_id"], message["thread_id"]) == ("hub", "dm.bot.hub")
        assert event["wake"] == {"reason": "timer", "reply": "optional", "turn": "bot-m1"}
        assert message["content"]["text"] == "Look at the build"
        assert await mine(bot) == []
        await pass_(network, clock, 10_000)
        assert await said(bot) == []


@pytest.mark.behaviour("M-200")
async def test_a_reminder_repeats_as_often_and_as_long_as_was_said() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        until = "2027-01-15T10:59:00Z"  # the clock says eight
        for args in ({"text": "twice", "times": 2}, {"text": "until", "until": until}):
            await ann.call("remind", when="every 1h", thread="channel_desk", **args)
        for _ in range(4):
            await pass_(network, clock, 3600)
        assert sorted(texts(await said(ann))) == [
            *["Reminder of ann: twice"] * 2, *["Reminder of ann: until"] * 2,
        ]  # fmt: skip
        assert await mine(ann) == []


@pytest.mark.behaviour("M-204")
async def test_it_wakes_whom_it_is_for_and_who_still_reads_the_thread() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        calc = await network.join("calc", "agent", turns=True)
        args = {"text": "go", "when": "every 1h", "thread": "channel_desk"}
        await ann.call("remind", **args, wakes=["bot", "ann"])
        await pass_(network, clock, 3600)
        [woken], [heard], [mentioned] = await said(bot), await said(calc), await said(ann)
        assert woken["wake"]["turn"] == "bot-m1"
        assert heard.get("wake") is mentioned.get("wake") is None
        assert woken["message"]["mentions"] == ["bot", "ann"]
        why = await ann.call("explain_wake", agent="bot", message_id="m1")
        assert (why["woken"], why["reason"]) == (True, "timer")
        why = await ann.call("explain_wake", agent="calc", message_id="m1")
        assert (why["woken"], why["reason"]) == (False, "not_mentioned")
        await bot.call("leave_channel", channel="desk")
        await pass_(network, clock, 3600)
        assert await said(bot) == []
        assert len(await said(calc)) == 1
        answer = await refused(ann, "remind", **args, wakes=["bot"])
        assert answer["code"] == "unknown_participant"
        assert (await refused(ann, "remind", **{**args, "thread": "channel_other"}))["code"]


@pytest.mark.behaviour("M-204")
async def test_who_has_left_a_thread_says_nothing_there_by_reminders() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.call("remind", text="x", when="every 1h", thread="channel_desk", wakes=["ann"])
        await bob.call("leave_channel", channel="desk")
        await pass_(network, clock, 3600)
        assert await said(ann) == []
        [told] = await mine(bob)
        assert (told["state"], "does not read" in told["problem"]) == ("paused", True)


@pytest.mark.behaviour("M-204")
async def test_a_reminder_for_somebody_else_opens_the_conversation() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        set_ = await ann.call("remind", text="report", when="in 1h", thread="bot", wakes=["bot"])
        assert set_["thread_id"] == "dm.ann.bot"
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        assert event["wake"]["reason"] == "timer"
        await bot.say("direct_ann", "here it is", cause=event["message"]["id"])
        assert (await ann.event())["message"]["interaction_id"]


@pytest.mark.behaviour("M-205")
@pytest.mark.parametrize(("who", "wakes"), [("ann", 4), ("calc", 2)])
@pytest.mark.parametrize("again", [False, True])
async def test_it_opens_an_interaction_with_the_budget_of_whose_it_is(
    who: str, wakes: int, again: bool, tmp_path: Path
) -> None:
    clock = HandClock()
    store = f"sqlite:{tmp_path / 'x.db'}"
    settings = file(budgets={"wakes": 4, "hops": 10})
    async with NETWORKS.start(settings, store=store, mods=[mod()], clock=clock) as network:
        peer = await network.join(who, "human" if who == "ann" else "agent", turns=True)
        await network.join("bot", "agent", turns=True)
        args: dict[str, Any] = {"thread": "channel_desk", "wakes": ["bot"]}
        await peer.call("remind", text="plan", when="in 1h", **args)
        await pass_(network, clock, 3600)
        if not again:
            await check_budget(network, wakes)
    if again:
        async with NETWORKS.start(settings, store=store, mods=[mod()], clock=clock) as network:
            await check_budget(network, wakes)


async def check_budget(network: Network, wakes: int) -> None:
    olga = await network.join("operator", "service")
    budget = await olga.call("read_budget", interaction="i1")
    assert budget["limits"]["wakes"] == wakes
    assert budget["used"]["wakes"] == 1
    page = await olga.call("read_interaction", id="i1")
    assert [each["id"] for each in page["messages"]] == ["m1"]


@pytest.mark.behaviour("M-206")
@pytest.mark.parametrize("target", ["bot", "calc"])
async def test_a_stop_of_the_agent_or_of_whose_reminder_it_is_lets_it_wake_nobody(
    target: str,
) -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        olga = await network.join("olga")
        bot = await network.join("bot", "agent", turns=True)
        calc = await network.join("calc", "agent", turns=True)
        args: dict[str, Any] = {"thread": "channel_desk", "wakes": ["bot"]}
        await calc.call("remind", text="go", when="every 1h", **args)
        await olga.call("stop", scope="agent", target=target)
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        assert event.get("wake") is None
        await olga.call("resume", scope="agent", target=target)
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        assert event["wake"]["reason"] == "timer"


@pytest.mark.behaviour("M-206")
async def test_reminders_of_an_agent_wake_so_often_a_day_and_again_on_the_next(
    tmp_path: Path,
) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    for _ in range(2):  # the count outlives the hub
        async with NETWORKS.start(FILE, store=store, mods=[mod(daily=4)], clock=clock) as network:
            bot = await network.join("bot", "agent", turns=True)
            for _ in range(3):
                await bot.call("remind", text="again", when="in 2m")
                await pass_(network, clock, 120)
    async with NETWORKS.start(FILE, store=store, mods=[mod(daily=4)], clock=clock) as network:
        bot = await network.join("bot", "agent", turns=True)
        page = await bot.call("read_thread", thread="direct_hub")
        ends = ["wakes nobody" in m["text_representation"] for m in page["messages"]]
        assert ends == [False] * 4 + [True] * 2
        await bot.call("remind", text="tomorrow", when="in 1d")
        await pass_(network, clock, 86400)
        *_, event = await said(bot)
        assert event["wake"]["reason"] == "timer"


@pytest.mark.behaviour("M-203")
async def test_what_was_missed_while_the_hub_was_down_is_said_once_and_late(
    tmp_path: Path,
) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        for when in ("every 1h", "in 2h"):
            await ann.call("remind", text=when, when=when, thread="channel_desk")
    clock.at += 10.5 * 3600
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await pass_(network, clock, 0)
        events = await said(ann)
        assert sorted(texts(events)) == ["Reminder of ann: every 1h", "Reminder of ann: in 2h"]
        assert all(
            "It was due at 2027-01-15T" in m["message"]["text_representation"] for m in events
        )
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T19:00:00Z"
        await pass_(network, clock, 1800)
        [event] = await said(ann)
        assert not event["message"]["content"]["late"]


@pytest.mark.behaviour("M-202")
@pytest.mark.parametrize("failing", [1, 2, 3])
async def test_an_occurrence_is_said_once_though_the_store_refuses_what_comes_after(
    failing: int,
) -> None:
    clock, store = HandClock(), MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="every 1h", thread="channel_desk")
        store.failing = failing
        for _ in range(failing + 1):
            await pass_(network, clock, 3600 if not await said(ann) else 0)
            clock.at += 5
        store.failing = 0
        await pass_(network, clock, 5)
        page = await ann.call("read_thread", thread="channel_desk")
        dues = [m["content"]["due"] for m in page["messages"]]
        assert len(dues) == len(set(dues)) >= 1


@pytest.mark.behaviour("M-202")
async def test_what_was_said_before_a_crash_is_not_said_again_after_it(tmp_path: Path) -> None:
    clock = HandClock()
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="every 1h", thread="channel_desk")
        forgetful = network.hub.mods.pipeline.mods[0]
        assert isinstance(forgetful, ScheduleMod)

        async def crash(row: object, problem: str) -> None:
            raise asyncio.CancelledError  # the hub is killed between the two writes

        forgetful._book._go_on = crash  # type: ignore[method-assign]
        await pass_(network, clock, 3600)
        assert len(await said(ann)) == 1
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await pass_(network, clock, 0)
        page = await ann.call("read_thread", thread="channel_desk")
        assert len(page["messages"]) == 1
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T10:00:00Z"


@pytest.mark.behaviour("M-209")
async def test_a_clock_that_was_set_back_makes_none_come_twice_and_none_wait_for_ever(
    tmp_path: Path,
) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="0 * * * *", thread="channel_desk")
        await pass_(network, clock, 3600)
        await pass_(network, clock, 86400 * 365)  # wrong by a year
    clock.at -= 86400 * 365 + 5400
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T08:00:00Z"
        for _ in range(4):
            await pass_(network, clock, 3600)
        page = await ann.call("read_thread", thread="channel_desk")
        dues = [m["content"]["due"][:16] for m in page["messages"]]
        assert sorted(dues) == [
            "2027-01-15T08:00", "2027-01-15T09:00", "2027-01-15T10:00", "2027-01-15T11:00"
        ]  # fmt: skip


@pytest.mark.behaviour("M-207")
async def test_reminders_are_their_owners_and_owners_of_the_network_may_all() -> None:
    clock = HandClock()
    async with NETWORKS.start(file(auth="open"), mods=[mod()], clock=clock) as network:
        bob = await network.join("bob")
        bot, calc = await network.join("bot", "agent"), await network.join("calc", "agent")
        for n in range(3):
            await bot.call("remind", text=f"no {n}", when="every 1h", thread="channel_desk")
        page = await bot.call("list_reminders", limit=2)
        assert ([r["id"] for r in page["reminders"]], page["more"]) == (["r1", "r2"], True)
        assert [r["id"] for r in await mine(bot, after="r2")] == ["r3"]
        assert await mine(calc) == []
        assert (await refused(calc, "list_reminders", everybody=True))["code"] == "forbidden"
        strangers = [
            await refused(calc, name, id=id)
            for name in ("cancel_reminder", "pause_reminder", "resume_reminder")
            for id in ("r1", "r99")
        ]
        assert {answer["code"] for answer in strangers} == {"not_found"}
        assert strangers[0]["message"].replace("r1", "r99") == strangers[1]["message"]
        assert (await bot.call("pause_reminder", id="r1"))["state"] == "paused"
        await bot.call("cancel_reminder", id="r2")
        await pass_(network, clock, 3600)
        assert texts(await said(calc)) == ["Reminder of bot: no 2"]
        again = await bot.call("resume_reminder", id="r1")
        assert again["next"] == "2027-01-15T10:00:00Z"
        assert [r["id"] for r in await mine(bob, everybody=True)] == ["r1", "r3"]
        await bob.call("cancel_reminder", id="r1")
        assert [r["id"] for r in await mine(bot)] == ["r3"]


@pytest.mark.behaviour("M-210")
async def test_reminders_have_limits() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod(each=2, shortest="10m")], clock=clock) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        soon = {"text": "x", "when": "in 5m"}
        await ann.call("remind", **soon)
        assert (await refused(bot, "remind", **soon))["code"] == "bad_request"
        for when in ("every 5m", "*/5 * * * *", "yesterday", "2020-01-01T00:00"):
            assert (await refused(ann, "remind", text="x", when=when))["code"] == "bad_request"
        once = await refused(ann, "remind", text="x", when="in 1h", times=2)
        assert "comes once" in once["message"]
        never = {"until": "2027-01-15T08:30:00Z", "when": "every 1h"}
        assert (await refused(ann, "remind", text="x", **never))["code"] == "bad_request"
        zone = await refused(ann, "remind", text="x", when="09:00", timezone="Moon/Base")
        assert "no time zone" in zone["message"]
        for text in ("", "x" * 4001):
            assert (await refused(ann, "remind", text=text, when="in 1h"))["code"] == "bad_request"
        again = await network.join("ann")  # both at once
        refs = [await each.post("remind", text="x", when="in 1h") for each in (ann, again)]
        one, other = await ann.answer(refs[0]), await again.answer(refs[1])
        assert {one["op"], other["op"]} == {"result", "error"}
        assert (await refused(ann, "remind", text="x", when="in 1h"))["code"] == "limit"


@pytest.mark.behaviour("M-211")
async def test_it_carries_on_that_its_words_come_from_outside_and_where_it_was_set() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        asked = await ann.call(
            "post_to_channel", channel="desk", text="@bot read this", outside=True
        )
        set_ = await bot.call("remind", text="go on", when="in 1h", cause=f"bot-{asked['id']}")
        assert set_["thread_id"] == "channel.desk"
        await pass_(network, clock, 3600)
        [event] = await said(ann)
        assert event["message"]["outside"]
        assert event["message"]["timer_of"] == "bot"
        wrong = await refused(bot, "remind", text="x", when="in 1h", cause="m99")
        assert wrong["code"] in ("unknown_message", "not_found")


class Strict(Mod):
    """Lets no reminders pass."""

    name = "strict"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("not here") if draft.timer_of else PASS


@pytest.mark.behaviour("M-200")
async def test_one_that_a_mod_rejects_is_paused_with_the_reason() -> None:
    clock = HandClock()
    mods = [mod(), Strict(ModConfig())]
    async with NETWORKS.start(FILE, mods=mods, clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="in 1h")
        await pass_(network, clock, 3600)
        [told] = await mine(ann)
        assert (told["state"], told["problem"]) == ("paused", "strict: not here")


def declared(**change: JsonValue) -> dict[str, JsonValue]:
    return {
        "name": "morning", "when": "0 9 * * *", "thread": "channel_desk", "text": "plan",
        "wakes": ["bot"], **change,
    }  # fmt: skip


@pytest.mark.behaviour("M-208")
async def test_reminders_of_the_config_come_change_and_go_with_it(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    first = mod(reminders=[declared(), declared(name="noon", when="0 12 * * *")])
    async with NETWORKS.start(FILE, store=store, mods=[first], clock=clock) as network:
        bot, olga = await network.join("bot", "agent", turns=True), await network.join("olga")
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        message = event["message"]
        assert (message["text_representation"], message["timer_of"]) == ("plan", "operator")
        assert event["wake"]["reason"] == "timer"
        budget = await olga.call("read_budget", interaction=message["interaction_id"])
        assert budget["limits"]["wakes"] == FILE.network.budgets.wakes
        assert (await refused(olga, "cancel_reminder", id="r1"))["code"] == "forbidden"
        await olga.call("pause_reminder", id="r2")
    second = mod(reminders=[declared(text="plan well"), declared(name="noon", when="0 12 * * *")])
    async with NETWORKS.start(FILE, store=store, mods=[second], clock=clock) as network:
        olga = await network.join("olga")
        found = await mine(olga, everybody=True)
        assert [(r["id"], r["name"], r["text"], r["state"]) for r in found] == [
            ("r2", "noon", "plan", "paused"), ("r3", "morning", "plan well", "active"),
        ]  # fmt: skip
    async with NETWORKS.start(FILE, store=store, mods=[mod()], clock=clock) as network:
        assert await mine(await network.join("olga"), everybody=True) == []


@pytest.mark.behaviour("M-208")
async def test_reminders_of_the_config_change_while_the_network_runs() -> None:
    clock, schedule = HandClock(), mod(reminders=[declared()])
    async with NETWORKS.start(FILE, mods=[schedule], clock=clock) as network:
        olga, bot = await network.join("olga"), await network.join("bot", "agent", turns=True)
        new = mod(reminders=[declared(when="every 2h", text="look")], daily=1).config
        network.hub.mods.configure(schedule, new)
        await eventually(lambda: [row.text for row in schedule._book.rows.values()] == ["look"])
        [told] = await mine(olga, everybody=True)
        assert (told["when"], told["next"]) == ("every 2h", "2027-01-15T10:00:00Z")
        await pass_(network, clock, 7200)
        assert texts(await said(bot)) == ["look"]
        network.hub.mods.configure(schedule, mod().config)
        await eventually(lambda: not schedule._book.rows)


@pytest.mark.behaviour("M-200")
async def test_one_for_once_that_was_paused_past_its_time_comes_when_it_is_resumed() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="in 1h")
        await ann.call("pause_reminder", id="r1")
        await pass_(network, clock, 7200)
        assert await said(ann) == []
        await ann.call("resume_reminder", id="r1")
        await pass_(network, clock, 0)
        [event] = await said(ann)
        assert event["message"]["content"]["late"]
        assert await mine(ann) == []


@pytest.mark.behaviour("M-208")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"when": "never"}, "reminders.morning.when"),
        ({"when": "in 10m"}, "repeats"),
        ({"thread": "direct_bot"}, "thread of a channel"),
        ({"wakes": ["@bot"]}, "wakes"),
    ],
)
def test_a_wrong_reminder_of_the_config_is_told_before_anything_runs(
    change: dict[str, JsonValue], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        settings_of(ScheduleMod, {"reminders": [declared(**change)]})
    with pytest.raises(UserError, match="there twice"):
        settings_of(ScheduleMod, {"reminders": [declared(), declared()]})
    with pytest.raises(UserError, match="no time zone"):
        settings_of(ScheduleMod, {"timezone": "Moon"})


@pytest.mark.behaviour("M-200", "M-211")
async def test_a_model_sets_itself_a_reminder_and_comes_back_to_its_work() -> None:
    clock = HandClock()
    script = [
        says(call("remind", text="Look at the build", when="in 10m"), finish()),
        says(send("direct_ann", "It is done."), finish()),
    ]
    async with (
        NETWORKS.start(FILE, mods=[mod()], clock=clock) as network,
        ModelServer(Script(answers=list(script))) as model,
    ):
        net = Rig(network)
        try:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "Tell me when it is done", outside=True)
            assert (await ann.event())["message"]["content"]["code"] == "finished"  # m2
            tools = model.requests[0].body.model_dump_json()
            assert '"remind"' in tools
            assert "made you ask for it" not in tools, "the runtime says the cause"
            await pass_(network, clock, 600)
            turn = await net.turn("bot-m3")
            assert (turn.start.thread_id, turn.sent) == ("dm.ann.bot", ("m4",))
            prompt = model.requests[1].body.messages[1].text
            assert "Reminder of bot: Look at the build" in prompt
            message = (await ann.take(2))[-1]["message"]
            assert (message["content"], message["interaction_id"]) == ("It is done.", "i3")
            assert message["outside"]
        finally:
            await net.stop()


class Bell(Mod):
    """Is woken by the clock, too."""

    name = "bell"
    rung = 0

    def on_timer(self, key: str) -> None:
        self.rung += 1


@pytest.mark.behaviour("M-53")
async def test_two_mods_are_called_at_the_same_moment() -> None:
    clock, bell = HandClock(), Bell(ModConfig())
    async with NETWORKS.start(FILE, mods=[mod(), bell], clock=clock) as network:
        ann = await network.join("ann")
        await ann.call("remind", text="x", when="in 1h")
        bell.host.at(clock.now() + 3600, "due")
        await pass_(network, clock, 3600)
        assert bell.rung == 1
        assert len(await said(ann)) == 1


@pytest.mark.behaviour("M-209")
@pytest.mark.parametrize("by", [-86_400.0, 86_400.0])
async def test_waits_last_as_long_as_was_said_whatever_the_clock_is_set_to(by: float) -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod()], clock=clock) as network:
        ann = await network.join("ann")
        for when in ("in 40s", "every 60s"):
            await ann.call("remind", text=when, when=when, thread="channel_desk")
        clock.set(by)
        await pass_(network, clock, 39)
        assert await said(ann) == []
        await pass_(network, clock, 1)
        await pass_(network, clock, 20)
        clock.set(-by)
        await pass_(network, clock, 60)
        found = [event["message"]["content"] for event in await said(ann)]
        assert [each["text"] for each in found] == ["in 40s", "every 60s", "every 60s"]
        assert not any(each["late"] for each in found)
