"""Broken mods: each failure is reported, and the hub keeps running."""

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
"""A time limit that every call exceeds."""


def fail(error: type[BaseException], *why: object) -> None:
    raise error(*why)


BREAKING: dict[str, Callable[[], object]] = {
    "raise": partial(fail, ValueError, "no idea"),
    "exit": partial(fail, SystemExit, 3),
    "interrupt": partial(fail, KeyboardInterrupt),
    "cancel": partial(fail, asyncio.CancelledError),
    "invalid": dict,
}


class How(Input):
    how: str


class Wrecker(Mod):
    """Breaks as its caller asks."""

    name = "wreck"

    @operation(permission="write")
    def wreck(self, call: Calling, args: How) -> Done:
        """Break at once."""
        return BREAKING[args.how]()  # type: ignore[return-value]  # wrong on purpose

    @operation()
    async def wreck_later(self, call: Calling, args: How) -> Done:
        """Break in a later step."""
        await asyncio.sleep(0)
        return BREAKING[args.how]()  # type: ignore[return-value]

    @operation(permission="write")
    def refuse(self, call: Calling, args: How) -> Done:
        """Refuse, which is not a failure."""
        raise OperationError("conflict", "not today")


def no_threads_of_mods() -> bool:
    """Wait for the threads of mods, which end by themselves."""
    threads = [thread for thread in threading.enumerate() if thread.name == "mods"]
    for thread in threads:
        thread.join(DEADLINE_S)
    return not any(thread.is_alive() for thread in threads)


def failures(network: Network) -> dict[str, str]:
    """The last failure of each hook or operation."""
    return {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}


async def notices(peer: Peer, count: int) -> list[str]:
    """The hub's notices to the peer, once there are `count`, with any that follow at once."""
    texts: list[str] = []
    while len(texts) < count:
        message = (await peer.event())["message"]
        texts += [message["text_representation"]] if message["sender_id"] == "hub" else []
    messages = [event["message"] for event in await peer.sync()]
    return texts + [m["text_representation"] for m in messages if m["sender_id"] == "hub"]


@pytest.mark.behaviour("M-61")
@pytest.mark.parametrize("name", ["wreck", "wreck_later"])
async def test_a_broken_operation_is_one_error_and_the_hub_runs_on(name: str) -> None:
    for how in BREAKING:
        async with NETWORKS.start(mods=[Wrecker(ModConfig())]) as network:
            ann = await network.join("ann")
            for _ in range(2):
                answer = await ann.ask(name, how=how)
                assert (answer["op"], answer["code"]) == ("error", "internal"), how
                assert answer["message"].startswith(f"the mod wreck failed in {name}")
                assert answer["details"] == {"mod": "wreck"}
            assert network.hub.kernel.metrics.mod_failures["wreck"] == 2
            assert len(await notices(ann, 1)) == 1
            with pytest.raises(OperationError, match="not today"):
                await ann.call("refuse", how="")  # not a failure
            assert list(failures(network)) == [name]
            await ann.call("broadcast_text_message", text="the hub still works")


class Garbled(Mod):
    """Refuses with what JSON cannot carry."""

    name = "garbled"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("no \ud800")

    @operation()
    def garble(self, call: Calling, args: Input) -> Done:
        """Refuse, too."""
        raise OperationError("conflict", "no \ud800", details={"why": object()})


async def test_a_refusal_with_what_json_cannot_carry_is_answered() -> None:
    async with NETWORKS.start(mods=[Garbled(ModConfig())]) as network:
        ann = await network.join("ann")
        rejected = await ann.ask("broadcast_text_message", text="hello")
        assert (rejected["code"], rejected["message"]) == ("rejected", "garbled: no \\ud800")
        assert rejected["details"] == {"mod": "garbled"}
        refused = await ann.ask("garble")
        assert (refused["code"], refused["message"]) == ("conflict", "no \\ud800")


class Slow(Mod):
    """Exceeds its time limit, and counts its calls."""

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
async def test_a_call_that_is_slow_three_times_is_disabled(on_failure: str) -> None:
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
        texts = [text for text in await notices(ann, 4) if "count" in text]
        assert ["The mod slow is slow in count" in text for text in texts] == [True] * 2
        assert ["it is disabled until" in text for text in texts] == [False, True]
        await ann.call("configure_mod", name="slow", settings={"time_limit": 60})
        asked = slow.asked["on_message"]
        await ann.call("broadcast_text_message", text="hello")
        assert await bob.call("count", how="") == {"done": True}
        assert slow.asked["on_message"] > asked


