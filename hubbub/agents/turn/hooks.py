"""Hooks: the user's Python code that observes a model's turns and may refuse its calls.

    class Audit(Hooks):
        def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            if call.name == "delete_file" and not at_work():
                return Refused("files are deleted in working hours only")
            return Proceed()

A hook that fails (raises, times out, returns no verdict) does not end the turn; the record gets a
note. Only a failing `on_tool_start` has a further effect: the call does not run, because the hook
might have refused it.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, assert_never

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.tools.toolbox import CallWrapper
from hubbub.agents.tools.worker_thread import run_in_thread
from hubbub.agents.turn.loop import CallResult, failure
from hubbub.logs import get_logger
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, ToolCallRecord, TurnEnd
from hubbub.user_code import contained, describe_error

__all__ = [
    "HookChain",
    "Hooks",
    "Proceed",
    "Refused",
    "ToolCall",
    "TurnEvent",
    "TurnInfo",
    "Verdict",
    "overrides",
]

HOOK_WITHIN_S = 5.0
"""Seconds that one call of a hook may take."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """The turn that a hook is called for."""

    id: str
    agent: str
    thread_id: str
    """Canonical."""
    messages: tuple[Message, ...]
    """The messages that woke the agent, oldest first."""
    resumed: bool = False
    """An earlier process started it and called hooks for part of it already."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model wants. Every hook gets its own copy of the arguments."""

    id: str
    name: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """An event in a turn, for a program that runs the agent. `kind` is named after the
    corresponding hook. Fields that do not apply are None.
    """

    kind: Literal["turn_start", "text", "step", "tool_start", "tool_end", "turn_end"]
    turn: TurnInfo
    text: str | None = None
    """For `text`: the whole text of the answer so far, while the model writes it."""
    step: Step | None = None
    """For `step`: the model's answer, with its tokens; its calls have not run."""
    call: ToolCall | None = None
    """For `tool_start` and `tool_end`."""
    result: CallResult | None = None
    """For `tool_end`."""
    end: TurnEnd | None = None
    """For `turn_end`."""


@dataclass(frozen=True, slots=True)
class Proceed:
    """The call may run, as far as this hook is concerned."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The call does not run; the model gets the reason."""

    reason: str


Verdict: TypeAlias = Proceed | Refused
"""The decision of a hook about a call. There is no third one: None means that the hook forgot to
decide."""


class Hooks:
    """Base class of hooks; a subclass overrides the methods that it needs.

    A method is `async def`, or a plain `def`, which runs in a thread. It has five seconds. Several
    hooks of an agent are called in the order of its config.
    """

    def on_turn_start(self, turn: TurnInfo) -> Awaitable[None] | None:
        """The turn starts; the model has not been asked."""
        return None

    def on_step(self, turn: TurnInfo, step: Step) -> Awaitable[None] | None:
        """The model has answered: text, calls (which have not run) and tokens."""
        return None

    def on_text(self, turn: TurnInfo, text: str) -> Awaitable[None] | None:
        """The text that the agent is about to send, as far as it is written: the whole text each
        time, a few times a second. Only for models that stream, and for calls that cannot be
        refused.
        """
        return None

    def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Awaitable[Verdict] | Verdict:
        """A call is about to run; its permission has not been checked. The first refusal counts,
        and a failure of this method is a refusal. It is called again for a call that has waited for
        a person.
        """
        return Proceed()

    def on_tool_end(
        self, turn: TurnInfo, call: ToolCall, result: CallResult
    ) -> Awaitable[None] | None:
        """A call has a result, possibly that it was refused. Not called for a call that was
        cancelled, nor yet for one that waits for a person.
        """
        return None

    def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> Awaitable[None] | None:
        """The turn ended, for any reason; the end is about to be recorded."""
        return None


def overrides(method: Callable[..., object], usual: Callable[..., object]) -> bool:
    """Whether a hook overrides this method of the base class."""
    return getattr(method, "__func__", None) is not usual


_USUAL = frozenset(
    {Hooks.on_turn_start, Hooks.on_turn_end, Hooks.on_step, Hooks.on_tool_start, Hooks.on_tool_end}
)
"""The base class's methods, which do nothing and need not be called."""


