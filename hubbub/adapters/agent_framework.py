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

from hubbub.adapters.guest import NETWORK_TOOLS, GuestAgent, GuestTurn, text_of
from hubbub.agents.models.base import CallRequest
from hubbub.errors import ModelError

__all__ = ["AgentFrameworkAgent"]

Next = Callable[[], Awaitable[None]]


class AgentFrameworkAgent(GuestAgent):
    """An agent of the Agent Framework, with its tools, middleware and context providers.

    The record of a turn has each of the model's answers with its tokens, and all calls of
    functions; people see the answer as it is written.
    """

    def __init__(
        self,
        agent: Agent[Any],  # of whichever options
        name: str = "",
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
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
                text = text + update.text if update.text else ""  # the next answer begins anew
                await turn.writing(text)
            response = await run.get_final_response()
        except ChatClientException as exc:
            raise ModelError(str(exc)) from exc
        last = next((m for m in reversed(response.messages) if m.role == "assistant"), None)
        return last.text if last is not None else ""


class _Answers(ChatMiddleware):
    """Tells of the model's answers."""

    def __init__(self, turn: GuestTurn):
        self._turn = turn

    async def process(self, context: ChatContext, call_next: Next) -> None:
        context.stream_result_hooks.append(self._answered)
        await call_next()

    async def _answered(self, response: ChatResponse[Any]) -> None:
        contents = [content for message in response.messages for content in message.contents]
        calls = [
            CallRequest(content.call_id or "", content.name or "", _arguments(content))
            for content in contents
            if content.type == "function_call"
        ]
        usage = response.usage_details or {}
        await self._turn.answered(
            response.text,
            calls,
            tokens_in=usage.get("input_token_count") or 0,
            tokens_out=usage.get("output_token_count") or 0,
        )


class _Results(FunctionMiddleware):
    """Tells of what functions have led to."""

    def __init__(self, turn: GuestTurn):
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        call = str(context.metadata.get("call_id", ""))
        try:
            await call_next()
        except Exception as exc:
            self._turn.called(call, f"{type(exc).__name__}: {exc}", "failed")
            raise
        said = context.result
        parts = said if isinstance(said, list) else [said]
        texts = [part.text or "" if isinstance(part, Content) else text_of(part) for part in parts]
        self._turn.called(call, "\n".join(texts))


def _arguments(call: Content) -> str:
    given = call.arguments
    return given if isinstance(given, str) else json.dumps(given or {})


def _tool(turn: GuestTurn, name: str) -> FunctionTool:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def run(**arguments: Any) -> str:  # as the schema has them
        return await turn.call(name, arguments)

    return FunctionTool(
        name=name, description=spec.description, func=run, input_model=dict(spec.offered)
    )