# Commits ----------------------------------------------------------------------------------------


class NotJson(BaseModel):
    """An answer that is not JSON."""

    what: Any  # Any: any value of a test


class Committer(Mod):
    """Returns the commit that a test gives it."""

    name = "keeper"
    migrations = "keeper_tables"

    def __init__(self, keep: Callable[[Committer], Commit]):
        super().__init__(ModConfig())
        self.keep = keep
        self.released = 0

    def release(self) -> None:
        self.released += 1

    @operation(permission="write", output=Done)
    def keep_it(self, call: Calling, args: How) -> Commit:
        """Store rows."""
        return self.keep(self)


ADD = Statement("INSERT INTO keeper_row VALUES (1)")
NOTHING = Statement("DELETE FROM keeper_row WHERE x = 2", rows=1)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0001_rows.sql").write_text("CREATE TABLE keeper_row (x INTEGER NOT NULL);")
    monkeypatch.setattr(Committer, "migrations", str(tmp_path))


async def rows(keeper: Committer) -> int:
    return len(await keeper.host.rows("SELECT x FROM keeper_row"))


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_a_broken_callback_of_a_commit_does_not_stop_the_log() -> None:
    for how, part in product(("raise", "exit"), ("applied", "released")):
        given: dict[str, Any] = {part: BREAKING[how]}

        def keep(mod: Committer, given: dict[str, Any] = given) -> Commit:
            return Commit([ADD], Done(), **{"released": mod.release, **given})

        keeper = Committer(keep)
        async with NETWORKS.start(mods=[keeper]) as network:
            ann = await network.join("ann")
            assert await ann.call("keep_it", how="") == {"done": True}
            assert await rows(keeper) == 1
            assert keeper.released == (part != "released")
            assert list(failures(network)) == [part]
            await ann.call("broadcast_text_message", text="the log still works")


@pytest.mark.usefixtures("tables")
async def test_conflicting_rows_are_not_applied_and_are_released() -> None:
    applied = list[str]()
    first = OperationError(ErrorCode.FORBIDDEN, "somebody was first")
    for conflict, code in ((None, "conflict"), (first, "forbidden")):

        def keep(mod: Committer, conflict: OperationError | None = conflict) -> Commit:
            add = partial(applied.append, "rows")
            return Commit([ADD, NOTHING], Done(), add, mod.release, conflict=conflict)

        keeper = Committer(keep)
        async with NETWORKS.start(mods=[keeper]) as network:
            ann = await network.join("ann")
            assert (await ann.ask("keep_it", how=""))["code"] == code
            assert (await rows(keeper), keeper.released, applied) == (0, 1, [])


INVALID: list[Callable[[Committer], Any]] = [  # wrong on purpose
    lambda mod: Commit([ADD], NotJson(what=object())),
    lambda mod: Commit([ADD], None),  # type: ignore[arg-type]
    lambda mod: Commit([1], Done()),
    lambda mod: Commit([ADD], Done(), messages=["hello"]),  # type: ignore[list-item]
    lambda mod: NotJson(what=object()),
]


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_an_invalid_commit_is_an_error_for_its_caller_only() -> None:
    keeper = Committer(INVALID[0])
    async with NETWORKS.start(mods=[keeper]) as network:
        ann = await network.join("ann")
        for n, keeper.keep in enumerate(INVALID):
            for cid in (None, f"c{n}"):
                assert (await ann.ask("keep_it", cid=cid, how=""))["code"] == "internal"
        await ann.call("broadcast_text_message", text="the log still works")


class Censor(Mod):
    """Rejects messages except those of people."""

    name = "censor"

    def on_message(self, draft: Draft) -> Verdict:
        return PASS if draft.sender_kind == "human" else Reject("be silent")


