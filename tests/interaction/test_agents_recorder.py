"""The record of a turn is complete, however often the hub refuses parts of it temporarily."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue

from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.client import Client
from hubbub.client.calls import Backoff
from hubbub.network.queries import LatestTurns
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import Step, ToolCallRecord, Turn, TurnEnd
from hubbub.testing.model_script import ScriptRule
from hubbub.testing.model_server import ModelServer, Script, ScriptedCall
from hubbub.testing.network import LocalNetwork
from tests.interaction.agent_harness import ended, finish, harness, playing, says, send
from tests.interaction.peers import Networks, config, soon
from tests.interaction.stop_harness import HandClock

NARROW = config(network={"limits": {"burst": 5, "calls_per_second": 1}})


class Desk:
    """A hub with a stopped clock, an agent beyond its rate limit, and its first turn."""

    def __init__(self, clock: HandClock, client: Client, plan: TurnPlan):
        self.clock, self.client, self.plan = clock, client, plan
        self.sleeps: list[float] = []

    def recorder(self, on_sleep: Callable[[int], None] = lambda times: None) -> TurnRecorder:
        """A recorder that calls `on_sleep` with the number of its waits so far."""

        async def sleep(seconds: float) -> None:
            self.sleeps.append(seconds)
            on_sleep(len(self.sleeps))
            await asyncio.sleep(0)

        return TurnRecorder(self.client, self.plan, backoff=Backoff(sleep=sleep))

    async def exhaust(self) -> None:
        """Send calls until the hub refuses one."""
        while True:
            answer = self.client.post("list_channels")
            await asyncio.wait({answer})
            if answer.exception() is not None:
                return

    async def turn(self) -> Turn:
        self.clock.wall += 100
        return Turn.model_validate(await self.client.call("read_turn", id=self.plan.id))


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    clock = HandClock()
    async with LocalNetwork(NARROW, clock=clock) as network:
        ann = await network.join("ann", "human")
        async with Client(network.transport(), "bot", turns=True) as client:
            inbox = Inbox("bot")
            await ann.call("send_text_message", to="bot", text="go")
            async with soon():
                async for item in client.events():
                    if isinstance(item, Event):
                        inbox.receive(item)
                        break
            (plan,) = inbox.next_turns()
            at = Desk(clock, client, plan)
            await at.exhaust()
            yield at


@pytest.mark.behaviour("Y-3")
async def test_a_temporarily_refused_record_is_sent_again_until_the_hub_accepts_it() -> None:
    async with desk() as at:

        def pass_time(times: int) -> None:
            if times == 30:
                at.clock.wall += 60

        recorder = at.recorder(pass_time)
        await recorder.begin(model="m")
        recorder.step(Step(n=1, text="first"))
        recorder.step(Step(n=1, text="replaced"))
        await recorder.end("finished", "all done")
        async with soon():
            await recorder.try_flush()
        turn = await at.turn()
        assert (ended(turn).outcome, ended(turn).reason) == ("finished", "all done")
        assert [step.text for step in turn.steps] == ["replaced"]
        assert (turn.start.model, turn.attempts) == ("m", 1)
        assert min(at.sleeps) >= 0.05, "it does not retry at once"


@pytest.mark.behaviour("Y-3")
async def test_a_flush_waits_for_durable_steps_and_cancelling_one_leaves_the_others() -> None:
    async with desk() as at:
        refused = asyncio.Event()
        recorder = at.recorder(lambda times: refused.set())
        await recorder.begin()
        recorder.step(Step(n=1, calls=(ToolCallRecord(id="c", name="pay", arguments={}),)))
        for n in range(2, 4):
            recorder.step(Step(n=n, text=f"step {n}"))
        waiting = [asyncio.create_task(recorder.flush()) for _ in range(3)]
        async with soon():
            await refused.wait()
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        recorder.step(Step(n=4, text="step 4"))
        at.clock.wall += 60
        async with soon():
            await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()
        steps = (await at.turn()).steps
        assert [step.text for step in steps[1:]] == ["step 2", "step 3", "step 4"]
        assert [c.name for c in steps[0].calls] == ["pay"]


async def test_a_cancelled_flush_withdraws_nothing_and_only_the_first_end_is_recorded() -> None:
    async with desk() as at:
        at.clock.wall += 60
        ends: list[TurnEnd] = []

        async def note(end: TurnEnd) -> tuple[str, ...]:
            ends.append(end)
            return ("noted",)

        recorder = at.recorder()
        recorder.before_end = note
        await recorder.begin()
        recorder.step(Step(n=1, text="first"))
        waiting = asyncio.create_task(recorder.flush())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        await recorder.end("cancelled", "by a person")
        await recorder.end("finished")
        async with soon():
            await recorder.try_flush()
        turn = await at.turn()
        assert [step.text for step in turn.steps] == ["first"]
        assert [end.outcome for end in ends] == ["cancelled"]
        assert (ended(turn).outcome, ended(turn).notes) == ("cancelled", ("noted",))


async def test_a_turn_ends_even_if_the_call_that_ends_it_is_cancelled() -> None:
    async with desk() as at:
        at.clock.wall += 60
        reached = asyncio.Event()

        async def hang(end: TurnEnd) -> tuple[str, ...]:
            reached.set()
            await asyncio.Event().wait()
            return ()

        recorder = at.recorder()
        recorder.before_end = hang
        await recorder.begin()
        ending = asyncio.create_task(recorder.end("finished"))
        async with soon():
            await reached.wait()
        ending.cancel()
        await asyncio.wait({ending})
        await recorder.try_flush()
        assert ended(await at.turn()).outcome == "finished"


@pytest.mark.slow
async def test_all_turns_of_a_burst_beyond_the_rate_limit_end(in_memory: Networks) -> None:
    script = Script(rules=[ScriptRule(answer=says(send("{{ sender }}", "hi"), finish()))])
    limits = config(network={"limits": {"burst": 20, "calls_per_second": 200}})
    async with ModelServer(script) as model, harness(in_memory, limits) as net:
        await net.llm("bot", model)
        for n in range(40):
            await (await net.person(f"p{n}")).say("bot", "hello")
        store = net.network.hub.store  # calls would be subject to the limit
        ends: list[bytes] = []

        async def all_ended() -> bool:
            ends[:] = [turn.end for turn in await store.read(LatestTurns(None, 40)) if turn.end]
            return len(ends) == 40

        await net.until(all_ended)
        assert {TurnEnd.model_validate_json(end).outcome for end in ends} == {"finished"}


@pytest.mark.behaviour("T-1")
async def test_a_record_that_exceeds_the_hubs_limits_is_stored_in_part(in_memory: Networks) -> None:
    tight = config(network={"limits": {"frame": "32KiB", "json_depth": 8}})
    odd: dict[str, dict[str, JsonValue]] = {
        "more": {"items": [0] * 20_000},
        "(40000 characters)": {"k" * 40_000: 1},
        "nested too deep": {"deep": [[[[[["x"]]]]]]},
    }
    script = [
        answer
        for arguments in odd.values()
        for answer in (
            says(ScriptedCall(tool="send_text_message", arguments=arguments)),
            says(finish()),
            says(finish()),
        )
    ]
    long = [says(send("ann", "a" * 20_000), text="b" * 20_000), says(finish())]
    async with playing(*script) as model, playing(*long) as wordy, harness(in_memory, tight) as net:
        ann = await net.person()
        await net.llm("bot", model, tools=["send_text_message"])
        for shown in odd:
            turn = await net.turn(await net.ask(ann, "hi"))
            assert turn.steps[0].calls[0].name == "send_text_message"
            assert shown in str(turn.steps[0].calls[0].arguments)
        await net.llm("long", wordy, instruction="c" * 60_000, tools=["send_text_message"])
        turn = await net.turn(await net.ask(ann, "hi", "long"))
    assert ended(turn).outcome == "finished"
    assert "characters) …" in (turn.system_prompt or "")
    assert (turn.steps[0].text or "").startswith("bbb")
    assert "(20000 characters)" in (turn.steps[0].text or "")
