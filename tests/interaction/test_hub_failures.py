"""Disks that refuse, mods that break, and a hub that stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub.errors import StoreUnavailable
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.mods.operation import Calling, Commit, Operation, operation
from hubbub.network.store import open_store
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Done, Input
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import GATEWAY, Network, Networks, config, eventually, soon
from tests.interaction.stores import MoodyStore

MODELS = {"default": {"model": "scripted", "base_url": "http://127.0.0.1:9/v1"}}
NETWORK = config(network={"limits": {"unacknowledged": 16}})


@pytest.mark.behaviour("S-5")
async def test_a_refused_commit_is_a_temporary_error_and_burns_no_number(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.failing = 1
    assert (await ann.ask("send_text_message", to="bob", text="lost"))["op"] == "error"
    root = await ann.say("bob", "1")
    moody.failing = 1
    error = await ann.ask("send_text_message", to="bob", text="lost")
    assert (error["code"], error["temporary"]) == ("store_unavailable", True)
    assert "Traceback" not in error["message"]
    sent = await ann.say("bob", "2")
    assert (sent["seq"], sent["tseq"]) == (2, 2)
    moody.failing = 1
    assert (await ann.ask("reply", message_id=root["id"], text="lost"))["op"] == "error"
    assert (await ann.call("reply", message_id=root["id"], text="3"))["tseq"] == 1
    events = await bob.sync()
    assert [event["message"]["content"] for event in events] == ["1", "2", "3"]
    assert [event["prev"] for event in events] == [0, 1, 2]
    assert network.hub.kernel.metrics.refused == 3
    moody.failing = 1
    assert (await ann.ask("create_channel", name="desk"))["code"] == "store_unavailable"
    assert (await ann.call("list_channels"))["channels"] == []
    await ann.call("create_channel", name="desk")
    assert (await ann.call("post_to_channel", channel="desk", text="x"))["tseq"] == 1


@pytest.mark.behaviour("S-13")
async def test_a_database_deleted_under_the_hub_is_refused_in_words_and_logged_once(
    in_memory: Networks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hub.db"
    async with in_memory.start(store=open_store(f"sqlite:{path}")) as network:
        ann, _ = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "kept")
        assert network.hub.store.problem() == ""
        path.unlink()
        for text in ("lost", "lost too"):
            error = await ann.ask("send_text_message", to="bob", text=text)
            assert error["code"] == "store_unavailable"
            assert f"{path} was deleted" in error["message"]
        assert "was deleted" in network.hub.store.problem()
        threads = await ann.call("read_thread", thread="direct_bob")
        assert [message["content"] for message in threads["messages"]] == ["kept"]
    assert capsys.readouterr().err.count("the store refuses writes") == 1


@pytest.mark.behaviour("S-5")
async def test_who_cannot_be_stored_is_sent_away_to_come_back(
    network: Network, moody: MoodyStore
) -> None:
    ann = await network.join("ann", card={"description": "old"})

    async def people() -> dict[str, str]:
        told = (await ann.call("list_participants"))["participants"]
        return {each["id"]: each["card"]["description"] for each in told}

    moody.failing = 1
    error, code = await (await network.attach()).refused(participant="bob")
    assert (error["code"], error["temporary"], code) == ("store_unavailable", True, 4001)
    assert "ref" not in error
    moody.failing = 1
    await (await network.attach()).refused(card={"description": "new"})
    assert await people() == {"ann": "old"}
    before = len(moody.batches)
    await network.join("ann", card={"description": "new"})
    assert await people() == {"ann": "new"}
    assert len(moody.batches) == before + 1
    await network.join("bob")
    await ann.say("bob", "welcome")


@pytest.mark.behaviour("S-5")
@pytest.mark.parametrize("failing", [0, 1])
async def test_two_sockets_of_a_newcomer_at_once_are_one_participant(
    network: Network, moody: MoodyStore, failing: int
) -> None:
    """The second must not come in on a registration that fails."""
    bob = await network.join("bob")
    tabs = [await network.attach() for _ in range(2)]
    moody.gate.clear()
    for tab in tabs:
        await tab.send(op="identify", version="hubbub.v1", participant="ann", kind="human")
    async with soon():
        await moody.waiting.wait()
    moody.failing = failing
    moody.gate.set()
    answers = [await tab.receive() for tab in tabs]
    expected = ["error", "ready"] if failing else ["ready", "ready"]
    assert sorted(answer["op"] for answer in answers) == expected
    await bob.say("ann", "welcome")
    inside = next(t for t, a in zip(tabs, answers, strict=True) if a["op"] == "ready")
    assert await inside.take_texts(1) == ["welcome"]
    for tab in tabs:
        await tab.close()
    await network.gone("ann")


@pytest.mark.behaviour("S-5")
async def test_reads_that_fail_are_temporary_errors(in_memory: Networks, moody: MoodyStore) -> None:
    file = config(network={"limits": {"unacknowledged": 1}})
    async with in_memory.start(file, store=moody) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        sent = await ann.say("bob", "1")
        moody.deaf = True
        for call, args in (
            ("read_thread", {"thread": "direct_bob"}),
            ("read_message", {"id": sent["id"]}),
            ("list_threads", {}),
            ("reply", {"message_id": sent["id"], "text": "x"}),
            ("explain_wake", {"agent": "bob", "message_id": sent["id"]}),
        ):
            error = await ann.ask(call, **args)
            assert (error["code"], error["temporary"]) == ("store_unavailable", True), call
        assert (await ann.say("bob", "writes go on"))["seq"] == 2
        assert await bob.take_texts(1) == ["1"]
        await bob.ack(1)
        assert await bob.closed() == 4001, "it cannot be caught up, and comes back later"
        moody.deaf = False
        back = await network.join("bob")
        assert await back.take_texts(1) == ["writes go on"]


@pytest.mark.behaviour("S-2", "S-6")
async def test_nothing_is_said_before_it_is_durable_and_what_queues_is_one_transaction(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    refs = [await ann.post("send_text_message", to="bob", text="0")]
    async with soon():
        await moody.waiting.wait()
    assert await bob.sync() == await ann.sync() == []
    assert refs[0] not in ann._answers
    before = len(moody.batches)
    refs += [await ann.post("send_text_message", to="bob", text=str(n)) for n in range(1, 16)]
    await ann.sync()
    moody.gate.set()
    assert [(await ann.answer(ref))["value"]["seq"] for ref in refs] == list(range(1, 17))
    assert [len(batch.messages) for batch in moody.batches[before:]] == [1, 15]
    assert await bob.texts() == [str(n) for n in range(16)]


@pytest.mark.behaviour("S-5")
async def test_a_hub_that_cannot_write_at_its_start_says_so(moody: MoodyStore) -> None:
    moody.failing = 1
    async with soon():
        with pytest.raises(StoreUnavailable):
            async with LocalNetwork(config(humans={"ann": {}}), store=moody):
                pytest.fail("it cannot have started")


class Weigh(Input):
    kilos: float


@operation(permission="write", output=Done)
def weigh(call: Calling, args: Weigh) -> Done:
    """Weigh something that is not too heavy."""
    return Done(done=bool(1 / args.kilos))


@operation()
async def look(call: Calling, args: Weigh) -> Done:
    """Look at something."""
    return Done(done=bool(1 / args.kilos))


class Clumsy(Mod):
    """A mod with defects."""

    name = "clumsy"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.content == "trip":
            raise LookupError("over my own feet")
        return PASS

    def operations(self) -> tuple[Operation, ...]:
        return weigh, look


class Sealed(Mod):
    name = "sealed"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.content == "forge":
            draft = Draft("bob", "human", draft.thread_id, draft.type, "forged", draft.recipients)
            return Replace(draft)
        return Reject("closed") if draft.type == "broadcast" else PASS


@pytest.mark.behaviour("M-3")
async def test_a_mod_that_breaks_breaks_one_call_only(in_memory: Networks) -> None:
    async with in_memory.start(mods=[Clumsy(ModConfig(on_failure="reject"))]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for call in ("weigh", "look"):
            error = await ann.ask(call, kilos=0.0)
            told = f"the mod clumsy failed in {call}; the operator is notified"
            assert (error["code"], error["message"]) == ("internal", told)
        error = await ann.ask("send_text_message", to="bob", text="trip")
        assert (error["code"], error["details"]) == ("rejected", {"mod": "clumsy"})
        assert await ann.call("weigh", kilos=2.5) == {"done": True}
        assert await ann.say("bob", "walk")
        assert [text for text in await bob.texts() if isinstance(text, str)] == ["walk"]
        assert "weigh" in {info["name"] for info in ann.ready["operations"]}


async def test_an_answer_that_cannot_be_made_when_all_is_written_is_an_error_of_who_asked(
    in_memory: Networks,
) -> None:
    async def answer() -> Done:
        return Done(done=bool(1 / 0))

    async with in_memory.start() as network, soon():
        with pytest.raises(ZeroDivisionError):
            await network.hub.kernel.writes.write(Commit((), answer))


@pytest.mark.behaviour("M-1", "M-2")
async def test_mods_judge_every_message_before_it_is_stored(in_memory: Networks) -> None:
    rules = ModerationConfig(words=("darn",), max_length=20, on_word="mask")
    mods = [Moderation(rules), Sealed(ModConfig(on_failure="reject"))]
    async with in_memory.start(mods=mods) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "darn it")
        error = await ann.ask("send_text_message", to="bob", text="x" * 21)
        assert (error["code"], error["details"]) == ("rejected", {"mod": "moderation"})
        assert error["message"].startswith("moderation: ")
        assert await bob.texts() == ["**** it"]
        assert network.hub.kernel.log.head == 1
        closed = await ann.ask("broadcast_text_message", text="x")
        assert closed["message"] == "sealed: closed"
        forged = await ann.ask("send_text_message", to="bob", text="forge")
        assert forged["message"].startswith("sealed: the mod failed")
        assert [e for e in await bob.sync() if e["message"]["sender_id"] != "hub"] == []


async def test_two_operations_of_one_name_are_refused_at_start() -> None:
    class Doubled(Mod):
        name = "doubled"

        def operations(self) -> tuple[Operation, ...]:
            return weigh, weigh

    with pytest.raises(ValueError, match="weigh is declared twice"):
        async with LocalNetwork(config(), mods=[Doubled(ModConfig())]):
            pass


@pytest.mark.behaviour("P-30")
@pytest.mark.skipif(GATEWAY, reason="who is at a gateway stays there while its hub drains")
async def test_a_draining_hub_sends_everybody_away_to_come_back(networks: Networks) -> None:
    async with networks.start() as network:
        ann, stranger = await network.join("ann"), await network.attach()
        await network.hub.drain(after_s=2.5)
        for peer in (ann, stranger):
            assert await peer.closed() == 4006
            assert {"op": "reconnect", "after_s": 2.5} in peer.strays
        if not networks.sockets:
            late = await network.attach()
            assert await late.closed() == 4006


@pytest.mark.behaviour("P-30")
@pytest.mark.skipif(GATEWAY, reason="who is at a gateway stays there while its hub drains")
async def test_a_draining_hub_finishes_what_it_took_and_takes_no_more(
    network: Network, moody: MoodyStore
) -> None:
    ann, _ = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    taken = await ann.post("send_text_message", to="bob", text="taken")
    async with soon():
        await moody.waiting.wait()
    async with asyncio.TaskGroup() as group:
        group.create_task(network.hub.drain())
        await ann.until(lambda: any(s["op"] == "reconnect" for s in ann.strays))
        error = await ann.ask("send_text_message", to="bob", text="too late")
        assert (error["code"], error["temporary"]) == ("draining", True)
        assert error["retry_after_s"] > 0
        moody.gate.set()
        assert (await ann.answer(taken))["value"]["seq"] == 1
    assert await ann.closed() == 4006
    assert network.hub.kernel.log.head == 1


@pytest.mark.behaviour("B-10")
@pytest.mark.parametrize("where", ["gate", "reads"])
async def test_a_hub_stops_though_somebody_is_on_the_way_in(where: str) -> None:
    """`identify` waits for the store while the hub stops; then it would write."""
    store = MoodyStore()
    gate: asyncio.Event = getattr(store, where)
    local = LocalNetwork(config(), store=store)
    async with soon(), asyncio.TaskGroup() as group:

        async def open_when_stopping() -> None:
            await eventually(lambda: local.hub.draining)
            for _ in range(20):
                await asyncio.sleep(0)
            gate.set()

        async with local:
            wire = await local.transport().open()
            await wire.recv()
            gate.clear()
            await wire.send(
                b'{"op":"identify","version":"hubbub.v1","participant":"ann","kind":"human"}'
            )
            await store.waiting.wait()
            group.create_task(open_when_stopping())
    assert local.hub.draining


async def test_who_waits_for_an_agent_that_will_not_run_hears_it_when_the_disk_answers_again(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(config(agents={"bot": {}}, models=MODELS), store=store) as network:
        ann = await network.join("ann")
        await ann.say("bot", "are you there?")
        store.deaf, asked = True, store.asked
        network.hub.services.launcher.given_up(["bot"], "does not start any more")
        await eventually(lambda: store.asked > asked)
        store.deaf = False
        notice = (await ann.event())["message"]
        assert notice["text_representation"].startswith("bot does not start any more.")


async def test_what_comes_after_the_end_is_refused_and_waits_for_nothing() -> None:
    local = LocalNetwork(config())
    async with local:
        pass
    async with soon():
        with pytest.raises(StoreUnavailable):
            await local.hub.kernel.log.write()
