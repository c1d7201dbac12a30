"""Graphs of LangGraph, which include agents of LangChain.

def support(tools: Sequence[BaseTool]) -> Runnable:
    return create_agent("openai:gpt-5-mini", [look_up, *tools])

LangGraphAgent(support, "support").serve()
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool

from hubbub.adapters.guest import NETWORK_TOOLS, GuestAgent, GuestTurn, text_of
from hubbub.agents.models.base import CallRequest

__all__ = ["LangGraphAgent"]

Graph: TypeAlias = Runnable[Any, Any]


class LangGraphAgent(GuestAgent):
    """A compiled graph whose state has `messages`, the last of which is the answer.

    `graph` can also be a function that takes the network's tools and returns the graph of one turn.
    A turn's record has every response of every chat model in the graph, with tokens and tool calls.
    Text streams from the model that is writing.
    """

    def __init__(
        self,
        graph: Graph | Callable[[Sequence[BaseTool]], Graph],
        name: str,
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        takes_tools = not isinstance(graph, Runnable)
        super().__init__(name, network_tools=network_tools if takes_tools else ())
        self._graph = graph

    async def run(self, turn: GuestTurn) -> str:
        graph = self._graph
        if not isinstance(graph, Runnable):
            graph = graph([_tool(turn, spec.name) for spec in turn.tools])
        messages = [SystemMessage(turn.system), HumanMessage(turn.prompt)]
        config = {"callbacks": [_TurnCallbacks(turn)], "recursion_limit": 1000}
        state = await graph.ainvoke({"messages": messages}, config)
        last = state["messages"][-1]
        return last.text if isinstance(last, AIMessage) else text_of(last.content)


class _TurnCallbacks(AsyncCallbackHandler):
    """Reports model and tool events to the turn. Callbacks of synchronous models and tools run in a
    thread with its own event loop.
    """

    def __init__(self, turn: GuestTurn):
        self._turn, self._loop = turn, asyncio.get_running_loop()
        self._written: dict[UUID, str] = {}

    async def on_llm_new_token(self, token: str, *, run_id: UUID, **kwargs: Any) -> None:
        text = self._written[run_id] = self._written.get(run_id, "") + token
        await self._in_turn(self._turn.stream_text(text))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        self._written.pop(run_id, None)
        for generation, *_ in response.generations:
            if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                await self._in_turn(self._record_answer(generation.message))

    async def _in_turn(self, report: Coroutine[None, None, None]) -> None:
        """Run `report` in the turn's event loop."""
        if asyncio.get_running_loop() is self._loop:
            await report
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(report, self._loop))

    async def _record_answer(self, message: AIMessage) -> None:
        usage = message.usage_metadata
        calls = [
            CallRequest(call["id"] or "", call["name"], json.dumps(call["args"]))
            for call in message.tool_calls
        ]
        await self._turn.record_answer(
            message.text,
            calls,
            tokens_in=usage["input_tokens"] if usage else 0,
            tokens_out=usage["output_tokens"] if usage else 0,
        )

    async def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if isinstance(output, ToolMessage):
            error = "failed" if output.status == "error" else None
            result = (output.tool_call_id, output.content, error)
            self._loop.call_soon_threadsafe(self._turn.record_result, *result)


def _tool(turn: GuestTurn, name: str) -> BaseTool:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def call(**arguments: Any) -> str:  # of the tool's schema
        return await turn.call(name, arguments)

    return StructuredTool.from_function(
        coroutine=call, name=name, description=spec.description, args_schema=dict(spec.offered)
    )
