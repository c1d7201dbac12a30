"""Agents of the OpenAI Agents SDK.

support = agents.Agent(name="support", instructions="You help with orders.")
OpenAiAgent(support).serve()
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import (
    Agent,
    AgentsException,
    FunctionTool,
    ModelResponse,
    ModelSettings,
    RawResponsesStreamEvent,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    Tool,
)
from agents.tool_context import ToolContext
from openai import OpenAIError
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseTextDeltaEvent,
)

from hubbub.adapters.guest import NETWORK_TOOLS, GuestAgent, GuestTurn, answer_of, check_type
from hubbub.agents.models.base import CallRequest
from hubbub.errors import ModelError

__all__ = ["OpenAiAgent"]


class OpenAiAgent(GuestAgent):
    """An agent of the OpenAI Agents SDK, with its tools, handoffs and guardrails. The SDK passes
    `context` to its tools.

    A turn's record has every model response with its tokens, and every function tool call. The
    answer streams. Only the first agent gets the network's tools; agents it hands off to do not.
    """

    def __init__(
        self,
        agent: Agent[Any],  # with any context
        name: str = "",
        *,
        context: object = None,
        run_config: RunConfig | None = None,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        check_type(self, agent, Agent)
        super().__init__(name or agent.name, network_tools=network_tools)
        self._agent, self._context, self._config = agent, context, run_config
        model = agent.model
        self.model = model if isinstance(model, str) else getattr(model, "model", None)

    async def run(self, turn: GuestTurn) -> str:
        network = [_tool(turn, spec.name) for spec in turn.tools]
        settings = ModelSettings(include_usage=True).resolve(self._agent.model_settings)
        agent = self._agent.clone(tools=[*self._agent.tools, *network], model_settings=settings)
        run = Runner.run_streamed(
            agent,
            [{"role": "system", "content": turn.system}, {"role": "user", "content": turn.prompt}],
            context=self._context,
            max_turns=None,  # the network has its own limit
            hooks=_TurnHooks(turn),
            run_config=self._config,
        )
        try:
            text = ""
            async for event in run.stream_events():
                if not isinstance(event, RawResponsesStreamEvent):
                    continue
                if isinstance(event.data, ResponseTextDeltaEvent):
                    text += event.data.delta
                    await turn.stream_text(text)
                elif event.data.type == "response.created":
                    text = ""
        except (AgentsException, OpenAIError) as exc:
            raise ModelError(str(exc)) from exc
        finally:
            run.cancel()
        return answer_of(turn, run.final_output)


class _TurnHooks(RunHooks[Any]):
    def __init__(self, turn: GuestTurn):
        self._turn = turn

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        texts = [
            part.text
            for item in response.output
            if isinstance(item, ResponseOutputMessage)
            for part in item.content
            if part.type == "output_text"
        ]
        calls = [
            CallRequest(item.call_id, item.name, item.arguments)
            for item in response.output
            if isinstance(item, ResponseFunctionToolCall)
        ]
        usage = response.usage
        await self._turn.record_answer(
            "".join(texts), calls, tokens_in=usage.input_tokens, tokens_out=usage.output_tokens
        )

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        if isinstance(context, ToolContext):
            self._turn.record_result(context.tool_call_id, result)


def _tool(turn: GuestTurn, name: str) -> FunctionTool:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def call(context: ToolContext[Any], arguments: str) -> str:
        return await turn.call(name, json.loads(arguments or "{}"), context.tool_call_id)

    return FunctionTool(name, spec.description, dict(spec.offered), call, strict_json_schema=False)
