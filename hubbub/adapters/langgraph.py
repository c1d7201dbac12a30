"""Graphs of LangGraph, and agents of LangChain, which are such graphs.

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

    `graph` may be a function: it is given the network's tools, and makes the graph of a turn. The
    record of a turn has the answers of all chat models that run in it, with their tokens and calls;
    people see the text of the one that writes.
    """

    def __init__(
        self,
        graph: Graph | Callable[[Sequence[BaseTool]], Graph],
        name: str,
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        takes = not isinstance(graph, Runnable)
        super().__init__(name, network_tools=network_tools if takes else ())
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
    """What the models and tools of a run say of themselves. Those that are not asynchronous have a
    thread and a loop of their own, and so have their callbacks.
    """

    def __init__(self, turn: GuestTurn):
        self._turn, self._loop = turn, asyncio.get_running_loop()
        self._written: dict[UUID, str] = {}

    async def on_llm_new_token(self, token: str, *, run_id: UUID, **kwargs: Any) -> None:
        text = self._written[run_id] = self._written.get(run_id, "") + token
        await self._in_turn(self._turn.writing(text))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        self._written.pop(run_id, None)
        for generation, *_ in response.generations:
            if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                await self._in_turn(self._answered(generation.message))

    async def _in_turn(self, told: Coroutine[None, None, None]) -> None:
        if asyncio.get_running_loop() is self._loop:
            await told
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(told, self._loop))

    async def _answered(self, message: AIMessage) -> None:
        usage = message.usage_metadata
        calls = [
            CallRequest(call["id"] or "", call["name"], json.dumps(call["args"]))
            for call in message.tool_calls
        ]
        await self._turn.answered(
            message.text,
            calls,
            tokens_in=usage["input_tokens"] if usage else 0,
            tokens_out=usage["output_tokens"] if usage else 0,
        )

    async def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if isinstance(output, ToolMessage):
            failed = "failed" if output.status == "error" else None
            told = (output.tool_call_id, output.content, failed)
            self._loop.call_soon_threadsafe(self._turn.called, *told)


def _tool(turn: GuestTurn, name: str) -> BaseTool:
    spec = next(spec for spec in turn.tools if spec.name == name)

    async def call(**arguments: Any) -> str:  # as the schema has them
        return await turn.call(name, arguments)

    return StructuredTool.from_function(
        coroutine=call, name=name, description=spec.description, args_schema=dict(spec.offered)
    )
