"""`partial` signals: the message that an agent is about to send, while its model writes it.

Only the `text` of a call (the `message` of `finish`) that will be sent to the turn's own thread is
shown, as far as it is written; it must be a native tool call (dialect `native`). Text outside of
calls, thoughts, arguments of other tools and messages for others are never shown. In the text
dialects only the complete answer shows what was a thought, so nothing is shown of them.

Nor is a call shown that may still be refused by a person or by a hook (`unrefusable_tools`). The
hub itself withholds what one of its mods may refuse.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import from_json

from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.models.base import Delta, OnDelta
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.policy import Allow, PermissionMode, PermissionSubject, decide
from hubbub.agents.turn.activity import SendActivity
from hubbub.agents.turn.hooks import Hooks, overrides
from hubbub.protocol import thread_ids
from hubbub.waiting import cancel

__all__ = ["Partials", "SignalRate", "partial_object", "unrefusable_tools"]

EVERY_S = 0.2
"""Minimum seconds between two signals of a turn."""
MOST_TEXT = 8000
"""Characters of the text that are shown: the last ones."""


def partial_object(text: str) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """The beginning of a JSON object: its members as far as they are written, and those of them
    that are certainly complete. Both are empty for what is no JSON.
    """
    try:
        so_far = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return {}, {}
    if not isinstance(so_far, dict):
        return {}, {}
    try:
        return so_far, from_json(text)
    except ValueError:
        return so_far, dict(list(so_far.items())[:-1])


@dataclass(slots=True)
class SignalRate:
    """How often the turns of one agent send `partial` signals: the more turns are writing, the less
    often each does.

    A signal costs a fifth of a call in the hub's rate limit. To leave enough for recording turns
    and sending messages, all signals together use at most a fifth of the agent's rate.
    """

    calls_per_second: float = 20.0
    """The hub's limit."""
    writing: int = 0
    """Answers being written at present."""

    @property
    def pause_s(self) -> float:
        """Seconds between two signals of a turn."""
        return max(EVERY_S, self.writing / self.calls_per_second)


def unrefusable_tools(
    tools: Iterable[PermissionSubject], mode: PermissionMode, hooks: Iterable[Hooks]
) -> frozenset[str]:
    """Names of the tools whose messages are certain to be sent: no person must approve the call,
    whatever the turn has read, and no hook is asked.
    """
    if any(overrides(hook.on_tool_start, Hooks.on_tool_start) for hook in hooks):
        return frozenset()
    speaking = (t for t in tools if t.speaks)
    return frozenset(t.name for t in speaking if isinstance(decide(t, mode, untrusted=True), Allow))


@dataclass(slots=True)
class _Writing:
    """A call that is being written."""

    name: str = ""
    pieces: list[str] = field(default_factory=list)
    shown: str = ""


