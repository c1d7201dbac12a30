"""The tools of one agent, and the running of the calls of one step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from hubbub.agents.loop import FINISH, CallResult, failure
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.timing import TurnClock
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.errors import ConnectionLost
from hubbub.logs import get_logger
from hubbub.protocol.turns import ToolCallRecord

__all__ = ["MOST_RESULT", "Toolbox"]

MOST_RESULT = 16_000
"""Characters of a result that a model is given; the rest is cut, and said to be."""

_FINISH = ToolSpec(
    FINISH,
    "End this turn: you have done what there was to do, or there is nothing to do.",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "In a few words, why you are done."}
        },
        "required": ["reason"],
        "additionalProperties": False,
    },
)

log = get_logger(__name__)


class Toolbox:
    """Tools by name. Raises ValueError when two have the same name or one is called `finish`."""

    def __init__(self, tools: Iterable[Tool], *, timeout: float = 60.0):
        """`timeout`: seconds that a call may take whose tool does not say otherwise."""
        self._tools: dict[str, Tool] = {}
        self._timeout = timeout
        for tool in tools:
            if tool.name in self._tools or tool.name == FINISH:
                raise ValueError(f"there are two tools called {tool.name!r}")
            self._tools[tool.name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        """All names, `finish` the last."""
        return (*self._tools, FINISH)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told."""
        return (*(tool.spec for tool in self._tools.values()), _FINISH)

    @property
    def speaking(self) -> frozenset[str]:
        """The names of the tools that send a message."""
        return frozenset(name for name, tool in self._tools.items() if tool.speaks)

    def must_be_recorded(self, calls: Iterable[ToolCallRecord]) -> bool:
        """Whether one of the calls could do harm if a crash made it be forgotten and done again."""
        return any(not self._tools[call.name].idempotent for call in calls)

    async def run(
        self,
        turn: str,
        n: int,
        all_calls: Sequence[ToolCallRecord],
        calls: Sequence[ToolCallRecord],
        *,
        again: bool = False,
        clock: TurnClock | None = None,
    ) -> list[CallResult]:
        """Run `calls`, which are some of `all_calls` of step `n`; results in their order.

        They run side by side, except that those that write to the network keep their order. `again`
        says that they may have run before: then only idempotent ones run. `clock` is the turn's;
        without it times count from here.
        """
        clock = clock or TurnClock()
        results: dict[str, CallResult] = {}
        places = {call.id: CallSite(turn, n, i) for i, call in enumerate(all_calls)}

        async def run(*some: ToolCallRecord) -> None:
            for call in some:
                results[call.id] = await self._run_one(call, places[call.id], again, clock)

        async with asyncio.TaskGroup() as group:
            ordered = [call for call in calls if self._tools[call.name].ordered]
            if ordered:
                group.create_task(run(*ordered))
            for call in calls:
                if call not in ordered:
                    group.create_task(run(call))
        return [results[call.id] for call in calls]

    async def _run_one(
        self, call: ToolCallRecord, site: CallSite, again: bool, clock: TurnClock
    ) -> CallResult:
        at = clock.ms
        error: str | None = None
        try:
            text = _cut(await self._attempt(self._tools[call.name], call.arguments, site, again))
        except ToolFailed as exc:
            error = exc.error
            text = failure(exc.error, _cut(exc.message), retry=exc.retry, near=exc.near)
        return CallResult(call.id, text, error, at, clock.since(at))

    async def _attempt(self, tool: Tool, arguments: JsonValue, site: CallSite, again: bool) -> str:
        if tool.confirm:
            raise ToolFailed("a person must approve this tool's calls", error="needs_approval")
        if again and not tool.idempotent:
            raise ToolFailed(_UNKNOWN, error="interrupted")
        assert isinstance(arguments, dict), "the loop runs no call whose arguments do not parse"
        timeout = tool.timeout or self._timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                return await tool.run(arguments, site)
        except ToolFailed:
            raise
        except ConnectionLost as exc:
            raise ToolFailed(str(exc), error="connection_lost") from exc
        except TimeoutError as exc:
            if not limit.expired():  # the tool's own
                raise _broken(tool, exc) from exc
            words = f"no result after {timeout:g} s; what it does may still take effect"
            raise ToolFailed(words, error="timeout", retry=tool.idempotent) from exc
        except Exception as exc:
            raise _broken(tool, exc) from exc


_UNKNOWN = (
    "the process stopped while this ran: it may or may not have taken effect; "
    "find out before you call it again"
)


def _broken(tool: Tool, exc: Exception) -> ToolFailed:
    log.warning("tool failed", tool=tool.name, exc_info=exc)
    return ToolFailed(f"{type(exc).__name__}: {exc}", error="tool_failed")


def _cut(text: str) -> str:
    if len(text) <= MOST_RESULT:
        return text
    return f"{text[:MOST_RESULT]}… (cut: {len(text)} characters in all)"
