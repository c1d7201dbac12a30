"""Webhooks that come in: real requests to a process's server, and a real network behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from hubbub.app.inbound.service import inbound
from hubbub.errors import OperationError
from hubbub.mods.moderation import Moderation, ModerationConfig
from hubbub.mods.webhooks.settings import InboundConfig
from hubbub.mods.webhooks.signing import signed
from tests.interaction.peers import Frame, Network, Networks, Peer, config, soon
from tests.interaction.stop_rig import HandClock

NETWORKS = Networks(sockets=False)
SECRET = "correct horse battery"
FILE = config(channels={"desk": {"members": "all"}, "closed": {"members": ["ann"]}})


@dataclass
class Door:
    """Where webhooks come in, as a program elsewhere sees it."""

    port: int
    clock: HandClock
    network: Network
    ann: Peer
    http: httpx2.AsyncClient

    async def send(
        self,
        body: object,
        id: str = "e1",
        name: str = "ci",
        at: float | None = None,
        **changed: str,
    ) -> httpx2.Response:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = signed(SECRET, id, self.clock.now() if at is None else at, raw)
        headers |= {key.replace("_", "-"): value for key, value in changed.items()}
        return await self.http.post(self.url(name), content=raw, headers=headers)

    def url(self, name: str = "ci") -> str:
        return f"http://127.0.0.1:{self.port}/hooks/{name}"

    async def said(self) -> list[Frame]:
        """Everything in the channel."""
        page = await self.ann.call("read_thread", thread="channel.desk", limit=100)
        return list(page["messages"])

    async def raw(self, *parts: bytes) -> bytes:
        """Send bytes as they are, and read until the other side closes."""
        async with soon():
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                return await reader.read()
            finally:
                writer.close()


@asynccontextmanager
async def door(
    endpoint: dict[str, Any] | None = None, mods: tuple[Any, ...] = (), **settings: Any
) -> AsyncIterator[Door]:
    clock = HandClock()
    endpoints = [{"name": "ci", "secret": SECRET, "to": "channel_desk", **(endpoint or {})}]
    given = InboundConfig.model_validate({"endpoints": endpoints, **settings})
    async with NETWORKS.start(FILE, mods=mods, clock=clock) as network:
        ann = await network.join("ann")
        inside = inbound(given, network.local.transport(), host="127.0.0.1", port=0, clock=clock)
        async with inside as port, httpx2.AsyncClient(trust_env=False, timeout=20) as http:
            yield Door(port, clock, network, ann, http)


@pytest.mark.behaviour("M-257")
async def test_what_is_signed_is_posted_by_a_service_and_marked_as_from_outside() -> None:
    async with door() as there:
        answer = await there.send({"text": "the build is red"})
        assert answer.status_code == 200
        [message] = await there.said()
        assert answer.json() == {"posted": True, "message_id": message["id"]}
        assert (message["sender_id"], message["sender_kind"]) == ("webhook", "service")
        assert (message["content"], message["outside"]) == ("the build is red", True)


@pytest.mark.behaviour("M-257")
@pytest.mark.parametrize(
    ("template", "body", "text"),
    [
        (None, {"text": "hi"}, "hi"),
        (None, {"a": ["é"]}, '{\n  "a": [\n    "é"\n  ]\n}'),
        ("{{ body.a.b }}: {{ body.c | length }}", {"a": {"b": "ann"}, "c": [1, 2]}, "ann: 2"),
        ("{{ name }}/{{ id }}: {{ body[0] }}", ["x"], "ci/e1: x"),
        ("@bob: {{ body.who }}", {"who": "@ann says"}, "@bob: @\u2060ann says"),
    ],
)  # fmt: skip
async def test_a_template_makes_the_text(template: str | None, body: object, text: str) -> None:
    async with door({"template": template}) as there:
        await there.network.join("bob")
        assert (await there.send(body)).status_code == 200
        [message] = await there.said()
        assert message["content"] == text
        assert message.get("mentions", []) == (["bob"] if "@bob" in text else [])


@pytest.mark.behaviour("M-257")
async def test_a_template_may_say_nothing_and_one_that_fails_harms_nobody() -> None:
    async with door(
        {"template": "{% if body.state == 'red' %}{{ 1 // body.n }}{% endif %}"}
    ) as there:
        assert (await there.send({"state": "green"})).json() == {"posted": False}
        assert (await there.send({"state": "red", "n": 0}, "e2")).status_code == 422
        assert (await there.send({"state": "red", "n": 1}, "e3")).json()["posted"]
        assert len(await there.said()) == 1


@pytest.mark.behaviour("M-258")
async def test_an_event_that_comes_again_is_posted_once() -> None:
    async with door() as there:
        first = await there.send({"text": "red"})
        there.clock.time += 100
        again = await there.send({"text": "red"})
        assert again.json() == first.json()
        both = await asyncio.gather(*(there.send({"text": "green"}, "e2") for _ in range(5)))
        assert len({each.json()["message_id"] for each in both}) == 1
        assert len(await there.said()) == 2
        other = await there.send({"text": "blue"}, "e2")
        assert (other.status_code, other.json()["error"]) == (
            409, "another event with this id has been posted",
        )  # fmt: skip


@pytest.mark.behaviour("M-258")
@pytest.mark.parametrize(
    "changed",
    [
        {"webhook_signature": "v1,AAAA"},
        {"webhook_signature": "v2,x"},
        {"webhook_signature": "é"},
        {"webhook_signature": ""},
        {"webhook_id": "other"},
        {"webhook_id": ""},
        {"webhook_timestamp": "1760001001"},
        {"webhook_timestamp": "soon"},
        {"webhook_timestamp": "9" * 5000},
    ],
)
async def test_what_is_not_proved_is_refused(changed: dict[str, str]) -> None:
    async with door() as there:
        headers = signed(SECRET, "e1", there.clock.now(), b"{}")
        headers |= {key.replace("_", "-"): value for key, value in changed.items()}
        raw = {key.encode(): value.encode() for key, value in headers.items()}
        answer = await there.http.post(there.url(), content=b"{}", headers=raw)
        assert answer.status_code == 401
        assert not await there.said()


@pytest.mark.behaviour("M-258")
async def test_what_is_too_old_or_from_the_future_is_refused() -> None:
    async with door({"tolerance": "60s"}) as there:
        now = there.clock.now()
        for at, status in ((now - 61, 401), (now + 61, 401), (now - 59, 200)):
            assert (await there.send({"text": "x"}, at=at)).status_code == status
        assert len(await there.said()) == 1


@pytest.mark.behaviour("M-258")
async def test_one_of_several_signatures_is_enough() -> None:
    async with door() as there:
        right = signed(SECRET, "e1", there.clock.now(), b"{}")["webhook-signature"]
        assert (await there.send({}, webhook_signature=f"v1,AAAA {right}")).status_code == 200


@pytest.mark.behaviour("M-259")
async def test_other_requests_are_turned_away() -> None:
    async with door(max_size=1000) as there:
        assert (await there.send({}, name="other")).status_code == 404
        got = await there.http.get(there.url())
        assert (got.status_code, got.headers["allow"]) == (405, "POST")
        assert (await there.send(b"{")).status_code == 400
        assert (await there.send(b"[" * 900)).status_code == 400
        assert (await there.send({"text": "x" * 1000})).status_code == 413

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(50):
                yield b"x" * 100

        chunked = await there.http.post(there.url(), content=parts())
        assert chunked.status_code == 413
        assert not await there.said()


@pytest.mark.behaviour("M-259")
async def test_what_is_no_http_is_answered_and_forgotten() -> None:
    async with door(timeout=0.2, max_connections=2) as there:
        post = b"POST /hooks/ci HTTP/1.1\r\nhost: x\r\n"
        assert (await there.raw(b"hello\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert (await there.raw(b"\x16\x03\x01" * 10 + b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
        both = post + b"content-length: 2\r\ncontent-length: 3\r\n\r\n"
        assert (await there.raw(both)).startswith(b"HTTP/1.1 400")
        twice = post + b"webhook-id: a\r\nwebhook-id: b\r\ncontent-length: 0\r\n\r\n"
        assert (await there.raw(twice)).startswith(b"HTTP/1.1 400")
        long = post + b"x: " + b"y" * 70_000
        assert (await there.raw(long)).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
        slow = post + b"content-length: 10\r\n\r\n"
        assert (await there.raw(slow, b"x")).startswith(b"HTTP/1.1 408")
        assert (await there.raw(b"POST")).startswith(b"HTTP/1.1 408")
        waiting = post + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        assert (await there.raw(waiting)).startswith(b"HTTP/1.1 100")
        many = await asyncio.gather(*(there.raw(slow) for _ in range(5)))
        assert sorted(answer[9:12] for answer in many) == [b"408"] * 2 + [b"503"] * 3
        assert (await there.send({"text": "fine"})).status_code == 200


@pytest.mark.behaviour("M-259")
async def test_what_the_hub_refuses_is_told_and_what_it_cannot_take_now_comes_again() -> None:
    rules = Moderation(ModerationConfig(words=("darn",)))
    async with door(mods=(rules,)) as there:
        refused = await there.send({"text": "darn"})
        assert refused.status_code == 422
        assert refused.json()["error"].startswith("rejected: moderation: ")
        assert (await there.send({"text": "a\x00b"}, "e2")).status_code == 422
        assert (await there.send({"text": "fine"}, "e3")).status_code == 200


@pytest.mark.behaviour("M-259")
async def test_a_channel_that_it_cannot_join_is_told_before_anything_comes() -> None:
    with pytest.raises(OperationError) as caught:
        async with door({"to": "channel_closed"}):
            raise AssertionError("it listens all the same")
    assert caught.value.code == "forbidden"


@pytest.mark.behaviour("M-390")
async def test_an_answer_without_a_body_and_an_end_in_the_middle_are_no_failures() -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    async with door() as there:
        for path, status in ((b"/hooks/ci", b"405"), (b"/nope", b"404")):
            answer = await there.raw(b"HEAD " + path + b" HTTP/1.1\r\nhost: x\r\n\r\n")
            head, _, body = answer.partition(b"\r\n\r\n")
            assert (head[9:12], body) == (status, b"")
        head = b"POST /hooks/ci HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
        writer.write(head + b"content-length: 9\r\n\r\n")
        async with soon():
            await reader.readuntil(b"\r\n\r\n")
    async with soon():
        await reader.read()
    writer.close()
    assert not told
