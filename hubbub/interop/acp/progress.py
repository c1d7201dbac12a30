"""Turns a program's updates into the steps of a turn. Pure.

A step corresponds to one model response: a text, and the calls that follow it. The next step begins
with the first text or call after all calls of the step have ended.
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
from hubbub.agents.turn.driver import TrustState
from hubbub.agents.turn.loop import CallResult
from hubbub.agents.turn.steps import TurnClock, read_json, with_result
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["PLAN", "SERVER", "Progress", "arguments_of", "call_name"]

SERVER = "hubbub"
"""Name of the MCP server that gives the program the network's tools."""
PLAN = "plan"
"""Name of the call that records a program's plan."""
FAILED = "tool_failed"

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_MAX_TEXT = 64 * 1024
"""Characters recorded of a step's text, and of its thoughts."""
_MAX_CALLS = 200
"""Calls recorded per step."""
_MAX_DIFF = 256 * 1024
"""Characters up to which a file is compared line by line."""


def call_name(title: str | None, kind: str | None) -> str:
    """The name to record for a call: its title if that is a valid name, otherwise its kind."""
    return title if title and _NAME.fullmatch(title) else kind or "other"


def arguments_of(raw: object, title: str | None) -> dict[str, JsonValue]:
    """The arguments of a call; if the program reported none, its title."""
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
    """The change of a file as a unified diff."""
    if len(old or "") + len(new) > _MAX_DIFF:
        return f"--- {path}\n+++ {path}\n(too large to compare: {len(new)} characters now)"
    before, after = (old or "").splitlines(), new.splitlines()
    origin = "/dev/null" if not old else path
    return "\n".join(difflib.unified_diff(before, after, origin, path, lineterm=""))


class _CappedText:
    """A text that arrives in chunks, cut after `_MAX_TEXT` characters."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._size = 0

    def add(self, chunk: str) -> None:
        room = _MAX_TEXT - self._size
        self._size += len(chunk)
        if room > 0:
            self._chunks.append(chunk[:room])

    @property
    def value(self) -> str | None:
        text = reveal("".join(self._chunks))
        more = self._size - _MAX_TEXT
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
    def output_text(self) -> str:
        """The result as text."""
        parts = [*self.texts, *self.diffs.values()]
        if not parts and self.output is not None:
            value = _json(self.output)
            parts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]
        return "\n".join(parts) or "done"


@dataclass
class _OpenStep:
    """The current step."""

    n: int
    at_ms: float
    text: _CappedText = field(default_factory=_CappedText)
    thoughts: _CappedText = field(default_factory=_CappedText)
    calls: dict[str, _ToolProgress] = field(default_factory=dict)
    acted_ms: float | None = None
    cost: float | None = None
    notes: list[str] = field(default_factory=list)
    untrusted: tuple[str, ...] = ()
    calls_cut: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the next text or call opens another step."""
        return any(c.record.name != PLAN for c in self.calls.values()) and not self.running

    @property
    def running(self) -> list[str]:
        return [c.record.name for c in self.calls.values() if c.record.result is None]


