"""Reminders in a running network."""

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
from tests.interaction.mods.workspace import DESK, advance, refusal, refused, workspace
from tests.interaction.peers import Frame, Network, Peer, eventually
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


def mod(**settings: JsonValue) -> ScheduleMod:
    return ScheduleMod(ScheduleConfig.model_validate(settings))


async def remind(peer: Peer, text: str = "x", when: str = "in 1h", **more: Any) -> Any:
    return await peer.call("remind", text=text, when=when, **more)


async def pass_time(network: Network, clock: HandClock, seconds: float) -> None:
    """Let time pass and wait until all due reminders are posted."""
    advance(network, clock, seconds)
    schedule = network.hub.services.mods.pipeline.mods[0]
    assert isinstance(schedule, ScheduleMod)
    await eventually(lambda: not schedule._scheduler.sending)
    await network.quiet()


async def fired(peer: Peer) -> list[Frame]:
    """The reminders that the participant received since the last call."""
    return [event for event in await peer.sync() if event["message"].get("timer_of")]


async def own_reminders(peer: Peer, **args: Any) -> list[Any]:
    reminders: list[Any] = (await peer.call("list_reminders", **args))["reminders"]
    return reminders


async def dues(peer: Peer) -> list[str]:
    """The due times of the reminders posted at the desk so far."""
    page = await peer.call("read_thread", thread=DESK)
    return [message["content"]["due"][:16] for message in page["messages"]]


def texts(events: list[Frame]) -> list[str]:
    return [event["message"]["text_representation"].partition("\n")[0] for event in events]


@pytest.mark.behaviour("M-200")
async def test_a_reminder_fires_once_or_as_often_and_as_long_as_set() -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", "bot", clock=clock, turns=True) as (network, ann, bot):
        reminder = await remind(bot, "Look at the build", "in 10m")
        assert (reminder["of"], reminder["wakes"], reminder["repeats"]) == ("bot", ["bot"], False)
        await pass_time(network, clock, 599)
        assert await fired(bot) == []
        await pass_time(network, clock, 1)
        [event] = await fired(bot)
        message = event["message"]
        assert (message["sender_id"], message["thread_id"]) == ("hub", "dm.bot.hub")
        assert event["wake"] == {"reason": "timer", "reply": "optional", "turn": "bot-m1"}
        assert message["content"]["text"] == "Look at the build"
        until = "2027-01-15T11:09:00Z"  # it is 08:10 now
        for args in ({"text": "twice", "times": 2}, {"text": "until", "until": until}):
            await remind(ann, when="every 1h", thread=DESK, **args)
        for _ in range(4):
            await pass_time(network, clock, 3600)
        assert sorted(texts(await fired(ann))) == [
            *["Reminder of ann: twice"] * 2, *["Reminder of ann: until"] * 2,
        ]  # fmt: skip
        assert await own_reminders(ann) == await own_reminders(bot) == []


@pytest.mark.behaviour("M-200")
async def test_a_paused_or_rejected_reminder_waits_for_its_owner() -> None:
    class Strict(Mod):
        """Rejects some reminders."""

        name = "strict"

        def on_message(self, draft: Draft) -> Verdict:
            return Reject("not here") if draft.timer_of and "bad" in str(draft.content) else PASS

    clock = HandClock()
    mods = [mod(), Strict(ModConfig())]
    async with workspace(mods, "ann", clock=clock) as (network, ann):
        await remind(ann)
        await remind(ann, "bad")
        await ann.call("pause_reminder", id="r1")
        await pass_time(network, clock, 7200)
        assert await fired(ann) == []
        assert [(r["state"], r.get("problem", "")) for r in await own_reminders(ann)] == [
            ("paused", ""), ("paused", "strict: not here"),
        ]  # fmt: skip
        await ann.call("resume_reminder", id="r1")
        await pass_time(network, clock, 0)
        [event] = await fired(ann)
        assert event["message"]["content"]["late"]
        assert [r["id"] for r in await own_reminders(ann)] == ["r2"]


