"""Agents with roles and their scripted models, for tests on a real hub."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.loading import load_module
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Answer, ModelServer, Script
from tests.interaction import trade
from tests.interaction.agent_rig import Rig, call, says
from tests.interaction.peers import Peer

__all__ = ["BOTH", "fresh_shop", "judge", "plan", "playing", "roles", "route", "start", "told"]

TOOLS = ["trade.py:price_of", "trade.py:total_of"]
BOTH: list[JsonValue] = [
    {"id": 1, "goal": "price of the lamp", "executor": "price_of",
     "arguments": {"article": "lamp"}},
    {"id": 2, "goal": "price of the clock", "executor": "price_of",
     "arguments": {"article": "clock"}},
    {"id": 3, "goal": "add them", "executor": "total_of",
     "arguments": {"prices": ["$step_1_result", "$step_2_result"],
                   "note": " (lamp $step_1_result)"}},
]  # fmt: skip


def fresh_shop() -> trade.Shop:
    """A fresh one, in the module that the agents load by its path."""
    fresh = trade.Shop()
    vars(load_module(trade.FILE))["shop"] = fresh
    return fresh


def route(target: str, confidence: float = 0.9, **more: JsonValue) -> Answer:
    return says(call("route", target=target, confidence=confidence, **more))


def plan(steps: list[JsonValue]) -> Answer:
    return says(call("submit_plan", steps=steps))


def judge(verdict: str, score: int = 4, reason: str = "because", **more: JsonValue) -> Answer:
    return says(call("judge", verdict=verdict, score=score, reason=reason, **more))


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


async def start(net: Rig, server: ModelServer, kind: str = "pipeline", **config: JsonValue) -> None:
    endpoint: dict[str, JsonValue] = {"model": "m", "base_url": server.base_url, "retries": 0}
    endpoint |= {"dialect": config.pop("dialect", None)}
    override = config.pop("endpoint", {})
    assert isinstance(override, dict)
    endpoint |= override
    models = {"default": ModelConfig.model_validate(endpoint)}
    if "models" in config:
        models |= {
            name: ModelConfig.model_validate({**endpoint, "model": name})
            for name in ("small", "large")
        }
    agent = AgentConfig.model_validate({"kind": kind, "tools": TOOLS, **config})
    await net.configured("bot", agent, trade.FILE.parent, models)


async def told(ann: Peer) -> str:
    message = (await ann.event())["message"]
    return str(message.get("text_representation") or message["content"])


def roles(turn: Turn) -> list[str]:
    return [step.notes[0].removeprefix("role: ") for step in turn.steps]