@pytest.mark.behaviour("M-62")
@pytest.mark.usefixtures("tables")
async def test_rows_stay_if_the_message_that_follows_is_rejected() -> None:
    message = Draft("keeper", "service", "broadcast", "broadcast", "stored!")
    keeper = Committer(lambda mod: Commit([ADD], Done(), messages=[message]))
    async with NETWORKS.start(mods=[keeper, Censor(ModConfig())]) as network:
        ann = await network.join("ann")
        assert await ann.call("keep_it", how="") == {"done": True}
        assert await rows(keeper) == 1
        await ann.call("broadcast_text_message", text="the log still works")


# Start and stop ---------------------------------------------------------------------------------


class Lifecycle(Mod):
    """Starts and stops with the functions of a test."""

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


async def break_now(how: str) -> None:
    BREAKING[how]()


@pytest.mark.behaviour("M-55", "M-63")
async def test_a_mod_that_cannot_start_in_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.05)
    for begin, why in (
        (forever, "anything that takes longer than 0.05 s belongs"),
        (partial(break_now, "exit"), "SystemExit: 3"),
    ):
        first = Lifecycle()
        with pytest.raises(UserError, match=f"the mod life cannot start: {why}"):
            async with NETWORKS.start(mods=[first, Lifecycle(begin)]):
                pass
        assert first.ended == 1
        assert no_threads_of_mods()


@pytest.mark.behaviour("M-63")
async def test_a_mod_that_does_not_stop_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "STOP_S", 0.05)
    for how in ("forever", *BREAKING):
        end = forever if how == "forever" else partial(break_now, how)
        first, last = Lifecycle(), Lifecycle(end=end)
        async with NETWORKS.start(mods=[first, last]) as network:
            pass
        assert (first.ended, last.ended) == (1, 1), how
        expected = [] if how == "invalid" else ["stop"]  # what `stop` returns is ignored
        assert list(failures(network)) == expected


class Endless(Mod):
    """Has work that never ends."""

    name = "endless"

    def __init__(self) -> None:
        super().__init__(ModConfig())
        self.begun: list[str] = []

    async def start(self) -> None:
        self.host.spawn(self._work("spawn"))

    async def on_references(self, draft: Draft) -> Verdict:
        await self._work("on_references")
        return PASS

    @operation()
    async def wait(self, call: Calling, args: How) -> Done:
        """Wait forever."""
        await self._work("wait")
        return Done()

    async def _work(self, name: str) -> None:
        self.begun.append(name)
        await forever()


@pytest.mark.behaviour("B-10", "M-63")
async def test_a_hub_stops_although_work_of_its_mods_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "FINISH_S", 0.05)
    mod = Endless()
    async with asyncio.timeout(DEADLINE_S):
        async with NETWORKS.start(mods=[mod]) as network:
            ann, bob = await network.join("ann"), await network.join("bob")
            quote = {"message_id": (await ann.say("bob", "hi"))["id"]}
            await ann.post("wait", how="")
            await bob.post("send_text_message", to="ann", text="there?", quote=quote)
            await eventually(lambda: len(mod.begun) == 3)
        assert not network.hub.services.mods.failures


# Hooks ------------------------------------------------------------------------------------------


class Brittle(Mod):
    """Breaks in every hook except `on_message`."""

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
async def test_a_broken_hook_does_not_affect_the_hub(how: str) -> None:
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
        await ann.call("broadcast_text_message", text="the hub still works")


class BadWriter(Mod):
    """Writes to a table that does not exist."""

    name = "scribe"

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return [Statement("INSERT INTO scribe_nothing VALUES (1)")]


@pytest.mark.behaviour("M-65")
async def test_rows_that_the_store_refuses_do_not_affect_the_message() -> None:
    async with NETWORKS.start(mods=[BadWriter(ModConfig())]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "hello")
        assert (await bob.event())["message"]["content"] == "hello"
        assert "no such table: scribe_nothing" in failures(network)["on_stored"]
        [text] = await notices(ann, 1)
        assert text.startswith("The mod scribe failed in on_stored:")


# Notices ----------------------------------------------------------------------------------------


class Grumpy(Mod):
    """Fails at each message of a person."""

    name = "grumpy"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "human":
            raise ValueError("not again")
        return PASS


