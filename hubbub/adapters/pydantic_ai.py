"""Agents of Pydantic AI.

support = pydantic_ai.Agent("openai:gpt-5-mini", instructions="You help with orders.")
PydanticAiAgent(support, "support").serve()
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext, Tool
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import (
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.toolsets import FunctionToolset

from hubbub.adapters.guest import NETWORK_TOOLS, GuestAgent, GuestTurn, answer_of, check_type
from hubbub.agents.models.base import CallRequest
from hubbub.errors import ModelError

__all__ = ["PydanticAiAgent"]


class PydanticAiAgent(GuestAgent):
    """An agent of Pydantic AI, with its tools, output types and dependencies (`deps`).

    A turn's record has every model response with its tokens, and every tool call. The answer
    streams.
    """

    def __init__(
        self,
        agent: Agent[Any, Any],  # with any dependencies and output
        name: str = "",
        *,
        deps: object = None,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        check_type(self, agent, Agent)
        super().__init__(name or agent.name or "", network_tools=network_tools)
        self._agent, self._deps = agent, deps
        self.model = getattr(agent.model, "model_name", None)

    async def run(self, turn: GuestTurn) -> str:
        network = FunctionToolset([_tool(turn, spec.name) for spec in turn.tools])
        try:
            async with self._agent.iter(
                turn.prompt, instructions=turn.system, deps=self._deps, toolsets=[network]
            ) as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as events:
                            await _stream(turn, events)
                    elif Agent.is_call_tools_node(node):
                        await _record_answer(turn, node.model_response)
                        async with node.stream(run.ctx) as events:
                            async for event in events:
                                if isinstance(event, FunctionToolResultEvent):
                                    _record_result(turn, event)
        except AgentRunError as exc:
            raise ModelError(str(exc)) from exc
        assert run.result is not None, "the run is complete"
        output = run.result.output
        return answer_of(turn, None if isinstance(output, DeferredToolRequests) else output)


def _tool(turn: GuestTurn, name: str) -> Tool[Any]:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def call(ctx: RunContext[Any], **arguments: Any) -> str:  # of the tool's schema
        return await turn.call(name, arguments, ctx.tool_call_id or "")

    function: Callable[..., Awaitable[str]] = call
    return Tool.from_schema(function, name, spec.description, dict(spec.offered), takes_ctx=True)


async def _stream(turn: GuestTurn, events: Any) -> None:  # an async iterator of a private type
    text = ""
    async for event in events:
        match event:
            case PartStartEvent(part=TextPart(content=content)):
                text = content
            case PartDeltaEvent(delta=TextPartDelta(content_delta=delta)):
                text += delta
            case _:
                continue
        await turn.stream_text(text)


async def _record_answer(turn: GuestTurn, response: ModelResponse) -> None:
    calls = [
        CallRequest(call.tool_call_id, call.tool_name, call.args_as_json_str())
        for call in response.tool_calls
    ]
    usage = response.usage
    await turn.record_answer(
        response.text,
        calls,
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        reasoning=response.thinking,
    )


def _record_result(turn: GuestTurn, event: FunctionToolResultEvent) -> None:
    part = event.part
    if isinstance(part, RetryPromptPart):
        turn.record_result(part.tool_call_id, part.model_response(), "failed")
    else:
        turn.record_result(part.tool_call_id, part.model_response_str())
