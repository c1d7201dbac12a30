"""Work that agents hand on to each other, and who waits for whom."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message, RequestFailed
from hubbub.errors import OperationError
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import Gate, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer


class Boss(Agent):
    """Has everything done by `worker`, and answers with what came of it."""

    def __init__(self, deadline_s: float = 60.0) -> None:
        self.deadline_s = deadline_s
        self.news: list[str] = []

    async def on_direct(self, message: Message) -> str | None:
        if message.sender_kind != "human":
            self.news.append(message.text)
            return None
        try:
            result = await self.delegate("worker", message.text, deadline_s=self.deadline_s)
        except RequestFailed as exc:
            return f"{exc.request} {exc.outcome}: {exc.reason}"
        return f"done: {result}"


class Worker(Agent):
    async def on_request(self, message: Message) -> str:
        return f"{message.text}!"


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def said_to(ann: Peer) -> str:
    """The next that an agent says to her."""
    while (event := await ann.event())["message"]["sender_kind"] != "agent":
        pass
    return str(event["message"]["content"])


class TestPython:
    @pytest.mark.behaviour("H-91", "H-92")
    async def test_a_handler_gets_the_result_of_what_it_has_handed_on(
        self, in_memory: Networks
    ) -> None:
        async with rig(in_memory) as net:
            ann, boss = await net.person(), Boss()
            await net.python("boss", boss)
            await net.python("worker", Worker())
            await ann.say("boss", "shout")
            assert await said_to(ann) == "done: shout!"
            turn = await net.turn("boss-m1")
            assert [c.name for c in turn.steps[0].calls] == ["delegate", "send_text_message"]
            assert boss.news == [], "the result is nobody's message besides"

    @pytest.mark.behaviour("H-92")
    async def test_what_on_direct_gives_back_for_a_task_is_its_report_too(
        self, in_memory: Networks
    ) -> None:
        class Plain(Agent):
            async def on_direct(self, message: Message) -> JsonValue:
                assert message.request is not None
                return {"kind": message.request.kind}

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Boss())
            await net.python("worker", Plain())
            await ann.say("boss", "shout")
            assert await said_to(ann) == 'done: {"kind": "task"}'

    @pytest.mark.behaviour("H-91")
    async def test_a_failure_that_is_reported_is_an_error_with_its_words(
        self, in_memory: Networks
    ) -> None:
        class Honest(Agent):
            async def on_request(self, message: Message) -> None:
                await self.report(message, "no voice today", failed=True)

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Boss())
            await net.python("worker", Honest())
            await ann.say("boss", "shout")
            assert await said_to(ann) == "m2 reported: no voice today"

    @pytest.mark.behaviour("H-91")
    async def test_a_worker_that_breaks_or_says_nothing_has_failed(
        self, in_memory: Networks, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Broken(Agent):
            async def on_request(self, message: Message) -> str:
                if message.text == "break":
                    raise RuntimeError("a screw is loose")
                return ""

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Boss())
            await net.python("worker", Broken())
            await ann.say("boss", "break")
            broken = await said_to(ann)
            assert "no_report" in broken
            assert "a screw is loose" in broken
            await ann.say("boss", "be silent")
            assert "no_report" in await said_to(ann)
        assert "a screw is loose" in capsys.readouterr().err

    @pytest.mark.behaviour("H-91")
    async def test_the_deadline_ends_a_wait(self, in_memory: Networks, gate: Gate) -> None:
        class Slow(Agent):
            async def on_request(self, message: Message) -> str:
                await gate.wait()
                return "at last"

        async with rig(in_memory) as net:
            ann, boss = await net.person(), Boss(deadline_s=0.05)
            await net.python("boss", boss)
            await net.python("worker", Slow())
            await ann.say("boss", "shout")
            assert (await said_to(ann)).startswith("m2 timeout: ")
            gate.open.set()
            end = (await net.turn("worker-m2")).end
            assert end is not None
            assert end.outcome == "finished", "its report comes too late, and that is no fault"
            assert boss.news == []

    @pytest.mark.behaviour("H-91")
    async def test_a_handler_that_died_while_it_waited_asks_nobody_twice(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        done: list[str] = []

        class Slow(Agent):
            async def on_request(self, message: Message) -> str:
                await gate.wait()
                done.append(message.text)
                return "at last"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Boss())
            await net.python("worker", Slow())
            await ann.say("boss", "shout")
            await gate.until_reached()
            await net.kill("boss")
            gate.open.set()
            await net.turn("worker-m2")
            boss = Boss()
            await net.python("boss", boss)
            assert await said_to(ann) == "done: at last"
            await net.turn("boss-m1")
            assert (done, boss.news) == (["shout"], [])


class TestWaiting:
    @pytest.mark.behaviour("H-93")
    async def test_a_question_that_would_close_a_circle_is_an_error_to_who_asks_it(
        self, in_memory: Networks
    ) -> None:
        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                other = "bert" if self.name == "ernie" else "ernie"
                try:
                    return (await self.ask(other, "what do you say?")).text
                except OperationError as exc:
                    return f"{exc.code} {exc.details['cycle']}"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("ernie", Asker())
            await net.python("bert", Asker())
            await ann.say("ernie", "hm?")
            assert await said_to(ann) == "wait_cycle ['bert', 'ernie', 'bert']"

    @pytest.mark.behaviour("H-93")
    async def test_who_has_given_up_waits_no_more(self, in_memory: Networks) -> None:
        class Impatient(Agent):
            async def on_direct(self, message: Message) -> str:
                try:
                    return (await self.ask("mute", "anybody there?", timeout=0.3)).text
                except TimeoutError:
                    return "nobody"

        async with rig(in_memory) as net:
            ann, mute = await net.person(), await net.network.join("mute", "agent")
            await net.python("bot", Impatient())
            await ann.say("bot", "go")
            assert await said_to(ann) == "nobody"
            asked = await mute.ask("send_text_message", to="bot", text="you?", awaits=True)
            assert asked["op"] == "result", "it closes no circle any more"

    @pytest.mark.behaviour("H-93")
    async def test_nobody_waits_for_one_who_is_kept_from_answering(
        self, in_memory: Networks
    ) -> None:
        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                try:
                    return (await self.ask("mute", "anybody there?")).text
                except OperationError as exc:
                    return exc.code

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("mute", Agent())
            await net.python("bot", Asker())
            await ann.call("stop", scope="agent", target="mute")
            await ann.say("bot", "go")
            assert await said_to(ann) == "stopped"

    @pytest.mark.behaviour("H-93")
    async def test_who_has_not_been_woken_may_ask_back(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        class Asker(Agent):
            async def on_direct(self, message: Message) -> None:
                with pytest.raises(OperationError) as refused:
                    await self.ask("mute", "anybody there?")
                await self.send("ann", refused.value.code)
                await gate.wait()

        async with rig(in_memory) as net:
            ann, mute = await net.person(), await net.network.join("mute", "agent")
            await net.python("bot", Asker())
            await ann.call("take_over", agent="mute")
            await ann.say("bot", "go")
            assert await said_to(ann) == "taken_over"
            await ann.call("hand_back", agent="mute")
            asked = await mute.ask("send_text_message", to="bot", text="you?", awaits=True)
            assert asked["op"] == "result", "it closes no circle, although the turn still runs"

    @pytest.mark.behaviour("H-93")
    async def test_a_person_who_speaks_for_the_agent_may_answer(self, in_memory: Networks) -> None:
        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                return f"{(await self.ask('clerk', 'how many?')).text} it is"

        async with rig(in_memory) as net:
            ann, clerk = await net.person(), await net.network.join("clerk", "agent")
            await net.python("bot", Asker())
            await ann.say("bot", "go")
            await clerk.event()
            await ann.call("take_over", agent="clerk")
            await ann.say("bot", "three", speak_as="clerk")
            assert await said_to(ann) == "three it is"

    @pytest.mark.behaviour("H-93")
    async def test_who_waits_for_each_answer_may_ask_on_and_on(self, in_memory: Networks) -> None:
        class Curious(Agent):
            async def on_direct(self, message: Message) -> str:
                answers = [(await self.ask("oracle", str(n))).text for n in range(8)]
                return "".join(answers)

        class Oracle(Agent):
            async def on_direct(self, message: Message) -> str:
                return message.text

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("oracle", Oracle())
            await net.python("bot", Curious())
            await ann.say("bot", "go")
            assert await said_to(ann) == "01234567", "these are no two that wake each other"


class TestModels:
    @pytest.mark.behaviour("H-94")
    async def test_a_model_hands_on_work_and_is_shown_the_result(self, in_memory: Networks) -> None:
        handed_on = says(call("delegate", to="worker", task="count", deadline_s=60), finish())
        played = Script(answers=[handed_on, says(send("ann", "it is 3"), finish())])
        async with ModelServer(played) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("boss", model)
            await net.python("worker", Worker())
            await ann.say("boss", "how many?")
            assert await said_to(ann) == "it is 3"
            shown = _incoming(model, 1)
            assert (shown.get("request"), shown.get("request_kind")) == ("m2", "result")
            assert (shown.get("sender"), shown.findtext("content")) == ("worker", "count!")

    @pytest.mark.behaviour("H-94")
    async def test_a_model_is_shown_a_task_with_its_id_and_deadline_and_reports(
        self, in_memory: Networks
    ) -> None:
        reported = says(call("report", request="m2", status="result", text="three"), finish())
        async with ModelServer(Script(answers=[reported])) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Boss())
            await net.llm("worker", model)
            await ann.say("boss", "count")
            assert await said_to(ann) == "done: three"
            shown = _incoming(model, 0)
            assert (shown.get("request"), shown.get("request_kind")) == ("m2", "task")
            assert (shown.get("deadline") or "").endswith("Z")
            assert shown.get("kind") == "agent"
            offered = {t.function.name: t.function for t in model.requests[0].body.tools}
            hidden = {"cause", "speak_as", "outside", "awaits", "mode"}
            for name in ("delegate", "report"):
                properties = offered[name].parameters["properties"]
                assert isinstance(properties, dict)
                assert not hidden & properties.keys()

    @pytest.mark.behaviour("H-94")
    async def test_a_model_may_hand_its_task_on_and_report_when_it_has_the_result(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        class Foreman(Boss):
            async def on_direct(self, message: Message) -> str:
                return await self.delegate("clerk", message.text)

        class Slow(Worker):
            async def on_request(self, message: Message) -> str:
                await gate.wait()
                return await super().on_request(message)

        handed_on = says(call("delegate", to="worker", task="count"), finish())
        reported = says(call("report", request="m2", status="result", text="3!"), finish())
        played = Script(answers=[handed_on, reported])
        async with ModelServer(played) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.python("boss", Foreman())
            await net.llm("clerk", model)
            await net.python("worker", Slow())
            await ann.say("boss", "how many?")
            await net.turn("clerk-m2")
            gate.open.set()
            assert await said_to(ann) == "3!"

    @pytest.mark.behaviour("H-94")
    async def test_a_model_is_shown_that_its_request_has_failed(self, in_memory: Networks) -> None:
        class Broken(Agent):
            async def on_request(self, message: Message) -> None:
                return None

        handed_on = says(call("delegate", to="worker", task="count"), finish())
        played = Script(answers=[handed_on, says(send("ann", "nobody knows"), finish())])
        async with ModelServer(played) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("boss", model)
            await net.python("worker", Broken())
            await ann.say("boss", "how many?")
            assert await said_to(ann) == "nobody knows"
            shown = _incoming(model, 1)
            assert (shown.get("request_kind"), shown.get("outcome")) == ("failed", "no_report")
            assert shown.get("kind") == "system"


def _incoming(model: ModelServer, request: int) -> ElementTree.Element:
    """The last message that a prompt shows as incoming."""
    prompt = model.requests[request].body.messages[1].text
    conversation = prompt.partition("\n\nRespond to")[0]
    return ElementTree.fromstring(conversation).findall(".//incoming_message")[-1]
