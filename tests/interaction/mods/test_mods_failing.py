"""Mods that break in whatever they are asked: their callers are told, and the hub goes on."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, JsonValue

from hubbub.errors import OperationError, UserError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.guard import MOST_LATE
from hubbub.mods.operation import Calling, Commit, Statement, operation
from hubbub.network.mods import runtime
from hubbub.network.mods.failures import AGAIN_S
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import Done, Input
from hubbub.protocol.turns import Turn
from tests.interaction.peers import DEADLINE_S, Network, Networks, Peer, config, eventually
from tests.interaction.stop_harness import HandClock, at_work

NETWORKS = Networks(sockets=False)
NO_TIME = 1e-9
"""Whatever a mod does takes longer."""


def fail(error: type[BaseException], *why: object) -> None:
    raise error(*why)


BREAKING: dict[str, Callable[[], object]] = {
    "raise": partial(fail, ValueError, "no idea"),
    "exit": partial(fail, SystemExit, 3),
    "interrupt": partial(fail, KeyboardInterrupt),
    "cancel": partial(fail, asyncio.CancelledError),
    "rubbish": dict,
}


class How(Input):
    how: str


class Wreck(Mod):
    """Breaks as it is asked to."""

    name = "wreck"

    @operation(permission="write")
    def wreck(self, call: Calling, args: How) -> Done:
        """Break at once."""
        return BREAKING[args.how]()  # type: ignore[return-value]  # what nobody has type-checked

    @operation()
    async def wreck_later(self, call: Calling, args: How) -> Done:
        """Break in a later step."""
        await asyncio.sleep(0)
        return BREAKING[args.how]()  # type: ignore[return-value]

    @operation(permission="write")
    def refuse(self, call: Calling, args: How) -> Done:
        """Say no, as an operation may."""
        raise OperationError("conflict", "not today")


def no_threads_of_mods() -> bool:
    """Those there were end by themselves."""
    threads = [thread for thread in threading.enumerate() if thread.name == "mods"]
    for thread in threads:
        thread.join(DEADLINE_S)
    return not any(thread.is_alive() for thread in threads)


def failures(network: Network) -> dict[str, str]:
    """Why a mod failed last, by what it was asked."""
    return {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}


async def notices(peer: Peer, count: int) -> list[str]:
    """What the hub has told the peer of failures, when it has told so many; no more may follow."""
    found: list[str] = []
    while len(found) < count:
        message = (await peer.event())["message"]
        found += [message["text_representation"]] if message["sender_id"] == "hub" else []
    messages = [event["message"] for event in await peer.sync()]
    return found + [m["text_representation"] for m in messages if m["sender_id"] == "hub"]


@pytest.mark.behaviour("M-61")
@pytest.mark.parametrize("name", ["wreck", "wreck_later"])
async def test_an_operation_that_breaks_is_one_error_and_the_hub_goes_on(name: str) -> None:
    for how in BREAKING:
        async with NETWORKS.start(mods=[Wreck(ModConfig())]) as network:
            ann = await network.join("ann")
            for _ in range(2):
                answer = await ann.ask(name, how=how)
                assert (answer["op"], answer["code"]) == ("error", "internal"), how
                told = f"the mod wreck failed in {name}"
                assert answer["message"].startswith(told)
                assert answer["details"] == {"mod": "wreck"}
            assert network.hub.kernel.metrics.mod_failures["wreck"] == 2
            assert len(await notices(ann, 1)) == 1
            with pytest.raises(OperationError, match="not today"):
                await ann.call("refuse", how="")  # which is no failure
            assert list(failures(network)) == [name]
            await ann.call("broadcast_text_message", text="the hub is there")


class Slow(Mod):
    """Takes longer than it may, and counts how often it is asked."""

    name = "slow"

    def __init__(self, **settings: JsonValue):
        super().__init__(ModConfig.model_validate({"time_limit": NO_TIME, **settings}))
        self.asked = Counter[str]()

    def on_message(self, draft: Draft) -> Verdict:
        self.asked["on_message"] += 1
        return PASS

    @operation()
    async def count(self, call: Calling, args: How) -> Done:
        """Count."""
        self.asked["count"] += 1
        return Done()


@pytest.mark.behaviour("M-69")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_what_is_slow_three_times_is_switched_off_until_the_mod_gets_new_settings(
    on_failure: str,
) -> None:
    slow = Slow(on_failure=on_failure)
    async with NETWORKS.start(mods=[slow]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for _ in range(MOST_LATE):
            await ann.ask("broadcast_text_message", text="hello")
            assert await ann.call("count", how="") == {"done": True}
        answer = await ann.ask("broadcast_text_message", text="hello")
        assert answer["op"] == ("result" if on_failure == "pass" else "error")
        answer = await bob.ask("count", how="")
        assert (answer["code"], "switched off" in answer["message"]) == ("internal", True)
        assert slow.asked["count"] == MOST_LATE
        told = [text for text in await notices(ann, 4) if "count" in text]
        assert ["The mod slow is slow in count" in text for text in told] == [True] * 2
        assert ["it is disabled until" in text for text in told] == [False, True]
        await ann.call("configure_mod", name="slow", settings={"time_limit": 60})
        asked = slow.asked["on_message"]
        await ann.call("broadcast_text_message", text="hello")
        assert await bob.call("count", how="") == {"done": True}
        assert slow.asked["on_message"] > asked


# What is handed over with rows ------------------------------------------------------------------


class Odd(BaseModel):
    """An answer that is no JSON."""

    what: Any  # Any: what a test puts there


class Keeper(Mod):
    """Hands over what a test gives it."""

    name = "keeper"
    migrations = "keeper_tables"

    def __init__(self, keep: Callable[[Keeper], Commit]):
        super().__init__(ModConfig())
        self.keep = keep
        self.given_back = 0

    def give_back(self) -> None:
        self.given_back += 1

    @operation(permission="write", output=Done)
    def keep_it(self, call: Calling, args: How) -> Commit:
        """Keep rows."""
        return self.keep(self)


ADD = Statement("INSERT INTO keeper_row VALUES (1)")
NOTHING = Statement("DELETE FROM keeper_row WHERE x = 2", rows=1)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0001_rows.sql").write_text("CREATE TABLE keeper_row (x INTEGER NOT NULL);")
    monkeypatch.setattr(Keeper, "migrations", str(tmp_path))


async def rows(keeper: Keeper) -> int:
    return len(await keeper.host.rows("SELECT x FROM keeper_row"))


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_what_a_mod_hands_over_with_rows_may_break_and_the_log_goes_on() -> None:
    for how, part in product(("raise", "exit"), ("applied", "released")):
        given: dict[str, Any] = {part: BREAKING[how]}

        def keep(mod: Keeper, given: dict[str, Any] = given) -> Commit:
            return Commit([ADD], Done(), **{"released": mod.give_back, **given})

        keeper = Keeper(keep)
        async with NETWORKS.start(mods=[keeper]) as network:
            ann = await network.join("ann")
            assert await ann.call("keep_it", how="") == {"done": True}
            assert await rows(keeper) == 1
            assert keeper.given_back == (part != "released")
            assert list(failures(network)) == [part]
            await ann.call("broadcast_text_message", text="the log goes on")


@pytest.mark.usefixtures("tables")
async def test_rows_that_contradict_others_are_not_applied_and_what_was_held_is_free() -> None:
    applied = list[str]()
    first = OperationError(ErrorCode.FORBIDDEN, "somebody was first")
    for conflict, code in ((None, "conflict"), (first, "forbidden")):

        def keep(mod: Keeper, conflict: OperationError | None = conflict) -> Commit:
            rows = [ADD, NOTHING]
            return Commit(
                rows, Done(), lambda: applied.append("rows"), mod.give_back, conflict=conflict
            )

        keeper = Keeper(keep)
        async with NETWORKS.start(mods=[keeper]) as network:
            ann = await network.join("ann")
            assert (await ann.ask("keep_it", how=""))["code"] == code
            assert (await rows(keeper), keeper.given_back, applied) == (0, 1, [])


RUBBISH: list[Callable[[Keeper], Any]] = [  # what nobody has type-checked
    lambda mod: Commit([ADD], Odd(what=object())),
    lambda mod: Commit([ADD], None),  # type: ignore[arg-type]
    lambda mod: Commit([1], Done()),
    lambda mod: Commit([ADD], Done(), messages=["hello"]),  # type: ignore[list-item]
    lambda mod: Odd(what=object()),
]


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_rubbish_with_rows_is_an_error_of_the_caller_alone() -> None:
    keeper = Keeper(RUBBISH[0])
    async with NETWORKS.start(mods=[keeper]) as network:
        ann = await network.join("ann")
        for n, keeper.keep in enumerate(RUBBISH):
            for cid in (None, f"c{n}"):
                assert (await ann.ask("keep_it", cid=cid, how=""))["code"] == "internal"
        await ann.call("broadcast_text_message", text="the log goes on")


class Censor(Mod):
    """Lets only people speak."""

    name = "censor"

    def on_message(self, draft: Draft) -> Verdict:
        return PASS if draft.sender_kind == "human" else Reject("be silent")


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_a_message_that_follows_rows_may_be_refused_and_the_rows_stay() -> None:
    said = Draft("keeper", "service", "broadcast", "broadcast", "kept!")
    keeper = Keeper(lambda mod: Commit([ADD], Done(), messages=[said]))
    async with NETWORKS.start(mods=[keeper, Censor(ModConfig())]) as network:
        ann = await network.join("ann")
        assert await ann.call("keep_it", how="") == {"done": True}
        assert await rows(keeper) == 1
        await ann.call("broadcast_text_message", text="the log goes on")


# Start and stop ---------------------------------------------------------------------------------


class Life(Mod):
    """Starts and stops as a test says."""

    name = "life"

    def __init__(
        self,
        begin: Callable[[], Awaitable[None]] | None = None,
        end: Callable[[], Awaitable[None]] | None = None,
    ):
        super().__init__(ModConfig())
        self.begin, self.end = begin, end
        self.ended = 0

    async def start(self) -> None:
        if self.begin is not None:
            await self.begin()

    async def stop(self) -> None:
        self.ended += 1
        if self.end is not None:
            await self.end()


async def forever() -> None:
    await asyncio.Event().wait()


async def at_once(how: str) -> None:
    BREAKING[how]()


@pytest.mark.behaviour("M-55", "M-63")
async def test_a_mod_that_takes_too_long_to_start_or_cannot_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.05)
    for begin, why in (
        (forever, "anything that takes longer than 0.05 s belongs"),
        (partial(at_once, "exit"), "SystemExit: 3"),
    ):
        first = Life()
        with pytest.raises(UserError, match=f"the mod life cannot start: {why}"):
            async with NETWORKS.start(mods=[first, Life(begin)]):
                pass
        assert first.ended == 1
        assert no_threads_of_mods()


@pytest.mark.behaviour("M-63")
async def test_a_mod_that_does_not_stop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "STOP_S", 0.05)
    for how in ("forever", *BREAKING):
        first, last = Life(), Life(end=forever if how == "forever" else partial(at_once, how))
        async with NETWORKS.start(mods=[first, last]) as network:
            pass
        assert (first.ended, last.ended) == (1, 1), how
        assert list(failures(network)) == ([] if how == "rubbish" else ["stop"])  # nobody looks


# Hooks ------------------------------------------------------------------------------------------


class Brittle(Mod):
    """Breaks in every hook but the one for messages."""

    name = "brittle"

    def __init__(self, how: str):
        super().__init__(ModConfig())
        self.how = how

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return BREAKING[self.how]()  # type: ignore[return-value]

    def on_join(self, participant: str) -> None:
        BREAKING[self.how]()

    def on_leave(self, participant: str) -> None:
        BREAKING[self.how]()

    def on_turn(self, turn: Turn) -> None:
        BREAKING[self.how]()

    def on_timer(self, key: str) -> None:
        BREAKING[self.how]()

    async def work(self) -> None:
        BREAKING[self.how]()


@pytest.mark.behaviour("M-64")
@pytest.mark.parametrize("how", ["raise", "exit", "cancel"])
async def test_whatever_hook_breaks_what_was_under_way_goes_on(how: str) -> None:
    brittle = Brittle(how)
    async with NETWORKS.start(mods=[brittle]) as network:
        _, calc, turn = await at_work(network)
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        brittle.host.at(0, "now")
        brittle.host.spawn(brittle.work())
        await calc.close()
        await network.gone("calc")
        asked = {"on_join", "on_stored", "on_turn", "on_timer", "on_leave", "spawn"}
        await eventually(lambda: set(failures(network)) == asked)
        ann = network.peers[0]
        await ann.call("broadcast_text_message", text="the hub is there")


class Scribe(Mod):
    """Writes rows that it cannot have."""

    name = "scribe"

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return [Statement("INSERT INTO scribe_nothing VALUES (1)")]


@pytest.mark.behaviour("M-65")
async def test_rows_that_the_store_refuses_are_a_failure_and_the_message_stays() -> None:
    async with NETWORKS.start(mods=[Scribe(ModConfig())]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "hello")
        assert (await bob.event())["message"]["content"] == "hello"
        assert "no such table: scribe_nothing" in failures(network)["on_stored"]
        [told] = await notices(ann, 1)
        assert told.startswith("The mod scribe failed in on_stored:")


# Who hears of it --------------------------------------------------------------------------------


class Grumpy(Mod):
    """Fails at each message of a person."""

    name = "grumpy"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "human":
            raise ValueError("not again")
        return PASS


@pytest.mark.behaviour("M-66")
async def test_the_same_failure_is_told_again_after_a_minute_and_then_less_and_less() -> None:
    clock = HandClock()
    file = config(network={"limits": {"calls_per_second": 1e6, "burst": 1_000_000}})
    async with NETWORKS.start(file, mods=[Grumpy(ModConfig())], clock=clock) as network:
        ann = await network.join("ann")
        minutes = 8
        for _ in range(minutes):
            for _ in range(10):
                await ann.call("broadcast_text_message", text="hello")
            clock.wall += AGAIN_S
        told = await notices(ann, 4)
        text = "The mod grumpy failed in on_message: ValueError: not again"
        counted = [f"{text} (and {n} more since the last notice)" for n in (9, 19, 39)]
        assert told == [text, *counted]
        clock.wall += 100 * AGAIN_S
        await ann.call("broadcast_text_message", text="hello")
        assert len(await notices(ann, 1)) == 1
        clock.wall += AGAIN_S
        await ann.call("broadcast_text_message", text="hello")
        assert len(await notices(ann, 1)) == 1


@pytest.mark.behaviour("M-66")
async def test_an_owner_who_was_absent_finds_the_notice_when_she_comes() -> None:
    file = config(humans={"olga": {"roles": ["owner"]}, "ann": {}})
    async with NETWORKS.start(file, mods=[Grumpy(ModConfig())]) as network:
        ann = await network.join("ann")
        await ann.call("broadcast_text_message", text="hello")
        await network.quiet()
        olga = await network.join("olga")
        [told] = await notices(olga, 1)
        assert told == "The mod grumpy failed in on_message: ValueError: not again"
        page = await olga.call("read_thread", thread="direct_hub")
        assert [each["text_representation"] for each in page["messages"]] == [told]
        assert not [e for e in await ann.sync() if e["message"]["sender_id"] == "hub"]


# Drafts -----------------------------------------------------------------------------------------

FORGED: dict[str, JsonValue] = {
    "sender_id": "bob",
    "sender_kind": "system",
    "content": "something else",
    "untrusted": True,
    "cause_id": "m1",
}


class Forger(Mod):
    """Changes a draft in place."""

    name = "forger"

    def __init__(self, field: str, on_failure: str):
        super().__init__(ModConfig.model_validate({"on_failure": on_failure}))
        self.field = field

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "human":
            setattr(draft, self.field, FORGED[self.field])
        return PASS


class Adder(Mod):
    """Replaces a draft as it may, by a copy of it."""

    name = "adder"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind != "human":
            return Replace(draft)
        return Replace(draft.replace(content=f"{draft.content}!", untrusted=False))


class Reader(Mod):
    """Reads drafts after the forger."""

    name = "reader"

    def __init__(self) -> None:
        super().__init__(ModConfig())
        self.read: list[tuple[str, JsonValue]] = []

    def on_message(self, draft: Draft) -> Verdict:
        self.read.append((draft.sender_id, draft.content))
        return PASS


@pytest.mark.behaviour("M-67")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_a_draft_that_a_mod_changes_in_place_is_as_it_was_before(on_failure: str) -> None:
    for field in FORGED:
        reader = Reader()
        mods = [Adder(ModConfig()), Forger(field, on_failure), reader]
        async with NETWORKS.start(mods=mods) as network:
            ann, bob = await network.join("ann"), await network.join("bob")
            answer = await ann.ask("send_text_message", to="bob", text="hello")
            assert "immutable" in failures(network)["on_message"]
            if on_failure == "reject":
                assert answer["code"] == "rejected"
                continue
            message = (await bob.event())["message"]
            names = ("sender_id", "sender_kind", "content", "untrusted")
            assert [message.get(name) for name in names] == ["ann", "human", "hello!", None]
            assert reader.read[0] == ("ann", "hello!")


# Verdicts ---------------------------------------------------------------------------------------


class Judge(Mod):
    """Does to messages of people what a test says."""

    name = "judge"

    def __init__(self, judge: Callable[[], Any], **config: JsonValue):
        super().__init__(ModConfig.model_validate(config))
        self.judge = judge

    def on_message(self, draft: Draft) -> Verdict:
        verdict: Verdict = self.judge() if draft.sender_kind == "human" else PASS
        return verdict


@pytest.mark.behaviour("M-54")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_a_broken_mod_harms_one_message_at_most_and_is_told_of_once(on_failure: str) -> None:
    for how, breaks in BREAKING.items():
        broken = Judge(breaks, on_failure=on_failure)
        async with NETWORKS.start(mods=[broken]) as network:
            ann = await network.join("ann")
            for _ in range(2):
                answer = await ann.ask("broadcast_text_message", text="hello")
                assert answer["op"] == ("result" if on_failure == "pass" else "error"), how
            assert network.hub.kernel.metrics.mod_failures["judge"] == 2
            assert len(await notices(ann, 1)) == 1
        assert no_threads_of_mods()


@pytest.mark.behaviour("M-56")
async def test_two_hubs_of_a_process_guard_their_own_mods_in_any_order() -> None:
    mods = [Slow(on_failure="reject") for _ in range(2)]
    async with NETWORKS.start(mods=mods[:1]) as first:
        async with NETWORKS.start(mods=mods[1:]) as second:
            ann = await second.join("ann")
            for _ in range(MOST_LATE):
                await ann.ask("broadcast_text_message", text="hello")
            assert (await ann.ask("broadcast_text_message", text="hello"))["code"] == "rejected"
        await (await first.join("ann")).call("broadcast_text_message", text="hello")
    assert no_threads_of_mods()
