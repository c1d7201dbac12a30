"""An agent that asks a model, in a process of its own.

`python -m benchmarks.agent_process <hub port> <model's base URL> <name>`; prints
`{"ports": [0]}` when it has joined. Ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from benchmarks.sides import token_of
from hubbub.agents.launch import run_agent
from hubbub.app.process import run_loop
from hubbub.client import Client, WebSocketTransport
from hubbub.config.models import AgentConfig, ModelConfig

__all__ = ["main"]


async def main(hub_port: str, base_url: str, name: str) -> None:
    """Run the agent until SIGTERM."""
    config = AgentConfig(kind="llm", instruction="You answer what you are asked.")
    models = {config.model: ModelConfig(model="scripted", base_url=base_url, api_key="none")}
    transport = WebSocketTransport(f"ws://127.0.0.1:{hub_port}")
    async with Client(transport, name, token=token_of(name), turns=True) as client:
        work = asyncio.create_task(run_agent(config, name, client, Path.cwd(), models))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        print(json.dumps({"ports": [0]}), flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await work


if __name__ == "__main__":
    run_loop(main(*sys.argv[1:]))
