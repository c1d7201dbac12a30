"""What an agent is about to say, while its model writes it: `partial` signals.

Only the `text` of a call (of `finish` the `message`) that will speak in the turn's own thread is
told, as far as it has been written; its call must be the endpoint's own (dialect `native`).
Everything else stays unsaid: words outside of calls, thoughts, other tools' arguments, and what is
meant for somebody else. In a dialect of words it is known only at the end what of them was a
thought, so nothing is told of them.

Nor is a call told of that may yet be refused (`unrefusable`): by a person or by a hook. What a mod
of the hub may refuse, the hub itself passes on to nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.models.base import Delta, OnDelta
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.policy import Allow, Judged, PermissionMode, decide
from hubbub.agents.turn.activity import Tell
from hubbub.agents.turn.hooks import Hooks, overrides
from hubbub.protocol import thread_ids

__all__ = ["Growing", "Pace", "Partials", "read_growing", "unrefusable"]

EVERY_S = 0.2
"""Seconds between two signals of a turn, at least."""
MOST_TEXT = 8000
"""Characters of the text that are told: the last ones."""

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:\s*")
_CUT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_HALF_PAIR = re.compile("[\ud800-\udbff]\\Z")


@dataclass(frozen=True, slots=True)
class Growing:
    """As much of a JSON object as has been written."""

    members: Mapping[str, JsonValue]
    """Those that are complete."""
    key: str | None = None
    """The one that is being written, if its value is a text."""
    text: str = ""
    """As far as it is there."""


def read_growing(text: str) -> Growing:
    """Read the beginning of a JSON object. What is no JSON ends what can be read."""
    members: dict[str, JsonValue] = {}
    at = len(text) - len(text.lstrip())
    if not text.startswith("{", at):
        return Growing(members)
    at += 1
    while True:
        at = _end(_SPACE, text, at)
        try:
            key, at = _DECODER.raw_decode(text, at)
            at = _end(_COLON, text, at)
        except (ValueError, RecursionError):
            return Growing(members)
        if not isinstance(key, str):
            return Growing(members)
        try:
            members[key], at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            if not text.startswith('"', at):
                return Growing(members)
            return Growing(members, key, _open_text(text[at + 1 :]))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _open_text(written: str) -> str:
    """A JSON string without its end: without the escape, too, that has only begun."""
    cut = _CUT_ESCAPE.search(written)
    whole = written[: cut.start(1)] if cut else written
    try:
        read = _DECODER.decode(f'"{whole}"')
    except ValueError:  # an escape that JSON does not know
        return ""
    return _HALF_PAIR.sub("", read)


@dataclass(slots=True)
class Pace:
    """How often the turns of one agent tell of what they write: the more of them write, the more
    seldom each does.

    Signals are paid for like calls, at a fifth of the price. So that an agent never uses up by them
    what it needs to record its turns and to speak, all of them together cost at most a fifth of
    what it may call.
    """

    calls_per_second: float = 20.0
    """The hub's limit."""
    writing: int = 0
    """Answers that are told of at present."""

    @property
    def pause_s(self) -> float:
        """Seconds from one signal of a turn to its next."""
        return max(EVERY_S, self.writing / self.calls_per_second)


def unrefusable(
    tools: Iterable[Judged], mode: PermissionMode, hooks: Iterable[Hooks]
) -> frozenset[str]:
    """Names of the tools that speak as soon as they are called: no person must approve the call,
    whatever the turn has read, and no hook is asked.
    """
    if any(overrides(hook.on_tool_start, Hooks.on_tool_start) for hook in hooks):
        return frozenset()
    speaking = (t for t in tools if t.speaks)
    return frozenset(t.name for t in speaking if isinstance(decide(t, mode, outside=True), Allow))


@dataclass(slots=True)
class _Writing:
    """A call that is being written."""

    name: str = ""
    pieces: list[str] = field(default_factory=list)
    told: str = ""


