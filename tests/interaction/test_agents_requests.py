"""Tasks that agents delegate to each other, and questions that they wait for."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message, RequestFailed
from hubbub.errors import OperationError
from tests.interaction.agent_harness import (
    Gate,
    call,
    ended,
    finish,
    harness,
    incoming_message,
    one_person,
    playing,
    said_to,
    says,
)
from tests.interaction.peers import Networks, soon
from tests.interaction.stores import MoodyStore


class Boss(Agent):
    """Delegates everything to `worker`, and answers with the result."""

    def __init__(self, deadline_s: float = 60.0) -> None:
        self.deadline_s = deadline_s
        self.received: list[str] = []

    async def on_direct(self, message: Message) -> str | None:
        if message.sender_kind != "human":
            self.received.append(message.text)
            return None
        try:
            result = await self.delegate("worker", message.text, deadline_s=self.deadline_s)
        except RequestFailed as exc:
            return f"{exc.request} {exc.outcome}: {exc.reason}"
        return f"done: {result}"


class Worker(Agent):
    async def on_request(self, message: Message) -> str:
        return f"{message.text}!"


@pytest.mark.behaviour("H-91", "H-92")
async def test_delegate_returns_the_result_or_raises_the_failure(
    in_memory: Networks, capsys: pytest.CaptureFixture[str]
) -> None:
    class Varied(Agent):
        async def on_request(self, message: Message) -> str:
            match message.text:
                case "break":
                    raise RuntimeError("a screw is loose")
                case "fail":
                    await self.report(message, "no voice today", failed=True)
                    return ""
                case "be silent":
                    return ""
            return f"{message.text}!"

    async with harness(in_memory) as net:
        ann, boss = await net.person(), Boss()
        await net.python("boss", boss)
        await net.python("worker", Varied())
        expected = {
            "shout": "done: shout!",
            "fail": "reported: no voice today",
            "be silent": "no_report",
            "break": "a screw is loose",
        }
        for task, answer in expected.items():
            await ann.say("boss", task)
            assert answer in await said_to(ann)
        turn = await net.turn("boss-m1")
        assert [c.name for c in turn.steps[0].calls] == ["delegate", "send_text_message"]
        assert boss.received == [], "no handler gets the result as a message"
    assert "a screw is loose" in capsys.readouterr().err


@pytest.mark.behaviour("H-92")
async def test_the_result_of_on_direct_is_the_report_of_a_task(in_memory: Networks) -> None:
    class Plain(Agent):
        async def on_direct(self, message: Message) -> JsonValue:
            assert message.request is not None
            return {"kind": message.request.kind}

    async with one_person(in_memory) as (net, ann):
        await net.python("boss", Boss())
        await net.python("worker", Plain())
        await ann.say("boss", "shout")
        assert await said_to(ann) == 'done: {"kind": "task"}'


@pytest.mark.behaviour("H-91")
@pytest.mark.parametrize("ending", ["deadline", "death"])
async def test_delegate_times_out_at_its_deadline_and_resumes_after_a_crash(
    in_memory: Networks, ending: str
) -> None:
    gate, done = Gate(), list[str]()

    class Slow(Agent):
        async def on_request(self, message: Message) -> str:
            await gate.wait()
            done.append(message.text)
            return "at last"

    async with harness(in_memory) as net:
        ann, boss = await net.person(), Boss(0.02 if ending == "deadline" else 60)
        await net.python("boss", boss)
        await net.python("worker", Slow())
        await ann.say("boss", "shout")
        if ending == "deadline":
            assert (await said_to(ann)).startswith("m2 timeout: ")
            gate.open.set()
            outcome = ended(await net.turn("worker-m2")).outcome
            assert outcome == "finished", "a late report is no error"
        else:
            await gate.until_reached()
            await net.kill("boss")
            gate.open.set()
            await net.turn("worker-m2")
            boss = Boss()
            await net.python("boss", boss)
            assert await said_to(ann) == "done: at last"
            await net.turn("boss-m1")
        assert (done, boss.received) == (["shout"], [])


class Asker(Agent):
    """Asks another agent, and answers with the outcome."""

    def __init__(self, other: str = "mute", timeout: float = 60.0) -> None:
        self.other, self.timeout = other, timeout

    async def on_direct(self, message: Message) -> str:
        try:
            return f"{(await self.ask(self.other, 'well?', timeout=self.timeout)).text}!"
        except OperationError as exc:
            return f"{exc.code} {exc.details.get('cycle')}"
        except TimeoutError:
            return "nobody"


@pytest.mark.behaviour("H-93")
async def test_a_question_that_would_close_a_wait_cycle_is_an_error(in_memory: Networks) -> None:
    async with harness(in_memory) as net:
        ann, mute = await net.person(), await net.network.join("mute", "agent")
        await net.python("ernie", Asker("bert"))
        await net.python("bert", Asker("ernie"))
        await ann.say("ernie", "hm?")
        assert await said_to(ann) == "wait_cycle ['bert', 'ernie', 'bert']!"
        await net.python("bot", Asker(timeout=0.5))  # time enough to send the question
        await ann.say("bot", "go")
        assert await said_to(ann) == "nobody"
        asked = await mute.ask("send_text_message", to="bot", text="you?", awaits=True)
        assert asked["op"] == "result", "a question that timed out is not part of a cycle"


@pytest.mark.behaviour("H-93")
async def test_a_question_that_timed_out_before_it_was_sent_is_not_part_of_a_cycle(
    in_memory: Networks, moody: MoodyStore
) -> None:
    timed_out, gate = asyncio.Event(), Gate()

    class Hasty(Agent):
        async def on_direct(self, message: Message) -> str | None:
            if message.sender_kind == "human":
                moody.gate.clear()
                with pytest.raises(TimeoutError):
                    await self.ask("mute", "well?", timeout=0.05)
                timed_out.set()
                for text in ("now", "later"):  # the second follows all that the first one did
                    await self.send(message.sender_id, text)
                await gate.wait()
            return None

    async with harness(in_memory, store=moody) as net:
        ann, mute = await net.person(), await net.network.join("mute", "agent")
        await net.python("bot", Hasty())
        await ann.say("bot", "go")
        async with soon():
            await timed_out.wait()
        moody.gate.set()
        assert [await said_to(ann), await said_to(ann)] == ["now", "later"]
        asked = await mute.ask("send_text_message", to="bot", text="you?", awaits=True)
        assert asked["op"] == "result", "the hub was told that nobody waits"
        gate.open.set()


@pytest.mark.behaviour("H-93")
async def test_asking_a_stopped_or_taken_over_agent_is_an_error(in_memory: Networks) -> None:
    async with harness(in_memory) as net:
        ann, mute = await net.person(), await net.network.join("mute", "agent")
        await net.python("bot", Asker())
        stop = {"scope": "agent", "target": "mute"}
        await ann.call("stop", **stop)
        await ann.say("bot", "go")
        assert await said_to(ann) == "stopped None"
        await ann.call("resume", **stop)
        await ann.call("take_over", agent="mute")
        await ann.say("bot", "go")
        assert await said_to(ann) == "taken_over None"
        await ann.call("hand_back", agent="mute")
        asked = await mute.ask("send_text_message", to="bot", text="you?", awaits=True)
        assert asked["op"] == "result", "there is no cycle"


@pytest.mark.behaviour("H-93")
async def test_a_person_who_took_the_agent_over_can_answer_its_question(
    in_memory: Networks,
) -> None:
    async with harness(in_memory) as net:
        ann, mute = await net.person(), await net.network.join("mute", "agent")
        await net.python("bot", Asker())
        await ann.say("bot", "go")
        await mute.event()
        await ann.call("take_over", agent="mute")
        await ann.say("bot", "three", on_behalf_of="mute")
        assert await said_to(ann) == "three!"


@pytest.mark.behaviour("H-94")
@pytest.mark.parametrize("works", [True, False])
async def test_a_model_delegates_a_task_and_sees_its_outcome(
    in_memory: Networks, works: bool
) -> None:
    class Broken(Agent):
        async def on_request(self, message: Message) -> None:
            return None

    delegates = says(call("delegate", to="worker", task="count", deadline_s=60), finish())
    answers = says(call("finish", message="so"))
    async with playing(delegates, answers) as model, one_person(in_memory) as (net, ann):
        await net.llm("boss", model)
        await net.python("worker", Worker() if works else Broken())
        await ann.say("boss", "how many?")
        assert await said_to(ann) == "so", "the answer goes to the person, not to the worker"
        assert "Answer ann now." in model.requests[1].prompt
        shown = incoming_message(model, 1)
        assert shown.get("request") == "m2"
        if works:
            assert (shown.get("sender"), shown.get("request_kind")) == ("worker", "result")
            assert shown.findtext("content") == "count!"
        else:
            assert (shown.get("kind"), shown.get("request_kind")) == ("system", "failed")
            assert shown.get("outcome") == "no_report"


@pytest.mark.behaviour("H-94")
async def test_a_model_sees_a_task_delegates_it_and_reports(in_memory: Networks) -> None:
    gate = Gate()

    class Slow(Worker):
        async def on_request(self, message: Message) -> str:
            await gate.wait()
            return await super().on_request(message)

    class Foreman(Agent):
        async def on_direct(self, message: Message) -> str:
            return await self.delegate("clerk", message.text)

    delegates = says(call("delegate", to="worker", task="count"), finish())
    reports = says(call("report", request="m2", status="result", text="3!"), finish())
    async with playing(delegates, reports) as model, one_person(in_memory) as (net, ann):
        await net.python("boss", Foreman())
        await net.llm("clerk", model)
        await net.python("worker", Slow())
        await ann.say("boss", "how many?")
        await net.turn("clerk-m2")
        gate.open.set()
        assert await said_to(ann) == "3!"
        shown = incoming_message(model, 0)
        assert (shown.get("request"), shown.get("request_kind")) == ("m2", "task")
        assert (shown.get("deadline") or "").endswith("Z")
        assert shown.get("kind") == "agent"
        offered = {t.function.name: t.function for t in model.requests[0].body.tools}
        hidden = {"cause", "on_behalf_of", "untrusted", "awaits", "mode"}
        for name in ("delegate", "report"):
            properties = offered[name].parameters["properties"]
            assert isinstance(properties, dict)
            assert not hidden & properties.keys()
