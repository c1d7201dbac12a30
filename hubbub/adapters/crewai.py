"""Agents and crews of CrewAI.

support = crewai.Agent(role="support", goal="Help with orders.", backstory="You know them all.")
CrewAiAgent(support, "support").serve()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from crewai import Agent, Crew, events
from crewai.events.stream_context import add_stream_sink
from crewai.events.types.llm_events import LLMEventBase
from crewai.events.types.tool_usage_events import ToolUsageEvent
from crewai.tools import BaseTool
from crewai.utilities.agent_utils import extract_tool_call_info
from pydantic import BaseModel, ConfigDict

from hubbub.adapters.guest import (
    NETWORK_TOOLS,
    GuestAgent,
    GuestTurn,
    WorkerThreads,
    check_type,
    text_of,
)
from hubbub.agents.models.base import CallRequest, ToolSpec
from hubbub.agents.models.portable_schema import without_nulls
from hubbub.errors import ModelError

__all__ = ["CrewAiAgent"]


class CrewAiAgent(GuestAgent):
    """An agent of CrewAI with its tools, guardrails and memory.

    `agent` can also be a function that takes the network's tools and returns the agent or crew of
    one turn. A crew's tasks get the conversation as `{conversation}`.

    A turn's record has every model response with its tokens, and every tool call. The answer
    streams if the LLM has `stream=True`.
    """

    def __init__(
        self,
        agent: Agent | Callable[[Sequence[BaseTool]], Agent | Crew],
        name: str,
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        if not callable(agent):
            check_type(self, agent, Agent)
        super().__init__(name, network_tools=network_tools)
        self._agent = agent
        self.model = getattr(agent.llm, "model", None) if isinstance(agent, Agent) else None

    async def run(self, turn: GuestTurn) -> str:
        async with WorkerThreads() as threads:
            listener = _Listener(turn, threads)
            tools = [_tool(turn, threads, spec) for spec in turn.tools]
            try:
                return await threads.run(self._kickoff, turn, tools, listener)
            except Exception as exc:  # CrewAI passes on any exception of the model's client
                if listener.refusal is not None:
                    raise ModelError(listener.refusal) from exc
                raise

    def _kickoff(self, turn: GuestTurn, tools: Sequence[BaseTool], listener: _Listener) -> str:
        add_stream_sink(listener.on_event)
        if isinstance(self._agent, Agent):
            agent: Agent | Crew = self._agent.copy()  # turns run concurrently
            agent.tools = [*(self._agent.tools or ()), *tools]
        else:
            agent = self._agent(tools)
        if isinstance(agent, Crew):
            output = agent.kickoff({"conversation": f"{turn.system}\n\n{turn.prompt}"})
        else:
            texts = {"system": turn.system, "user": turn.prompt}
            output = agent.kickoff([{"role": role, "content": texts[role]} for role in texts])
        return text_of(output.pydantic or output.raw)


class _Listener:
    """Reports CrewAI's events to the turn."""

    def __init__(self, turn: GuestTurn, threads: WorkerThreads):
        self.refusal: str | None = None
        self._turn, self._threads = turn, threads
        self._open: dict[str, tuple[str, object]] = {}
        self._written = ""

    def on_event(self, _: object, event: object) -> None:
        if isinstance(event, LLMEventBase | ToolUsageEvent):
            self._threads.wait(self._report(event))

    async def _report(self, event: object) -> None:
        match event:
            case events.LLMCallStartedEvent():
                self._written = ""
            case events.LLMStreamChunkEvent(chunk=str(chunk), tool_call=None):
                self._written += chunk
                await self._turn.stream_text(self._written)
            case events.LLMCallCompletedEvent(response=response, usage=usage):
                await self._record_answer(response, usage or {})
            case events.LLMCallFailedEvent(error=error):
                self.refusal = error
            case events.ToolUsageStartedEvent(tool_name=name, tool_args=arguments):
                # Some models report no calls in their response.
                if (name, _parsed(arguments)) not in self._open.values():
                    call = {"id": event.event_id, "name": name, "arguments": arguments}
                    await self._record_answer([call], {})
            case events.ToolUsageErrorEvent(error=error):
                self._record_result(event, str(error), "failed")
            case events.ToolUsageFinishedEvent(output=output, failure=failure):
                self._record_result(event, output, "failed" if failure else None)

    async def _record_answer(self, response: object, usage: dict[str, Any]) -> None:
        self.refusal = None
        tool_calls = response if isinstance(response, list) else ()
        infos = filter(None, map(extract_tool_call_info, tool_calls))
        calls = {id: (name, _parsed(arguments)) for id, name, arguments in infos}
        self._open |= calls
        await self._turn.record_answer(
            None if calls else text_of(response),
            [CallRequest(id, name, text_of(arguments)) for id, (name, arguments) in calls.items()],
            tokens_in=usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
            tokens_out=usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        )

    def _record_result(
        self, event: ToolUsageEvent, result: object, error: str | None = None
    ) -> None:
        finished = (event.tool_name, _parsed(event.tool_args))
        id = next((id for id, call in self._open.items() if call == finished), "")
        self._open.pop(id, None)
        self._turn.record_result(id, result, error)


def _parsed(arguments: object) -> object:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _tool(turn: GuestTurn, threads: WorkerThreads, spec: ToolSpec) -> BaseTool:
    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")  # the network checks them

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return dict(spec.strict or spec.offered)

    class OperationTool(BaseTool):
        def _run(self, **arguments: Any) -> str:
            given = cast(dict[str, Any], without_nulls(spec.offered, arguments))
            return threads.wait(turn.call(spec.name, given))

    settings = {"args_schema": Arguments, "cache_function": lambda *_: False}
    return OperationTool(name=spec.name, description=spec.description, **settings)
