"""Python agents on a real hub: the choice of handlers, their results and their failures."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.errors import OperationError
from tests.interaction.agent_harness import Gate, harness, one_person
from tests.interaction.peers import Networks, Peer, config, soon
from tests.interaction.scripted import ending

DESK = config(channels={"desk": {"members": "all"}})


async def heard(person: Peer) -> JsonValue:
    """The content of the next message to the person."""
    content: JsonValue = (await person.event())["message"]["content"]
    return content


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"


class Clerk(Agent):
    """Records the handlers that ran, and answers with their names."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def record(self, handler: str, message: Message) -> str:
        self.seen.append((handler, message.text))
        return handler

    async def on_direct(self, message: Message) -> str:
        return self.record("direct", message)

    async def on_mention(self, message: Message) -> str:
        return self.record("mention", message)

    async def on_reply(self, message: Message) -> str:
        return self.record("reply", message)

    async def on_broadcast(self, message: Message) -> str:
        return self.record("broadcast", message)

    async def on_channel_message(self, message: Message) -> None:
        self.record("channel", message)


class Calculator(Agent):
    async def on_direct(self, message: Message) -> str:
        return str(sum(int(part) for part in message.text.split("+")))


class Concierge(Agent):
    async def on_direct(self, message: Message) -> str:
        answer = await self.ask("calculator", message.text)
        return f"it is {answer.text}"


class TestHandlers:
    @pytest.mark.behaviour("A-10")
    async def test_each_kind_of_message_runs_its_own_handler(self, in_memory: Networks) -> None:
        clerk = Clerk()
        async with one_person(in_memory, DESK) as (net, ann):
            await net.python("clerk", clerk)
            await ann.say("clerk", "one")
            assert await heard(ann) == "direct"
            topic = await ann.call("post_to_channel", channel="desk", text="@clerk two")
            mention = (await ann.event())["message"]
            assert (mention["content"], mention["thread_id"]) == ("mention", "channel.desk")
            await ann.call("broadcast_text_message", text="three")
            broadcast = (await ann.event())["message"]
            assert (broadcast["content"], broadcast["thread_id"]) == ("broadcast", "broadcast")
            await ann.call("post_to_channel", channel="desk", text="four")
            await ann.call("reply", message_id=topic["id"], text="@clerk begin")
            begun = (await ann.event())["message"]
            thread = f"{topic['thread_id']}.t{topic['seq']}"
            assert (begun["content"], begun["thread_id"]) == ("mention", thread)
            await ann.call("reply", message_id=topic["id"], text="and then?")
            assert await heard(ann) == "reply", "the agent posted last in that thread"
            assert ("channel", "four") in clerk.seen
            assert [name for name, _ in clerk.seen if name != "channel"] == [
                *("direct", "mention", "broadcast", "mention", "reply"),
            ]

    async def test_a_reply_runs_on_mention_if_there_is_no_on_reply(
        self, in_memory: Networks
    ) -> None:
        class Mentioned(Agent):
            async def on_mention(self, message: Message) -> str:
                return f"mention: {message.text}"

        async with one_person(in_memory, DESK) as (net, ann):
            await net.python("clerk", Mentioned())
            first = await ann.call("post_to_channel", channel="desk", text="topic")
            await ann.call("reply", message_id=first["id"], text="@clerk begin")
            await ann.event()
            await ann.call("reply", message_id=first["id"], text="go on")
            assert await heard(ann) == "mention: go on"

    async def test_the_answer_to_an_agents_broadcast_belongs_to_its_interaction(
        self, in_memory: Networks
    ) -> None:
        class Crier(Agent):
            async def on_direct(self, message: Message) -> None:
                await self.broadcast("hear ye")

        async with one_person(in_memory) as (net, ann):
            await net.python("clerk", Clerk())
            await net.python("crier", Crier())
            await ann.say("crier", "go")
            cried, answered = [(await ann.event())["message"] for _ in range(2)]
            assert (cried["hop"], answered["content"]) == (1, "broadcast")
            assert answered["cause_id"] == cried["id"]
            assert (answered["interaction_id"], answered["hop"]) == ("i1", 2)

    async def test_plain_handlers_run_outside_the_loop_one_at_a_time(
        self, in_memory: Networks
    ) -> None:
        class Slow(Agent):
            inside = most = 0

            def on_direct(self, message: Message) -> str:
                self.inside += 1
                self.most = max(self.most, self.inside)
                gate.wait()
                self.inside -= 1
                return "done"

        slow, gate = Slow(), threading.Event()
        async with harness(in_memory) as net:
            people = [await net.person(name) for name in ("ann", "ben", "cat")]
            await net.python("slow", slow)
            for turn_id in [await net.ask(person, "go", "slow") for person in people]:
                await net.begun(turn_id)
            gate.set()
            assert [await heard(person) for person in people] == ["done"] * 3
            assert slow.most == 1

    async def test_the_result_of_a_handler_is_sent_as_json(self, in_memory: Networks) -> None:
        contents: list[JsonValue] = [{"sum": 3}, [1, None], False, 7]

        class Give(Agent):
            async def on_direct(self, message: Message) -> JsonValue:
                return contents[int(message.text)]

        async with one_person(in_memory) as (net, ann):
            await net.python("give", Give())
            for n, content in enumerate(contents):
                await ann.say("give", str(n))
                assert await heard(ann) == content

    async def test_on_start_has_the_settings_and_its_failure_ends_the_agent(
        self, in_memory: Networks
    ) -> None:
        class Greeter(Agent):
            async def on_start(self) -> None:
                self.greeting = self.settings["greeting"]
                await self.broadcast(f"{self.name} is here")

            async def on_direct(self, message: Message) -> JsonValue:
                return self.greeting

        class Broken(Agent):
            async def on_start(self) -> None:
                raise LookupError("no data")

        async with one_person(in_memory) as (net, ann):
            await net.python("greeter", Greeter(), settings={"greeting": "moin"})
            assert await heard(ann) == "greeter is here"
            await ann.say("greeter", "hello")
            assert await heard(ann) == "moin"
            await net.python("broken", Broken())
            assert isinstance(await net.death("broken"), LookupError)
        with pytest.raises(RuntimeError, match="has not joined"):
            await Echo().participants()


