"""Graphs of LangGraph, which include agents of LangChain.

def support(tools: Sequence[BaseTool]) -> Runnable:
    return create_agent("openai:gpt-5-mini", [look_up, *tools])

LangGraphAgent(support, "support").serve()
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from hubbub.adapters.guest import (
    NETWORK_TOOLS,
    GuestAgent,
    GuestTurn,
    answer_of,
    check_type,
)
from hubbub.agents.models.base import CallRequest
from hubbub.errors import ModelError, UserError
from hubbub.ids import new_ulid

__all__ = ["LangGraphAgent"]

Graph: TypeAlias = Runnable[Any, Any]


class LangGraphAgent(GuestAgent):
    """A compiled graph whose state has `messages`, the last of which is the answer.

    `graph` can also be a function, sync or async, that takes the network's tools and returns the
    graph of one turn. A checkpointer has a new thread for each turn, as the prompt has the
    conversation. A turn's record has every response of every chat model in the graph, with tokens
    and tool calls. Text streams from the model that is writing.
    """

    def __init__(
        self,
        graph: Graph | Callable[[Sequence[BaseTool]], Graph | Awaitable[Graph]],
        name: str,
        *,
        network_tools: Sequence[str] = NETWORK_TOOLS,
    ):
        takes_tools = not isinstance(graph, Runnable)
        if takes_tools and not callable(graph):
            raise UserError(
                f"LangGraphAgent takes a compiled graph, or a function that returns one, not a "
                f"{type(graph).__name__}: call its `compile()`"
            )
        super().__init__(name, network_tools=network_tools if takes_tools else ())
        self._graph = graph

    async def run(self, turn: GuestTurn) -> str:
        graph, callbacks, run = await self._graph_for(turn), _TurnCallbacks(turn), new_ulid()
        messages = [SystemMessage(turn.system), HumanMessage(turn.prompt, id=run)]
        config: RunnableConfig = {
            "callbacks": [callbacks],
            "recursion_limit": 1000,
            "configurable": {"thread_id": run},
        }
        try:
            state = await graph.ainvoke({"messages": messages}, config)
        except Exception as exc:
            if exc is callbacks.error:
                raise ModelError(str(exc)) from exc
            raise
        if not isinstance(state, dict) or not state.get("messages"):
            raise UserError("the graph's state has no `messages`, which a turn needs")
        last = state["messages"][-1]
        if last.id == run:  # the graph has added nothing
            return answer_of(turn, None)
        return answer_of(turn, last.text if isinstance(last, AIMessage) else last.content)

    async def _graph_for(self, turn: GuestTurn) -> Graph:
        if isinstance(self._graph, Runnable):
            return self._graph
        graph = self._graph([_tool(turn, spec.name) for spec in turn.tools])
        if inspect.isawaitable(graph):
            graph = await graph
        check_type(self, graph, Runnable)
        return graph


class _TurnCallbacks(AsyncCallbackHandler):
    """Reports model and tool events to the turn. Callbacks of synchronous models and tools run in a
    thread with its own event loop.
    """

    def __init__(self, turn: GuestTurn):
        self._turn, self._loop = turn, asyncio.get_running_loop()
        self._written: dict[UUID, str] = {}
        self.error: BaseException | None = None
        """Of the last model call, if it failed."""

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.error = error

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
