"""Reminders, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.mods.loader import settings_of
from hubbub.mods.schedule.mod import ScheduleConfig, ScheduleMod
from hubbub.protocol.messages import Draft
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_harness import Harness, call, finish, says, send
from tests.interaction.mods.workspace import DESK, later, refused, refusing, workspace
from tests.interaction.peers import Frame, Network, Peer, eventually
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


def mod(**settings: JsonValue) -> ScheduleMod:
    return ScheduleMod(ScheduleConfig.model_validate(settings))


async def remind(peer: Peer, text: str = "x", when: str = "in 1h", **more: Any) -> Any:
    return await peer.call("remind", text=text, when=when, **more)


async def pass_(network: Network, clock: HandClock, seconds: float) -> None:
    """So much later, when all that is due then has been said."""
    later(network, clock, seconds)
    schedule = network.hub.services.mods.pipeline.mods[0]
    assert isinstance(schedule, ScheduleMod)
    await eventually(lambda: not schedule._scheduler.sending)
    await network.quiet()


async def said(peer: Peer) -> list[Frame]:
    """What reminders have said to the participant since it was asked last."""
    return [event for event in await peer.sync() if event["message"].get("timer_of")]


async def mine(peer: Peer, **args: Any) -> list[Any]:
    found: list[Any] = (await peer.call("list_reminders", **args))["reminders"]
    return found


async def dues(peer: Peer) -> list[str]:
    """For when the reminders of the desk were that have been said so far."""
    page = await peer.call("read_thread", thread=DESK)
    return [message["content"]["due"][:16] for message in page["messages"]]


def texts(events: list[Frame]) -> list[str]:
    return [event["message"]["text_representation"].partition("\n")[0] for event in events]


@pytest.mark.behaviour("M-200")
async def test_an_agent_wakes_itself_later_once_or_as_often_and_as_long_as_was_said() -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", "bot", clock=clock, turns=True) as (network, ann, bot):
        set_ = await remind(bot, "Look at the build", "in 10m")
        assert (set_["of"], set_["wakes"], set_["repeats"]) == ("bot", ["bot"], False)
        await pass_(network, clock, 599)
        assert await said(bot) == []
        await pass_(network, clock, 1)
        [event] = await said(bot)
        message = event["message"]
        assert (message["sender_id"], message["thread_id"]) == ("hub", "dm.bot.hub")
        assert event["wake"] == {"reason": "timer", "reply": "optional", "turn": "bot-m1"}
        assert message["content"]["text"] == "Look at the build"
        until = "2027-01-15T11:09:00Z"  # the clock says ten past eight
        for args in ({"text": "twice", "times": 2}, {"text": "until", "until": until}):
            await remind(ann, when="every 1h", thread=DESK, **args)
        for _ in range(4):
            await pass_(network, clock, 3600)
        assert sorted(texts(await said(ann))) == [
            *["Reminder of ann: twice"] * 2, *["Reminder of ann: until"] * 2,
        ]  # fmt: skip
        assert await mine(ann) == await mine(bot) == []


@pytest.mark.behaviour("M-200")
async def test_one_that_was_paused_past_its_time_or_refused_by_a_mod_waits_for_its_owner() -> None:
    class Strict(Mod):
        """Lets some reminders not pass."""

        name = "strict"

        def on_message(self, draft: Draft) -> Verdict:
            return Reject("not here") if draft.timer_of and "bad" in str(draft.content) else PASS

    clock = HandClock()
    mods = [mod(), Strict(ModConfig())]
    async with workspace(mods, "ann", clock=clock) as (network, ann):
        await remind(ann)
        await remind(ann, "bad")
        await ann.call("pause_reminder", id="r1")
        await pass_(network, clock, 7200)
        assert await said(ann) == []
        assert [(r["state"], r.get("problem", "")) for r in await mine(ann)] == [
            ("paused", ""), ("paused", "strict: not here"),
        ]  # fmt: skip
        await ann.call("resume_reminder", id="r1")
        await pass_(network, clock, 0)
        [event] = await said(ann)
        assert event["message"]["content"]["late"]
        assert [r["id"] for r in await mine(ann)] == ["r2"]


# Whom it wakes ----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-204")
async def test_it_wakes_whom_it_is_for_and_who_still_reads_the_thread() -> None:
    clock = HandClock()
    people = ("ann", "bob", "bot", "calc")
    async with workspace([mod()], *people, clock=clock, turns=True) as (network, *peers):
        ann, bob, bot, calc = peers
        await remind(ann, when="every 1h", thread=DESK, wakes=["bot", "ann"])
        await pass_(network, clock, 3600)
        [woken], [heard], [mentioned] = await said(bot), await said(calc), await said(ann)
        assert woken["wake"]["turn"] == "bot-m1"
        assert heard.get("wake") is mentioned.get("wake") is None
        assert woken["message"]["mentions"] == ["bot", "ann"]
        for agent, why in (("bot", (True, "timer")), ("calc", (False, "not_mentioned"))):
            told = await ann.call("explain_wake", agent=agent, message_id="m1")
            assert (told["woken"], told["reason"]) == why
        await bot.call("leave_channel", channel="desk")
        await pass_(network, clock, 3600)
        assert (await said(bot), len(await said(calc))) == ([], 1)
        args = {"text": "x", "when": "every 1h", "wakes": ["bot"]}
        assert await refused(ann, "remind", thread=DESK, **args) == "unknown_participant"
        assert await refused(ann, "remind", thread="channel_attic", **args) == "unknown_thread"
        await ann.call("cancel_reminder", id="r1")
        # For somebody else it opens the conversation.
        set_ = await remind(ann, thread="bot", wakes=["bot"])
        assert set_["thread_id"] == "dm.ann.bot"
        # Who has left a thread says nothing there.
        await remind(bob, when="every 1h", thread=DESK, wakes=["ann"])
        await bob.call("leave_channel", channel="desk")
        await said(ann)
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        assert event["wake"]["reason"] == "timer"
        assert [each["message"]["thread_id"] for each in await said(ann)] == ["dm.ann.bot"]
        [told] = await mine(bob)
        assert (told["state"], "no longer reads" in told["problem"]) == ("paused", True)
        await bot.say("direct_ann", "here it is", cause=event["message"]["id"])
        assert (await ann.event())["message"]["interaction_id"]


@pytest.mark.behaviour("M-205")
async def test_it_opens_an_interaction_with_the_budget_of_whose_it_is(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    given: Any = {"store": store, "clock": clock, "budgets": {"wakes": 4, "hops": 10}}
    expected = {"i1": 4, "i2": 2}  # of a person; of an agent

    async def check(network: Network) -> None:
        operator = await network.join("operator", "service")
        for id, wakes in expected.items():
            budget = await operator.call("read_budget", interaction=id)
            assert (budget["limits"]["wakes"], budget["used"]["wakes"]) == (wakes, 1)
            page = await operator.call("read_interaction", id=id)
            assert [each["id"] for each in page["messages"]] == [id.replace("i", "m")]

    people = ("ann", "bot", "calc")
    async with workspace([mod()], *people, turns=True, **given) as (network, ann, _, calc):
        for peer in (ann, calc):
            await remind(peer, thread=DESK, wakes=["bot"])
            await pass_(network, clock, 3600)
        await check(network)
    async with workspace([mod()], **given) as (network,):
        await check(network)


@pytest.mark.behaviour("M-206")
async def test_a_stop_of_the_agent_or_of_whose_reminder_it_is_lets_it_wake_nobody() -> None:
    clock = HandClock()
    people = ("olga", "bot", "calc")
    async with workspace([mod()], *people, clock=clock, turns=True) as (network, olga, bot, calc):
        await remind(calc, when="every 1h", thread=DESK, wakes=["bot"])
        for target in ("bot", "calc"):
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
    given: Any = {"store": f"sqlite:{tmp_path / 'x.db'}", "clock": HandClock(), "turns": True}
    for ends in ([False] * 3, [False] * 4 + [True] * 2):  # the count outlives the hub
        async with workspace([mod(daily=4)], "bot", **given) as (network, bot):
            for _ in range(3):
                await remind(bot, when="in 2m")
                await pass_(network, given["clock"], 120)
            page = await bot.call("read_thread", thread="direct_hub")
            told = ["wakes no agent" in m["text_representation"] for m in page["messages"]]
            assert told == ends
            await bot.sync()
            if ends[-1]:
                await remind(bot, when="in 1d")
                await pass_(network, given["clock"], 86400)
                [event] = await said(bot)
                assert event["wake"]["reason"] == "timer"


# Clocks, crashes and disks ----------------------------------------------------------------------


@pytest.mark.behaviour("M-203")
async def test_what_was_missed_while_the_hub_was_down_is_said_once_and_late(
    tmp_path: Path,
) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        for when in ("every 1h", "in 2h"):
            await remind(ann, when, when, thread=DESK)
    clock.wall += 10.5 * 3600
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await ann.until(lambda: sum("timer_of" in each["message"] for each in ann.events) == 2)
        await pass_(network, clock, 0)
        events = await said(ann)
        assert sorted(texts(events)) == ["Reminder of ann: every 1h", "Reminder of ann: in 2h"]
        late = "It was due at 2027-01-15T"
        assert all(late in each["message"]["text_representation"] for each in events)
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T19:00:00Z"
        await pass_(network, clock, 1800)
        [event] = await said(ann)
        assert not event["message"]["content"]["late"]


@pytest.mark.behaviour("M-202")
async def test_an_occurrence_is_said_once_though_the_store_refuses_what_comes_after() -> None:
    for failing in (1, 2, 3):
        clock, store = HandClock(), MoodyStore()
        async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
            await remind(ann, when="every 1h", thread=DESK)
            store.failing = failing
            for _ in range(failing + 1):
                await pass_(network, clock, 0 if await said(ann) else 3600)
                clock.wall += 5
            store.failing = 0
            await pass_(network, clock, 5)
            told = await dues(ann)
            assert len(told) == len(set(told)) >= 1


@pytest.mark.behaviour("M-202")
async def test_what_was_said_before_a_crash_is_not_said_again_after_it(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    forgetful = mod()
    async with workspace([forgetful], "ann", store=store, clock=clock) as (network, ann):
        await remind(ann, when="every 1h", thread=DESK)

        async def crash(row: object, problem: str) -> None:
            raise asyncio.CancelledError  # the hub is killed between the two writes

        forgetful._scheduler._advance = crash  # type: ignore[method-assign]
        await pass_(network, clock, 3600)
        assert len(await said(ann)) == 1
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await pass_(network, clock, 0)
        assert len(await dues(ann)) == 1
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T10:00:00Z"


@pytest.mark.behaviour("M-209")
async def test_a_clock_that_was_set_back_makes_none_come_twice_and_none_wait_for_ever(
    tmp_path: Path,
) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await remind(ann, when="0 * * * *", thread=DESK)
        await pass_(network, clock, 3600)
        await pass_(network, clock, 86400 * 365)  # wrong by a year
    clock.wall -= 86400 * 365 + 5400
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        [left] = await mine(ann)
        assert left["next"] == "2027-01-15T08:00:00Z"
        for _ in range(4):
            await pass_(network, clock, 3600)
        assert sorted(await dues(ann)) == [
            f"2027-01-15T{hour}:00" for hour in ("08", "09", "10", "11")
        ]


@pytest.mark.behaviour("M-209")
@pytest.mark.parametrize("by", [-86_400.0, 86_400.0])
async def test_waits_last_as_long_as_was_said_whatever_the_clock_is_set_to(by: float) -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", clock=clock) as (network, ann):
        for when in ("in 40s", "every 60s"):
            await remind(ann, when, when, thread=DESK)
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


@pytest.mark.behaviour("M-53")
async def test_two_mods_are_called_at_the_same_moment() -> None:
    class Bell(Mod):
        """Is woken by the clock, too."""

        name = "bell"
        rung = 0

        def on_timer(self, key: str) -> None:
            self.rung += 1

    clock, bell = HandClock(), Bell(ModConfig())
    async with workspace([mod(), bell], "ann", clock=clock) as (network, ann):
        await remind(ann)
        bell.host.at(clock.now() + 3600, "due")
        await pass_(network, clock, 3600)
        assert (bell.rung, len(await said(ann))) == (1, 1)


# Whose it is ------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-207")
async def test_reminders_are_their_owners_and_owners_of_the_network_may_all() -> None:
    clock = HandClock()
    async with workspace([mod()], "olga", "bot", "calc", clock=clock) as (network, *peers):
        olga, bot, calc = peers
        for n in range(3):
            await remind(bot, f"no {n}", "every 1h", thread=DESK)
        page = await bot.call("list_reminders", limit=2)
        assert ([r["id"] for r in page["reminders"]], page["more"]) == (["r1", "r2"], True)
        assert [r["id"] for r in await mine(bot, after="r2")] == ["r3"]
        assert await mine(calc) == []
        assert await refused(calc, "list_reminders", everybody=True) == "forbidden"
        assert (await bot.call("pause_reminder", id="r1"))["state"] == "paused"
        await bot.call("cancel_reminder", id="r2")
        await pass_(network, clock, 3600)
        assert texts(await said(calc)) == ["Reminder of bot: no 2"]
        again = await bot.call("resume_reminder", id="r1")
        assert again["next"] == "2027-01-15T10:00:00Z"
        assert [r["id"] for r in await mine(olga, everybody=True)] == ["r1", "r3"]
        await olga.call("cancel_reminder", id="r1")
        assert [r["id"] for r in await mine(bot)] == ["r3"]


@pytest.mark.behaviour("M-210")
async def test_reminders_have_limits() -> None:
    mods = [mod(each=2, shortest="10m")]
    async with workspace(mods, "ann", "bot", clock=HandClock()) as (network, ann, bot):
        await remind(ann, when="in 5m")
        cases: list[tuple[Peer, dict[str, Any], str]] = [
            (bot, {"when": "in 5m"}, ""),
            *((ann, {"when": w}, "") for w in ("every 5m", "*/5 * * * *", "yesterday", "2020-01")),
            (ann, {"times": 2}, "only for repeating reminders"),
            (ann, {"when": "every 1h", "until": "2027-01-15T08:30:00Z"}, ""),
            (ann, {"when": "09:00", "timezone": "Moon/Base"}, "no time zone"),
            (ann, {"text": ""}, ""),
            (ann, {"text": "x" * 4001}, ""),
        ]
        for peer, wrong, says in cases:
            error = await refusing(peer, "remind", **{"text": "x", "when": "in 1h", **wrong})
            assert (error.code, says in error.message) == ("bad_request", True), wrong
        again = await network.join("ann")  # both at once
        refs = [await each.post("remind", text="x", when="in 1h") for each in (ann, again)]
        answers = [await ann.answer(refs[0]), await again.answer(refs[1])]
        assert {answer["op"] for answer in answers} == {"result", "error"}
        assert await refused(ann, "remind", text="x", when="in 1h") == "limit"


@pytest.mark.behaviour("M-211")
async def test_it_carries_on_that_its_words_come_from_outside_and_where_it_was_set() -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", "bot", clock=clock, turns=True) as (network, ann, bot):
        args = {"channel": "desk", "text": "@bot read this", "untrusted": True}
        asked = await ann.call("post_to_channel", **args)
        set_ = await remind(bot, cause=f"bot-{asked['id']}")
        assert set_["thread_id"] == DESK
        await pass_(network, clock, 3600)
        [event] = await said(ann)
        assert (event["message"]["untrusted"], event["message"]["timer_of"]) == (True, "bot")
        code = await refused(bot, "remind", text="x", when="in 1h", cause="m99")
        assert code in ("unknown_message", "not_found")


# Of the config ----------------------------------------------------------------------------------


def declared(**change: JsonValue) -> dict[str, JsonValue]:
    return {
        "name": "morning", "when": "0 9 * * *", "thread": "channel_desk", "text": "plan",
        "wakes": ["bot"], **change,
    }  # fmt: skip


@pytest.mark.behaviour("M-208")
async def test_reminders_of_the_config_come_change_and_go_with_it(tmp_path: Path) -> None:
    clock = HandClock()
    given: Any = {"store": f"sqlite:{tmp_path / 'x.db'}", "clock": clock, "turns": True}
    noon = declared(name="noon", when="0 12 * * *")
    first = mod(reminders=[declared(), noon])
    async with workspace([first], "bot", "olga", **given) as (network, bot, olga):
        await pass_(network, clock, 3600)
        [event] = await said(bot)
        message = event["message"]
        assert (message["text_representation"], message["timer_of"]) == ("plan", "operator")
        assert event["wake"]["reason"] == "timer"
        budget = await olga.call("read_budget", interaction=message["interaction_id"])
        assert budget["limits"]["wakes"] == network.hub.file.network.budgets.wakes
        assert await refused(olga, "cancel_reminder", id="r1") == "forbidden"
        await olga.call("pause_reminder", id="r2")
    second = mod(reminders=[declared(text="plan well"), noon])
    async with workspace([second], "bot", "olga", **given) as (network, bot, olga):
        found = await mine(olga, everybody=True)
        assert [(r["id"], r["name"], r["text"], r["state"]) for r in found] == [
            ("r2", "noon", "plan", "paused"), ("r3", "morning", "plan well", "active"),
        ]  # fmt: skip
        new = mod(reminders=[declared(when="every 2h", text="look")], daily=1).config
        network.hub.services.mods.configure(second, new)  # while the network runs
        await eventually(lambda: [row.text for row in second._scheduler.rows.values()] == ["look"])
        [told] = await mine(olga, everybody=True)
        assert (told["when"], told["next"]) == ("every 2h", "2027-01-15T11:00:00Z")
        await bot.sync()
        await pass_(network, clock, 7200)
        assert texts(await said(bot)) == ["look"]
    async with workspace([mod()], "olga", **given) as (_, olga):
        assert await mine(olga, everybody=True) == []


@pytest.mark.behaviour("M-208")
def test_a_wrong_reminder_of_the_config_is_told_before_anything_runs() -> None:
    wrong: list[tuple[dict[str, JsonValue], str]] = [
        ({"reminders": [declared(when="never")]}, "reminders.morning.when"),
        ({"reminders": [declared(when="in 10m")]}, "a repeating time"),
        ({"reminders": [declared(thread="direct_bot")]}, "a channel's thread"),
        ({"reminders": [declared(wakes=["@bot"])]}, "wakes"),
        ({"reminders": [declared(), declared()]}, "listed twice"),
        ({"timezone": "Moon"}, "no time zone"),
    ]
    for settings, why in wrong:
        with pytest.raises(UserError, match=why):
            settings_of(ScheduleMod, settings)


@pytest.mark.behaviour("M-200", "M-211")
async def test_a_model_sets_itself_a_reminder_and_comes_back_to_its_work() -> None:
    clock = HandClock()
    script = [
        says(call("remind", text="Look at the build", when="in 10m"), finish()),
        says(send("direct_ann", "It is done."), finish()),
    ]
    async with (
        workspace([mod()], clock=clock) as (network,),
        ModelServer(Script(answers=list(script))) as model,
    ):
        net = Harness(network)
        try:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "Tell me when it is done", untrusted=True)
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
            assert message["untrusted"]
        finally:
            await net.stop()