async def test_an_agent_posts_replies_answers_and_reads(in_memory: Networks) -> None:
    class Busy(Agent):
        async def on_direct(self, message: Message) -> str:
            await self.post("desk", "posted")
            await self.reply(message, "replied")
            await self.answer(message, "answered")
            people = [p.id for p in await self.participants() if p.kind == "human"]
            thread = await self.read_thread("direct_ann")
            await self.send("ann", f"{people} {len(thread)}")
            with pytest.raises(OperationError) as refused:
                await self.send("nobody", "hello")
            return refused.value.code

    async with one_person(in_memory, DESK) as (net, ann):
        await net.python("busy", Busy())
        await ann.say("busy", "go")
        messages = [(await ann.event())["message"] for _ in range(5)]
        assert [(m["thread_id"], m["content"]) for m in messages] == [
            ("channel.desk", "posted"),
            ("dm.ann.busy.t1", "replied"),
            ("dm.ann.busy", "answered"),
            ("dm.ann.busy", "['ann'] 2"),
            ("dm.ann.busy", "unknown_participant"),
        ]
        assert {m["interaction_id"] for m in messages} == {"i1"}


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


ERRORS = {
    "by zero": ZeroDivisionError("by zero"),
    "exit": SystemExit("bye"),
    "interrupt": KeyboardInterrupt(),
    "close": GeneratorExit(),
    "cancel": asyncio.CancelledError(),
    "unprintable": Unprintable(),
}


