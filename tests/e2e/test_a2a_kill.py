"""`kill -9` of the hub in the middle of an A2A task and of a notification about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from a2a.client import Client as A2aClient
from a2a.client import ClientConfig, ClientFactory
from a2a.types import GetTaskRequest, TaskPushNotificationConfig, TaskState

from hubbub.protocol.memory import Recalled
from tests.e2e.support.config_network import ConfigNetwork, running_up
from tests.interaction.test_a2a_door import asks, notified, sent

pytestmark = pytest.mark.slow

NETWORK = """
network:
  name: desk
  a2a: {agents: [painter], push_hosts: [127.0.0.1]}
  listen: ${HUBBUB_LISTEN}
  store: ${HUBBUB_STORE}
humans: {ann: {roles: [owner]}}
agents: {painter: {kind: python, class: "painter.py:Painter"}}
"""
PAINTER = """
from hubbub import Agent

class Painter(Agent):
    async def on_request(self, message):
        colour = await self.ask(message, "Which colour?", timeout=3600)
        return f"painted {colour.text}"
"""


@asynccontextmanager
async def partner(network: ConfigNetwork) -> AsyncIterator[A2aClient]:
    """An A2A client with ann's token."""
    headers = {"authorization": f"Bearer {network.run_file().tokens['ann']}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=None) as http:
        factory = ClientFactory(ClientConfig(httpx_client=http, streaming=False))
        yield await factory.create_from_url(network.url.replace("ws:", "http:"))


async def until(notifications: asyncio.Queue[bytes], state: TaskState) -> None:
    """Waits for a notification of this state."""
    async with asyncio.timeout(100):
        while TaskState.Name(state).encode() not in await notifications.get():
            pass


@pytest.mark.behaviour("I-44")
async def test_an_a2a_task_and_its_notifications_resume_after_a_hub_kill(tmp_path: Path) -> None:
    path, answers = tmp_path / "desk.yaml", asyncio.Event()
    path.write_text(NETWORK)
    (tmp_path / "painter.py").write_text(PAINTER)
    asked = asks("the fence", wait=False)
    async with notified(answers) as (url, notifications):
        config = TaskPushNotificationConfig(url=url, token="t0")
        asked.configuration.task_push_notification_config.CopyFrom(config)
        async with running_up(path, tmp_path) as network, partner(network) as ann:
            task = await sent(ann, asked)
            await notifications.get()  # the server does not respond yet
            while task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
                task = await ann.get_task(GetTaskRequest(id=task.id))
            network.process.kill()
        (run_file,) = (tmp_path / "run").iterdir()  # of the killed hub
        run_file.unlink()
        answers.set()
        async with running_up(path, tmp_path) as network:
            await until(notifications, TaskState.TASK_STATE_INPUT_REQUIRED)  # before any request
            async with partner(network) as ann:
                assert (await sent(ann, asked)).id == task.id
                done = await sent(ann, asks("red", "two", task_id=task.id))
                assert done.artifacts[0].parts[0].text == "painted red"
                await until(notifications, TaskState.TASK_STATE_COMPLETED)
            person = await network.join("ann")
            async with asyncio.timeout(100):
                # The removal of these entries has no event.
                while Recalled.model_validate(await person.client.call("recall")).entries:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
