"""The same agent in each framework: it has a tool for prices, and a scripted model over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hubbub.adapters.guest import GuestAgent
from hubbub.testing.model_server import ModelServer

__all__ = ["GUESTS", "Make", "price", "quiet_crewai"]

Make = Callable[[ModelServer], GuestAgent]
"""Creates the agent `clerk` with its tool `price`, and a model at this server."""


def price(of: str) -> int:
    """Return the price of an item."""
    return 7


def of_pydantic_ai(model: ModelServer) -> GuestAgent:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from hubbub.adapters.pydantic_ai import PydanticAiAgent

    provider = OpenAIProvider(base_url=model.base_url, api_key="none")
    agent = pydantic_ai.Agent(OpenAIChatModel("m", provider=provider), tools=[price], retries=0)
    return PydanticAiAgent(agent, "clerk")


def of_openai_agents(model: ModelServer) -> GuestAgent:
    agents = pytest.importorskip("agents")
    from openai import AsyncOpenAI

    from hubbub.adapters.openai_agents import OpenAiAgent

    agents.set_tracing_disabled(True)
    endpoint = AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0)
    chat = agents.OpenAIChatCompletionsModel("m", endpoint)
    tools = [agents.function_tool(price)]
    return OpenAiAgent(agents.Agent("clerk", tools=tools, model=chat))


def of_langgraph(model: ModelServer) -> GuestAgent:
    langchain = pytest.importorskip("langchain.agents")
    from langchain_openai import ChatOpenAI

    from hubbub.adapters.langgraph import LangGraphAgent

    chat = ChatOpenAI(
        model="m", base_url=model.base_url, api_key="none", max_retries=0, streaming=True,
        stream_usage=True,
    )  # fmt: skip

    def graph(network: Sequence[Any]) -> Any:
        return langchain.create_agent(chat, [price, *network])

    return LangGraphAgent(graph, "clerk")


def of_agent_framework(model: ModelServer) -> GuestAgent:
    agent_framework = pytest.importorskip("agent_framework")
    from agent_framework.openai import OpenAIChatCompletionClient

    from hubbub.adapters.agent_framework import AgentFrameworkAgent

    client = OpenAIChatCompletionClient("m", api_key="none", base_url=model.base_url)
    return AgentFrameworkAgent(agent_framework.Agent(client, name="clerk", tools=[price]))


def quiet_crewai() -> Any:
    """The package without telemetry; skips the test if it is not installed."""
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
    return pytest.importorskip("crewai")


def of_crewai(model: ModelServer) -> GuestAgent:
    crewai = quiet_crewai()
    from crewai.tools import tool

    from hubbub.adapters.crewai import CrewAiAgent

    chat = crewai.LLM("openai/m", base_url=model.base_url, api_key="none", stream=True)
    agent = crewai.Agent(
        role="clerk", goal="Tell prices.", backstory="You know them.", llm=chat, tools=[tool(price)]
    )
    return CrewAiAgent(agent, "clerk")


GUESTS: dict[str, Make] = {
    "pydantic-ai": of_pydantic_ai,
    "openai-agents": of_openai_agents,
    "langgraph": of_langgraph,
    "agent-framework": of_agent_framework,
    "crewai": of_crewai,
}
