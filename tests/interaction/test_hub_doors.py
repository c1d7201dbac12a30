"""Tokens, owners, observers: who may come in, and what they may do there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hubbub.network.auth import new_token, token_hash
from hubbub.network.store import add_token_offline
from hubbub.protocol.frames import VERSION
from hubbub.protocol.session import SessionState
from tests.interaction.peers import Network, Networks, Peer, config, eventually, soon
from tests.interaction.stores import MoodyStore

TOKENS = config(
    network={"auth": "tokens"},
    humans={"ann": {"roles": ["owner"]}, "bob": {}},
    agents={"calc": {"kind": "python", "class": "x.py:X"}},
)


def let_in(network: Network, participant: str) -> str:
    """A token as the launcher gives it."""
    token = new_token()
    network.hub.joining.add_token(participant, token)
    return token


async def owner(network: Network) -> Peer:
    return await network.join("ann", token=let_in(network, "ann"))


@pytest.mark.behaviour("D-1")
@pytest.mark.parametrize("token", [None, "", "hub_wrong", "\U0001f600"])
async def test_without_the_right_token_nobody_comes_in(
    in_memory: Networks, token: str | None
) -> None:
    async with in_memory.start(TOKENS) as network:
        let_in(network, "ann")
        for name in ("ann", "stranger", "operator"):
            peer = await network.attach()
            error, code = await peer.refused(participant=name, token=token)
            assert (error["code"], code) == ("auth_failed", 4500)
            assert ("hubbub token add" in error["message"]) == (name != "operator")
            assert "hub_wrong" not in error["message"]


def identifying(network: Network) -> int:
    return sum(s.state is SessionState.IDENTIFYING for s in network.hub.sessions())


@pytest.mark.behaviour("D-9")
async def test_many_wrong_tokens_wait_or_are_sent_away_and_the_right_one_is_not(
    on_sockets: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86400.0
    monkeypatch.setattr("hubbub.network.auth.EACH_S", day)
    for module in ("auth", "joining"):
        monkeypatch.setattr(f"hubbub.network.{module}.LONGEST_S", day)
    async with on_sockets.start(TOKENS) as network:
        token = let_in(network, "ann")
        for _ in range(5):
            _error, code = await (await network.attach()).refused(token="hub_wrong")
            assert code == 4500
        waiting = await network.attach()
        frame = {"op": "identify", "version": VERSION, "participant": "ann", "kind": "human"}
        await waiting.send(**frame, token="hub_wrong")
        await eventually(lambda: identifying(network) == 1)
        error, code = await (await network.attach()).refused(token="hub_wrong")
        assert (error["code"], error["temporary"], code) == ("rate_limited", True, 4005)
        assert error["retry_after_s"] > day
        assert "wrong tokens" in error["message"]
        await network.join("ann", token=token)
        assert identifying(network) == 1, "the first one above the bound still has no answer"


@pytest.mark.behaviour("D-1")
async def test_a_token_proves_one_participant_only(in_memory: Networks) -> None:
    async with in_memory.start(TOKENS) as network:
        token = let_in(network, "ann")
        _error, code = await (await network.attach()).refused(participant="bob", token=token)
        assert code == 4500
        await network.join("ann", token=token)


@pytest.mark.behaviour("D-2")
async def test_an_owner_makes_a_token_that_works_at_once(in_memory: Networks) -> None:
    async with in_memory.start(TOKENS) as network:
        ann = await owner(network)
        made = await ann.call("add_token", participant="bob")
        bob = await network.join("bob", token=made["token"])
        assert bob.ready["participant"] == "bob"
        assert await network.hub.store.token_hashes("bob") == [token_hash(made["token"])]
        guest = await ann.call("add_token", participant="guest")
        assert (await network.join("guest", token=guest["token"])).ready["kind"] == "human"


@pytest.mark.behaviour("D-2")
async def test_revoking_closes_the_sockets_and_the_door(in_memory: Networks) -> None:
    async with in_memory.start(TOKENS) as network:
        ann = await owner(network)
        token = (await ann.call("add_token", participant="bob"))["token"]
        tabs = [await network.join("bob", token=token) for _ in range(2)]
        await ann.call("revoke_tokens", participant="bob")
        assert [await tab.closed() for tab in tabs] == [4504, 4504]
        _error, code = await (await network.attach()).refused(participant="bob", token=token)
        assert code == 4500


@pytest.mark.behaviour("D-2")
async def test_revoking_reaches_who_is_just_coming_in(in_memory: Networks) -> None:
    class Slow(MoodyStore):
        """Takes its time over the snapshot, which is read when the token has been checked."""

        async def tails(
            self, threads: Sequence[int], upto: int, limit: int
        ) -> Mapping[int, Sequence[bytes]]:
            self.waiting.set()
            await revoked.wait()
            return await super().tails(threads, upto, limit)

    store, revoked = Slow(), asyncio.Event()
    async with in_memory.start(TOKENS, store=store) as network:
        ann = await owner(network)
        await ann.say("bob", "something for the snapshot")
        token = (await ann.call("add_token", participant="bob"))["token"]
        late = await network.attach()
        await late.send(
            op="identify", version=VERSION, participant="bob", kind="human", token=token
        )
        async with soon():
            await store.waiting.wait()
        await ann.call("revoke_tokens", participant="bob")
        revoked.set()
        assert (await late.expect("error"))["code"] == "auth_failed"
        assert await late.closed() == 4504
        assert "bob" not in network.hub.state.presence


@pytest.mark.behaviour("D-2")
async def test_a_token_added_to_the_file_beside_a_running_hub_works(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, token = f"sqlite:{tmp_path}/hub.db", new_token()
    async with in_memory.start(TOKENS, store=store) as network:
        await add_token_offline(store, token_hash(token), "bob")
        await network.join("bob", token=token)


@pytest.mark.behaviour("D-4")
async def test_only_owners_administer(in_memory: Networks) -> None:
    async with in_memory.start(TOKENS) as network:
        peers = [
            await network.join("bob", token=let_in(network, "bob")),
            await network.join("calc", "agent", token=let_in(network, "calc")),
            await network.join("robot", "service", token=let_in(network, "robot")),
        ]
        for peer in peers:
            for call in ("add_token", "revoke_tokens"):
                assert (await peer.ask(call, participant="bob"))["code"] == "forbidden"
            assert (await peer.ask("network_status"))["code"] == "forbidden"
            offered = {info["name"] for info in peer.ready["operations"]}
            assert not offered & {"add_token", "revoke_tokens", "network_status"}
        operator = await network.join("operator", "service", token=let_in(network, "operator"))
        status = await operator.call("network_status")
        assert (status["present"], status["participants"], status["draining"]) == (3, 4, False)


@pytest.mark.parametrize("name", ["hub", "t5", "a b", "everyone"])
async def test_nobody_gets_a_token_for_an_impossible_name(network: Network, name: str) -> None:
    ann = await network.join("ann")
    assert (await ann.ask("add_token", participant=name))["code"] == "bad_request"


@pytest.mark.behaviour("D-5")
async def test_in_an_open_network_a_launched_agent_keeps_its_name(network: Network) -> None:
    token = let_in(network, "calc")
    _error, code = await (await network.attach()).refused(participant="calc", kind="agent")
    assert code == 4500
    calc = await network.join("calc", "agent", token=token)
    assert calc.ready["participant"] == "calc"
    assert (await network.join("ann")).ready["participant"] == "ann"


@pytest.mark.behaviour("D-5")
async def test_the_operators_place_is_its_own_too_once_it_has_a_token(network: Network) -> None:
    token = let_in(network, "operator")
    taken = {"participant": "operator", "kind": "service"}
    error, code = await (await network.attach()).refused(**taken)
    assert code == 4500
    assert "user who runs the network" in error["message"]
    assert "token add" not in error["message"]  # nobody can make one for that name
    operator = await network.join("operator", "service", token=token)
    assert "add_token" in {info["name"] for info in operator.ready["operations"]}


@pytest.mark.behaviour("D-5")
async def test_in_an_open_network_people_own_it_and_agents_do_not(network: Network) -> None:
    assert "head" in await (await network.join("ann")).call("network_status")
    assert (await (await network.join("calc", "agent")).ask("network_status"))["code"] == (
        "forbidden"
    )


@pytest.mark.behaviour("D-5")
async def test_nobody_takes_a_place_in_an_open_network_by_making_a_token(network: Network) -> None:
    calc = await network.join("calc", "agent", token=let_in(network, "calc"))
    operator = await network.join("operator", "service", token=let_in(network, "operator"))
    eve = await network.join("eve")
    for name in ("calc", "ann"):
        for call in ("add_token", "revoke_tokens"):
            assert (await eve.ask(call, participant=name))["code"] == "forbidden"
    assert (await calc.call("list_channels"))["channels"] == []  # still there
    await network.join("ann")
    assert "token" in await operator.call("add_token", participant="ann")


@pytest.mark.behaviour("P-29")
async def test_an_observer_sees_everything_and_is_nobody(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.say("bob", "before")
    watch = await network.join("operator", "service", observe=True)
    assert watch.ready["cursor"] == 1
    await ann.say("bob", "psst")
    await ann.call("broadcast_text_message", text="hello")
    await bob.say("ann", "hi")
    assert await watch.texts() == ["psst", "hello", "hi"]
    people = (await ann.call("list_participants"))["participants"]
    assert [p["id"] for p in people] == ["ann", "bob"]
    cursor = {"epoch": watch.hello["epoch"], "seq": 0}
    again = await network.join("operator", "service", observe=True, cursor=cursor)
    assert await again.take_texts(4) == ["before", "psst", "hello", "hi"]


@pytest.mark.behaviour("P-29")
async def test_a_person_who_observes_is_not_present_for_it(network: Network) -> None:
    ann = await network.join("ann")
    watch = await network.join("bob", observe=True)
    sent = await ann.call("broadcast_text_message", text="hello")
    assert await watch.texts() == ["hello"]
    people = (await ann.call("list_participants"))["participants"]
    assert [p["id"] for p in people] == ["ann"]
    await watch.ack(sent["seq"])
    await watch.close()
    await ann.sync()
    assert (await ann.call("network_status"))["present"] == 1


@pytest.mark.behaviour("P-29")
async def test_only_an_owner_observes(network: Network) -> None:
    error, code = await (await network.attach()).refused(
        participant="calc", kind="agent", observe=True
    )
    assert (error["code"], code) == ("forbidden", 4500)
