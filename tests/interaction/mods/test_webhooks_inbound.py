"""Incoming webhooks: real requests to the server of a process, and a real network behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from hubbub.app.inbound import inbound
from hubbub.errors import OperationError
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.mods.webhooks.settings import InboundConfig, sign
from tests.interaction.mods.workspace import DESK, workspace
from tests.interaction.peers import Frame, Network, Peer, soon
from tests.interaction.stop_harness import HandClock

SECRET = "correct horse battery"


@dataclass
class Sender:
    """A program that sends webhooks, and the network that receives them."""

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
        headers = sign(SECRET, id, self.clock.now() if at is None else at, raw)
        headers |= {key.replace("_", "-"): value for key, value in changed.items()}
        given = {key.encode(): value.encode() for key, value in headers.items()}
        return await self.http.post(self.url(name), content=raw, headers=given)

    def url(self, name: str = "ci") -> str:
        return f"http://127.0.0.1:{self.port}/hooks/{name}"

    async def messages(self) -> list[Frame]:
        """All messages in the channel."""
        page = await self.ann.call("read_thread", thread=DESK, limit=100)
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
async def sender(
    *endpoints: dict[str, Any], mods: Any = (), **settings: Any
) -> AsyncIterator[Sender]:
    clock = HandClock()
    ci = {"name": "ci", "secret": SECRET, "to": "channel_desk"}
    given = InboundConfig.model_validate(
        {"endpoints": [{**ci, **each} for each in endpoints or ({},)], **settings}
    )
    async with workspace(mods, "ann", clock=clock) as (network, ann):
        inside = inbound(given, network.local.transport(), host="127.0.0.1", port=0, clock=clock)
        async with inside as port, httpx2.AsyncClient(trust_env=False, timeout=20) as http:
            yield Sender(port, clock, network, ann, http)


@pytest.mark.behaviour("M-257")
async def test_a_signed_event_is_posted_with_the_text_of_its_template() -> None:
    cases: list[tuple[str | None, object, str]] = [
        (None, {"text": "the build is red"}, "the build is red"),
        (None, {"a": ["é"]}, '{\n  "a": [\n    "é"\n  ]\n}'),
        ("{{ body.a.b }}: {{ body.c | length }}", {"a": {"b": "ann"}, "c": [1, 2]}, "ann: 2"),
        ("{{ name }}/{{ id }}: {{ body[0] }}", ["x"], "e3/e3: x"),
        ("@bob: {{ body.who }}", {"who": "@ann says"}, "@bob: @\u2060ann says"),
    ]
    sometimes = "{% if body.state == 'red' %}{{ 1 // body.n }}{% endif %}"
    templates = [*(template for template, _, _ in cases), sometimes]
    doors = [{"name": f"e{n}", "template": each} for n, each in enumerate(templates)]
    async with sender(*doors) as there:
        await there.network.join("bob")
        for n, (_, body, text) in enumerate(cases):
            answer = await there.send(body, f"e{n}", f"e{n}")
            assert answer.status_code == 200
            message = (await there.messages())[-1]
            assert answer.json() == {"posted": True, "message_id": message["id"]}
            assert (message["sender_id"], message["sender_kind"]) == ("webhook", "service")
            assert (message["content"], message["untrusted"]) == (text, True)
            assert message.get("mentions", []) == (["bob"] if "@bob" in text else [])
        # A template can render nothing, and a failing one affects only its event.
        assert (await there.send({"state": "green"}, name="e5")).json() == {"posted": False}
        assert (await there.send({"state": "red", "n": 0}, "f2", "e5")).status_code == 422
        assert (await there.send({}, "f4", "e5")).json() == {"posted": False}
        missing = await there.send({"a": {}, "c": []}, "f5", "e2")
        assert missing.status_code == 422
        assert "'dict object' has no attribute 'b'" in missing.json()["error"]
        assert (await there.send({"state": "red", "n": 1}, "f3", "e5")).json()["posted"]
        assert len(await there.messages()) == len(cases) + 1


@pytest.mark.behaviour("M-258")
async def test_a_signed_event_is_posted_once_and_an_unsigned_one_refused() -> None:
    async with sender({"tolerance": "60s"}) as there:
        now = there.clock.now()
        changes: list[Any] = [
            *({"webhook_signature": wrong} for wrong in ("v1,AAAA", "v2,x", "é", "")),
            *({"webhook_id": wrong} for wrong in ("other", "")),
            *({"webhook_timestamp": wrong} for wrong in ("1760001001", "soon", "9" * 5000)),
        ]
        for changed in changes:
            assert (await there.send({}, **changed)).status_code == 401, changed
        for at in (now - 61, now + 61):
            assert (await there.send({}, at=at)).status_code == 401
        assert not await there.messages()
        right = sign(SECRET, "e0", now, b"{}")["webhook-signature"]  # one of several suffices
        assert (await there.send({}, "e0", webhook_signature=f"v1,AAAA {right}")).status_code == 200
        first = await there.send({"text": "red"}, at=now - 59)
        there.clock.wall += 100
        again = await there.send({"text": "red"})
        assert again.json() == first.json()
        both = await asyncio.gather(*(there.send({"text": "green"}, "e2") for _ in range(5)))
        assert len({each.json()["message_id"] for each in both}) == 1
        assert len(await there.messages()) == 3
        other = await there.send({"text": "blue"}, "e2")
        assert (other.status_code, other.json()["error"]) == (
            409, "another event with this id was already posted",
        )  # fmt: skip


@pytest.mark.behaviour("M-259")
async def test_other_requests_and_rejected_messages_are_refused() -> None:
    rules = Moderation(ModerationConfig(words=("darn",)))
    async with sender(mods=(rules,), max_size=1000) as there:
        assert (await there.send({}, name="other")).status_code == 404
        got = await there.http.get(there.url())
        assert (got.status_code, got.headers["allow"]) == (405, "POST")
        for body, status in (
            (b"{", 400),
            (b"[" * 900, 400),
            ({"text": "x" * 1000}, 413),
            ({"text": "a\x00b"}, 422),
        ):
            assert (await there.send(body)).status_code == status

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(50):
                yield b"x" * 100

        chunked = await there.http.post(there.url(), content=parts())
        assert chunked.status_code == 413
        refused = await there.send({"text": "darn"}, "e2")
        assert refused.status_code == 422
        assert refused.json()["error"].startswith("rejected: moderation: ")
        assert not await there.messages()
        assert (await there.send({"text": "fine"}, "e3")).status_code == 200
    with pytest.raises(OperationError) as caught:
        async with sender({"to": "channel_attic"}):
            raise AssertionError("the server must not start")
    assert caught.value.code == "forbidden"


@pytest.mark.behaviour("M-259")
async def test_malformed_http_is_answered_and_closed() -> None:
    post = b"POST /hooks/ci HTTP/1.1\r\nhost: x\r\n"
    async with sender() as there:
        for part, statuses in (
            (b"hello\r\n\r\n", (b"400",)),
            (b"\x16\x03\x01" * 10 + b"\r\n\r\n", (b"400",)),
            (post + b"content-length: 2\r\ncontent-length: 3\r\n\r\n", (b"400",)),
            (post + b"webhook-id: a\r\nwebhook-id: b\r\ncontent-length: 0\r\n\r\n", (b"400",)),
            (post + b"x: " + b"y" * 70_000, (b"431", b"400")),
        ):
            answer = await there.raw(part)
            assert answer[:9] == b"HTTP/1.1 "
            assert answer[9:12] in statuses, part
        assert (await there.send({"text": "fine"})).status_code == 200
    slow = post + b"content-length: 10\r\n\r\n"
    async with sender(timeout=0.1, max_connections=2) as there:
        for parts in ([slow, b"x"], [b"POST"]):
            assert (await there.raw(*parts))[9:12] == b"408"
        expecting = post + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        assert (await there.raw(expecting))[9:12] == b"100"
    async with sender(timeout=1, max_connections=2) as there:
        many = await asyncio.gather(*(there.raw(slow) for _ in range(5)))
        assert sorted(answer[9:12] for answer in many) == [b"408"] * 2 + [b"503"] * 3


@pytest.mark.behaviour("M-390")
async def test_head_requests_and_aborted_uploads_raise_no_error() -> None:
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with sender() as there:
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
    assert not errors