# Wakes ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-204")
async def test_a_reminder_wakes_its_agents_while_they_read_the_thread() -> None:
    clock = HandClock()
    people = ("ann", "bob", "bot", "calc")
    async with workspace([mod()], *people, clock=clock, turns=True) as (network, *peers):
        ann, bob, bot, calc = peers
        await remind(ann, when="every 1h", thread=DESK, wakes=["bot", "ann"])
        await pass_time(network, clock, 3600)
        [woken], [observed], [mentioned] = await fired(bot), await fired(calc), await fired(ann)
        assert woken["wake"]["turn"] == "bot-m1"
        assert observed.get("wake") is mentioned.get("wake") is None
        assert woken["message"]["mentions"] == ["bot", "ann"]
        for agent, expected in (("bot", (True, "timer")), ("calc", (False, "not_mentioned"))):
            why = await ann.call("explain_wake", agent=agent, message_id="m1")
            assert (why["woken"], why["reason"]) == expected
        await bot.call("leave_channel", channel="desk")
        await pass_time(network, clock, 3600)
        assert (await fired(bot), len(await fired(calc))) == ([], 1)
        args = {"text": "x", "when": "every 1h", "wakes": ["bot"]}
        assert await refused(ann, "remind", thread=DESK, **args) == "unknown_participant"
        assert await refused(ann, "remind", thread="channel_attic", **args) == "unknown_thread"
        await ann.call("cancel_reminder", id="r1")
        # A reminder for another participant opens the conversation.
        reminder = await remind(ann, thread="bot", wakes=["bot"])
        assert reminder["thread_id"] == "dm.ann.bot"
        # A reminder pauses when its owner has left the thread.
        await remind(bob, when="every 1h", thread=DESK, wakes=["ann"])
        await bob.call("leave_channel", channel="desk")
        await fired(ann)
        await pass_time(network, clock, 3600)
        [event] = await fired(bot)
        assert event["wake"]["reason"] == "timer"
        assert [each["message"]["thread_id"] for each in await fired(ann)] == ["dm.ann.bot"]
        [paused] = await own_reminders(bob)
        assert (paused["state"], "no longer reads" in paused["problem"]) == ("paused", True)
        await bot.say("direct_ann", "here it is", cause=event["message"]["id"])
        assert (await ann.event())["message"]["interaction_id"]


