"""Agents of Microsoft's Agent Framework, which AutoGen and Semantic Kernel have become.

support = agent_framework.Agent(client, "You help with orders.", name="support")
AgentFrameworkAgent(support).serve()
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
)
from agent_framework.exceptions import ChatClientException

from hubbub.adapters.guest import (
    NETWORK_TOOLS,
    GuestAgent,
    GuestTurn,
    answer_of,
    check_type,
    text_of,
)
from hubbub.agents.models.base import CallRequest
from hubbub.errors import ModelError

__all__ = ["AgentFrameworkAgent"]

Next = Callable[[], Awaitable[None]]


class AgentFrameworkAgent(GuestAgent):
    """An agent of the Agent Framework, with its tools, middleware and context providers.

    A turn's record has every model response with its tokens, and every function call. The answer
    streams.
    """

    def __init__(
        self,
        agent: Agent[Any],  # with any options
        name: str = "",
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        check_type(self, agent, Agent)
        super().__init__(name or agent.name or "", network_tools=network_tools)
        self._agent = agent
        self.model = getattr(agent.client, "model", None)

    async def run(self, turn: GuestTurn) -> str:
        messages = [Message("system", [turn.system]), Message("user", [turn.prompt])]
        run = self._agent.run(
            messages,
            stream=True,
            tools=[_tool(turn, spec.name) for spec in turn.tools],
            middleware=[_Answers(turn), _Results(turn)],
        )
        text = ""
        try:
            async for update in run:
                text = text + update.text if update.text else ""  # a new response starts
                await turn.stream_text(text)
            response = await run.get_final_response()
        except ChatClientException as exc:
            raise ModelError(str(exc.args[0])) from exc  # the whole has the cause again
        last = next((m for m in reversed(response.messages) if m.role == "assistant"), None)
        return answer_of(turn, last.text if last is not None else None)


class _Answers(ChatMiddleware):
    """Records the model's responses."""

    def __init__(self, turn: GuestTurn):
        self._turn = turn

    async def process(self, context: ChatContext, call_next: Next) -> None:
        context.stream_result_hooks.append(self._record_answer)
        await call_next()

    async def _record_answer(self, response: ChatResponse[Any]) -> None:
        contents = [content for message in response.messages for content in message.contents]
        calls = [
            CallRequest(content.call_id or "", content.name or "", _arguments(content))
            for content in contents
            if content.type == "function_call"
        ]
        usage = response.usage_details or {}
        await self._turn.record_answer(
            response.text,
            calls,
            tokens_in=usage.get("input_token_count") or 0,
            tokens_out=usage.get("output_token_count") or 0,
        )


class _Results(FunctionMiddleware):
    """Records the results of function calls."""

    def __init__(self, turn: GuestTurn):
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        call = str(context.metadata.get("call_id", ""))
        try:
            await call_next()
        except Exception as exc:
            self._turn.record_result(call, f"{type(exc).__name__}: {exc}", "failed")
            raise
        result = context.result
        parts = result if isinstance(result, list) else [result]
        texts = [part.text or "" if isinstance(part, Content) else text_of(part) for part in parts]
        self._turn.record_result(call, "\n".join(texts))


def _arguments(call: Content) -> str:
    arguments = call.arguments
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {})


def _tool(turn: GuestTurn, name: str) -> FunctionTool:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def run(**arguments: Any) -> str:  # of the tool's schema
        return await turn.call(name, arguments)

    return FunctionTool(
        name=name, description=spec.description, func=run, input_model=dict(spec.offered)
    )
