"""Imported by the process that others are forked from.

All forked processes share the models and schemas that a first hub and a first agent build.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import tempfile
from pathlib import Path

import uvloop

from hubbub.agents.launch import run_agent
from hubbub.cli.agents import run  # noqa: F401
from hubbub.cli.app import command_of, program
from hubbub.config.loader import load
from hubbub.errors import ConnectionLost
from hubbub.testing.model_script import Script
from hubbub.testing.model_server import ModelServer
from hubbub.testing.network import LocalNetwork

CONFIG = """
network: {name: warm, listen: 127.0.0.1:0, auth: open, store: 'sqlite:hub.db'}
models: {default: {model: scripted, base_url: URL, api_key: any}}
agents: {agent: {kind: llm, instruction: Write.}}
"""


async def _warm() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warm.yaml"
        async with ModelServer(Script()) as model:
            path.write_text(CONFIG.replace("URL", model.base_url))
            config = load(path)
            file, database = config.file, f"sqlite:{folder}/hub.db"
            async with LocalNetwork(file, store=database, sockets=True) as network:
                agent = await network.join("agent", turns=True)
                ann = await network.join("ann", "human")
                work = run_agent(file.agent("agent"), "agent", agent, path.parent, file.models)
                running = asyncio.create_task(work)
                await ann.call("send_text_message", to="agent", text="hello")
                await model.received(1)
                running.cancel()
                await asyncio.wait([running])


with (
    # On a very busy machine the first handshake times out; the forked processes build the rest.
    contextlib.suppress(ConnectionLost),
    asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
):
    runner.run(_warm())
command_of(program("agents"))
gc.collect()
gc.freeze()