class Partials:
    """Those of one turn. `tell` sends the data of a signal to a thread."""

    def __init__(
        self,
        tell: Tell,
        plan: TurnPlan,
        inbox: Inbox,
        names: Collection[str],
        pace: Pace | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        hear: Callable[[str], Awaitable[None]] | None = None,
    ):
        """`names`: of the tools whose calls may be told of. `pace` is that of all turns of the
        agent. `hear` is told the texts, too.
        """
        self._hear = hear
        self._tell, self._plan, self._inbox, self.names = tell, plan, inbox, names
        self.pace, self._sleep = pace or Pace(), sleep

    @contextlib.asynccontextmanager
    async def of(self, step: int) -> AsyncIterator[OnDelta]:
        """Within, the answer that becomes this step is written; what it gives takes its pieces."""
        answer = _Answer(self, step)
        try:
            yield answer.hear
            await answer.tell_rest()
        finally:
            await answer.stop()

    async def tell(self, data: dict[str, JsonValue]) -> None:
        await self._tell(self._plan.answers_in, {"turn": self._plan.id, **data})
        if self._hear is not None:
            await self._hear(str(data["text"]))

    async def pause(self) -> None:
        await self._sleep(self.pace.pause_s)

    def is_here(self, name: str, members: Mapping[str, JsonValue]) -> bool:
        """Whether a call surely speaks where the turn's thread is read, as far as it is known."""
        if name not in self.names:
            return False
        there = self._destination(name, members)
        return there is not None and thread_ids.root(there) == thread_ids.root(
            self._plan.answers_in
        )

    def _destination(self, name: str, members: Mapping[str, JsonValue]) -> str | None:
        match name, members:
            case ("finish", _):
                return self._plan.answers_in
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
        """Of one that stands in the turn's thread; None for all others."""
        thread = self._inbox.thread(self._plan.thread_id)
        known = (*self._plan.incoming, *(thread.messages if thread else ()))
        return next((m.thread_id for m in known if m.id == id), None)


class _Answer:
    """One answer that is being written, and the task that tells of it."""

    def __init__(self, partials: Partials, step: int):
        self._partials, self._step = partials, step
        self._calls: dict[int, _Writing] = {}
        self._attempt = 1
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hear(self, delta: Delta) -> None:
        if delta.attempt != self._attempt:
            self._attempt = delta.attempt
            self._calls.clear()
        if delta.call is None or not self._partials.names:
            return
        writing = self._calls.setdefault(delta.call, _Writing())
        writing.name = delta.name or writing.name
        writing.pieces.append(delta.text)
        self._news.set()
        if self._task is None:
            self._partials.pace.writing += 1
            self._task = asyncio.create_task(self._tell_slowly())

    async def tell_rest(self) -> None:
        """The answer is whole: what has not been told of it."""
        while await self._tell_one():
            pass

    async def stop(self) -> None:
        if self._task is not None:
            self._partials.pace.writing -= 1
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _tell_slowly(self) -> None:
        while True:
            await self._news.wait()
            if await self._tell_one():
                await self._partials.pause()
            else:
                self._news.clear()

    async def _tell_one(self) -> bool:
        """Tell of the first call that there is something new of; whether there was one."""
        for writing in self._calls.values():
            data = self._said(writing)
            if data is not None:
                await self._partials.tell(data)
                return True
        return False

    def _said(self, writing: _Writing) -> dict[str, JsonValue] | None:
        """The data of the next signal about a call; None if there is nothing new to tell."""
        growing = read_growing("".join(writing.pieces))
        key = "message" if writing.name == "finish" else "text"
        said = growing.text if growing.key == key else growing.members.get(key)
        if not isinstance(said, str) or not said or said == writing.told:
            return None
        if not self._partials.is_here(writing.name, growing.members):
            return None
        writing.told = said
        text = said if len(said) <= MOST_TEXT else f"…{said[-MOST_TEXT:]}"
        data: dict[str, JsonValue] = {"step": self._step, "text": reveal(text)}
        to = growing.members.get("to", growing.members.get("channel"))
        return data if to is None else {**data, "to": to}