class Progress:
    """The steps of a program in one turn.

    `network` has the names of the network's own tools. The program's updates about their calls are
    ignored, since the calls themselves are recorded (`network_call`).
    """

    def __init__(
        self,
        clock: TurnClock,
        first: int,
        root: Path,
        fit: Callable[[str], str],
        network: Collection[str] = (),
        trust: TrustState | None = None,
    ):
        """`first` is the number of the first step, `root` the workspace; `fit` cuts a result to
        its budget. `trust` is the turn's."""
        self.clock = clock
        self.touched: dict[str, None] = {}
        """Changed files, by their path in the workspace."""
        self.cost: float | None = None
        """The session's cost so far, in US dollars, if the program reports it."""
        self.used = 0
        """Tokens in the program's context window."""
        self._trust = trust or TrustState()
        self._root, self._fit, self._network = root, fit, frozenset(network)
        self._network_ids: set[str] = set()  # the program's ids for calls of network tools
        self._ended: set[str] = set()  # ids of calls in earlier steps
        self._done: list[Step] = []
        self._changed = True
        self._open = _OpenStep(first, clock.ms)

    # The record ---------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The number of the current step."""
        return self._open.n

    @property
    def running(self) -> Sequence[str]:
        """The names of the running calls."""
        return self._open.running

    def changed_steps(self) -> list[Step]:
        """The steps that changed since the last call."""
        steps, self._done = self._done, []
        if self._changed:
            self._changed = False
            steps.append(self.step)
        return steps

    @property
    def step(self) -> Step:
        """The current step."""
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
            calls_cut=o.calls_cut,
        )

    def final(self, response: PromptResponse) -> Step:
        """The last step, with the token usage of the whole prompt. Running calls are ended."""
        for call in self._open.calls.values():
            if call.record.result is None:
                self._end(call, "the program reported no result", None)
        usage, step = response.usage, self.step
        if usage is None:
            return step.model_copy(update={"tokens_in": self.used})
        wrote = usage.output_tokens + (usage.thought_tokens or 0)
        read = max(usage.input_tokens, usage.total_tokens - wrote)
        return step.model_copy(update={"tokens_in": read, "tokens_out": wrote})

    def note(self, text: str) -> None:
        """Add a note for people to the step's record."""
        self._open.notes.append(text)
        self._changed = True

    def read_untrusted(self, name: str) -> None:
        """Note that a call of `name` returned untrusted content. The turn's first is recorded."""
        if names := self._trust.read([name]):
            self._open.untrusted = names
            self._changed = True

    # The network's tools ------------------------------------------------------------------------

    def network_call(self, name: str, arguments: dict[str, JsonValue]) -> tuple[Step, str]:
        """Record a call of a network tool. Returns its step and its id."""
        self._open_next_step()
        id = f"{SERVER}_{self._open.n}_{len(self._open.calls)}"
        self._add(
            id, _ToolProgress(ToolCallRecord(id=id, name=name, arguments=arguments), None, None)
        )
        return self.step, id

    def network_result(self, n: int, result: CallResult) -> None:
        """Record the result of that call, in step `n`."""
        call = self._open.calls.get(result.id)
        if self._open.n == n and call is not None:
            call.record = with_result(call.record, result)
            self._changed = True

    def name_of(self, call: ToolCallUpdate) -> str:
        """The name under which a call is recorded."""
        recorded = self._open.calls.get(call.tool_call_id)
        return call_name(call.title, call.kind) if recorded is None else recorded.record.name

    def is_network(self, call: ToolCallStart | ToolCallUpdate) -> bool:
        """Whether the call is of a network tool."""
        return call.tool_call_id in self._network_ids or self._names_network_tool(call.title)

    def _names_network_tool(self, title: str | None) -> bool:
        # Programs write `hubbub_NAME`, `mcp__hubbub__NAME`, `hubbub/NAME`, `NAME (hubbub ...)`.
        text = (title or "")[:200].lower()
        return SERVER in text and any(name in text for name in self._network)

    # Updates ------------------------------------------------------------------------------------

    def take(self, update: BaseModel) -> None:
        """Handle an update of the program."""
        match update:
            case AgentMessageChunk():
                self._open_next_step()
                self._open.text.add(_text_of(update.content))
            case AgentThoughtChunk():
                self._open_next_step()
                self._open.thoughts.add(_text_of(update.content))
            case ToolCallStart() | ToolCallProgress():
                self._call(update)
            case AgentPlanUpdate():
                self._plan(update.entries)
            case UsageUpdate():
                self.used = min(update.used, 10**12)
                if update.cost is not None and update.cost.currency == "USD":
                    self._add_cost(update.cost.amount)
            case _:
                pass  # commands, modes and titles do not concern a turn

    def _add_cost(self, amount: float) -> None:
        before, self.cost = self.cost or 0.0, amount
        added = amount - before if amount >= before else amount  # less: a new session
        if 0 < added < 10**6:
            self._open.cost = round((self._open.cost or 0.0) + added, 12)

    def _plan(self, entries: Sequence[PlanEntry]) -> None:
        items: list[JsonValue] = [
            {"content": reveal(e.content), "status": e.status, "priority": e.priority}
            for e in entries[:_MAX_CALLS]
        ]
        done = sum(1 for e in entries if e.status == "completed")
        record = ToolCallRecord(
            id=f"{PLAN}_{self._open.n}",
            name=PLAN,
            arguments={"entries": items},
            result=f"{done} of {len(entries)} done",
        )
        self._add(record.id, _ToolProgress(record, None, None))

    def _call(self, update: ToolCallStart | ToolCallProgress) -> None:
        id = update.tool_call_id
        if self.is_network(update):
            self._network_ids.add(id)
            return
        if id in self._ended:
            return
        call = self._open.calls.get(id)
        if call is None:
            self._open_next_step()
            name = call_name(update.title, update.kind)
            record = ToolCallRecord(id=id[:200], name=reveal(name), arguments={})
            call = _ToolProgress(record, update.title, update.kind)
            if not self._add(id, call):
                return
        self._update(call, update)
        if update.status in ("completed", "failed") and call.record.result is None:
            self._end(call, call.output_text, FAILED if update.status == "failed" else None)
            self.read_untrusted(call.record.name)

    def _update(self, call: _ToolProgress, update: ToolCallStart | ToolCallProgress) -> None:
        call.title, call.kind = update.title or call.title, update.kind or call.kind
        arguments = arguments_of(update.raw_input, call.title)
        recorded = call.record.arguments
        if arguments != recorded and (update.raw_input or not recorded):
            call.record = call.record.model_copy(update={"arguments": arguments})
            self._changed = True
        if update.raw_output is not None:
            call.output = update.raw_output
        if update.content is not None:
            call.texts = []
            for part in update.content:
                match part:
                    case ContentToolCallContent():
                        call.texts.append(_text_of(part.content))
                    case FileEditToolCallContent():
                        path = self._display_path(part.path)
                        call.diffs[path] = diff(path, part.old_text, part.new_text)
                    case TerminalToolCallContent():
                        call.texts.append(f"[terminal {part.terminal_id}]")
        if call.kind in ("edit", "move"):
            paths = [*call.diffs, *(self._display_path(at.path) for at in update.locations or ())]
            self.touched.update(dict.fromkeys(paths[:_MAX_CALLS]))

    def is_in_workspace(self, path: Path) -> bool:
        return path.is_relative_to(self._root)

    def _display_path(self, path: str) -> str:
        """The path relative to the workspace, if it is inside."""
        file = Path(path)
        return str(file.relative_to(self._root)) if self.is_in_workspace(file) else path

    # Steps --------------------------------------------------------------------------------------

    def _add(self, id: str, call: _ToolProgress) -> bool:
        if len(self._open.calls) >= _MAX_CALLS and id not in self._open.calls:
            self._open.calls_cut = True
            return False
        now = self.clock.ms
        if self._open.acted_ms is None:
            self._open.acted_ms = now
        call.record = call.record.model_copy(update={"at_ms": now})
        self._open.calls[id] = call
        self._changed = True
        return True

    def _end(self, call: _ToolProgress, output_text: str, error: str | None) -> None:
        at = call.record.at_ms or 0.0
        result = CallResult(call.record.id, self._fit(output_text), error, at, self.clock.since(at))
        call.record = with_result(call.record, result)
        self._changed = True

    def _open_next_step(self) -> None:
        if self._open.is_complete:
            self._done.append(self.step)
            self._ended.update(self._open.calls)
            self._open = _OpenStep(self._open.n + 1, self.clock.ms)
            self._changed = True


def _text_of(block: object) -> str:
    """A content block as text; a placeholder for anything that is not text."""
    match block:
        case TextContentBlock():
            return str(block.text)
        case ResourceContentBlock():
            return f"[{block.name}]({block.uri})"
        case _:
            return f"[{getattr(block, 'type', 'content')}: cannot be shown here]"
