"""Hooks that look up quotes, take long, prevent wakes or show messages, in a running hub."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.protocol.messages import Draft, Message, Quote
from tests.interaction.peers import DEADLINE_S, Network, Networks, Peer
from tests.interaction.stores import MoodyStore

NETWORKS = Networks(sockets=False)


class Sleeper(Mod):
    """Prevents the wakes that a test names."""

    name = "sleeper"

    def __init__(self, asleep: Callable[[Draft, Sequence[str]], Collection[str]]):
        super().__init__(ModConfig())
        self.asked: list[Sequence[str]] = []
        self._asleep = asleep

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        self.asked.append(agents)
        return self._asleep(draft, agents)


class Librarian(Mod):
    """Looks up quotes with the function of a test."""

    name = "librarian"

    def __init__(self, look: Callable[[Mod, Draft], Verdict], **config: str):
        super().__init__(ModConfig.model_validate(config))
        self.looked = 0
        self._look = look

    async def on_references(self, draft: Draft) -> Verdict:
        self.looked += 1
        await self.host.rows("SELECT 1")
        return self._look(self, draft)


class Ponderer(Mod):
    """Checks long messages until the test lets it continue, then puts them in capitals."""

    name = "ponderer"

    def __init__(self, **config: str | float):
        super().__init__(ModConfig.model_validate(config))
        self.begun, self.go_on = threading.Event(), threading.Event()

    def takes_long(self, draft: Draft) -> bool:
        return len(str(draft.content)) > 10

    def on_message(self, draft: Draft) -> Verdict:
        if not self.takes_long(draft):
            return PASS
        self.begun.set()
        assert self.go_on.wait(DEADLINE_S)
        return Replace(draft.replace(content=str(draft.content).upper()))


class Painter(Mod):
    """Shows messages with the function of a test."""

    name = "painter"

    def __init__(self, paint: Callable[[Message], Message | None]):
        super().__init__(ModConfig())
        self._paint = paint

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        await asyncio.sleep(0)
        return [painted for each in messages if (painted := self._paint(each)) is not None]


def loud(message: Message) -> Message:
    return message.model_copy(update={"content": message.text.upper()})


def broken(message: Message) -> Message:
    raise LookupError("no paint")


async def two(network: Network) -> tuple[Peer, Peer]:
    return await network.join("ann"), await network.join("bot", "agent", turns=True)


# Waking ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-93")
async def test_a_mod_can_prevent_the_wakes_of_agents_it_names() -> None:
    mod = Sleeper(lambda draft, agents: ["bot", "ann", "nobody"])
    async with NETWORKS.start(mods=[mod]) as network:
        ann, bot = await two(network)
        calc = await network.join("calc", "agent", turns=True)
        await network.join("bob")
        sent = await ann.say(["bot", "calc"], "hello")
        assert (sent["not_woken"], sent["queued"]) == ({"bot": "muted"}, {"calc": 1})
        assert "wake" not in await bot.event()
        assert "wake" in await calc.event()
        await ann.say("bob", "hello")  # wakes no agent, so the hook is not called
        assert mod.asked == [["bot", "calc"]]
        for invalid in (None, 5):
            mod._asleep = lambda draft, agents, answer=invalid: answer  # type: ignore[misc]
            assert "bot" in (await ann.say("bot", "hello"))["queued"]
            assert network.hub.services.mods.failures.pop(("sleeper", "on_wake"))


# Lookups ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-94")
async def test_a_quote_is_completed_before_the_message_is_checked() -> None:
    def complete(mod: Mod, draft: Draft) -> Verdict:
        return Replace(draft.replace(quote=Quote(message_id="m1", text="found")))

    mod = Librarian(complete)
    async with NETWORKS.start(mods=[mod]) as network:
        ann, bot = await two(network)
        await ann.say("bot", "plain")
        assert mod.looked == 0
        await ann.say("bot", "see", quote={"message_id": "m1"})
        assert (await bot.take(2))[1]["message"]["quote"] == {"message_id": "m1", "text": "found"}
        mod._look = lambda mod, draft: Reject("no such thing")
        with pytest.raises(OperationError, match="librarian: no such thing"):
            await ann.say("bot", "see", quote={"message_id": "m1", "text": "x"})
        assert await bot.texts() == []


@pytest.mark.behaviour("M-94")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_a_broken_lookup_is_a_failure_of_its_mod(on_failure: str) -> None:
    def raises(mod: Mod, draft: Draft) -> Verdict:
        raise LookupError("lost")

    def forges(mod: Mod, draft: Draft) -> Verdict:
        return Replace(draft.replace(sender_id="bob"))

    for look in (raises, forges):
        mod = Librarian(look, on_failure=on_failure)
        async with NETWORKS.start(mods=[mod]) as network:
            ann, bot = await two(network)
            quote = {"message_id": "m1"}
            answer = await ann.ask("send_text_message", to="bot", text="see", quote=quote)
            assert answer["op"] == ("result" if on_failure == "pass" else "error")
            senders = [event["message"]["sender_id"] for event in await bot.sync()]
            assert senders == (["ann"] if on_failure == "pass" else [])
            assert ("librarian", "on_references") in network.hub.services.mods.failures


@pytest.mark.behaviour("M-94")
async def test_a_lookup_that_the_store_refuses_is_not_the_mods_failure() -> None:
    store = MoodyStore()
    mod = Librarian(lambda mod, draft: Reject("never called"))
    async with NETWORKS.start(store=store, mods=[mod]) as network:
        ann, _ = await two(network)
        store.deaf = True
        with pytest.raises(OperationError) as caught:
            await ann.say("bot", "see", quote={"message_id": "m1", "text": "x"})
        store.deaf = False
        assert caught.value.code == "store_unavailable"
        assert not network.hub.services.mods.failures


# Slow mods -------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-399")
async def test_a_slow_mod_delays_only_the_sender_and_keeps_its_order() -> None:
    mod = Ponderer()
    async with NETWORKS.start(mods=[mod]) as network:
        ann, bot = await two(network)
        bob = await network.join("bob")
        first = await ann.post("send_text_message", to="bot", text="a long message", cid="c1")
        assert await asyncio.to_thread(mod.begun.wait, DEADLINE_S)
        again = await ann.post("send_text_message", to="bot", text="a long message", cid="c1")
        second = await ann.post("send_text_message", to="bot", text="short")
        await bob.say("bot", "others")
        assert await bot.texts() == ["others"]
        mod.go_on.set()
        answers = [await ann.answer(ref) for ref in (first, again, second)]
        assert [answer["op"] for answer in answers] == ["result"] * 3
        assert answers[1]["duplicate"]
        assert await bot.texts() == ["A LONG MESSAGE", "short"]


@pytest.mark.behaviour("M-399")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
async def test_a_mod_over_its_time_limit_in_a_thread_has_failed(on_failure: str) -> None:
    mod = Ponderer(on_failure=on_failure, time_limit=0.01)
    async with NETWORKS.start(mods=[mod]) as network:
        ann, bot = await two(network)
        answer = await ann.ask("send_text_message", to="bot", text="a long message")
        mod.go_on.set()
        assert answer["op"] == ("result" if on_failure == "pass" else "error")
        assert (await bot.texts()).count("a long message") == (on_failure == "pass")
        assert ("ponderer", "on_message") in network.hub.services.mods.failures


# Showing ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-94")
async def test_a_mod_changes_how_messages_are_shown_in_every_read() -> None:
    async with NETWORKS.start(mods=[Painter(loud)]) as network:
        ann, bot = await two(network)
        sent = await ann.call("broadcast_text_message", text="hello @bot")
        assert await bot.texts() == ["hello @bot"]  # events are delivered as stored
        page = await ann.call("read_thread", thread="broadcast")
        [thread] = (await ann.call("list_threads"))["threads"]
        mentions = await bot.call("list_mentions")
        one = await ann.call("read_message", id=sent["id"])
        tree = await ann.call("read_interaction", id=one["interaction_id"])
        ready = await network.join("bot", "agent", turns=True, latest=True)
        for messages in (
            page["messages"],
            thread["messages"],
            mentions["messages"],
            [one],
            tree["messages"],
            ready.ready["threads"][0]["messages"],
            [each["message"] for each in ready.ready["pending"]],
        ):
            assert [each["content"] for each in messages] == ["HELLO @BOT"]


@pytest.mark.behaviour("M-94")
async def test_a_mod_that_fails_to_show_messages_leaves_them_unchanged() -> None:
    for paint in (broken, lambda message: None):
        async with NETWORKS.start(mods=[Painter(paint)]) as network:
            ann, _ = await two(network)
            await ann.say("bot", "hello")
            page = await ann.call("read_thread", thread="direct_bot")
            assert [each["content"] for each in page["messages"]] == ["hello"]
            assert ("painter", "shown") in network.hub.services.mods.failures
