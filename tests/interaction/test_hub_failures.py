"""Failing disks, failing mods, and a hub that stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hubbub.errors import StoreUnavailable
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.mods.operation import Calling, Commit, Operation, operation
from hubbub.network.records import Batch
from hubbub.network.store import open_store
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Done, Input
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import (
    GATEWAY,
    Frame,
    Network,
    Networks,
    Peer,
    config,
    eventually,
    soon,
)
from tests.interaction.stores import MoodyStore

MODELS = {"default": {"model": "scripted", "base_url": "http://127.0.0.1:9/v1"}}
NETWORK = config(network={"limits": {"unacknowledged": 16}})


@pytest.mark.behaviour("S-5")
async def test_a_failed_commit_is_a_temporary_error_and_uses_no_sequence_number(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.failing = 1
    assert (await ann.ask("send_text_message", to="bob", text="lost"))["op"] == "error"
    root = await ann.say("bob", "1")
    moody.failing = 1
    with capture_logs() as logs:  # by default, a hub prints those from warnings on
        error = await ann.ask("send_text_message", to="bob", text="lost")
        assert (error["code"], error["temporary"]) == ("store_unavailable", True)
        assert "Traceback" not in error["message"]
        sent = await ann.say("bob", "2")
    assert [(record["log_level"], record["event"]) for record in logs] == [
        ("error", "the store refuses writes"),
        ("warning", "the store accepts writes again"),
    ]
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
async def test_a_deleted_database_is_named_in_the_error_and_logged_once(
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
async def test_a_participant_that_cannot_be_stored_is_disconnected_with_a_temporary_error(
    network: Network, moody: MoodyStore
) -> None:
    ann = await network.join("ann", card={"description": "old"})

    async def people() -> dict[str, str]:
        participants = (await ann.call("list_participants"))["participants"]
        return {each["id"]: each["card"]["description"] for each in participants}

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
async def test_two_simultaneous_sockets_of_a_newcomer_register_one_participant(
    network: Network, moody: MoodyStore, failing: int
) -> None:
    """The second socket must not join with a registration that failed."""
    bob = await network.join("bob")
    tabs = [await network.attach() for _ in range(2)]
    moody.gate.clear()
    for tab in tabs:
        await tab.send(op="identify", version="hubbub.v1", participant="ann", kind="human")
    await moody.until_waiting()
    moody.failing = failing
    moody.gate.set()
    answers = [await tab.receive() for tab in tabs]
    expected = ["error", "ready"] if failing else ["ready", "ready"]
    assert sorted(answer["op"] for answer in answers) == expected
    await bob.say("ann", "welcome")
    joined = next(t for t, a in zip(tabs, answers, strict=True) if a["op"] == "ready")
    assert await joined.take_texts(1) == ["welcome"]
    for tab in tabs:
        await tab.close()
    await network.gone("ann")


@pytest.mark.behaviour("S-5")
async def test_failing_reads_are_temporary_errors(in_memory: Networks, moody: MoodyStore) -> None:
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
        assert (await ann.say("bob", "writes work"))["seq"] == 2
        assert await bob.take_texts(1) == ["1"]
        await bob.ack(1)
        assert await bob.closed() == 4001, "the hub cannot read its next event"
        assert bob.why == "the store cannot be read; reconnect"
        moody.deaf = False
        back = await network.join("bob")
        assert await back.take_texts(1) == ["writes work"]


@pytest.mark.behaviour("S-2", "S-6")
async def test_nothing_is_sent_before_its_commit_and_queued_messages_commit_together(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    refs = [await ann.post("send_text_message", to="bob", text="0")]
    await moody.until_waiting()
    assert await bob.sync() == await ann.sync() == []
    assert refs[0] not in ann._answers
    before = len(moody.batches)
    refs += [await ann.post("send_text_message", to="bob", text=str(n)) for n in range(1, 16)]
    await ann.sync()
    moody.gate.set()
    assert [(await ann.answer(ref))["value"]["seq"] for ref in refs] == list(range(1, 17))
    assert [len(batch.messages) for batch in moody.batches[before:]] == [1, 15]
    assert await bob.texts() == [str(n) for n in range(16)]


class ChokingStore(MoodyStore):
    """A defect: it cannot write a batch with a certain text."""

    async def append(self, batch: Batch) -> None:
        if any(b"choke" in row.body for row in batch.messages):
            raise ValueError("it chokes")
        await super().append(batch)


@pytest.mark.behaviour("S-6")
async def test_a_message_that_the_store_chokes_on_fails_alone_of_its_batch(
    in_memory: Networks,
) -> None:
    store, texts = ChokingStore(), ["1", "choke 2", "3", "4", "choke 5", "6"]
    async with in_memory.start(store=store) as network:
        ann, bob, calc = [await network.join(name) for name in ("ann", "bob", "calc")]

        async def post_together(*calls: tuple[Peer, str, dict[str, str]]) -> list[Frame]:
            store.gate.clear()
            store.waiting.clear()
            await ann.post("send_text_message", to="bob", text="being written")
            await store.until_waiting()
            refs = [(peer, await peer.post(name, **args)) for peer, name, args in calls]
            for peer in (ann, bob, calc):
                await peer.sync()  # the hub has read them
            store.gate.set()
            return [await peer.answer(ref) for peer, ref in refs]

        say = "send_text_message"
        answers = await post_together(*((ann, say, {"to": "bob", "text": text}) for text in texts))
        seqs = [each["value"]["seq"] for each in answers if each["op"] == "result"]
        assert seqs == [2, 3, 4, 5]
        choked, made = await post_together(
            (calc, say, {"to": "bob", "text": "choke"}), (bob, "create_channel", {"name": "new"})
        )
        assert made["op"] == "result"
        for each in (answers[1], answers[4], choked):
            assert (each["code"], each["message"]) == ("internal", "the hub failed")
        assert network.hub.kernel.metrics.refused == 3
        assert (await calc.say("bob", "fine"))["tseq"] == 1
        page = await ann.call("read_thread", thread="dm.ann.bob")
        assert [message["tseq"] for message in page["messages"]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.behaviour("S-5")
async def test_a_hub_that_cannot_write_does_not_start(moody: MoodyStore) -> None:
    moody.failing = 1
    async with soon():
        with pytest.raises(StoreUnavailable):
            async with LocalNetwork(config(humans={"ann": {}}), store=moody):
                pytest.fail("the hub has started")


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
async def test_an_exception_in_a_mod_fails_only_its_call(in_memory: Networks) -> None:
    async with in_memory.start(mods=[Clumsy(ModConfig(on_failure="reject"))]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for call in ("weigh", "look"):
            error = await ann.ask(call, kilos=0.0)
            assert error["code"] == "internal"
            assert error["message"] == f"the mod clumsy failed in {call}; the operator is notified"
        error = await ann.ask("send_text_message", to="bob", text="trip")
        assert (error["code"], error["details"]) == ("rejected", {"mod": "clumsy"})
        assert await ann.call("weigh", kilos=2.5) == {"done": True}
        assert await ann.say("bob", "walk")
        assert [text for text in await bob.texts() if isinstance(text, str)] == ["walk"]
        assert "weigh" in {info["name"] for info in ann.ready["operations"]}


async def test_an_exception_after_a_commit_is_raised_to_the_caller(network: Network) -> None:
    async def answer() -> Done:
        return Done(done=bool(1 / 0))

    async with soon():
        with pytest.raises(ZeroDivisionError):
            await network.hub.kernel.writes.write(Commit((), answer))


@pytest.mark.behaviour("M-1", "M-2")
async def test_mods_change_or_reject_a_message_before_it_is_stored(in_memory: Networks) -> None:
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


async def test_a_hub_with_two_operations_of_one_name_does_not_start() -> None:
    class Doubled(Mod):
        name = "doubled"

        def operations(self) -> tuple[Operation, ...]:
            return weigh, weigh

    with pytest.raises(ValueError, match="weigh is declared twice"):
        async with LocalNetwork(config(), mods=[Doubled(ModConfig())]):
            pass


@pytest.mark.behaviour("P-30")
@pytest.mark.skipif(GATEWAY, reason="a gateway keeps its clients while the hub drains")
async def test_a_draining_hub_tells_all_clients_to_reconnect(networks: Networks) -> None:
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
@pytest.mark.skipif(GATEWAY, reason="a gateway keeps its clients while the hub drains")
async def test_a_draining_hub_finishes_accepted_calls_and_refuses_new_ones(
    network: Network, moody: MoodyStore
) -> None:
    ann, _ = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    accepted = await ann.post("send_text_message", to="bob", text="accepted")
    await moody.until_waiting()
    async with asyncio.TaskGroup() as group:
        group.create_task(network.hub.drain())
        await ann.until(lambda: any(s["op"] == "reconnect" for s in ann.strays))
        error = await ann.ask("send_text_message", to="bob", text="too late")
        assert (error["code"], error["temporary"]) == ("draining", True)
        assert error["retry_after_s"] > 0
        moody.gate.set()
        assert (await ann.answer(accepted))["value"]["seq"] == 1
    assert await ann.closed() == 4006
    assert network.hub.kernel.log.head == 1


@pytest.mark.behaviour("B-10")
@pytest.mark.parametrize("where", ["gate", "reads"])
async def test_a_hub_can_stop_while_a_participant_is_joining(where: str) -> None:
    """`identify` waits for the store while the hub stops, and would write afterwards."""
    store = MoodyStore()
    gate: asyncio.Event = getattr(store, where)
    local = LocalNetwork(config(), store=store)
    async with soon(), asyncio.TaskGroup() as group:

        async def open_when_stopping() -> None:
            await local.hub.kernel.draining.wait()
            if where == "reads":  # the hub settles commits before it stops the log
                await eventually(lambda: local.hub.kernel.log.stopped)
            gate.set()

        async with local:
            wire = await local.transport().open()
            await wire.recv()
            gate.clear()
            await wire.send(
                b'{"op":"identify","version":"hubbub.v1","participant":"ann","kind":"human"}'
            )
            await store.until_waiting()
            group.create_task(open_when_stopping())
    assert local.hub.draining


@pytest.mark.behaviour("B-10")
async def test_a_hub_stops_while_a_model_that_does_not_answer_is_asked(in_memory: Networks) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = {"model": "m", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "k"}
    async with soon(), server, in_memory.start(config(models={"slow": model})) as network:
        ann = await network.join("ann")
        await ann.post("ask_model", model="slow", messages=[{"role": "user", "text": "hi"}])
        await asked.wait()


async def test_the_notice_about_a_failed_agent_is_posted_when_the_disk_works_again(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(config(agents={"bot": {}}, models=MODELS), store=moody) as network:
        ann = await network.join("ann")
        await ann.say("bot", "are you there?")
        moody.deaf, asked = True, moody.asked
        network.hub.services.launcher.given_up(["bot"], "does not start any more")
        await moody.until(lambda: moody.asked > asked)
        moody.deaf = False
        notice = (await ann.event())["message"]
        assert notice["text_representation"].startswith("bot does not start any more.")


async def test_a_write_after_the_end_of_a_hub_fails_at_once() -> None:
    local = LocalNetwork(config())
    async with local:
        pass
    async with soon():
        with pytest.raises(StoreUnavailable):
            await local.hub.kernel.log.write()