@pytest.mark.behaviour("M-205")
async def test_a_reminder_opens_an_interaction_with_its_owners_budget(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    given: Any = {"store": store, "clock": clock, "budgets": {"wakes": 4, "hops": 10}}
    expected = {"i1": 4, "i2": 2}  # of a person, of an agent

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
            await pass_time(network, clock, 3600)
        await check(network)
    async with workspace([mod()], **given) as (network,):
        await check(network)


@pytest.mark.behaviour("M-206")
async def test_a_stop_of_the_agent_or_the_owner_prevents_the_wake() -> None:
    clock = HandClock()
    people = ("olga", "bot", "calc")
    async with workspace([mod()], *people, clock=clock, turns=True) as (network, olga, bot, calc):
        await remind(calc, when="every 1h", thread=DESK, wakes=["bot"])
        for target in ("bot", "calc"):
            await olga.call("stop", scope="agent", target=target)
            await pass_time(network, clock, 3600)
            [event] = await fired(bot)
            assert event.get("wake") is None
            await olga.call("resume", scope="agent", target=target)
            await pass_time(network, clock, 3600)
            [event] = await fired(bot)
            assert event["wake"]["reason"] == "timer"


@pytest.mark.behaviour("M-206")
async def test_an_agents_reminders_wake_up_to_a_daily_limit(tmp_path: Path) -> None:
    given: Any = {"store": f"sqlite:{tmp_path / 'x.db'}", "clock": HandClock(), "turns": True}
    for ends in ([False] * 3, [False] * 4 + [True] * 2):  # the count survives the restart
        async with workspace([mod(daily=4)], "bot", **given) as (network, bot):
            for _ in range(3):
                await remind(bot, when="in 2m")
                await pass_time(network, given["clock"], 120)
            page = await bot.call("read_thread", thread="direct_hub")
            assert ["wakes no agent" in m["text_representation"] for m in page["messages"]] == ends
            await bot.sync()
            if ends[-1]:
                await remind(bot, when="in 1d")
                await pass_time(network, given["clock"], 86400)
                [event] = await fired(bot)
                assert event["wake"]["reason"] == "timer"


# Clocks, crashes and failing stores -------------------------------------------------------------


@pytest.mark.behaviour("M-203")
async def test_reminders_missed_while_the_hub_was_down_fire_once_late(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        for when in ("every 1h", "in 2h"):
            await remind(ann, when, when, thread=DESK)
    clock.wall += 10.5 * 3600
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await ann.until(lambda: sum("timer_of" in each["message"] for each in ann.events) == 2)
        await pass_time(network, clock, 0)
        events = await fired(ann)
        assert sorted(texts(events)) == ["Reminder of ann: every 1h", "Reminder of ann: in 2h"]
        late = "It was due at 2027-01-15T"
        assert all(late in each["message"]["text_representation"] for each in events)
        [reminder] = await own_reminders(ann)
        assert reminder["next"] == "2027-01-15T19:00:00Z"
        await pass_time(network, clock, 1800)
        [event] = await fired(ann)
        assert not event["message"]["content"]["late"]


@pytest.mark.behaviour("M-202")
async def test_a_reminder_fires_once_even_if_later_writes_fail() -> None:
    for failing in (1, 2, 3):
        clock, store = HandClock(), MoodyStore()
        async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
            await remind(ann, when="every 1h", thread=DESK)
            store.failing = failing
            for _ in range(failing + 1):
                await pass_time(network, clock, 0 if await fired(ann) else 3600)
                clock.wall += 5
            store.failing = 0
            await pass_time(network, clock, 5)
            times = await dues(ann)
            assert len(times) == len(set(times)) >= 1


@pytest.mark.behaviour("M-202")
async def test_a_reminder_that_fired_before_a_crash_does_not_repeat(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    forgetful = mod()
    async with workspace([forgetful], "ann", store=store, clock=clock) as (network, ann):
        await remind(ann, when="every 1h", thread=DESK)

        async def crash(row: object, problem: str) -> None:
            raise asyncio.CancelledError  # the hub dies between the two writes

        forgetful._scheduler._advance = crash  # type: ignore[method-assign]
        await pass_time(network, clock, 3600)
        assert len(await fired(ann)) == 1
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await pass_time(network, clock, 0)
        assert len(await dues(ann)) == 1
        [reminder] = await own_reminders(ann)
        assert reminder["next"] == "2027-01-15T10:00:00Z"


@pytest.mark.behaviour("M-209")
async def test_a_clock_set_back_neither_repeats_nor_blocks_reminders(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        await remind(ann, when="0 * * * *", thread=DESK)
        await pass_time(network, clock, 3600)
        await pass_time(network, clock, 86400 * 365)  # wrong by a year
    clock.wall -= 86400 * 365 + 5400
    async with workspace([mod()], "ann", store=store, clock=clock) as (network, ann):
        [reminder] = await own_reminders(ann)
        assert reminder["next"] == "2027-01-15T08:00:00Z"
        for _ in range(4):
            await pass_time(network, clock, 3600)
        assert sorted(await dues(ann)) == [
            f"2027-01-15T{hour}:00" for hour in ("08", "09", "10", "11")
        ]


@pytest.mark.behaviour("M-209")
@pytest.mark.parametrize("by", [-86_400.0, 86_400.0])
async def test_intervals_do_not_depend_on_changes_of_the_clock(by: float) -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", clock=clock) as (network, ann):
        for when in ("in 40s", "every 60s"):
            await remind(ann, when, when, thread=DESK)
        clock.set(by)
        await pass_time(network, clock, 39)
        assert await fired(ann) == []
        await pass_time(network, clock, 1)
        await pass_time(network, clock, 20)
        clock.set(-by)
        await pass_time(network, clock, 60)
        contents = [event["message"]["content"] for event in await fired(ann)]
        assert [each["text"] for each in contents] == ["in 40s", "every 60s", "every 60s"]
        assert not any(each["late"] for each in contents)


@pytest.mark.behaviour("M-53")
async def test_timers_of_two_mods_can_fire_at_the_same_moment() -> None:
    class Bell(Mod):
        """Has a timer."""

        name = "bell"
        rung = 0

        def on_timer(self, key: str) -> None:
            self.rung += 1

    clock, bell = HandClock(), Bell(ModConfig())
    async with workspace([mod(), bell], "ann", clock=clock) as (network, ann):
        await remind(ann)
        bell.host.at(clock.now() + 3600, "due")
        await pass_time(network, clock, 3600)
        assert (bell.rung, len(await fired(ann))) == (1, 1)


# Owners and limits ------------------------------------------------------------------------------


@pytest.mark.behaviour("M-207")
async def test_reminders_are_for_their_owner_and_owners_of_the_network() -> None:
    clock = HandClock()
    async with workspace([mod()], "olga", "bot", "calc", clock=clock) as (network, *peers):
        olga, bot, calc = peers
        for n in range(3):
            await remind(bot, f"no {n}", "every 1h", thread=DESK)
        page = await bot.call("list_reminders", limit=2)
        assert ([r["id"] for r in page["reminders"]], page["more"]) == (["r1", "r2"], True)
        assert [r["id"] for r in await own_reminders(bot, after="r2")] == ["r3"]
        assert await own_reminders(calc) == []
        assert await refused(calc, "list_reminders", everybody=True) == "forbidden"
        assert (await bot.call("pause_reminder", id="r1"))["state"] == "paused"
        await bot.call("cancel_reminder", id="r2")
        await pass_time(network, clock, 3600)
        assert texts(await fired(calc)) == ["Reminder of bot: no 2"]
        again = await bot.call("resume_reminder", id="r1")
        assert again["next"] == "2027-01-15T10:00:00Z"
        assert [r["id"] for r in await own_reminders(olga, everybody=True)] == ["r1", "r3"]
        await olga.call("cancel_reminder", id="r1")
        assert [r["id"] for r in await own_reminders(bot)] == ["r3"]


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
        for peer, wrong, message in cases:
            error = await refusal(peer, "remind", **{"text": "x", "when": "in 1h", **wrong})
            assert (error.code, message in error.message) == ("bad_request", True), wrong
        again = await network.join("ann")  # two concurrent calls
        refs = [await each.post("remind", text="x", when="in 1h") for each in (ann, again)]
        answers = [await ann.answer(refs[0]), await again.answer(refs[1])]
        assert {answer["op"] for answer in answers} == {"result", "error"}
        assert await refused(ann, "remind", text="x", when="in 1h") == "limit"


@pytest.mark.behaviour("M-211")
async def test_a_reminder_keeps_the_thread_and_the_untrusted_mark() -> None:
    clock = HandClock()
    async with workspace([mod()], "ann", "bot", clock=clock, turns=True) as (network, ann, bot):
        args = {"channel": "desk", "text": "@bot read this", "untrusted": True}
        asked = await ann.call("post_to_channel", **args)
        reminder = await remind(bot, cause=f"bot-{asked['id']}")
        assert reminder["thread_id"] == DESK
        await pass_time(network, clock, 3600)
        [event] = await fired(ann)
        assert (event["message"]["untrusted"], event["message"]["timer_of"]) == (True, "bot")
        code = await refused(bot, "remind", text="x", when="in 1h", cause="m99")
        assert code in ("unknown_message", "not_found")


# Configured reminders ---------------------------------------------------------------------------


def configured(**change: JsonValue) -> dict[str, JsonValue]:
    return {
        "name": "morning", "when": "0 9 * * *", "thread": "channel_desk", "text": "plan",
        "wakes": ["bot"], **change,
    }  # fmt: skip


@pytest.mark.behaviour("M-208")
async def test_configured_reminders_follow_the_config(tmp_path: Path) -> None:
    clock = HandClock()
    given: Any = {"store": f"sqlite:{tmp_path / 'x.db'}", "clock": clock, "turns": True}
    noon = configured(name="noon", when="0 12 * * *")
    first = mod(reminders=[configured(), noon])
    async with workspace([first], "bot", "olga", **given) as (network, bot, olga):
        await pass_time(network, clock, 3600)
        [event] = await fired(bot)
        message = event["message"]
        assert (message["text_representation"], message["timer_of"]) == ("plan", "operator")
        assert event["wake"]["reason"] == "timer"
        budget = await olga.call("read_budget", interaction=message["interaction_id"])
        assert budget["limits"]["wakes"] == network.hub.file.network.budgets.wakes
        assert await refused(olga, "cancel_reminder", id="r1") == "forbidden"
        await olga.call("pause_reminder", id="r2")
        seen = [[r["id"] for r in await own_reminders(peer)] for peer in (olga, bot)]
        assert seen == [["r1", "r2"], []], "the network's reminders are its owners'"
    second = mod(reminders=[configured(text="plan well"), noon])
    async with workspace([second], "bot", "olga", **given) as (network, bot, olga):
        reminders = await own_reminders(olga, everybody=True)
        assert [(r["id"], r["name"], r["text"], r["state"]) for r in reminders] == [
            ("r2", "noon", "plan", "paused"), ("r3", "morning", "plan well", "active"),
        ]  # fmt: skip
        new = mod(reminders=[configured(when="every 2h", text="look")], daily=1).config
        network.hub.services.mods.configure(second, new)  # while the network runs
        await eventually(lambda: [row.text for row in second._scheduler.rows.values()] == ["look"])
        [changed] = await own_reminders(olga, everybody=True)
        assert (changed["when"], changed["next"]) == ("every 2h", "2027-01-15T11:00:00Z")
        await bot.sync()
        await pass_time(network, clock, 7200)
        assert texts(await fired(bot)) == ["look"]
    async with workspace([mod()], "olga", **given) as (_, olga):
        assert await own_reminders(olga, everybody=True) == []


@pytest.mark.behaviour("M-208")
async def test_a_configured_reminder_that_could_not_be_sent_is_tried_again_after_a_restart(
    tmp_path: Path,
) -> None:
    clock = HandClock()
    given: Any = {"store": f"sqlite:{tmp_path / 'x.db'}", "clock": clock}
    schedule: list[JsonValue] = [
        configured(thread="channel_plans", when="every 1h", wakes=["olga"])
    ]
    async with workspace([mod(reminders=schedule)], "olga", **given) as (network, olga):
        await pass_time(network, clock, 3600)
        [reminder] = await own_reminders(olga, everybody=True)
        assert (reminder["state"], "plans" in reminder["problem"]) == ("paused", True)
        said = [e["message"]["text_representation"] for e in await olga.sync()]
        assert said[-1] == (
            "The reminder 'morning' of the config was not sent: "
            "no thread has the id 'channel.plans'; see list_threads"
        )
        await olga.call("create_channel", name="plans")
    async with workspace([mod(reminders=schedule)], "olga", **given) as (network, olga):
        await pass_time(network, clock, 3600)
        assert texts(await fired(olga)) == ["plan"]


@pytest.mark.behaviour("M-208")
async def test_owners_learn_at_once_whom_a_configured_reminder_cannot_wake() -> None:
    used, clock = mod(reminders=[configured(when="every 1h")]), HandClock()
    async with workspace([used], "bot", "olga", clock=clock) as (network, _, olga):
        misspelled = mod(reminders=[configured(when="every 1h", wakes=["bot", "bott"])]).config
        network.hub.services.mods.configure(used, misspelled)  # while the network runs
        notice = await olga.event()
        assert notice["message"]["text_representation"] == (
            "The reminder 'morning' of the config cannot wake bott: no such participant reads "
            "channel.desk."
        )
        for _ in range(2):  # it is sent again and again, and nothing more is said
            await pass_time(network, clock, 3600)
            assert texts(await olga.sync()) == ["plan"]


@pytest.mark.behaviour("M-208")
def test_an_invalid_configured_reminder_is_reported_before_the_start() -> None:
    wrong: list[tuple[dict[str, JsonValue], str]] = [
        ({"reminders": [configured(when="never")]}, "reminders.morning.when"),
        ({"reminders": [configured(when="in 10m")]}, "a repeating time"),
        ({"reminders": [configured(thread="direct_bot")]}, "a channel's thread"),
        ({"reminders": [configured(wakes=["@bot"])]}, "wakes"),
        ({"reminders": [configured(), configured()]}, "listed twice"),
        ({"timezone": "Moon"}, "no time zone"),
    ]
    for settings, why in wrong:
        with pytest.raises(UserError, match=why):
            settings_of(ScheduleMod, settings)


@pytest.mark.behaviour("M-200", "M-211")
async def test_a_model_can_set_a_reminder_and_resume_its_work() -> None:
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
            assert "made you ask for it" not in tools, "the runtime sets the cause"
            await pass_time(network, clock, 600)
            turn = await net.turn("bot-m3")
            assert (turn.start.thread_id, turn.sent) == ("dm.ann.bot", ("m4",))
            prompt = model.requests[1].body.messages[1].text
            assert "Reminder of bot: Look at the build" in prompt
            message = (await ann.take(2))[-1]["message"]
            assert (message["content"], message["interaction_id"]) == ("It is done.", "i3")
            assert message["untrusted"]
        finally:
            await net.stop()