class Gated(Agent):
    """Handles messages once its gate is open, and fails for `wrong`."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    async def on_direct(self, message: Message) -> str:
        await self.gate.wait()
        if message.text == "wrong":
            raise ValueError("no")
        return f"did {message.text}"

    on_request = on_direct


class TestFailures:
    @pytest.mark.behaviour("W-9")
    async def test_any_exception_of_a_handler_ends_only_its_turn(
        self, in_memory: Networks, capfd: pytest.CaptureFixture[str]
    ) -> None:
        class Fragile(Agent):
            async def on_direct(self, message: Message) -> object:  # type: ignore[override]
                if message.text in ERRORS:
                    raise ERRORS[message.text]
                return object() if message.text == "object" else f"heard {message.text}"

            async def on_channel_message(self, message: Message) -> None:
                observed.put_nowait(message.text)
                if message.text in ERRORS:
                    raise ERRORS[message.text]

        observed: asyncio.Queue[str] = asyncio.Queue()
        quick = config(
            network={"breaker": {"enabled": False}}, channels={"desk": {"members": "all"}}
        )
        async with one_person(in_memory, quick) as (net, ann):
            await net.python("echo", Fragile())
            for text, error in ERRORS.items():
                turn_id = await net.ask(ann, text, "echo")
                notice = (await ann.event())["message"]
                assert notice["sender_kind"] == "system", text
                outcome, reason = ending(await net.turn(turn_id))
                assert outcome == "handler_error", text
                assert reason.startswith(type(error).__name__), text
                assert type(error).__name__ in str(notice), text
                await ann.call("post_to_channel", channel="desk", text=text)
                async with soon():
                    assert await observed.get() == text
            assert "ZeroDivisionError: by zero" in capfd.readouterr().err
            await ann.say("echo", "object")
            await ann.event()
            assert "on_direct returned object" in capfd.readouterr().err
            await ann.say("echo", "me")
            assert await heard(ann) == "heard me"

    @pytest.mark.behaviour("W-9")
    async def test_a_failing_handler_fails_no_other_request_of_the_turn(
        self, in_memory: Networks
    ) -> None:
        async with harness(in_memory) as net:
            ann, gate = await net.person(), Gate()
            await net.python("echo", Gated(gate))
            await ann.call("delegate", to="echo", task="first")
            await gate.until_reached()
            for task in ("wrong", "right"):  # one turn, as they wait in one thread
                await ann.call("delegate", to="echo", task=task)
            gate.open.set()
            reports = [(await ann.event())["message"] for _ in range(3)]
            done = [each["content"] for each in reports if each["sender_id"] == "echo"]
            assert done == ["did first", "did right"]

    @pytest.mark.behaviour("W-9")
    @pytest.mark.parametrize(
        ("later", "told"),
        [(["a", "wrong", "b"], ["did a", "did b"]), (["wrong", "b"], ["hub: m2, m3"])],
    )
    async def test_a_message_after_a_failing_one_is_handled_or_its_sender_is_told(
        self, in_memory: Networks, later: list[str], told: list[str]
    ) -> None:
        async with harness(in_memory) as net:
            ann, gate = await net.person(), Gate()
            await net.python("echo", Gated(gate))
            await ann.say("echo", "first")
            await gate.until_reached()
            turn, *_ = [await net.ask(ann, text, "echo") for text in later]
            gate.open.set()
            assert await heard(ann) == "did first"
            for text in told:
                content = (await ann.event())["message"]["content"]
                failed = isinstance(content, dict)
                assert text == (f"hub: {', '.join(content['messages'])}" if failed else content)
            assert ending(await net.turn(turn))[0] == "handler_error"

    async def test_a_handler_that_exceeds_the_turn_timeout_is_ended(
        self, in_memory: Networks
    ) -> None:
        class Hangs(Agent):
            async def on_direct(self, message: Message) -> None:
                await asyncio.Event().wait()

        async with one_person(in_memory) as (net, ann):
            await net.python("hangs", Hangs(), turn_timeout=0.02)
            await ann.say("hangs", "go")
            assert (await ann.event())["message"]["sender_kind"] == "system"
            assert ending(await net.turn("hangs-m1"))[0] == "timeout"


class TestAsking:
    async def test_an_agent_asks_another_within_its_handler(self, in_memory: Networks) -> None:
        async with one_person(in_memory) as (net, ann):
            await net.python("calculator", Calculator())
            await net.python("concierge", Concierge())
            await ann.say("concierge", "2+3")
            answer = (await ann.event())["message"]
            assert answer["content"] == "it is 5"
            assert (answer["interaction_id"], answer["hop"]) == ("i1", 1)
            assert (await net.turn("calculator-m2")).sent == ("m3",)
            consumed = await net.turn("concierge-m3")
            assert ending(consumed)[1] == "a handler was waiting for this message"
            assert consumed.sent == ()

    async def test_a_late_answer_is_an_ordinary_message(self, in_memory: Networks) -> None:
        go: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        late: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        class Late(Agent):
            async def on_direct(self, message: Message) -> str:
                await go
                return "sorry, late"

        class Asker(Agent):
            async def on_direct(self, message: Message) -> None:
                if message.sender_id == "late":
                    late.set_result(message.text)
                    return
                with pytest.raises(TimeoutError) as gave_up:
                    await self.ask("late", "now?", timeout=0.02)
                go.set_result(str(gave_up.value))

        async with harness(in_memory) as net, soon():
            ann = await net.person()
            await net.python("late", Late())
            await net.python("asker", Asker())
            await ann.say("asker", "go")
            assert await late == "sorry, late"
            assert await go == "late has not answered within 0.02 s"


class TestHops:
    @pytest.mark.behaviour("W-12", "A-10")
    async def test_a_direct_message_at_the_hop_limit_runs_no_handler(
        self, in_memory: Networks
    ) -> None:
        class Relay(Clerk):
            async def on_direct(self, message: Message) -> str:
                await self.send("clerk", "over to you")
                return await super().on_direct(message)

        clerk = Clerk()
        one_hop = config(network={"budgets": {"hops": 1}}, channels={"desk": {"members": "all"}})
        async with one_person(in_memory, one_hop) as (net, ann):
            await net.python("clerk", clerk)
            await net.python("relay", Relay())
            await ann.say("relay", "go")
            contents = [await heard(ann) for _ in range(2)]
            texts = [each for each in contents if isinstance(each, str)]
            assert texts == ["direct"], "the other message is a notice"
            await ann.call("post_to_channel", channel="desk", text="@clerk hello")
            assert await heard(ann) == "mention"
            assert clerk.seen == [("mention", "@clerk hello")]
