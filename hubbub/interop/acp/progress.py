"""From the updates of a program to the steps of a turn. Pure.

A step is what one answer of a model is elsewhere: a text, and the calls that follow it. The next
begins with the first word, or the first call, after all calls of a step have ended.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    FileEditToolCallContent,
    PlanEntry,
    PromptResponse,
    ResourceContentBlock,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)
from pydantic import BaseModel, JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.agents.turn.loop import CallResult
from hubbub.agents.turn.steps import TurnClock, read_json, with_result
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["PLAN", "SERVER", "Progress", "arguments_of", "call_name"]

SERVER = "hubbub"
"""The MCP server by whose name the program knows the network's tools."""
PLAN = "plan"
"""The call that shows a program's plan."""
FAILED = "tool_failed"

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_MOST_TEXT = 64 * 1024
"""Characters of a step's text, and of its thoughts, that are recorded."""
_MOST_CALLS = 200
"""Calls of a step that are recorded."""
_MOST_DIFF = 256 * 1024
"""Characters of a file that is compared line by line."""


def call_name(title: str | None, kind: str | None) -> str:
    """What a call is recorded as: its title, if that is a name, else its kind."""
    return title if title and _NAME.fullmatch(title) else kind or "other"


def arguments_of(raw: object, title: str | None) -> dict[str, JsonValue]:
    """The arguments of a call as the program tells them; without any, its title."""
    value = _json(raw)
    if isinstance(value, dict) and value:
        return value
    return {"title": reveal(title)} if title else {}


def _json(raw: object) -> JsonValue:
    try:
        return read_json(json.dumps(raw))
    except (TypeError, ValueError, RecursionError) as exc:
        return f"(cannot be recorded: {exc})"


def diff(path: str, old: str | None, new: str) -> str:
    """What changes in a file, as a unified diff."""
    if len(old or "") + len(new) > _MOST_DIFF:
        return f"--- {path}\n+++ {path}\n(too large to be compared: {len(new)} characters now)"
    before, after = (old or "").splitlines(), new.splitlines()
    origin = "/dev/null" if not old else path
    return "\n".join(difflib.unified_diff(before, after, origin, path, lineterm=""))