@pytest.mark.behaviour("M-66")
async def test_a_repeated_failure_is_reported_at_growing_intervals() -> None:
    clock = HandClock()
    file = config(network={"limits": {"calls_per_second": 1e6, "burst": 1_000_000}})
    async with NETWORKS.start(file, mods=[Grumpy(ModConfig())], clock=clock) as network:
        ann = await network.join("ann")
        for _ in range(8):
            for _ in range(10):
                await ann.call("broadcast_text_message", text="hello")
            clock.wall += AGAIN_S
        text = "The mod grumpy failed in on_message: ValueError: not again"
        counted = [f"{text} (and {n} more since the last notice)" for n in (9, 19, 39)]
        assert await notices(ann, 4) == [text, *counted]
        clock.wall += 100 * AGAIN_S
        await ann.call("broadcast_text_message", text="hello")
        assert len(await notices(ann, 1)) == 1
        clock.wall += AGAIN_S
        await ann.call("broadcast_text_message", text="hello")
        assert len(await notices(ann, 1)) == 1


@pytest.mark.behaviour("M-66")
async def test_an_absent_owner_receives_the_notice_later() -> None:
    file = config(humans={"olga": {"roles": ["owner"]}, "ann": {}})
    async with NETWORKS.start(file, mods=[Grumpy(ModConfig())]) as network:
        ann = await network.join("ann")
        await ann.call("broadcast_text_message", text="hello")
        await network.quiet()
        olga = await network.join("olga")
        [text] = await notices(olga, 1)
        assert text == "The mod grumpy failed in on_message: ValueError: not again"
        page = await olga.call("read_thread", thread="direct_hub")
        assert [each["text_representation"] for each in page["messages"]] == [text]
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
    """Replaces a draft correctly, with a copy."""

    name = "adder"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind != "human":
            return Replace(draft)
        return Replace(draft.replace(content=f"{draft.content}!", untrusted=False))


class Reader(Mod):
    """Records drafts after the forger."""

    name = "reader"

    def __init__(self) -> None:
        super().__init__(ModConfig())
        self.read: list[tuple[str, JsonValue]] = []

    def on_message(self, draft: Draft) -> Verdict:
        self.read.append((draft.sender_id, draft.content))
        return PASS


@pytest.mark.behaviour("M-67")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_a_mod_cannot_change_a_draft_in_place(on_failure: str) -> None:
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


class Verdicts(Mod):
    """Returns the verdict of a test for messages of people."""

    name = "judge"

    def __init__(self, judge: Callable[[], Any], **config: JsonValue):
        super().__init__(ModConfig.model_validate(config))
        self.judge = judge

    def on_message(self, draft: Draft) -> Verdict:
        verdict: Verdict = self.judge() if draft.sender_kind == "human" else PASS
        return verdict


class VerdictsInThread(Verdicts):
    """Judges in a thread."""

    def takes_long(self, draft: Draft) -> bool:
        return True


@pytest.mark.behaviour("M-54")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
@pytest.mark.parametrize("kind", [Verdicts, VerdictsInThread])
async def test_a_broken_mod_affects_one_message_and_is_reported_once(
    on_failure: str, kind: type[Verdicts]
) -> None:
    for how, breaks in BREAKING.items():
        broken = kind(breaks, on_failure=on_failure)
        async with NETWORKS.start(mods=[broken]) as network:
            ann = await network.join("ann")
            for _ in range(2):
                answer = await ann.ask("broadcast_text_message", text="hello")
                assert answer["op"] == ("result" if on_failure == "pass" else "error"), how
            assert network.hub.kernel.metrics.mod_failures["judge"] == 2
            assert len(await notices(ann, 1)) == 1
        assert no_threads_of_mods()


@pytest.mark.behaviour("M-56")
async def test_two_hubs_in_a_process_guard_only_their_own_mods() -> None:
    mods = [Slow(on_failure="reject") for _ in range(2)]
    async with NETWORKS.start(mods=mods[:1]) as first:
        async with NETWORKS.start(mods=mods[1:]) as second:
            ann = await second.join("ann")
            for _ in range(MOST_LATE):
                await ann.ask("broadcast_text_message", text="hello")
            assert (await ann.ask("broadcast_text_message", text="hello"))["code"] == "rejected"
        await (await first.join("ann")).call("broadcast_text_message", text="hello")
    assert no_threads_of_mods()