class HookChain:
    """The hooks of one turn."""

    def __init__(
        self,
        hooks: Sequence[Hooks],
        plan: TurnPlan,
        agent: str,
        *,
        within_s: float = HOOK_WITHIN_S,
        on_event: Callable[[TurnEvent], None] | None = None,
    ):
        """`on_event` receives the events for a program: it has no timeout and cannot refuse."""
        self._hooks, self._within_s, self._on_event = hooks, within_s, on_event
        self._turn = TurnInfo(plan.id, agent, plan.thread_id, plan.incoming, plan.resumed)
        self._notes: dict[str, None] = {}

    def __bool__(self) -> bool:
        """Whether there are hooks."""
        return bool(self._hooks)

    def notes(self) -> tuple[str, ...]:
        """Failures of hooks since the last call."""
        notes, self._notes = self._notes, {}
        return tuple(notes)

    @property
    def wrapper(self) -> CallWrapper | None:
        """The wrapper for each call; None: nothing needs one."""
        return self.around if self._hooks or self._on_event else None

    async def turn_started(self) -> None:
        self._emit("turn_start")
        for hook in self._hooks:
            await self._call_hook(hook.on_turn_start, self._turn)

    async def turn_ended(self, end: TurnEnd) -> tuple[str, ...]:
        """Call the hooks; returns the notes that are left."""
        self._emit("turn_end", end=end)
        for hook in self._hooks:
            await self._call_hook(hook.on_turn_end, self._turn, end)
        return self.notes()

    async def text_written(self, text: str) -> None:
        for hook in self._hooks:
            if overrides(hook.on_text, Hooks.on_text):  # most do not override it
                await self._call_hook(hook.on_text, self._turn, text)

    async def step_taken(self, step: Step) -> None:
        self._emit("step", step=step)
        for hook in self._hooks:
            await self._call_hook(hook.on_step, self._turn, step)

    async def around(
        self, call: ToolCallRecord, run: Callable[[], Awaitable[CallResult]]
    ) -> CallResult:
        """Run the call unless a hook refuses it."""
        self._emit("tool_start", call=_copy(call))
        refusal = await self._refusal(call)
        result = await run() if refusal is None else refusal
        if result.parked is not None:
            return result
        self._emit("tool_end", call=_copy(call), result=result)
        for hook in self._hooks:
            await self._call_hook(hook.on_tool_end, self._turn, _copy(call), result)
        return result

    def _emit(
        self,
        kind: Literal["turn_start", "step", "tool_start", "tool_end", "turn_end"],
        *,
        step: Step | None = None,
        call: ToolCall | None = None,
        result: CallResult | None = None,
        end: TurnEnd | None = None,
    ) -> None:
        if self._on_event is not None:
            self._on_event(TurnEvent(kind, self._turn, None, step, call, result, end))

    async def _refusal(self, call: ToolCallRecord) -> CallResult | None:
        for hook in self._hooks:
            verdict = await self._verdict(hook, call)
            match verdict:
                case Proceed():
                    pass
                case Refused(reason):
                    return _refused(call, "refused", reason)
                case None:  # the exception is in a note; the model need not read it
                    return _refused(call, "hook_failed", _NOT_CHECKED)
                case _:
                    assert_never(verdict)
        return None

    async def _verdict(self, hook: Hooks, call: ToolCallRecord) -> Verdict | None:
        """The hook's verdict; None if it fails."""
        verdict = await self._call_hook(hook.on_tool_start, self._turn, _copy(call))
        if isinstance(verdict, Proceed | Refused):
            return verdict
        if verdict is not _NOTHING:
            self._note(hook.on_tool_start, f"gave no verdict but {type(verdict).__name__}")
        return None

    async def _call_hook(self, method: Callable[..., object], *args: object) -> object:
        """The hook's return value; `_NOTHING` if it fails."""
        if getattr(method, "__func__", None) in _USUAL:
            return method(*args)
        try:
            async with asyncio.timeout(self._within_s) as limit:
                with contained():
                    return await _call(partial(method, *args))
        except Exception as exc:  # noqa: BLE001 - user code may raise anything; it is noted
            late = isinstance(exc, TimeoutError) and limit.expired()
            took = f"took more than {self._within_s:g} s"
            self._note(method, took if late else f"raised {describe_error(exc)}")
        return _NOTHING

    def _note(self, method: Callable[..., object], what: str) -> None:
        name = getattr(method, "__qualname__", repr(method))
        log.warning("a hook failed", hook=name, turn=self._turn.id, what=what)
        self._notes[f"the hook {name} {what[:_MOST]}"] = None


_NOTHING = object()
_MOST = 500
"""Characters of a note about a hook."""
_NOT_CHECKED = (
    "a check that every call must pass has failed by itself, so the call has had no effect. "
    "Do without it, or say that you cannot do it at present"
)


def _refused(call: ToolCallRecord, error: str, why: str) -> CallResult:
    return CallResult(call.id, failure(error, f"this call may not run: {why}"), error)


def _copy(call: ToolCallRecord) -> ToolCall:
    assert isinstance(call.arguments, dict), "the loop runs no call that does not parse"
    return ToolCall(call.id, call.name, copy.deepcopy(call.arguments))


async def _call(method: partial[object]) -> object:
    """The method's result: a coroutine is awaited, a plain function runs in a thread."""
    if inspect.iscoroutinefunction(method.func):
        result = method()
    else:
        result = await run_in_thread(method)
    return await result if inspect.isawaitable(result) else result
