"""Webhooks that go out of a running network, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import WebhooksConfig
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually, soon
from tests.interaction.receiver import Receiver, receiving
from tests.interaction.stop_rig import HandClock, at_work, let_in
from tests.interaction.stores import MoodyStore

SECRET = "correct horse battery"
ELSEWHERE = {"name": "audit", "url": "http://127.0.0.1:9/x", "secret": SECRET}
test_it_is_a_good_neighbour = pytest.mark.behaviour("M-250")(
    mod_contract(WebhooksMod, {"hooks": [{**ELSEWHERE, "threads": ["channel_none"]}]})
)

NETWORKS = Networks(sockets=False)
FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    channels={"desk": {"members": "all"}, "bar": {"members": "all"}},
)


def mod(receiver: Receiver, more: dict[str, Any] | None = None, **hook: Any) -> WebhooksMod:
    hooks = [{"name": "audit", "url": receiver.url, "secret": SECRET, **hook}]
    made = WebhooksMod(WebhooksConfig.model_validate({"hooks": hooks, **(more or {})}))
    made.random = lambda: 1.0
    return made


async def say(peer: Peer, text: str, channel: str = "desk") -> Frame:
    sent: Frame = await peer.call("post_to_channel", channel=channel, text=text)
    return sent


async def deliveries(peer: Peer, **args: Any) -> list[Frame]:
    found: list[Frame] = (await peer.call("webhook_deliveries", hook="audit", **args))["deliveries"]
    return found


async def until_state(peer: Peer, state: str, count: int = 1) -> list[Frame]:
    async with soon():
        while len(found := await deliveries(peer, state=state)) < count:
            pass
    return found


async def moved(network: Network, clock: HandClock, seconds: float) -> None:
    clock.time += seconds
    network.hub.mods._alarms.look()


@pytest.mark.behaviour("M-250")
async def test_a_message_is_told_with_a_signature_over_id_time_and_body() -> None:
    clock = HandClock()
    async with (
        receiving() as there,
        NETWORKS.start(FILE, mods=[mod(there)], clock=clock) as network,
    ):
        ann = await network.join("ann")
        sent = await say(ann, "hello")
        [request] = await there.got(1)
        told = request.json()
        assert (told["type"], told["data"]["id"]) == ("message", sent["id"])
        assert told["data"]["thread_id"] == "channel.desk"
        assert "hello" not in request.body.decode(), "only ids, unless the settings say otherwise"
        headers = request.headers
        assert (request.path, headers["content-type"]) == ("/hook", "application/json")
        assert headers["webhook-id"] == told["id"]
        assert headers["webhook-timestamp"] == str(int(clock.now()))
        signed = f"{told['id']}.{headers['webhook-timestamp']}.".encode() + request.body
        digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
        [found] = await until_state(ann, "sent")
        assert (found["id"], found["message_id"]) == (told["id"], sent["id"])
        assert (found["attempts"], found["outcome"]) == (1, "200")


@pytest.mark.behaviour("M-251")
async def test_a_hook_hears_only_what_it_asked_for() -> None:
    async with receiving() as there:
        only = mod(there, threads=["channel_desk"], content=True, exempt=["bot"])
        async with NETWORKS.start(FILE, mods=[only]) as network:
            ann, bot = await network.join("ann"), await network.join("bot", "agent")
            await say(ann, "not here", "bar")
            await ann.say("bot", "between us")
            await say(bot, "not by it")
            await ann.call("broadcast_text_message", text="not here either")
            top = await say(ann, "here")
            await ann.call("reply", message_id=top["id"], text="and below")
            requests = await there.got(2)
            await until_state(ann, "sent", 2)
            assert [r.json()["data"]["content"] for r in requests] == ["here", "and below"]


@pytest.mark.behaviour("M-251")
@pytest.mark.parametrize("direct", [False, True])
async def test_direct_messages_are_told_only_if_the_settings_say_so(direct: bool) -> None:
    async with receiving() as there:
        mods = [mod(there, direct=direct, content=True)]
        async with NETWORKS.start(FILE, mods=mods) as network:
            ann = await network.join("ann")
            await network.join("bob")
            await ann.say("bob", "between us")
            await say(ann, "to all")
            requests = await there.got(1 + direct)
            await until_state(ann, "sent", 1 + direct)
            said = [r.json()["data"]["content"] for r in requests]
            assert said == (["between us", "to all"] if direct else ["to all"])


@pytest.mark.behaviour("M-251")
async def test_who_comes_and_goes_and_turns_that_end_are_told() -> None:
    async with receiving() as there:
        own = mod(there, events=["join", "leave", "turn"], direct=True)
        async with NETWORKS.start(FILE, mods=[own]) as network:
            ann, calc, turn = await at_work(network)
            await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
            await there.got(3)
            await calc.close()
            requests = await there.got(4)
            told = [(r.json()["type"], r.json()["data"]) for r in requests]
            assert told == [
                ("join", {"participant": "ann", "kind": "human"}),
                ("join", {"participant": "calc", "kind": "agent"}),
                (
                    "turn",
                    {
                        "id": turn, "agent": "calc", "thread_id": "dm.ann.calc",
                        "outcome": "finished",
                    },
                ),
                ("leave", {"participant": "calc", "kind": "agent"}),
            ]  # fmt: skip
            await until_state(ann, "sent", 4)


@pytest.mark.behaviour("M-252")
async def test_what_fails_is_sent_again_later_each_time_and_in_order() -> None:
    clock = HandClock()
    async with receiving() as there:
        there.status, there.answer = 500, b"I am\nbroken"
        more = {"first_retry": 10, "longest_retry": 25}
        async with NETWORKS.start(FILE, mods=[mod(there, more)], clock=clock) as network:
            ann = await network.join("ann")
            first, second = await say(ann, "1"), await say(ann, "2")
            for attempt, wait in enumerate((10.0, 20.0, 25.0), 1):
                await there.got(attempt)
                await until_attempts(ann, attempt)
                [hook] = (await ann.call("list_webhooks"))["webhooks"]
                assert (hook["waiting"], hook["outcome"]) == (2, "500 I am broken")
                await moved(network, clock, wait - 0.5)
                await network.quiet()
                assert len(there.requests) == attempt, "not before its time"
                there.status = 200 if attempt == 3 else 500
                await moved(network, clock, 0.5)
            requests = await there.got(5)
            await until_state(ann, "sent", 2)
            ids = [r.json()["data"]["id"] for r in requests]
            assert ids == [first["id"]] * 4 + [second["id"]]
            assert len({r.headers["webhook-id"] for r in requests}) == 2
            assert len({r.headers["webhook-timestamp"] for r in requests[:4]}) == 4


async def until_attempts(peer: Peer, attempts: int) -> None:
    async with soon():
        while (await deliveries(peer, limit=200))[-1]["attempts"] < attempts:
            pass


@pytest.mark.behaviour("M-252")
async def test_the_receiver_may_say_when_and_that_it_wants_no_more() -> None:
    clock = HandClock()
    async with receiving() as there:
        there.status, there.headers = 429, {"retry-after": "300"}
        async with NETWORKS.start(FILE, mods=[mod(there)], clock=clock) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_attempts(ann, 1)
            await moved(network, clock, 299)
            await network.quiet()
            assert len(there.requests) == 1
            there.status, there.headers = 410, {}
            await moved(network, clock, 1)
            [failed] = await until_state(ann, "failed")
            assert failed["attempts"] == 2


@pytest.mark.behaviour("M-253")
async def test_what_is_given_up_is_told_to_owners_and_can_be_sent_again() -> None:
    clock = HandClock()
    async with receiving() as there:
        there.status = 503
        async with NETWORKS.start(
            FILE, mods=[mod(there, {"attempts": 2, "first_retry": 1})], clock=clock
        ) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_attempts(ann, 1)
            await moved(network, clock, 1)
            [failed] = await until_state(ann, "failed")
            async with soon():
                notice = await ann.event()
            assert notice["message"]["sender_id"] == "hub"
            assert "The webhook audit: an event was given up (503 thanks)" in str(notice)
            there.status = 200
            again = await ann.call("retry_webhook", id=failed["id"])
            assert (again["state"], again["attempts"]) == ("waiting", 0)
            await until_state(ann, "sent")
            assert len({r.headers["webhook-id"] for r in there.requests}) == 1
            for wrong, code in ((failed["id"], "bad_request"), ("nothing", "not_found")):
                with pytest.raises(OperationError) as caught:
                    await ann.call("retry_webhook", id=wrong)
                assert caught.value.code == code


@pytest.mark.behaviour("M-254")
async def test_what_waits_is_sent_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with receiving() as there:
        there.status = None
        async with LocalNetwork(FILE, store=store, mods=[mod(there)]) as local:
            ann = await Network(local).join("ann")
            sent = [(await say(ann, str(n)))["id"] for n in range(3)]
            await there.got(1)
            await ann.close()
        there.status = 200
        async with LocalNetwork(FILE, store=store, mods=[mod(there)]) as local:
            ann = await Network(local).join("ann")
            await until_state(ann, "sent", 3)
            await ann.close()
        told = [r.json()["data"]["id"] for r in there.requests]
        assert told == [sent[0], *sent]
        assert there.requests[0].headers["webhook-id"] == there.requests[1].headers["webhook-id"]


@pytest.mark.behaviour("M-254")
async def test_a_message_that_the_disk_refuses_is_told_to_nobody(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path / 'x.db'}")
    async with (
        receiving() as there,
        NETWORKS.start(FILE, store=store, mods=[mod(there)]) as network,
    ):
        ann = await network.join("ann")
        store.failing = 1
        with pytest.raises(OperationError):
            await say(ann, "lost")
        sent = await say(ann, "kept")
        requests = await there.got(1)
        await until_state(ann, "sent")
        assert [r.json()["data"]["id"] for r in requests] == [sent["id"]]


@pytest.mark.behaviour("M-255")
async def test_a_dead_receiver_holds_nobody_up_and_its_queue_has_an_end() -> None:
    async with receiving() as gone:
        pass  # nobody listens there any more
    clock = HandClock()
    dead = mod(gone, {"most_waiting": 3})
    async with NETWORKS.start(FILE, mods=[dead], clock=clock) as network:
        ann = await network.join("ann")
        for n in range(8):
            await say(ann, str(n))
        await until_state(ann, "dropped", 5)
        [hook] = (await ann.call("list_webhooks"))["webhooks"]
        assert (hook["waiting"], hook["failed"]) == (3, 5)
        waiting = await deliveries(ann, state="waiting")
        assert [each["number"] for each in waiting] == [8, 7, 6]
        async with soon():
            notice = await ann.event()
        assert "too many are waiting" in str(notice)


@pytest.mark.behaviour("M-255")
async def test_a_receiver_that_does_not_answer_or_never_stops_is_left() -> None:
    async with receiving() as there:
        there.status = None
        async with NETWORKS.start(FILE, mods=[mod(there, {"timeout": 0.05})]) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_attempts(ann, 1)
            [hook] = (await ann.call("list_webhooks"))["webhooks"]
            assert hook["outcome"] == "no answer within 0.05 s"
    async with receiving() as there:
        there.answer = b"x" * 3_000_000
        async with NETWORKS.start(FILE, mods=[mod(there)]) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_state(ann, "sent")


@pytest.mark.behaviour("M-255")
async def test_redirects_are_not_followed_and_cookies_not_kept() -> None:
    async with receiving() as there, receiving() as other:
        there.status, there.headers = 302, {"location": other.url, "set-cookie": "a=b"}
        clock = HandClock()
        async with NETWORKS.start(FILE, mods=[mod(there)], clock=clock) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_attempts(ann, 1)
            there.status = 200
            await moved(network, clock, 100)
            await until_state(ann, "sent")
        assert not other.requests
        assert "cookie" not in there.requests[1].headers


@pytest.mark.behaviour("M-256")
async def test_only_owners_see_and_move_webhooks_and_no_secret_is_shown() -> None:
    file = config(network={"auth": "tokens"}, humans={"olga": {"roles": ["owner"]}})
    async with receiving() as there:
        there.url = there.url.replace("http://", "http://ann:pw@") + "?key=abc"
        async with NETWORKS.start(file, mods=[mod(there)]) as network:
            olga, bot = await let_in(network, "olga"), await let_in(network, "bot", "agent")
            [hook] = (await olga.call("list_webhooks"))["webhooks"]
            told = str(hook)
            assert hook["url"].endswith("/hook?…")
            assert not any(secret in told for secret in ("pw", "abc", SECRET))
            assert not any("webhook" in each["name"] for each in bot.ready["operations"])
            calls: tuple[tuple[str, dict[str, Any]], ...] = (
                ("list_webhooks", {}),
                ("webhook_deliveries", {"hook": "audit"}),
                ("retry_webhook", {"id": "x"}),
            )
            for name, args in calls:
                with pytest.raises(OperationError) as caught:
                    await bot.call(name, **args)
                assert caught.value.code == "forbidden"
            with pytest.raises(OperationError, match="there is no webhook 'x'; there are: audit"):
                await olga.call("webhook_deliveries", hook="x")


@pytest.mark.behaviour("M-256")
async def test_other_settings_hold_at_once_and_old_events_are_forgotten() -> None:
    async with receiving() as there, receiving() as new:
        there.status = 500
        own = mod(there, {"kept": 5})
        async with NETWORKS.start(FILE, mods=[own]) as network:
            ann = await network.join("ann")
            await say(ann, "0")
            await until_attempts(ann, 1)
            hooks = [{"name": "audit", "url": new.url, "secret": SECRET}]
            other = WebhooksConfig.model_validate({"hooks": hooks, "kept": 5})
            network.hub.mods.configure(own, other)
            await until_state(ann, "sent")
            for n in range(105):
                await say(ann, str(n))
            await new.got(106)
            await eventually(lambda: not own._courier.running)
            page = await ann.call("webhook_deliveries", hook="audit", limit=200)
            assert 5 <= len(page["deliveries"]) < 50
            few = await ann.call("webhook_deliveries", hook="audit", limit=3)
            assert few["more"]
            last = few["deliveries"][-1]["number"]
            rest = await deliveries(ann, before=last, limit=2)
            assert [each["number"] for each in rest] == [last - 1, last - 2]


@pytest.mark.behaviour("M-391")
@pytest.mark.parametrize(
    "wait",
    [
        "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
        "Mon, 99999999999999999999 Jan 2024 00:00:00 GMT",
        "9" * 5000,
        "soon",
    ],
)
async def test_a_time_to_wait_that_makes_no_sense_is_not_waited_for(wait: str) -> None:
    async with receiving() as there:
        there.status, there.headers = 503, {"retry-after": wait}
        clock = HandClock()
        async with NETWORKS.start(FILE, mods=[mod(there)], clock=clock) as network:
            ann = await network.join("ann")
            await say(ann, "1")
            await until_attempts(ann, 1)
            there.status = 200
            await moved(network, clock, 100)
            await until_state(ann, "sent")