class Partials:
    """The `partial` signals of one turn. `send` sends the data of a signal to a thread."""

    def __init__(
        self,
        send: SendActivity,
        plan: TurnPlan,
        inbox: Inbox,
        names: Collection[str],
        pace: SignalRate | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_text: Callable[[str], Awaitable[None]] | None = None,
    ):
        """`names`: tools whose calls may be shown. `pace` is shared by all turns of the agent.
        `on_text` receives the texts, too.
        """
        self._on_text = on_text
        self._send, self._plan, self._inbox, self.names = send, plan, inbox, names
        self.pace, self._sleep = pace or SignalRate(), sleep

    @contextlib.asynccontextmanager
    async def of(self, step: int) -> AsyncIterator[OnDelta]:
        """Within, the answer of this step is written; yields the callback for its deltas."""
        answer = _Answer(self, step)
        try:
            yield answer.hear
            await answer.send_rest()
        finally:
            await answer.stop()

    async def send(self, data: dict[str, JsonValue]) -> None:
        await self._send(self._plan.reply_thread, {"turn": self._plan.id, **data})
        if self._on_text is not None:
            await self._on_text(str(data["text"]))

    async def pause(self) -> None:
        await self._sleep(self.pace.pause_s)

    def is_visible(self, name: str, members: Mapping[str, JsonValue]) -> bool:
        """Whether a call, as far as it is known, certainly sends to the turn's thread."""
        if name not in self.names:
            return False
        there = self._destination(name, members)
        return there is not None and thread_ids.root(there) == thread_ids.root(
            self._plan.reply_thread
        )

    def _destination(self, name: str, members: Mapping[str, JsonValue]) -> str | None:
        match name, members:
            case ("finish", _):
                return self._plan.reply_thread
            case ("send_text_message", {"to": str(to)}):
                return self._thread(to)
            case ("send_text_message", {"to": [*several]}):
                names = {str(one) for one in several} | {self._inbox.me}
                return thread_ids.direct(names) if all(map(thread_ids.is_id, names)) else None
            case ("post_to_channel", {"channel": str(channel)}):
                return thread_ids.channel(channel) if thread_ids.is_id(channel) else None
            case ("broadcast_text_message", _):
                return thread_ids.BROADCAST
            case ("reply", {"message_id": str(id)}):
                return self._thread_of_message(id)
        return None

    def _thread(self, to: str) -> str | None:
        if thread_ids.is_participant_id(to):
            return thread_ids.direct({to, self._inbox.me})
        return thread_ids.canonical(to, self._inbox.me)

    def _thread_of_message(self, id: str) -> str | None:
        """Of a message in the turn's thread; None for all others."""
        messages = (*self._plan.incoming, *self._inbox.messages(self._plan.thread_id))
        return next((m.thread_id for m in messages if m.id == id), None)


class _Answer:
    """One answer that is being written, and the task that sends its signals."""

    def __init__(self, partials: Partials, step: int):
        self._partials, self._step = partials, step
        self._calls: dict[int, _Writing] = {}
        self._attempt = 1
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hear(self, delta: Delta) -> None:
        if delta.attempt != self._attempt:
            self._attempt = delta.attempt
            self._calls.clear()
        if delta.call is None or (delta.name and delta.name not in self._partials.names):
            return  # nothing of it is shown: reading all of it at every piece would take long
        writing = self._calls.setdefault(delta.call, _Writing())
        writing.name = delta.name or writing.name
        writing.pieces.append(delta.text)
        self._changed.set()
        if self._task is None:
            self._partials.pace.writing += 1
            self._task = asyncio.create_task(self._send_paced())

    async def send_rest(self) -> None:
        """The answer is complete: send what is missing."""
        while await self._send_one():
            pass

    async def stop(self) -> None:
        if self._task is not None:
            self._partials.pace.writing -= 1
            await cancel(self._task)

    async def _send_paced(self) -> None:
        while True:
            await self._changed.wait()
            if await self._send_one():
                await self._partials.pause()
            else:
                self._changed.clear()

    async def _send_one(self) -> bool:
        """Send a signal about the first call with new text; returns whether there was one."""
        for writing in self._calls.values():
            data = self._next_data(writing)
            if data is not None:
                await self._partials.send(data)
                return True
        return False

    def _next_data(self, writing: _Writing) -> dict[str, JsonValue] | None:
        """The data of the next signal about a call; None if there is nothing new."""
        so_far, complete = partial_object("".join(writing.pieces))
        text_so_far = so_far.get("message" if writing.name == "finish" else "text")
        if not isinstance(text_so_far, str) or not text_so_far or text_so_far == writing.shown:
            return None
        if not self._partials.is_visible(writing.name, complete):
            return None
        writing.shown = text_so_far
        text = text_so_far if len(text_so_far) <= MOST_TEXT else f"…{text_so_far[-MOST_TEXT:]}"
        data: dict[str, JsonValue] = {"step": self._step, "text": reveal(text)}
        to = complete.get("to", complete.get("channel"))
        return data if to is None else {**data, "to": to}
