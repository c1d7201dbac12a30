"""A webhook receives each message in the log's order, under one id, despite failures of receiver
and store, and restarts."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import WebhooksConfig, verify
from tests.interaction.peers import Peer, config
from tests.interaction.receiver import Receiver, Request, receiving
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife
from tests.stateful.mod_life import as_test

pytestmark = pytest.mark.behaviour("M-252", "M-254")

SECRET = "correct horse battery"
FILE = config(network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}})
MOODS = st.sampled_from([200, 204, 500, 429, 302, None])


class WebhooksMachine(RuleBasedStateMachine):
    """The model: the log."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.accepted: list[Request] = []
        """Requests that the receiver accepted."""
        self.begin()

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        self.mod = WebhooksMod(WebhooksConfig())
        self.life = HubLife(FILE, self.store, [self.mod])
        self.stack = AsyncExitStack()
        self.receiver: Receiver = self.life.run(self.stack.enter_async_context(receiving()))
        self.ann: Peer = self.life.run(self.life.network.join("ann"))
        self.configure()

    def configure(self) -> None:
        """Retries at once and without end, so that nothing waits for a clock."""
        hook = {"name": "audit", "url": self.receiver.url, "secret": SECRET, "content": True}
        retries = {"hooks": [hook], "attempts": 100, "first_retry": 0.001, "longest_retry": 0.002}
        timeout = 0.01 if self.receiver.status is None else 20
        config = WebhooksConfig.model_validate({**retries, "timeout": timeout})
        self.life.run(self.reconfigure(config))

    async def reconfigure(self, config: WebhooksConfig) -> None:
        self.life.network.hub.services.mods.configure(self.mod, config)

    def end(self) -> None:
        self.collect()
        self.life.run(self.stack.aclose())
        self.life.end()

    def collect(self) -> None:
        """Collects the requests accepted in the current mood."""
        status = self.receiver.status
        if status is not None and status < 300:
            self.accepted += self.receiver.requests
        self.receiver.requests.clear()

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.end()
            self.folder.cleanup()

    @rule()
    def restart(self) -> None:
        self.end()
        self.begin()

    @rule(mood=MOODS)
    def mood(self, mood: int | None) -> None:
        self.collect()
        self.receiver.status = mood
        self.configure()

    @rule(count=st.integers(1, 5), failing=st.sampled_from([0, 0, 0, 1, 2]))
    def send(self, count: int, failing: int) -> None:
        self.store.failing = failing
        self.life.run(self.broadcast(count))
        self.store.failing = 0

    async def broadcast(self, count: int) -> None:
        refs = [await self.ann.post("broadcast_text_message", text=str(n)) for n in range(count)]
        for ref in refs:
            answer = await self.ann.answer(ref)
            assert answer["op"] == "result" or answer["code"] == "store_unavailable", answer

    @rule()
    def drain(self) -> None:
        self.mood(200)
        self.life.run(self.until_delivered())
        self.collect()
        log = self.life.run(self.log())
        first: dict[str, str] = {}
        for request in self.accepted:
            event = request.json()
            at = float(request.headers["webhook-timestamp"])
            id = verify(SECRET, request.headers, request.body, at, 1)
            same = first.setdefault(event["data"]["id"], id)
            assert id == event["id"] == same, "an event was sent under two ids"
        assert list(first) == log

    async def until_delivered(self) -> None:
        async def done() -> bool | None:
            [hook] = (await self.ann.call("list_webhooks"))["webhooks"]
            assert not hook["failed"]
            return None if hook["waiting"] else True

        await self.life.network.recorded(done)

    async def log(self) -> list[str]:
        """Ids of all messages."""
        ids: list[str] = []
        before = None
        while True:
            more: dict[str, Any] = {} if before is None else {"before": before}
            page = await self.ann.ask("read_thread", thread="broadcast", limit=100, **more)
            if page["op"] == "error":
                return ids  # the thread does not exist yet
            ids = [each["id"] for each in page["value"]["messages"]] + ids
            if not page["value"]["more"]:
                return ids
            before = page["value"]["messages"][0]["tseq"]


TestWebhooks = as_test(WebhooksMachine, 20)
