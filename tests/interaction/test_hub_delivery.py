"""Which participants receive a message, and in which order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.protocol import thread_ids
from tests.interaction.peers import Frame, Network, Networks, config
from tests.interaction.stop_harness import HandClock

NETWORK = config(channels={"general": {}}, network={"limits": {"burst": 1000}})


@pytest.mark.behaviour("P-12")
async def test_a_direct_message_reaches_only_its_recipient(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        carol = await network.join("carol", "agent")
        quote = {"message_id": "m1", "text": 'he said "x"'}
        file = {"name": "a.txt", "uri": "file:///a", "media_type": "text/plain", "size": 3}
        result = await ann.say("bob", "psst", quote=quote, attachments=[file])
        event = await bob.event()
        message = event["message"]
        assert (message["content"], message["quote"]) == ("psst", quote)
        assert (message["recipients"], message["attachments"]) == (["bob"], [file])
        assert message["sender_id"] == "ann"
        assert (event["seq"], event["tseq"]) == (result["seq"], result["tseq"]) == (1, 1)
        content = {"rows": [1, 2.5, None, {"ä": "\u202e"}], "huge": 2**70}
        await ann.call("send_message", to="bob", content=content, text_representation="a table")
        message = (await bob.event())["message"]
        assert (message["content"], message["text_representation"]) == (content, "a table")
        assert await carol.sync() == []
        with pytest.raises(OperationError, match="unknown_thread"):
            await carol.call("read_thread", thread="dm.ann.bob")
        with pytest.raises(OperationError, match="unknown_message"):
            await carol.call("read_message", id=result["id"])


@pytest.mark.behaviour("P-13", "P-14")
async def test_a_broadcast_reaches_all_participants_but_its_sender(network: Network) -> None:
    kinds = {"ann": "human", "bot": "agent", "web": "service"}
    peers = {name: await network.join(name, kind) for name, kind in kinds.items()}
    for name, sender in peers.items():
        result = await sender.call("broadcast_text_message", text=name)
        assert result["thread_id"] == "broadcast"
        assert await sender.sync() == []
        for other in peers.values():
            if other is not sender:
                (event,) = await other.sync()
                message = event["message"]
                assert (message["type"], message["content"]) == ("broadcast", name)
                assert message.get("recipients", []) == []


@pytest.mark.behaviour("P-14")
async def test_messages_of_one_tab_reach_the_persons_other_tab(networks: Networks) -> None:
    async with networks.start() as network:
        one, two, bob = [await network.join(name) for name in ("ann", "ann", "bob")]
        await one.say("bob", "from one")
        await two.call("broadcast_text_message", text="from two")
        await bob.say("ann", "to both")
        assert await one.texts() == ["from two", "to both"]
        assert await two.texts() == ["from one", "to both"]
        assert await bob.texts() == ["from one", "from two"]


@pytest.mark.behaviour("P-21")
async def test_a_new_socket_of_an_agent_replaces_its_old_one(networks: Networks) -> None:
    async with networks.start() as network:
        bob = await network.join("bob")
        older = await network.join("calc", "agent")
        newer = await network.join("calc", "agent")
        assert await older.closed() == 4503
        await bob.say("calc", "hi")
        assert await newer.texts() == ["hi"]
        assert (await bob.signal("presence"))["data"]["online"][0]["id"] in ("bob", "calc")


@pytest.mark.behaviour("P-13")
async def test_a_channel_message_reaches_its_current_members(network: Network) -> None:
    ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
    await ann.call("create_channel", name="desk", members=["bob"])
    await ann.call("post_to_channel", channel="desk", text="one")
    await carol.call("join_channel", channel="desk")
    await ann.call("post_to_channel", channel="channel_desk", text="two")
    await bob.call("leave_channel", channel="#desk")
    await ann.call("post_to_channel", channel="desk", text="three")
    await bob.call("join_channel", channel="desk")
    await ann.call("post_to_channel", channel="desk", text="four")
    expected = {"bob": ["one", "two", "four"], "carol": ["two", "three", "four"]}
    for peer, name in ((bob, "bob"), (carol, "carol")):
        assert await peer.texts() == expected[name]
        await peer.close()
        back = await network.join(name, cursor={"epoch": peer.hello["epoch"], "seq": 0})
        assert await back.take_texts(3) == expected[name]


async def test_pipelined_joins_and_leaves_take_effect_in_order(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.call("create_channel", name="t5", members=["bob"])  # named like a reply thread
    for operations, expected in (
        (("leave_channel", "join_channel"), ["still there?"]),
        (("join_channel", "leave_channel"), []),
    ):
        refs = [await bob.post(operation, channel="t5") for operation in operations]
        assert [(await bob.answer(ref))["op"] for ref in refs] == ["result", "result"]
        await ann.call("post_to_channel", channel="t5", text="still there?")
        assert await bob.texts() == expected


async def test_only_members_of_a_channel_can_post_and_read(network: Network) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    await ann.call("create_channel", name="desk")
    assert (await calc.ask("post_to_channel", channel="desk", text="x"))["code"] == "forbidden"
    for thread in ("channel_desk", "channel.desk"):
        assert (await calc.ask("read_thread", thread=thread))["code"] == "unknown_thread"
        assert (await calc.ask("send_text_message", to=thread, text="x"))["op"] == "error"
    misspelled = await ann.ask("post_to_channel", channel="dsek", text="x")
    assert misspelled["message"] == "no channel is named 'dsek'; did you mean desk?"


@pytest.mark.behaviour("P-11")
async def test_all_forms_of_a_thread_id_name_the_same_thread(network: Network) -> None:
    ann = await network.join("ann")
    bots = [f"bot{n}" for n in range(8)]
    peers = [await network.join(name, "agent") for name in bots]
    for to in ("bot0", ["bot0"], "direct_bot0", "dm.ann.bot0", "dm.bot0.ann"):
        assert (await ann.say(to, "x"))["thread_id"] == "dm.ann.bot0"
    assert [event["tseq"] for event in await peers[0].sync()] == [1, 2, 3, 4, 5]
    assert (await ann.ask("send_text_message", to="dm.ann.ann", text="x"))["op"] == "error"
    result = await ann.say(bots[:7], "to seven")
    assert result["thread_id"] == thread_ids.direct(["ann", *bots[:7]])
    assert sorted(result["present"]) == bots[:7]
    assert [len(await peer.sync()) for peer in peers] == [1] * 7 + [0]
    error = await ann.ask("send_text_message", to=bots, text="a group has at most eight")
    assert error["code"] == "limit"
    await peers[0].say(thread_ids.relative(result["thread_id"], "bot0"), "back to all")
    assert (await ann.event())["message"]["content"] == "back to all"


@pytest.mark.behaviour("P-15")
async def test_an_unknown_recipient_is_an_error_and_nothing_is_stored(network: Network) -> None:
    ann, _ = await network.join("ann"), await network.join("bob")
    error = await ann.ask("send_text_message", to="bobb", text="hi")
    assert error["code"] == "unknown_participant"
    assert "did you mean bob?" in error["message"]
    assert network.hub.kernel.log.head == 0


@pytest.mark.behaviour("P-15", "P-17")
async def test_an_absent_participant_later_gets_every_missed_message(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await bob.close()
    await network.gone("bob")
    first = await ann.say("bob", "0")
    assert (first.get("present", []), first["absent"]) == ([], ["bob"])
    for n in range(1, 300):
        await ann.post("send_text_message", to="bob", text=str(n))
    await ann.sync()
    await network.quiet()
    back = await network.join("bob")
    assert len(await back.take(256)) == 256  # the window is full until an acknowledgement
    await back.ack(256)
    assert await back.take_texts(44) == [str(n) for n in range(256, 300)]


@pytest.mark.behaviour("P-4", "P-18")
async def test_prev_names_the_previous_event_live_and_after_a_resume(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
        for n in range(10):
            await ann.say("bob" if n % 3 else "carol", str(n))
        for peer, name in ((bob, "bob"), (carol, "carol")):
            live = await peer.sync()
            await peer.close()
            back = await network.join(name, cursor={"epoch": peer.hello["epoch"], "seq": 0})
            caught_up = await back.take(len(live))
            assert caught_up == live
            seqs = [event["seq"] for event in live]
            assert [event["prev"] for event in live] == [0, *seqs[:-1]]


@pytest.mark.behaviour("P-4")
async def test_a_client_is_told_once_when_it_has_everything_that_it_missed(
    networks: Networks,
) -> None:
    async with networks.start(config(network={"limits": {"unacknowledged": 2}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.close()
        for n in range(3):
            await ann.say("bob", str(n))
        bob = await network.join("bob", cursor={"epoch": bob.hello["epoch"], "seq": 0})
        await bob.until(lambda: len(bob.events) == 2)
        await bob.ack(2)
        told = await bob.signal("caught_up")
        assert (told["sender"], told["data"]) == ("hub", {"seq": 3})
        assert [event["seq"] for event in bob.events] == [1, 2, 3]
        for n in range(3, 5):  # it falls behind again
            await ann.say("bob", str(n))
        await bob.ack(3)
        await bob.until(lambda: len(bob.events) == 5)
        await bob.sync()
        assert "caught_up" not in {signal["type"] for signal in [*bob.signals, *ann.signals]}


@pytest.mark.behaviour("P-18")
async def test_concurrent_posts_have_the_same_order_for_every_reader(networks: Networks) -> None:
    async with networks.start(NETWORK) as network:
        peers = [await network.join(name) for name in ("ann", "bob", "carol", "dave")]
        for n in range(15):
            for peer in peers[:3]:
                await peer.post("post_to_channel", channel="general", text=str(n))
        for peer in peers[:3]:
            tseqs = [(await peer.answer(f"r{n}"))["value"]["tseq"] for n in range(1, 16)]
            assert tseqs == sorted(tseqs)
        await network.quiet()
        seen = [[event["seq"] for event in await peer.sync()] for peer in peers]
        assert seen[3] == list(range(1, 46))
        assert all(seqs == sorted(seqs) and len(seqs) == 30 for seqs in seen[:3])
        page = await peers[3].call("read_thread", thread="channel_general", limit=100)
        assert [message["tseq"] for message in page["messages"]] == list(range(1, 46))


def apply(threads: dict[str, Frame], message: Any) -> None:
    """Apply a message to a snapshot, as a client does."""
    new = {"id": message["thread_id"], "type": message["type"], "read": 0, "messages": []}
    thread = threads.setdefault(message["thread_id"], new)
    if not any(m["seq"] == message["seq"] for m in thread["messages"]):
        thread["messages"].append(message)
        thread["head"], thread["last_seq"] = message["tseq"], message["seq"]


@pytest.mark.behaviour("P-19")
async def test_the_snapshot_plus_later_events_equals_a_fresh_snapshot(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.say("bob", "1")
    await ann.call("post_to_channel", channel="general", text="2")
    old = await network.join("bob")
    seen = {thread["id"]: thread for thread in old.ready["threads"]}
    await ann.say("bob", "3")
    root = await ann.call("broadcast_text_message", text="4")
    await ann.call("reply", message_id=root["id"], text="5")
    await bob.say("ann", "6")  # bob's other tab
    await bob.call("mark_read", thread="direct_ann", upto=2)
    for event in await old.sync():
        apply(seen, event["message"])
    read = await old.signal("read")
    seen[read["thread_id"]]["read"] = read["data"]["upto"]
    last = max(thread["last_seq"] for thread in seen.values())
    fresh = await network.join("bob", cursor={"epoch": ann.hello["epoch"], "seq": last})
    assert {thread["id"]: thread for thread in fresh.ready["threads"]} == seen
    order = [thread["last_seq"] for thread in fresh.ready["threads"]]
    assert order == sorted(order, reverse=True)


@pytest.mark.behaviour("S-12")
async def test_a_thread_whose_first_message_was_refused_works_after_a_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    """The refusal leaves a thread without a number in the store."""
    store = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=store) as network:
        ann, *_ = [await network.join(name) for name in ("ann", "bob", "carol")]
        large = await ann.ask("send_text_message", to="bob", text="x" * 70_000)
        assert large["op"] == "error"
        await ann.say("carol", "hi")
    async with in_memory.start(store=store) as network:
        ann, *_ = [await network.join(name) for name in ("ann", "bob", "carol")]
        await ann.say("bob", "hi")
        await ann.say("carol", "hi")


@pytest.mark.behaviour("P-14")
async def test_a_returning_person_gets_its_own_messages_but_an_agent_does_not(
    network: Network,
) -> None:
    """A person may have sent them from another socket. An agent has only one."""
    ann, bot = await network.join("ann"), await network.join("bot", "agent")
    cursor = {"epoch": ann.hello["epoch"], "seq": ann.ready["head"]}
    await ann.say("bot", "from ann")
    await bot.say("ann", "from bot")
    await bot.call("send_message", to="ann", content={"sent_by": "bot"})
    await ann.call("broadcast_text_message", text="to all")
    await ann.call("take_over", agent="bot")
    await ann.say("ann", "for bot", on_behalf_of="bot")
    got = [event["message"] for event in await ann.sync()]
    (notice,) = [message for message in got if message["sender_kind"] == "system"]
    await ann.call("broadcast_text_message", text="the last")
    for peer, name in ((ann, "ann"), (bot, "bot")):
        await peer.close()
        await network.gone(name)
    ann = await network.join("ann", cursor=cursor)
    of_bot = ["from bot", {"sent_by": "bot"}]
    expected = ["from ann", *of_bot, "to all", notice["content"], "for bot", "the last"]
    assert await ann.take_texts(7) == expected
    bot = await network.join("bot", "agent", cursor=cursor)
    assert await bot.take_texts(5) == [each for each in expected if each not in of_bot]


@pytest.mark.behaviour("P-14")
async def test_a_socket_that_fell_behind_does_not_get_its_own_messages(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"limits": {"unacknowledged": 2}})) as network:
        bob, ann = await network.join("bob"), await network.join("ann")
        for number in range(3):
            await bob.say("ann", f"bob {number}")
        await ann.say("bob", "ann")
        await bob.say("ann", "bob 3")
        assert await ann.take_texts(2) == ["bob 0", "bob 1"]
        await ann.ack(2)
        assert await ann.take_texts(2) == ["bob 2", "bob 3"]


@pytest.fixture
def behind_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's time zone is one where the day before has not ended."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "XXX+11")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("behind_utc")
async def test_times_are_in_utc_whatever_the_time_zone_of_the_machine(in_memory: Networks) -> None:
    async with in_memory.start(clock=HandClock()) as network:
        ann, _ = await network.join("ann"), await network.join("bot", "agent")
        await ann.say("bot", "hi")
        page = await ann.call("read_thread", thread="direct_bot")
        assert page["messages"][0]["sent_at"] == "2027-01-15T08:00:00Z"
        spent = await ann.call("read_spending")
        assert [row["day"] for row in spent["rows"]] == ["2027-01-15"]
