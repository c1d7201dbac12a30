"""Who receives what, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.errors import OperationError
from hubbub.protocol import thread_ids
from tests.interaction.peers import Networks, Peer, config


def numbers(events: list[dict[str, object]]) -> list[object]:
    return [event["seq"] for event in events]


@pytest.mark.behaviour("P-12")
async def test_a_direct_message_reaches_only_its_recipient(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        carol = await network.join("carol", "agent")
        result = await ann.say("bob", "psst")
        event = await bob.event()
        assert event["message"]["content"] == "psst"
        assert event["message"]["recipients"] == ["bob"]
        assert event["message"]["sender_id"] == "ann"
        assert (event["seq"], event["tseq"]) == (result["seq"], result["tseq"]) == (1, 1)
        assert await carol.sync() == []
        with pytest.raises(OperationError, match="unknown_thread"):
            await carol.call("read_thread", thread="dm.ann.bob")
        with pytest.raises(OperationError, match="unknown_message"):
            await carol.call("read_message", id=result["id"])


@pytest.mark.behaviour("P-14")
@pytest.mark.parametrize("kind", ["human", "agent", "service"])
async def test_the_sender_gets_a_result_and_no_event(networks: Networks, kind: str) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann", kind), await network.join("bob")
        result = await ann.say("bob", "hi")
        assert result["thread_id"] == "dm.ann.bob"
        await ann.call("broadcast_text_message", text="all")
        assert await ann.sync() == []
        assert await bob.texts() == ["hi", "all"]


@pytest.mark.behaviour("P-14")
async def test_a_persons_second_tab_sees_what_the_first_one_sends(networks: Networks) -> None:
    async with networks.start() as network:
        one, two, bob = [await network.join(name) for name in ("ann", "ann", "bob")]
        await one.say("bob", "from one")
        await two.call("broadcast_text_message", text="from two")
        await bob.say("ann", "to both")
        assert await one.texts() == ["from two", "to both"]
        assert await two.texts() == ["from one", "to both"]
        assert await bob.texts() == ["from one", "from two"]


@pytest.mark.behaviour("P-21")
async def test_an_agent_has_one_socket_and_the_newcomer_wins(networks: Networks) -> None:
    async with networks.start() as network:
        bob = await network.join("bob")
        older = await network.join("calc", "agent")
        newer = await network.join("calc", "agent")
        assert await older.closed() == 4503
        await bob.say("calc", "hi")
        assert await newer.texts() == ["hi"]
        assert (await bob.signal("presence"))["data"]["online"][0]["id"] in ("bob", "calc")


@pytest.mark.behaviour("P-13")
async def test_a_broadcast_reaches_all_but_the_sender(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        others = [await network.join(f"bot{n}", "agent") for n in range(3)]
        others.append(await network.join("bob"))
        result = await ann.call("broadcast_text_message", text="hello everybody")
        assert result["thread_id"] == "broadcast"
        for other in others:
            (event,) = await other.sync()
            assert event["message"]["type"] == "broadcast"
            assert event["message"].get("recipients", []) == []
        assert await ann.sync() == []


@pytest.mark.behaviour("P-13")
async def test_a_channel_message_reaches_the_members_of_that_moment(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
        await ann.call("create_channel", name="desk", members=["bob"])
        await ann.call("post_to_channel", channel="desk", text="one")
        await carol.call("join_channel", channel="desk")
        await ann.call("post_to_channel", channel="channel_desk", text="two")
        await bob.call("leave_channel", channel="#desk")
        await ann.call("post_to_channel", channel="desk", text="three")
        await bob.call("join_channel", channel="desk")
        await ann.call("post_to_channel", channel="desk", text="four")
        assert await bob.texts() == ["one", "two", "four"]
        assert await carol.texts() == ["two", "three", "four"]
        for peer, name in ((bob, "bob"), (carol, "carol")):
            await peer.close()
            back = await network.join(name, cursor={"epoch": peer.hello["epoch"], "seq": 0})
            heard = {"bob": ["one", "two", "four"], "carol": ["two", "three", "four"]}[name]
            assert await back.take_texts(3) == heard


async def test_leaving_and_joining_in_one_breath_keeps_the_order(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.call("create_channel", name="desk", members=["bob"])
        refs = [await bob.post(op, channel="desk") for op in ("leave_channel", "join_channel")]
        assert [(await bob.answer(ref))["op"] for ref in refs] == ["result", "result"]
        await ann.call("post_to_channel", channel="desk", text="still there?")
        assert await bob.texts() == ["still there?"]
        refs = [await bob.post(op, channel="desk") for op in ("join_channel", "leave_channel")]
        for ref in refs:
            await bob.answer(ref)
        await ann.call("post_to_channel", channel="desk", text="gone?")
        assert await bob.texts() == []


async def test_who_is_no_member_can_neither_post_nor_read(networks: Networks) -> None:
    async with networks.start(config(network={"auth": "open"})) as network:
        ann = await network.join("ann")
        calc = await network.join("calc", "agent")
        await ann.call("create_channel", name="desk")
        assert (await calc.ask("post_to_channel", channel="desk", text="x"))["code"] == "forbidden"
        for thread in ("channel_desk", "channel.desk"):
            assert (await calc.ask("read_thread", thread=thread))["code"] == "unknown_thread"
            assert (await calc.ask("send_text_message", to=thread, text="x"))["op"] == "error"
        assert (await calc.ask("post_to_channel", channel="dsek", text="x"))["message"] == (
            "there is no channel 'dsek'; did you mean desk?"
        )


async def test_a_channel_may_be_called_like_a_reply_thread(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.call("create_channel", name="t5", members=["bob"])
        await ann.call("post_to_channel", channel="t5", text="hi")
        assert await bob.texts() == ["hi"]


@pytest.mark.behaviour("P-11")
async def test_every_name_of_a_conversation_means_the_same_thread(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for to in ("bob", ["bob"], "direct_bob", "dm.ann.bob", "dm.bob.ann"):
            assert (await ann.say(to, "x"))["thread_id"] == "dm.ann.bob"
        assert [e["tseq"] for e in await bob.sync()] == [1, 2, 3, 4, 5]
        assert (await ann.ask("send_text_message", to="dm.ann.ann", text="x"))["op"] == "error"


@pytest.mark.behaviour("P-11")
async def test_a_group_has_at_most_eight(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        bots = [f"bot{n}" for n in range(8)]
        peers = [await network.join(name, "agent") for name in bots]
        result = await ann.say(bots[:7], "to seven")
        assert result["thread_id"] == thread_ids.direct(["ann", *bots[:7]])
        assert sorted(result["present"]) == bots[:7]
        assert [len(await peer.sync()) for peer in peers] == [1] * 7 + [0]
        error = await ann.ask("send_text_message", to=bots, text="to eight")
        assert error["code"] == "limit"
        shown = thread_ids.relative(result["thread_id"], "bot0")
        await peers[0].say(shown, "back to all")
        assert (await ann.event())["message"]["content"] == "back to all"


@pytest.mark.behaviour("P-15")
async def test_an_unknown_recipient_is_an_error_and_nothing_is_stored(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        await network.join("bob")
        error = await ann.ask("send_text_message", to="bobb", text="hi")
        assert error["code"] == "unknown_participant"
        assert "did you mean bob?" in error["message"]
        assert network.hub.log.head == 0


@pytest.mark.behaviour("P-15", "P-17")
async def test_an_absent_participant_gets_all_it_missed_page_by_page(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"burst": 1000}})) as network:
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
        await back.until(lambda: len(back.events) == 256)
        assert len(await back.sync()) == 256  # the window is full until something is acknowledged
        await back.ack(256)
        rest = await back.take_texts(44)
        assert rest == [str(n) for n in range(256, 300)]


@pytest.mark.behaviour("P-4", "P-18")
async def test_prev_proves_that_nothing_is_missing(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
        for n in range(10):
            await ann.say("bob" if n % 3 else "carol", str(n))
        for peer, name in ((bob, "bob"), (carol, "carol")):
            live = await peer.sync()
            await peer.close()
            back = await network.join(name, cursor={"epoch": peer.hello["epoch"], "seq": 0})
            caught_up = await back.take(len(live))
            for events in (live, caught_up):
                assert [event["prev"] for event in events] == [0, *numbers(events)[:-1]]
            assert caught_up == live


@pytest.mark.behaviour("P-18")
async def test_what_is_sent_in_one_breath_keeps_its_order(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        texts = [str(n) for n in range(80)]
        refs = [await ann.post("send_text_message", to="bob", text=text) for text in texts]
        answers = [await ann.answer(ref) for ref in refs]
        assert [a["value"]["tseq"] for a in answers] == list(range(1, 81))
        assert await bob.texts() == texts


@pytest.mark.behaviour("P-18")
async def test_two_participants_see_a_channel_in_the_same_order(networks: Networks) -> None:
    async with networks.start(config(channels={"general": {}})) as network:
        peers = [await network.join(name) for name in ("ann", "bob", "carol", "dave")]
        for n in range(15):
            for peer in peers[:3]:
                await peer.post("post_to_channel", channel="general", text=f"{n}")
        for peer in peers:
            await peer.sync()
        await network.quiet()
        seen = [{e["seq"]: e["message"]["id"] for e in await p.sync()} for p in peers]
        assert all(list(events) == sorted(events) for events in seen)
        page = await peers[3].call("read_thread", thread="channel_general", limit=100)
        assert [m["tseq"] for m in page["messages"]] == list(range(1, 46))


@pytest.mark.behaviour("P-19")
async def test_the_snapshot_and_the_events_after_it_are_the_fresh_state(
    networks: Networks,
) -> None:
    async with networks.start(config(channels={"general": {}})) as network:
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
            apply(seen, event)
        read = await old.signal("read")
        seen[read["thread_id"]]["read"] = read["data"]["upto"]
        last = max(thread["last_seq"] for thread in seen.values())
        fresh = await network.join("bob", cursor={"epoch": ann.hello["epoch"], "seq": last})
        assert {t["id"]: t for t in fresh.ready["threads"]} == seen
        order = [thread["last_seq"] for thread in fresh.ready["threads"]]
        assert order == sorted(order, reverse=True)


def apply(threads: dict[str, dict[str, object]], event: dict[str, object]) -> None:
    """Bring a snapshot up to date with one event, as a client does."""
    message = event["message"]
    assert isinstance(message, dict)
    known = threads.setdefault(
        message["thread_id"],
        {"id": message["thread_id"], "type": message["type"], "read": 0, "messages": []},
    )
    messages = known["messages"]
    assert isinstance(messages, list)
    if not any(m["seq"] == message["seq"] for m in messages):
        messages.append(message)
        known["head"], known["last_seq"] = message["tseq"], message["seq"]


async def test_json_content_travels_with_its_representation(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        content = {"rows": [1, 2.5, None, {"ä": "\u202e"}], "huge": 2**70}
        await ann.call("send_message", to="bob", content=content, text_representation="a table")
        message = (await bob.event())["message"]
        assert message["content"] == content
        assert message["text_representation"] == "a table"


async def test_quotes_and_attachments_arrive_as_given(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        quote = {"message_id": "m1", "text": 'he said "x"'}
        file = {"name": "a.txt", "uri": "file:///a", "media_type": "text/plain", "size": 3}
        await ann.say("bob", "look", quote=quote, attachments=[file])
        message = (await bob.event())["message"]
        assert (message["quote"], message["attachments"]) == (quote, [file])


@pytest.mark.behaviour("S-12")
async def test_a_refused_first_message_does_no_harm_after_a_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    """It leaves a thread without a number in the store."""
    store = f"sqlite:{tmp_path}/hub.db"

    async def speak(peer: Peer, to: str, text: str) -> str:
        return str((await peer.ask("send_text_message", to=to, text=text))["op"])

    async with in_memory.start(store=store) as network:
        for name in ("bob", "carol"):
            await network.join(name)
        ann = await network.join("ann")
        assert await speak(ann, "bob", "x" * 70_000) == "error"
        assert await speak(ann, "carol", "hi") == "result"
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        assert await speak(ann, "bob", "hi") == "result"
        assert await speak(ann, "carol", "hi") == "result"
