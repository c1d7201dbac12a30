"""Tokens, owners and observers: which participants can join, and what they can do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hubbub.network.auth import new_token, token_hash
from hubbub.network.queries import TokenHashes
from hubbub.network.store import add_token_offline
from hubbub.protocol.frames import VERSION
from hubbub.protocol.wire import SessionState
from tests.interaction.peers import Network, Networks, Peer, config, eventually
from tests.interaction.stores import MoodyStore

NETWORK = TOKENS = config(
    network={"auth": "tokens"},
    humans={"ann": {"roles": ["owner"]}, "bob": {}},
    agents={"calc": {"kind": "python", "class": "x.py:X"}},
)


def let_in(network: Network, participant: str) -> str:
    """A new token of the participant, as the launcher creates it."""
    token = new_token()
    network.hub.gateway.admission.add_token(participant, token)
    return token


async def enter(network: Network, participant: str, kind: str = "human") -> Peer:
    return await network.join(participant, kind, token=let_in(network, participant))


@pytest.mark.behaviour("D-1")
async def test_a_participant_can_join_only_with_its_own_token(network: Network) -> None:
    right = let_in(network, "ann")
    for token in (None, "", "hub_wrong", "\U0001f600"):
        for name in ("ann", "stranger", "operator"):
            error, code = await (await network.attach()).refused(participant=name, token=token)
            assert (error["code"], code) == ("auth_failed", 4500)
            assert ("hubbub tokens add" in error["message"]) == (name != "operator")
            assert "hub_wrong" not in error["message"]
    error, code = await (await network.attach()).refused(participant="bob", token=right)
    assert code == 4500
    assert error["message"].endswith("; it is ann's: join as ann")
    await network.join("ann", token=right)


@pytest.mark.behaviour("D-9")
async def test_repeated_wrong_tokens_are_delayed_and_a_right_one_is_not(
    on_sockets: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86400.0
    monkeypatch.setattr("hubbub.network.auth.EACH_S", day)
    for module in ("auth", "admission"):
        monkeypatch.setattr(f"hubbub.network.{module}.LONGEST_S", day)

    def identifying() -> int:
        sessions = network.hub.gateway.sessions()
        return sum(session.state is SessionState.IDENTIFYING for session in sessions)

    async with on_sockets.start(TOKENS) as network:
        token = let_in(network, "ann")
        for _ in range(5):
            _error, code = await (await network.attach()).refused(token="hub_wrong")
            assert code == 4500
        waiting = await network.attach()
        frame = {"op": "identify", "version": VERSION, "participant": "ann", "kind": "human"}
        await waiting.send(**frame, token="hub_wrong")
        await eventually(lambda: identifying() == 1)
        error, code = await (await network.attach()).refused(token="hub_wrong")
        assert (error["code"], error["temporary"], code) == ("rate_limited", True, 4005)
        assert error["retry_after_s"] > day
        assert "wrong tokens" in error["message"]
        await network.join("ann", token=token)
        assert identifying() == 1, "the first wrong token over the limit still has no answer"


@pytest.mark.behaviour("D-2")
async def test_tokens_that_an_owner_adds_and_revokes_take_effect_at_once(
    networks: Networks,
) -> None:
    async with networks.start(TOKENS) as network:
        ann = await enter(network, "ann")
        token = (await ann.call("add_token", participant="bob"))["token"]
        assert await network.hub.store.read(TokenHashes("bob")) == [token_hash(token)]
        tabs = [await network.join("bob", token=token) for _ in range(2)]
        guest = (await ann.call("add_token", participant="guest"))["token"]
        assert (await network.join("guest", token=guest)).ready["kind"] == "human"
        await ann.call("revoke_tokens", participant="bob")
        assert [await tab.closed() for tab in tabs] == [4504, 4504]
        _error, code = await (await network.attach()).refused(participant="bob", token=token)
        assert code == 4500
        for name in ("hub", "t5", "a b", "everyone"):
            refused = await ann.ask("add_token", participant=name)
            assert refused["code"] == "bad_request", name


@pytest.mark.behaviour("D-2")
async def test_a_revocation_ends_the_token_of_this_run_of_a_person_but_not_of_an_agent(
    network: Network,
) -> None:
    tokens = {name: let_in(network, name) for name in ("bob", "calc")}
    bob = await network.join("bob", token=tokens["bob"])
    ann = await enter(network, "ann")
    for name in tokens:
        await ann.call("revoke_tokens", participant=name)
    assert await bob.closed() == 4504
    error, _code = await (await network.attach()).refused(participant="bob", token=tokens["bob"])
    assert "does not prove 'bob'; ask the person who runs the network" in error["message"]
    await network.join("calc", "agent", token=tokens["calc"])


@pytest.mark.behaviour("D-2")
async def test_revoking_a_token_closes_a_connection_that_is_just_joining(
    in_memory: Networks,
) -> None:
    class Slow(MoodyStore):
        """Reads the snapshot, which follows the check of the token, after the revocation."""

        async def tails(
            self, threads: Sequence[int], upto: int, limit: int
        ) -> Mapping[int, Sequence[bytes]]:
            self.waiting.set()
            await revoked.wait()
            return await super().tails(threads, upto, limit)

    store, revoked = Slow(), asyncio.Event()
    async with in_memory.start(TOKENS, store=store) as network:
        ann = await enter(network, "ann")
        await ann.say("bob", "something for the snapshot")
        token = (await ann.call("add_token", participant="bob"))["token"]
        late = await network.attach()
        await late.send(
            op="identify", version=VERSION, participant="bob", kind="human", token=token
        )
        await store.until_waiting()
        await ann.call("revoke_tokens", participant="bob")
        revoked.set()
        assert (await late.expect("error"))["code"] == "auth_failed"
        assert await late.closed() == 4504
        assert "bob" not in network.hub.kernel.state.presence


@pytest.mark.behaviour("D-2")
async def test_a_token_added_to_the_store_of_a_running_hub_works(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, token = f"sqlite:{tmp_path}/hub.db", new_token()
    async with in_memory.start(TOKENS, store=store) as network:
        await add_token_offline(store, token_hash(token), "bob")
        await network.join("bob", token=token)


@pytest.mark.behaviour("D-4")
async def test_only_owners_can_administer(network: Network) -> None:
    for name, kind in (("bob", "human"), ("calc", "agent"), ("robot", "service")):
        peer = await enter(network, name, kind)
        for call in ("add_token", "revoke_tokens"):
            assert (await peer.ask(call, participant="bob"))["code"] == "forbidden"
        assert (await peer.ask("network_status"))["code"] == "forbidden"
        offered = {info["name"] for info in peer.ready["operations"]}
        assert not offered & {"add_token", "revoke_tokens", "network_status"}
    operator = await enter(network, "operator", "service")
    status = await operator.call("network_status")
    assert (status["present"], status["participants"], status["draining"]) == (3, 4, False)


@pytest.mark.behaviour("D-5")
async def test_on_an_open_network_names_of_launched_agents_still_need_a_token(
    in_memory: Networks,
) -> None:
    async with in_memory.start() as network:
        let_in(network, "calc")
        _error, code = await (await network.attach()).refused(participant="calc", kind="agent")
        assert code == 4500
        calc = await enter(network, "calc", "agent")
        assert (await calc.ask("network_status"))["code"] == "forbidden"
        let_in(network, "operator")
        taken = {"participant": "operator", "kind": "service"}
        error, code = await (await network.attach()).refused(**taken)
        assert code == 4500
        assert "the network's own user" in error["message"]
        assert "token add" not in error["message"]  # no one can add one for that name
        operator = await enter(network, "operator", "service")
        eve = await network.join("eve")
        assert "head" in await eve.call("network_status"), "people are owners"
        for name in ("calc", "ann"):
            for call in ("add_token", "revoke_tokens"):
                assert (await eve.ask(call, participant=name))["code"] == "forbidden"
        assert (await calc.call("list_channels"))["channels"] == []  # still connected
        await network.join("ann")
        assert "token" in await operator.call("add_token", participant="ann")


@pytest.mark.behaviour("P-29")
async def test_an_observer_sees_all_messages_and_is_no_participant(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "before")
        operator = await network.join("operator", "service", observe=True)
        person = await network.join("dan", observe=True)
        assert operator.ready["cursor"] == 1
        await ann.say("bob", "psst")
        last = await ann.call("broadcast_text_message", text="hello")
        assert await operator.texts() == await person.texts() == ["psst", "hello"]
        participants = (await ann.call("list_participants"))["participants"]
        assert [participant["id"] for participant in participants] == ["ann", "bob"]
        cursor = {"epoch": operator.hello["epoch"], "seq": 0}
        again = await network.join("operator", "service", observe=True, cursor=cursor)
        assert await again.take_texts(3) == ["before", "psst", "hello"]
        await person.ack(last["seq"])
        await person.close()
        await bob.sync()
        assert (await ann.call("network_status"))["present"] == 2
        calc = {"participant": "calc", "kind": "agent", "observe": True}
        error, code = await (await network.attach()).refused(**calc)
        assert (error["code"], code) == ("forbidden", 4500)
