"""`kill -9` of the hub in the middle of a task of A2A, and of a notification about it."""

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
    """Who asks, by the token of ann."""
    headers = {"authorization": f"Bearer {network.run_file().tokens['ann']}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=None) as http:
        made = ClientFactory(ClientConfig(httpx_client=http, streaming=False))
        yield await made.create_from_url(network.url.replace("ws:", "http:"))


async def until(heard: asyncio.Queue[bytes], state: TaskState) -> None:
    """A notification tells of this state."""
    async with asyncio.timeout(100):
        while TaskState.Name(state).encode() not in await heard.get():
            pass


@pytest.mark.behaviour("I-44")
async def test_a_task_and_its_notifications_go_on_after_a_kill(tmp_path: Path) -> None:
    path, answers = tmp_path / "desk.yaml", asyncio.Event()
    path.write_text(NETWORK)
    (tmp_path / "painter.py").write_text(PAINTER)
    asked = asks("the fence", wait=False)
    async with notified(answers) as (url, heard):
        config = TaskPushNotificationConfig(url=url, token="t0")
        asked.configuration.task_push_notification_config.CopyFrom(config)
        async with running_up(path, tmp_path) as network, partner(network) as ann:
            task = await sent(ann, asked)
            await heard.get()  # and nobody answers it
            while task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
                task = await ann.get_task(GetTaskRequest(id=task.id))
            network.process.kill()
        (left,) = (tmp_path / "run").iterdir()  # by the dead one
        left.unlink()
        answers.set()
        async with running_up(path, tmp_path) as network:
            await until(heard, TaskState.TASK_STATE_INPUT_REQUIRED)  # before anybody asks
            async with partner(network) as ann:
                assert (await sent(ann, asked)).id == task.id
                done = await sent(ann, asks("red", "two", task_id=task.id))
                assert done.artifacts[0].parts[0].text == "painted red"
                await until(heard, TaskState.TASK_STATE_COMPLETED)
            person = await network.join("ann")
            async with asyncio.timeout(100):
                # What is waited for has no event.
                while Recalled.model_validate(await person.client.call("recall")).entries:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
