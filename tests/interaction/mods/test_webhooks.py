"""Outgoing webhooks of a running network, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import WebhooksConfig
from tests.interaction.mods.workspace import advance, post, refusal, refused, workspace
from tests.interaction.peers import Frame, Peer, eventually, soon
from tests.interaction.receiver import Receiver, receiving
from tests.interaction.stop_harness import HandClock, begin, let_in
from tests.interaction.stores import MoodyStore

SECRET = "correct horse battery"


def settings(url: str, **more: Any) -> WebhooksConfig:
    hook = {"name": "audit", "url": url, "secret": SECRET, **more.pop("hook", {})}
    return WebhooksConfig.model_validate({"hooks": [hook], **more})


def mod(url: str, **more: Any) -> WebhooksMod:
    webhooks = WebhooksMod(settings(url, **more))
    webhooks.random = lambda: 1.0
    return webhooks


@asynccontextmanager
async def with_hook(*who: str, store: Any = "sqlite::memory:", **more: Any) -> AsyncIterator[Any]:
    """A receiver, a network with a hook to it, its clock, and the peers of these participants."""
    clock = HandClock()
    async with (
        receiving() as there,
        workspace([mod(there.url, **more)], *who, store=store, clock=clock) as (network, *peers),
    ):
        yield (there, network, clock, *peers)


async def deliveries(peer: Peer, **args: Any) -> list[Frame]:
    answer = await peer.call("webhook_deliveries", hook="audit", **args)
    return list(answer["deliveries"])


async def until_state(peer: Peer, state: str, count: int = 1) -> list[Frame]:
    async with soon():
        while len(listed := await deliveries(peer, state=state)) < count:
            pass
    return listed


async def until_attempts(peer: Peer, attempts: int) -> Frame:
    """The hook after this many attempts to deliver its first event."""
    async with soon():
        while (await deliveries(peer, limit=200))[-1]["attempts"] < attempts:
            pass
    [hook] = (await peer.call("list_webhooks"))["webhooks"]
    return dict(hook)


def received_contents(there: Receiver) -> list[Any]:
    return [request.json()["data"].get("content") for request in there.requests]


@pytest.mark.behaviour("M-250")
async def test_an_event_is_signed_over_id_time_and_body() -> None:
    async with with_hook("olga") as (there, _, clock, olga):
        id = await post(olga, "hello")
        [request] = await there.got(1)
        event, headers = request.json(), request.headers
        assert (event["type"], event["data"]["id"]) == ("message", id)
        assert event["data"]["thread_id"] == "channel.desk"
        assert "hello" not in request.body.decode(), "only ids by default"
        assert (request.path, headers["content-type"]) == ("/hook", "application/json")
        assert headers["webhook-id"] == event["id"]
        assert headers["webhook-timestamp"] == str(int(clock.now()))
        signed = f"{event['id']}.{headers['webhook-timestamp']}.".encode() + request.body
        digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
        [delivery] = await until_state(olga, "sent")
        assert (delivery["id"], delivery["message_id"]) == (event["id"], id)
        assert (delivery["attempts"], delivery["outcome"]) == (1, "200")


@pytest.mark.behaviour("M-251")
async def test_a_hook_receives_only_the_events_it_selects() -> None:
    only: Any = {"threads": ["channel_desk"], "content": True, "exempt": ["bot"]}
    async with with_hook("olga", "cat", "bot", hook=only) as (there, _, _clock, olga, cat, bot):
        await post(cat, "not here", "attic")
        await olga.say("bot", "between us")
        await post(bot, "not by it")
        await olga.call("broadcast_text_message", text="not here either")
        top = await post(olga, "here")
        await olga.call("reply", message_id=top, text="and below")
        await until_state(olga, "sent", 2)
        assert received_contents(there) == ["here", "and below"]
    for direct in (False, True):
        hook = {"direct": direct, "content": True}
        async with with_hook("olga", "ann", hook=hook) as (there, _, _clock, olga, _ann):
            await olga.say("ann", "between us")
            await post(olga, "to all")
            await until_state(olga, "sent", 1 + direct)
            assert received_contents(there) == (["between us", "to all"] if direct else ["to all"])


@pytest.mark.behaviour("M-251")
async def test_joins_leaves_and_ended_turns_are_delivered() -> None:
    own: Any = {"events": ["join", "leave", "turn"], "direct": True}
    async with with_hook("olga", hook=own) as (there, network, _, olga):
        calc = await network.join("calc", "agent", turns=True)
        await olga.say("calc", "2+2?")
        turn = await begin(calc)
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        await there.got(3)
        await calc.close()
        requests = await there.got(4)
        assert [(r.json()["type"], r.json()["data"]) for r in requests] == [
            ("join", {"participant": "olga", "kind": "human"}),
            ("join", {"participant": "calc", "kind": "agent"}),
            ("turn", {"id": turn, "agent": "calc", "thread_id": "dm.calc.olga",
                      "outcome": "finished"}),
            ("leave", {"participant": "calc", "kind": "agent"}),
        ]  # fmt: skip
        await until_state(olga, "sent", 4)


@pytest.mark.behaviour("M-252")
async def test_failed_deliveries_are_retried_with_backoff_in_order() -> None:
    delays = {"first_retry": 10, "longest_retry": 25}
    async with with_hook("olga", **delays) as (there, network, clock, olga):
        there.status, there.answer = 500, b"I am\nbroken"
        first, second = await post(olga, "1"), await post(olga, "2")
        for attempt, wait in enumerate((10.0, 20.0, 25.0), 1):
            await there.got(attempt)
            hook = await until_attempts(olga, attempt)
            assert (hook["waiting"], hook["outcome"]) == (2, "500 I am broken")
            advance(network, clock, wait - 0.5)
            await network.quiet()
            assert len(there.requests) == attempt, "no early retry"
            there.status = 200 if attempt == 3 else 500
            advance(network, clock, 0.5)
        requests = await there.got(5)
        await until_state(olga, "sent", 2)
        assert [r.json()["data"]["id"] for r in requests] == [first] * 4 + [second]
        assert len({r.headers["webhook-id"] for r in requests}) == 2
        assert len({r.headers["webhook-timestamp"] for r in requests[:4]}) == 4


@pytest.mark.behaviour("M-252", "M-391")
async def test_the_receiver_can_delay_or_end_deliveries() -> None:
    async with with_hook("olga") as (there, network, clock, olga):
        courier = network.hub.services.mods.pipeline.mods[0]._courier
        for n, wait in enumerate(  # invalid values are ignored
            (
                "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
                "Mon, 99999999999999999999 Jan 2024 00:00:00 GMT",
                "9" * 5000,
                "soon",
            )
        ):
            there.status, there.headers = 503, {"retry-after": wait}
            await post(olga, "1")
            await there.got(2 * n + 1)
            await eventually(lambda: not courier.running)
            there.status = 200
            advance(network, clock, 100)
            await until_state(olga, "sent", n + 1)
        there.status, there.headers = 429, {"retry-after": "300"}
        await post(olga, "2")
        await there.got(9)
        await eventually(lambda: not courier.running)
        advance(network, clock, 299)
        await network.quiet()
        assert len(there.requests) == 9
        there.status, there.headers = 410, {}
        advance(network, clock, 1)
        [failed] = await until_state(olga, "failed")
        assert failed["attempts"] == 2


@pytest.mark.behaviour("M-253")
async def test_an_abandoned_delivery_is_reported_and_can_be_retried() -> None:
    async with with_hook("olga", attempts=2, first_retry=1) as (there, network, clock, olga):
        there.status = 503
        await olga.call("broadcast_text_message", text="1")
        await until_attempts(olga, 1)
        advance(network, clock, 1)
        [failed] = await until_state(olga, "failed")
        async with soon():
            notice = await olga.event()
        assert notice["message"]["sender_id"] == "hub"
        assert "The webhook audit: an event was given up (503 thanks)" in str(notice)
        there.status = 200
        again = await olga.call("retry_webhook", id=failed["id"])
        assert (again["state"], again["attempts"]) == ("waiting", 0)
        await until_state(olga, "sent")
        assert len({r.headers["webhook-id"] for r in there.requests}) == 1
        assert await refused(olga, "retry_webhook", id=failed["id"]) == "bad_request"
        assert await refused(olga, "retry_webhook", id="nothing") == "not_found"


@pytest.mark.behaviour("M-254")
async def test_waiting_events_survive_a_restart_and_unstored_ones_do_not(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path / 'x.db'}")
    async with receiving() as there:
        there.status = None
        async with workspace([mod(there.url)], "olga", store=store) as (_, olga):
            store.failing = 1
            code = await refused(olga, "post_to_channel", channel="desk", text="lost")
            assert code == "store_unavailable"
            sent = [await post(olga, str(n)) for n in range(3)]
            await there.got(1)
        there.status = 200
        again = f"sqlite:{tmp_path / 'x.db'}"
        async with workspace([mod(there.url)], "olga", store=again) as (_, olga):
            await until_state(olga, "sent", 3)
        assert [r.json()["data"]["id"] for r in there.requests] == [sent[0], *sent]
        assert there.requests[0].headers["webhook-id"] == there.requests[1].headers["webhook-id"]


@pytest.mark.behaviour("M-255")
async def test_a_dead_receiver_delays_no_one_and_its_queue_is_bounded() -> None:
    async with receiving() as gone:
        pass  # its address no longer has a listener
    dead = mod(gone.url, most_waiting=3)
    async with workspace([dead], "olga", clock=HandClock()) as (_, olga):
        for n in range(8):
            await post(olga, str(n))
        await until_state(olga, "dropped", 5)
        [hook] = (await olga.call("list_webhooks"))["webhooks"]
        assert (hook["waiting"], hook["failed"]) == (3, 5)
        waiting = await deliveries(olga, state="waiting")
        assert [each["number"] for each in waiting] == [8, 7, 6]
        async with soon():
            assert "too many are waiting" in str(await olga.event())


@pytest.mark.behaviour("M-255")
async def test_silent_endless_or_redirecting_receivers_are_contained() -> None:
    async with with_hook("olga", timeout=0.05) as (there, _, _clock, olga):
        there.status = None
        await post(olga, "1")
        assert (await until_attempts(olga, 1))["outcome"] == "no answer within 0.05 s"
    async with receiving() as other, with_hook("olga") as (there, network, clock, olga):
        there.status, there.headers = 302, {"location": other.url, "set-cookie": "a=b"}
        await post(olga, "1")
        await until_attempts(olga, 1)
        there.status, there.answer = 200, b"x" * 3_000_000
        advance(network, clock, 100)
        await until_state(olga, "sent")
        assert not other.requests
        assert "cookie" not in there.requests[1].headers


@pytest.mark.behaviour("M-256")
async def test_only_owners_see_webhooks_and_never_their_secrets() -> None:
    async with receiving() as there:
        url = there.url.replace("http://", "http://ann:pw@") + "?key=abc"
        async with workspace([mod(url)], auth="tokens") as (network,):
            olga, bot = await let_in(network, "olga"), await let_in(network, "bot", "agent")
            [hook] = (await olga.call("list_webhooks"))["webhooks"]
            assert hook["url"].endswith("/hook?…")
            assert not any(secret in str(hook) for secret in ("pw", "abc", SECRET))
            assert not any("webhook" in each["name"] for each in bot.ready["operations"])
            error = await refusal(olga, "webhook_deliveries", hook="x")
            assert "there is no webhook 'x'; available: audit" in error.message


@pytest.mark.behaviour("M-256")
async def test_new_settings_apply_at_once_and_old_events_are_dropped() -> None:
    async with receiving() as new, with_hook("olga", kept=5) as (there, network, _, olga):
        there.status = 500
        await post(olga, "0")
        await until_attempts(olga, 1)
        own = network.hub.services.mods.pipeline.mods[0]
        network.hub.services.mods.configure(own, settings(new.url, kept=5))
        await until_state(olga, "sent")
        for n in range(105):
            await post(olga, str(n))
        await new.got(106)
        await eventually(lambda: not own._courier.running)
        assert 5 <= len(await deliveries(olga, limit=200)) < 50
        few = await olga.call("webhook_deliveries", hook="audit", limit=3)
        assert few["more"]
        last = few["deliveries"][-1]["number"]
        rest = await deliveries(olga, before=last, limit=2)
        assert [each["number"] for each in rest] == [last - 1, last - 2]


@pytest.mark.behaviour("M-252")
async def test_an_event_that_waited_has_no_text_that_was_deleted_or_edited_meanwhile() -> None:
    clock = HandClock()
    async with receiving() as there:
        hook = mod(there.url, hook={"content": True}, first_retry=60.0)
        mods = [hook, EditsMod(EditsConfig())]
        async with workspace(mods, "olga", clock=clock) as (network, olga):
            there.status = 503
            deleted, edited = await post(olga, "secret 1"), await post(olga, "secret 2")
            await until_attempts(olga, 1)
            await olga.call("delete_message", message_id=deleted)
            await olga.call("edit_message", message_id=edited, text="better")
            there.status = 200
            advance(network, clock, 61)
            await until_state(olga, "sent", 4)
            assert received_contents(there)[1:] == ["", "better", "", "better"]


@pytest.mark.behaviour("M-252")
async def test_a_damaged_message_fails_alone_and_holds_up_no_later_event(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with workspace([mod("http://127.0.0.1:9/")], "olga", store=store) as (_, olga):
        await post(olga, "one")
        await until_attempts(olga, 1)
    with closing(sqlite3.connect(tmp_path / "hub.db", isolation_level=None)) as db:
        db.execute("UPDATE message SET body = replace(body, 'one', 'two')")
        db.execute("UPDATE webhooks_delivery SET due = 0")
    async with with_hook("olga", store=store, hook={"content": True}) as (there, _, _clock, olga):
        await post(olga, "three")
        await there.got(1)
        assert received_contents(there) == ["three"]
        [failed] = await until_state(olga, "failed")
        assert "damaged" in failed["outcome"]
