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

from hubbub.adapters.guest import NETWORK_TOOLS, GuestAgent, GuestTurn, WorkerThreads, text_of
from hubbub.agents.models.base import CallRequest, ToolSpec
from hubbub.agents.models.portable_schema import without_nulls
from hubbub.errors import ModelError

__all__ = ["CrewAiAgent"]


class CrewAiAgent(GuestAgent):
    """An agent of CrewAI with its tools, guardrails and memory. `agent` may be a function: it is
    given the network's tools, and makes the agent or the crew of a turn. The tasks of a crew are
    given the conversation as `{conversation}`.

    The record of a turn has each of the models' answers with its tokens, and all calls of tools;
    people see the answer as it is written where the LLM has `stream=True`.
    """

    def __init__(
        self,
        agent: Agent | Callable[[Sequence[BaseTool]], Agent | Crew],
        name: str,
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        super().__init__(name, network_tools=network_tools)
        self._agent = agent
        self.model = getattr(agent.llm, "model", None) if isinstance(agent, Agent) else None

    async def run(self, turn: GuestTurn) -> str:
        async with WorkerThreads() as threads:
            listener = _Listener(turn, threads)
            tools = [_tool(turn, threads, spec) for spec in turn.tools]
            try:
                return await threads.run(self._kickoff, turn, tools, listener)
            except Exception as exc:  # CrewAI raises whatever the model's client has raised
                if listener.refusal is not None:
                    raise ModelError(listener.refusal) from exc
                raise

    def _kickoff(self, turn: GuestTurn, tools: Sequence[BaseTool], listener: _Listener) -> str:
        add_stream_sink(listener.hear)
        if isinstance(self._agent, Agent):
            made: Agent | Crew = self._agent.copy()  # turns run side by side
            made.tools = [*(self._agent.tools or ()), *tools]
        else:
            made = self._agent(tools)
        if isinstance(made, Crew):
            output = made.kickoff({"conversation": f"{turn.system}\n\n{turn.prompt}"})
        else:
            said = {"system": turn.system, "user": turn.prompt}
            output = made.kickoff([{"role": role, "content": said[role]} for role in said])
        return text_of(output.pydantic.model_dump() if output.pydantic else output.raw)


class _Listener:
    """Tells the turn what its run does."""

    def __init__(self, turn: GuestTurn, threads: WorkerThreads):
        self.refusal: str | None = None
        self._turn, self._threads = turn, threads
        self._open: dict[str, tuple[str, object]] = {}
        self._written = ""

    def hear(self, _: object, event: object) -> None:
        if isinstance(event, LLMEventBase | ToolUsageEvent):
            self._threads.wait(self._told(event))

    async def _told(self, event: object) -> None:
        match event:
            case events.LLMCallStartedEvent():
                self._written = ""
            case events.LLMStreamChunkEvent(chunk=str(chunk), tool_call=None):
                self._written += chunk
                await self._turn.writing(self._written)
            case events.LLMCallCompletedEvent(response=response, usage=usage):
                await self._answered(response, usage or {})
            case events.LLMCallFailedEvent(error=error):
                self.refusal = error
            case events.ToolUsageStartedEvent(tool_name=name, tool_args=arguments):
                if (name, _parsed(arguments)) not in self._open.values():  # its model is silent
                    call = {"id": event.event_id, "name": name, "arguments": arguments}
                    await self._answered([call], {})
            case events.ToolUsageErrorEvent(error=error):
                self._called(event, str(error), "failed")
            case events.ToolUsageFinishedEvent(output=output, failure=failure):
                self._called(event, output, "failed" if failure else None)

    async def _answered(self, response: object, usage: dict[str, Any]) -> None:
        self.refusal = None
        told = response if isinstance(response, list) else ()
        infos = filter(None, map(extract_tool_call_info, told))
        calls = {id: (name, _parsed(arguments)) for id, name, arguments in infos}
        self._open |= calls
        await self._turn.answered(
            None if calls else text_of(response),
            [CallRequest(id, name, text_of(said)) for id, (name, said) in calls.items()],
            tokens_in=usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
            tokens_out=usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        )

    def _called(self, event: ToolUsageEvent, result: object, error: str | None = None) -> None:
        asked = (event.tool_name, _parsed(event.tool_args))
        id = next((id for id, call in self._open.items() if call == asked), "")
        self._open.pop(id, None)
        self._turn.called(id, result, error)


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
            said = cast(dict[str, Any], without_nulls(spec.offered, arguments))
            return threads.wait(turn.call(spec.name, said))

    kept = {"args_schema": Arguments, "cache_function": lambda *_: False}
    return OperationTool(name=spec.name, description=spec.description, **kept)