class _CappedText:
    """A text that comes in pieces; of one without an end the beginning is kept."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        room = _MOST_TEXT - self._size
        self._size += len(piece)
        if room > 0:
            self._pieces.append(piece[:room])

    @property
    def value(self) -> str | None:
        text = reveal("".join(self._pieces))
        more = self._size - _MOST_TEXT
        return f"{text}… ({more} more characters)" if more > 0 else text or None


@dataclass
class _ToolProgress:
    record: ToolCallRecord
    title: str | None
    kind: str | None
    texts: list[str] = field(default_factory=list)
    diffs: dict[str, str] = field(default_factory=dict)
    output: object = None

    @property
    def told(self) -> str:
        """What came of it, as text."""
        parts = [*self.texts, *self.diffs.values()]
        if not parts and self.output is not None:
            value = _json(self.output)
            parts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]
        return "\n".join(parts) or "done"


@dataclass
class _Open:
    """The step under way."""

    n: int
    at_ms: float
    text: _CappedText = field(default_factory=_CappedText)
    thoughts: _CappedText = field(default_factory=_CappedText)
    calls: dict[str, _ToolProgress] = field(default_factory=dict)
    acted_ms: float | None = None
    cost: float | None = None
    notes: list[str] = field(default_factory=list)
    untrusted: tuple[str, ...] = ()
    left_out: bool = False

    @property
    def over(self) -> bool:
        """Whether what comes next belongs to another step."""
        return any(c.record.name != PLAN for c in self.calls.values()) and not self.running

    @property
    def running(self) -> list[str]:
        return [c.record.name for c in self.calls.values() if c.record.result is None]


class Progress:
    """The steps that a program takes in one turn.

    `network` are the names of the network's own tools: the program tells of their calls, too, but
    what it says of them is not recorded, since the calls themselves are (`network_call`).
    """

    def __init__(
        self,
        clock: TurnClock,
        first: int,
        root: Path,
        fit: Callable[[str], str],
        network: Collection[str] = (),
    ):
        """`first` is the number of the first step, `root` the workspace; `fit` cuts a result."""
        self.clock = clock
        self.touched: dict[str, None] = {}
        """Files that were changed, by their path in the workspace."""
        self.cost: float | None = None
        """What the session has cost so far, in US dollars, if the program tells."""
        self.used = 0
        """Tokens in the program's context window by now."""
        self.outside: list[str] = []
        """Calls whose results the program has read since this was last emptied."""
        self._root, self._fit, self._network = root, fit, frozenset(network)
        self._ours: set[str] = set()  # ids under which the program tells of the network's tools
        self._ended: set[str] = set()  # ids of calls of steps before
        self._done: list[Step] = []
        self._fresh = True
        self._open = _Open(first, clock.ms)

    # What is recorded ---------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The number of the step under way."""
        return self._open.n

    @property
    def running(self) -> Sequence[str]:
        """The names of the calls that run."""
        return self._open.running

    def fresh(self) -> list[Step]:
        """The steps in which something has begun or ended since this was last asked."""
        steps, self._done = self._done, []
        if self._fresh:
            self._fresh = False
            steps.append(self.step)
        return steps

    @property
    def step(self) -> Step:
        """The step under way, as it is now."""
        now, o = self.clock.ms, self._open
        return Step(
            n=o.n,
            text=o.text.value,
            reasoning=o.thoughts.value,
            calls=tuple(call.record for call in o.calls.values()),
            cost_usd=o.cost,
            at_ms=o.at_ms,
            duration_ms=round(max(0.0, (o.acted_ms or now) - o.at_ms), 1),
            notes=tuple(o.notes),
            untrusted=o.untrusted,
            calls_cut=o.left_out,
        )

    def final(self, response: PromptResponse) -> Step:
        """The last step, with what the whole prompt has taken. Calls without an end have one."""
        for call in self._open.calls.values():
            if call.record.result is None:
                self._end(call, "the program has not said what came of it", None)
        usage, step = response.usage, self.step
        if usage is None:
            return step.model_copy(update={"tokens_in": self.used})
        wrote = usage.output_tokens + (usage.thought_tokens or 0)
        read = max(usage.input_tokens, usage.total_tokens - wrote)
        return step.model_copy(update={"tokens_in": read, "tokens_out": wrote})

    def note(self, text: str) -> None:
        """Something that people should read in the record."""
        self._open.notes.append(text)
        self._fresh = True

    def read_outside(self, names: tuple[str, ...]) -> None:
        """The turn has read these, from outside the network, for the first time."""
        self._open.untrusted = (*self._open.untrusted, *names)
        self._fresh = True

    # The network's tools ------------------------------------------------------------------------

    def network_call(self, name: str, arguments: dict[str, JsonValue]) -> tuple[Step, str]:
        """The program calls a tool of the network: the step in which it does, and the call's id."""
        self._next_if_over()
        id = f"{SERVER}_{self._open.n}_{len(self._open.calls)}"
        self._add(
            id, _ToolProgress(ToolCallRecord(id=id, name=name, arguments=arguments), None, None)
        )
        return self.step, id

    def network_result(self, n: int, result: CallResult) -> None:
        """What came of that call, in step `n`."""
        call = self._open.calls.get(result.id)
        if self._open.n == n and call is not None:
            call.record = with_result(call.record, result)
            self._fresh = True

    def name_of(self, call: ToolCallUpdate) -> str:
        """What a call is recorded as."""
        known = self._open.calls.get(call.tool_call_id)
        return call_name(call.title, call.kind) if known is None else known.record.name

    def is_network(self, call: ToolCallStart | ToolCallUpdate) -> bool:
        """Whether the program speaks of a tool of the network."""
        return call.tool_call_id in self._ours or self._named_ours(call.title)

    def _named_ours(self, title: str | None) -> bool:
        # Programs write it `hubbub_NAME`, `mcp__hubbub__NAME`, `hubbub/NAME`, `NAME (hubbub ...)`.
        text = (title or "")[:200].lower()
        return SERVER in text and any(name in text for name in self._network)

    # Updates ------------------------------------------------------------------------------------

    def take(self, update: BaseModel) -> None:
        """What the program says."""
        match update:
            case AgentMessageChunk():
                self._next_if_over()
                self._open.text.add(_said(update.content))
            case AgentThoughtChunk():
                self._next_if_over()
                self._open.thoughts.add(_said(update.content))
            case ToolCallStart() | ToolCallProgress():
                self._call(update)
            case AgentPlanUpdate():
                self._plan(update.entries)
            case UsageUpdate():
                self.used = min(update.used, 10**12)
                if update.cost is not None and update.cost.currency == "USD":
                    self._spent(update.cost.amount)
            case _:
                pass  # commands, modes and titles: nothing that a turn does

    def _spent(self, amount: float) -> None:
        before, self.cost = self.cost or 0.0, amount
        more = amount - before if amount >= before else amount  # a session that was begun anew
        if 0 < more < 10**6:
            self._open.cost = round((self._open.cost or 0.0) + more, 12)

    def _plan(self, entries: Sequence[PlanEntry]) -> None:
        told: list[JsonValue] = [
            {"content": reveal(e.content), "status": e.status, "priority": e.priority}
            for e in entries[:_MOST_CALLS]
        ]
        done = sum(1 for e in entries if e.status == "completed")
        record = ToolCallRecord(
            id=f"{PLAN}_{self._open.n}",
            name=PLAN,
            arguments={"entries": told},
            result=f"{done} of {len(entries)} done",
        )
        self._add(record.id, _ToolProgress(record, None, None))

    def _call(self, update: ToolCallStart | ToolCallProgress) -> None:
        id = update.tool_call_id
        if self.is_network(update):
            self._ours.add(id)
            return
        if id in self._ended:
            return
        call = self._open.calls.get(id)
        if call is None:
            self._next_if_over()
            name = call_name(update.title, update.kind)
            record = ToolCallRecord(id=id[:200], name=reveal(name), arguments={})
            call = _ToolProgress(record, update.title, update.kind)
            if not self._add(id, call):
                return
        self._tell(call, update)
        if update.status in ("completed", "failed") and call.record.result is None:
            self._end(call, call.told, FAILED if update.status == "failed" else None)
            self.outside.append(call.record.name)

    def _tell(self, call: _ToolProgress, update: ToolCallStart | ToolCallProgress) -> None:
        call.title, call.kind = update.title or call.title, update.kind or call.kind
        arguments = arguments_of(update.raw_input, call.title)
        known = call.record.arguments
        if arguments != known and (update.raw_input or not known):
            call.record = call.record.model_copy(update={"arguments": arguments})
            self._fresh = True
        if update.raw_output is not None:
            call.output = update.raw_output
        if update.content is not None:
            call.texts = []
            for part in update.content:
                match part:
                    case ContentToolCallContent():
                        call.texts.append(_said(part.content))
                    case FileEditToolCallContent():
                        path = self._shown(part.path)
                        call.diffs[path] = diff(path, part.old_text, part.new_text)
                    case TerminalToolCallContent():
                        call.texts.append(f"[terminal {part.terminal_id}]")
        if call.kind in ("edit", "move"):
            paths = [*call.diffs, *(self._shown(at.path) for at in update.locations or ())]
            self.touched.update(dict.fromkeys(paths[:_MOST_CALLS]))

    def holds(self, place: Path) -> bool:
        """Whether a file is of the workspace."""
        return place.is_relative_to(self._root)

    def _shown(self, path: str) -> str:
        """A path as it stands in the workspace."""
        place = Path(path)
        return str(place.relative_to(self._root)) if self.holds(place) else path

    # Steps --------------------------------------------------------------------------------------

    def _add(self, id: str, call: _ToolProgress) -> bool:
        if len(self._open.calls) >= _MOST_CALLS and id not in self._open.calls:
            self._open.left_out = True
            return False
        now = self.clock.ms
        if self._open.acted_ms is None:
            self._open.acted_ms = now
        call.record = call.record.model_copy(update={"at_ms": now})
        self._open.calls[id] = call
        self._fresh = True
        return True

    def _end(self, call: _ToolProgress, told: str, error: str | None) -> None:
        at = call.record.at_ms or 0.0
        result = CallResult(call.record.id, self._fit(told), error, at, self.clock.since(at))
        call.record = with_result(call.record, result)
        self._fresh = True

    def _next_if_over(self) -> None:
        if self._open.over:
            self._done.append(self.step)
            self._ended.update(self._open.calls)
            self._open = _Open(self._open.n + 1, self.clock.ms)
            self._fresh = True


def _said(block: object) -> str:
    """A piece of content as text. What is no text is named, not shown."""
    match block:
        case TextContentBlock():
            return str(block.text)
        case ResourceContentBlock():
            return f"[{block.name}]({block.uri})"
        case _:
            return f"[{getattr(block, 'type', 'content')}: cannot be shown here]"
