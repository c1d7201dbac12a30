"""An agent `bot` with a scripted model, on a real hub with a person, Ann, who talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.agents.tools.approval import Approver
from hubbub.config.models import AgentConfig, McpServerConfig, NetworkFile
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer
from tests.interaction.agent_harness import Harness, arrived, ended, harness, held, model_config
from tests.interaction.peers import Networks, Peer

__all__ = ["TALK", "Config", "Scene", "ending", "one_turn", "scene"]

Config = dict[str, Any]  # an agent's YAML, validated by `AgentConfig`
TALK = ScriptedAnswer(text="Hello there!", ignore_tool_choice=True)
"""An answer that is text instead of a tool call."""


@dataclass
class Scene:
    """The network, the person, and the model with its requests."""

    net: Harness
    ann: Peer
    model: ModelServer
    base: Path
    config: dict[str, JsonValue]
    approver: Approver | None = None
    servers: dict[str, McpServerConfig] = field(default_factory=dict)

    async def start(self, **config: JsonValue) -> None:
        """Start the agent with the scene's config, overridden by `config`."""
        config = {**self.config, **config}
        override = config.pop("endpoint", None) or {}
        assert isinstance(override, dict)
        models = {"default": model_config(self.model, **override)}
        for name in ("small", "large"):
            models[name] = model_config(self.model, **{**override, "model": name})
        agent = AgentConfig.model_validate(config)
        await self.net.configured(
            "bot", agent, self.base, models, approver=self.approver, mcp_servers=self.servers
        )

    async def restart(self, **config: JsonValue) -> None:
        """Kill the agent's process and start another."""
        await self.net.network.quiet()
        await self.net.crash("bot")
        await self.start(**config)

    async def say(self, text: str = "go", **more: Any) -> str:
        """Send the agent a message from Ann. Returns the id of the turn that it would start."""
        return await self.net.ask(self.ann, text, **more)

    async def turn(self, text: str = "go", **more: Any) -> Turn:
        """The finished turn that a message from Ann starts."""
        return await self.net.turn(await self.say(text, **more))

    async def heard(self) -> str:
        """The text of the next message to Ann."""
        message = (await self.ann.event())["message"]
        return str(message.get("text_representation") or message["content"])

    async def silence(self) -> None:
        """Assert that Ann gets nothing more."""
        await self.net.network.quiet()
        assert await self.ann.sync() == []

    async def held(self, name: str) -> None:
        """Wait until the model is at the answer held under this name."""
        await held(self.model, name)

    async def arrived(self, seq: int) -> None:
        """Wait until the agent has received a message."""
        await arrived(self.net, seq)

    async def steer(self, text: str, to: str | list[str] = "bot", **more: Any) -> None:
        """Send a message from Ann into the running turn, and wait until it has arrived."""
        await self.arrived((await self.ann.say(to, text, **more))["seq"])

    def told(self, request: int = -1) -> str:
        """The last message of a request: what the model sees of its last step."""
        return self.model.requests[request].body.messages[-1].text


@asynccontextmanager
async def scene(
    networks: Networks,
    *answers: AnyAnswer,
    script: Script | None = None,
    file: NetworkFile | None = None,
    base: Path | None = None,
    started: bool = True,
    **config: Any,
) -> AsyncIterator[Scene]:
    """An agent with this config, whose model gives these answers or plays the script."""
    script = script or Script(answers=list(answers))
    async with ModelServer(script) as model, harness(networks, file) as net:
        scene = Scene(net, await net.person(), model, base or Path(), config)
        if started:
            await scene.start()
        yield scene


async def one_turn(
    networks: Networks, *answers: AnyAnswer, base: Path | None = None, **config: Any
) -> tuple[Turn, ModelServer]:
    """The turn that one message starts, and the model with its requests."""
    async with scene(networks, *answers, base=base, **config) as s:
        return await s.turn(), s.model


def ending(turn: Turn) -> tuple[str, str]:
    """The outcome of a turn, and its reason."""
    end = ended(turn)
    return end.outcome, end.reason
