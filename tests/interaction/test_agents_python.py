"""Python agents on a real hub: which handler runs when, and what becomes of what it returns."""

from __future__ import annotations

import asyncio
import time

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.errors import OperationError
from tests.interaction.agent_rig import rig
from tests.interaction.peers import Networks, config, soon

DESK = config(channels={"desk": {"members": "all"}})


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"


class Clerk(Agent):
    """Notes which handler ran, and answers with its name."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def on_direct(self, message: Message) -> str:
        self.seen.append(("direct", message.text))
        return "direct"

    async def on_mention(self, message: Message) -> str:
        self.seen.append(("mention", message.text))
        return "mention"

    async def on_reply(self, message: Message) -> str:
        self.seen.append(("reply", message.text))
        return "reply"

    async def on_broadcast(self, message: Message) -> str:
        self.seen.append(("broadcast", message.text))
        return "broadcast"

    async def on_channel_message(self, message: Message) -> None:
        self.seen.append(("channel", message.text))


class Calculator(Agent):
    async def on_direct(self, message: Message) -> str:
        return str(sum(int(part) for part in message.text.split("+")))


class Concierge(Agent):
    async def on_direct(self, message: Message) -> str:
        found = await self.ask("calculator", message.text)
        return f"it is {found.text}"


async def test_a_direct_message_is_answered_in_its_thread(networks: Networks) -> None:
    async with rig(networks) as net:
        ann = await net.person()
        await net.python("echo", Echo())
        await ann.say("echo", "hello")
        answer = (await ann.event())["message"]
        assert answer["content"] == "you said: hello"
        assert answer["thread_id"] == "dm.ann.echo"
        assert (answer["interaction_id"], answer["hop"]) == ("i1", 1)


@pytest.mark.behaviour("T-1")
async def test_every_wake_is_a_recorded_turn(in_memory: Networks) -> None:
    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("echo", Echo())
        await ann.say("echo", "hello")
        await ann.event()
        turn = await net.turn("echo-m1")
        assert turn.end is not None
        assert turn.end.outcome == "finished"
        assert turn.start.messages == ("m1",)
        assert turn.sent == ("m2",)
        (sent,) = turn.steps[0].calls
        assert (sent.name, sent.result) == ("send_text_message", "m2")


class TestHandlers:
    @pytest.mark.behaviour("A-10")
    async def test_each_way_to_be_addressed_has_its_handler(self, in_memory: Networks) -> None:
        clerk = Clerk()
        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("clerk", clerk)
            await ann.say("clerk", "one")
            assert (await ann.event())["message"]["content"] == "direct"
            await ann.call("post_to_channel", channel="desk", text="@clerk two")
            mention = (await ann.event())["message"]
            assert (mention["content"], mention["thread_id"]) == ("mention", "channel.desk")
            await ann.call("broadcast_text_message", text="three")
            broadcast = (await ann.event())["message"]
            assert (broadcast["content"], broadcast["thread_id"]) == ("broadcast", "broadcast")
            await ann.call("post_to_channel", channel="desk", text="four, to nobody")
            await ann.say("clerk", "five")
            await ann.event()
            assert ("channel", "four, to nobody") in clerk.seen
            assert [name for name, _ in clerk.seen if name != "channel"] == [
                *("direct", "mention", "broadcast", "direct"),
            ]

    async def test_a_person_who_goes_on_in_a_reply_thread_reaches_who_spoke_last(
        self, in_memory: Networks
    ) -> None:
        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("clerk", Clerk())
            first = await ann.call("post_to_channel", channel="desk", text="topic")
            await ann.call("reply", message_id=first["id"], text="@clerk begin")
            mention = (await ann.event())["message"]
            assert mention["thread_id"] == first["thread_id"] + ".t1"
            assert mention["content"] == "mention"
            await ann.call("reply", message_id=first["id"], text="and then?")
            assert (await ann.event())["message"]["content"] == "reply"

    async def test_without_on_reply_it_is_a_mention(self, in_memory: Networks) -> None:
        class Mentioned(Agent):
            async def on_mention(self, message: Message) -> str:
                return f"mention: {message.text}"

        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("clerk", Mentioned())
            first = await ann.call("post_to_channel", channel="desk", text="topic")
            await ann.call("reply", message_id=first["id"], text="@clerk begin")
            await ann.event()
            await ann.call("reply", message_id=first["id"], text="go on")
            assert (await ann.event())["message"]["content"] == "mention: go on"

    async def test_a_broadcast_of_an_agent_is_overheard_and_what_it_causes_is_lineage(
        self, in_memory: Networks
    ) -> None:
        class Crier(Agent):
            async def on_direct(self, message: Message) -> None:
                await self.broadcast("hear ye")

        clerk = Clerk()
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("clerk", clerk)
            await net.python("crier", Crier())
            await ann.say("crier", "go")
            cried, answered = await ann.event(), await ann.event()
            assert cried["message"]["hop"] == 1
            assert answered["message"]["content"] == "broadcast"
            assert answered["message"]["cause_id"] == cried["message"]["id"]
            assert (answered["message"]["interaction_id"], answered["message"]["hop"]) == ("i1", 2)

    async def test_a_plain_function_runs_beside_the_loop_one_at_a_time(
        self, in_memory: Networks
    ) -> None:
        class Slow(Agent):
            inside = most = 0

            def on_direct(self, message: Message) -> str:
                self.inside += 1
                self.most = max(self.most, self.inside)
                time.sleep(0.005)  # what blocks is the point of a plain handler
                self.inside -= 1
                return "done"

        slow = Slow()
        async with rig(in_memory) as net:
            people = [await net.person(name) for name in ("ann", "ben", "cat")]
            await net.python("slow", slow)
            for person in people:
                await person.say("slow", "go")
            assert [(await p.event())["message"]["content"] for p in people] == ["done"] * 3
            assert slow.most == 1

    @pytest.mark.parametrize(
        ("answer", "content"),
        [({"sum": 3}, {"sum": 3}), ([1, None], [1, None]), (False, False), (7, 7)],
    )
    async def test_json_is_sent_as_json(
        self, in_memory: Networks, answer: JsonValue, content: JsonValue
    ) -> None:
        class Give(Agent):
            async def on_direct(self, message: Message) -> JsonValue:
                return answer

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("give", Give())
            await ann.say("give", "go")
            assert (await ann.event())["message"]["content"] == content

    async def test_settings_and_start(self, in_memory: Networks) -> None:
        class Greeter(Agent):
            async def on_start(self) -> None:
                self.greeting = self.settings["greeting"]
                await self.broadcast(f"{self.name} is here")

            async def on_direct(self, message: Message) -> JsonValue:
                return self.greeting

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("greeter", Greeter(), settings={"greeting": "moin"})
            assert (await ann.event())["message"]["content"] == "greeter is here"
            await ann.say("greeter", "hello")
            assert (await ann.event())["message"]["content"] == "moin"

    async def test_an_agent_that_cannot_start_ends(self, in_memory: Networks) -> None:
        class Broken(Agent):
            async def on_start(self) -> None:
                raise LookupError("no data")

        async with rig(in_memory) as net:
            await net.python("broken", Broken())
            assert isinstance(await net.death("broken"), LookupError)


class TestHelpers:
    async def test_an_agent_posts_replies_answers_and_looks_things_up(
        self, in_memory: Networks
    ) -> None:
        class Busy(Agent):
            async def on_direct(self, message: Message) -> None:
                await self.post("desk", "posted")
                await self.reply(message, "replied")
                await self.answer(message, "answered")
                people = [p.id for p in await self.participants() if p.kind == "human"]
                thread = await self.read_thread("direct_ann")
                await self.send("ann", f"{people} {len(thread)}")

        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("busy", Busy())
            await ann.say("busy", "go")
            got = [(await ann.event())["message"] for _ in range(4)]
            assert [(m["thread_id"], m["content"]) for m in got] == [
                ("channel.desk", "posted"),
                ("dm.ann.busy.t1", "replied"),
                ("dm.ann.busy", "answered"),
                ("dm.ann.busy", "['ann'] 2"),
            ]
            assert {m["interaction_id"] for m in got} == {"i1"}

    async def test_a_refusal_is_an_exception_with_the_hubs_word(self, in_memory: Networks) -> None:
        class Wrong(Agent):
            async def on_direct(self, message: Message) -> str:
                try:
                    await self.send("nobody", "hello")
                except OperationError as exc:
                    return exc.code
                return "sent"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("wrong", Wrong())
            await ann.say("wrong", "go")
            assert (await ann.event())["message"]["content"] == "unknown_participant"

    def test_an_agent_that_has_not_joined_says_so(self) -> None:
        with pytest.raises(RuntimeError, match="has not joined"):
            asyncio.run(Echo().participants())


class TestFailures:
    @pytest.mark.behaviour("W-9")
    async def test_an_exception_ends_the_turn_and_the_person_is_told(
        self, in_memory: Networks, capfd: pytest.CaptureFixture[str]
    ) -> None:
        class Fails(Agent):
            async def on_direct(self, message: Message) -> str:
                raise ZeroDivisionError("by zero")

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("fails", Fails())
            await ann.say("fails", "go")
            notice = (await ann.event())["message"]
            assert notice["sender_kind"] == "system"
            assert "by zero" in str(notice["content"]) + str(notice["text_representation"])
            turn = await net.turn("fails-m1")
            assert turn.end is not None
            assert turn.end.outcome == "handler_error"
            assert turn.end.reason == "ZeroDivisionError: by zero"
            assert "ZeroDivisionError" in capfd.readouterr().err

    async def test_a_failure_leaves_other_turns_alone(
        self, in_memory: Networks, capfd: pytest.CaptureFixture[str]
    ) -> None:
        class Picky(Agent):
            async def on_direct(self, message: Message) -> object:  # type: ignore[override]
                return object() if message.text == "bad" else "good"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("picky", Picky())
            await ann.say("picky", "bad")
            await ann.event()
            await ann.say("picky", "fine")
            assert (await ann.event())["message"]["content"] == "good"
            assert "on_direct returned object" in capfd.readouterr().err

    async def test_a_turn_that_takes_too_long_is_ended(self, in_memory: Networks) -> None:
        class Hangs(Agent):
            async def on_direct(self, message: Message) -> None:
                await asyncio.Event().wait()

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("hangs", Hangs(), turn_timeout=0.02)
            await ann.say("hangs", "go")
            assert (await ann.event())["message"]["sender_kind"] == "system"
            turn = await net.turn("hangs-m1")
            assert turn.end is not None
            assert turn.end.outcome == "timeout"


class TestAsking:
    async def test_an_agent_asks_another_within_its_handler(self, networks: Networks) -> None:
        async with rig(networks) as net:
            ann = await net.person()
            await net.python("calculator", Calculator())
            await net.python("concierge", Concierge())
            await ann.say("concierge", "2+3")
            answer = (await ann.event())["message"]
            assert answer["content"] == "it is 5"
            assert (answer["interaction_id"], answer["hop"]) == ("i1", 1)
            question = await net.turn("calculator-m2")
            assert question.sent == ("m3",)
            consumed = await net.turn("concierge-m3")
            assert consumed.end is not None
            assert consumed.end.reason == "a handler was waiting for this message"
            assert consumed.sent == ()

    async def test_many_ask_at_once_and_each_gets_its_own_answer(self, in_memory: Networks) -> None:
        async with rig(in_memory) as net:
            people = [await net.person(f"p{n}") for n in range(8)]
            await net.python("calculator", Calculator())
            await net.python("concierge", Concierge(), concurrency=8)
            for n, person in enumerate(people):
                await person.say("concierge", f"{n}+1")
            answers = [(await p.event())["message"]["content"] for p in people]
            assert answers == [f"it is {n + 1}" for n in range(8)]

    async def test_one_who_does_not_answer_is_waited_for_only_so_long(
        self, in_memory: Networks
    ) -> None:
        class Impatient(Agent):
            async def on_direct(self, message: Message) -> str:
                try:
                    await self.ask("mute", "anybody there?", timeout=0.02)
                except TimeoutError as exc:
                    return str(exc)
                return "?"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("mute", Agent())
            await net.python("impatient", Impatient())
            await ann.say("impatient", "go")
            assert (await ann.event())["message"]["content"] == (
                "mute has not answered within 0.02 s"
            )

    async def test_an_answer_that_comes_too_late_is_an_ordinary_message(
        self, in_memory: Networks
    ) -> None:
        go, late = asyncio.Event(), asyncio.Event()

        class Late(Agent):
            async def on_direct(self, message: Message) -> str:
                await go.wait()
                return "sorry, late"

        class Asker(Agent):
            async def on_direct(self, message: Message) -> None:
                if message.sender_id == "late":
                    assert message.text == "sorry, late"
                    late.set()
                    return
                with pytest.raises(TimeoutError):
                    await self.ask("late", "now?", timeout=0.01)
                go.set()

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("late", Late())
            await net.python("asker", Asker())
            await ann.say("asker", "go")
            async with soon():
                await late.wait()

    async def test_a_person_can_be_asked_too(self, in_memory: Networks) -> None:
        class Polite(Agent):
            async def on_mention(self, message: Message) -> str:
                answer = await self.ask(message.sender_id, "shall I?")
                return f"ann says {answer.text}"

        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("polite", Polite())
            await ann.call("post_to_channel", channel="desk", text="@polite go")
            question = (await ann.event())["message"]
            assert question["content"] == "shall I?"
            await ann.say("polite", "yes")
            assert (await ann.event())["message"]["content"] == "ann says yes"


@pytest.mark.behaviour("W-12")
async def test_two_agents_that_answer_each_other_stop_by_themselves(in_memory: Networks) -> None:
    class Chatty(Agent):
        async def on_direct(self, message: Message) -> str:
            other = "bert" if self.name == "ernie" else "ernie"
            if message.sender_id != other:
                await self.send(other, "hello")
                return "started"
            return f"{message.text}!"

    only_hops = config(network={"wake": {"dampener": {"enabled": False}}})
    async with rig(in_memory, only_hops) as net:
        ann = await net.person()
        await net.python("ernie", Chatty())
        await net.python("bert", Chatty())
        await ann.say("ernie", "talk to bert")
        await ann.event()
        page: dict[str, list[dict[str, object]]] = {"messages": []}
        async with soon():
            while not page["messages"] or page["messages"][-1]["hop"] != 8:
                read = await net.clients["ernie"].call("read_thread", thread="direct_bert")
                assert isinstance(read, dict)
                page = read  # type: ignore[assignment]  # as its model says
        await net.network.quiet()
        assert [m["hop"] for m in page["messages"]] == list(range(1, 9))


@pytest.mark.behaviour("W-12", "A-10")
async def test_the_last_direct_message_of_an_interaction_is_nothing_overheard(
    in_memory: Networks,
) -> None:
    class Relay(Clerk):
        async def on_direct(self, message: Message) -> str:
            await self.send("clerk", "over to you")
            return await super().on_direct(message)

    clerk = Clerk()
    one_hop = config(network={"budgets": {"hops": 1}}, channels={"desk": {"members": "all"}})
    async with rig(in_memory, one_hop) as net:
        ann = await net.person()
        await net.python("clerk", clerk)
        await net.python("relay", Relay())
        await ann.say("relay", "go")
        said = [(await ann.event())["message"]["content"] for _ in range(2)]
        assert [text for text in said if isinstance(text, str)] == ["direct"], "and a notice"
        await ann.call("post_to_channel", channel="desk", text="@clerk hello")
        assert (await ann.event())["message"]["content"] == "mention"
        assert clerk.seen == [("mention", "@clerk hello")]
