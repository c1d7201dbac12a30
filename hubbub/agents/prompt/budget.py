"""Fits a request into the model's context window. Pure.

    window = system + tools + history + incoming + steps + reserve for the completion

`system` and `incoming` always stay. The rest is cut in this order, no more than needed, until the
request fits:

    1. history      older messages (`ConversationPrompt` defines the order)
    2. tools        their descriptions, the longest first
    3. steps        older steps of the turn (`step_changes` defines how)
    4. tools        all but their names; tools called in the turn come last
    5. history      the remaining messages
    6. steps        the last steps

The order does not depend on the window's size, and the first state that fits is used, so a larger
window never shows less. The sizes of parts are counted separately; the whole is no larger than
their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.models.base import CompletionRequest, ToolSpec
from hubbub.agents.prompt.compression import StepChange, step_changes
from hubbub.agents.prompt.render import first_that_fits
from hubbub.agents.prompt.tokens import (
    PER_ANSWER,
    TokenCounter,
    TokenEstimate,
    message_tokens,
    spec_tokens,
)
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.turn.chat import PROTECTED, ShownStep
from hubbub.agents.turn.loop import FINISH
from hubbub.config.agents import CompressionName, ProtectedName
from hubbub.errors import ModelError
from hubbub.protocol.turns import Layer, Step, Window

__all__ = [
    "ContextBudget",
    "ContextRules",
    "FittedRequest",
    "FixedMessage",
    "UserMessage",
    "WindowTooSmall",
    "bare_spec",
    "short_spec",
]

# Shorter tool descriptions. Pure. A tool never disappears, and its shortened schema stays true: the
# short form has the same schema without descriptions, the bare form accepts any object and names
# the arguments. Calls are always validated by the full schema.


_WHOLE = frozenset({FINISH, SELECT})
"""`finish` is short already; the description of `use_tools` is the list of tools."""
_NAMES = "properties"
"""The keyword whose keys are the tool's own names, not keywords."""
_VALUES = ("enum", "default", "required")
_DESCRIPTION = "description"


def short_spec(spec: ToolSpec) -> ToolSpec:
    """The tool with the first sentence of its description, and a schema without descriptions."""
    if spec.name in _WHOLE:
        return spec
    sentence = " ".join(spec.description.split()).partition(". ")[0]
    return replace(spec, description=sentence, parameters=_terse(spec.offered), shown=None)


def bare_spec(spec: ToolSpec) -> ToolSpec:
    """The tool with only its name and the names of its arguments."""
    if spec.name in _WHOLE:
        return spec
    properties = spec.parameters.get("properties")
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    description = f"Arguments: {names}" if names else ""
    return replace(spec, description=description, parameters={"type": "object"}, shown=None)


def _terse(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: _inner(key, value) for key, value in schema.items() if key != _DESCRIPTION}


def _inner(key: str, value: JsonValue) -> JsonValue:
    if key in _VALUES:
        return value
    if isinstance(value, dict):
        if key == _NAMES:
            return {n: _terse(v) if isinstance(v, dict) else v for n, v in value.items()}
        return _terse(value)
    if isinstance(value, list):
        return [_terse(item) if isinstance(item, dict) else item for item in value]
    return value


BuildRequest = Callable[[str, Sequence[ShownStep], Sequence[ToolSpec]], CompletionRequest]
"""Builds the request from a user message, steps and tools."""


class UserMessage(Protocol):
    """The user message of a turn, which can be shortened, such as `ConversationPrompt`."""

    @property
    def messages(self) -> int:
        """The total number of history messages that can be omitted."""
        ...

    @property
    def spare(self) -> int:
        """How many of them are omitted before any other part is shortened."""
        ...

    def without(self, n: int) -> str:
        """The text without the first `n` messages that can be omitted."""
        ...


@dataclass(frozen=True, slots=True)
class FixedMessage:
    """A user message that is always shown in full."""

    text: str
    messages: int = 0
    spare: int = 0

    def without(self, n: int) -> str:
        return self.text


class WindowTooSmall(ModelError):
    """The required parts do not fit; the model was not queried."""


@dataclass(frozen=True, slots=True)
class ContextRules:
    """The limits of an agent's requests. Sizes are tokens."""

    size: int | None = None
    """Of the window; None: unknown, so no part is cut."""
    reserve: int = 0
    """Reserved for the completion."""
    compression: CompressionName = "importance"
    keep_steps: int = 5
    protect: frozenset[ProtectedName] = PROTECTED
    """The parts retained of steps that the model discards."""
    counter: TokenCounter = field(default_factory=TokenEstimate)
    advice: str = "raise the context window"
    """How to get a larger window, for the error message."""

    @property
    def room(self) -> int | None:
        """The maximum size of a request."""
        return None if self.size is None else self.size - self.reserve


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """A request that fits, and how it was cut."""

    question: CompletionRequest
    window: Window | None = None
    """None: not counted."""
    truncated: bool = False
    """Whether earlier steps were shortened."""


class ContextBudget:
    """Fits the requests of one turn. `writes` are names of tools that change something."""

    def __init__(
        self, rules: ContextRules, conversation: UserMessage, writes: Collection[str] = ()
    ):
        self.rules, self.conversation = rules, conversation
        self.writes, self._counter = writes, rules.counter
        self._prompts: dict[int, int] = {}

    def fit(
        self, build: BuildRequest, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> FittedRequest:
        """The request that `build` creates, cut until it fits.

        Raises `WindowTooSmall`.
        """
        full = _State(self, build, list(steps), list(tools))
        sizes = full.sizes()
        room = self.rules.room
        if room is None or sizes.total <= room:
            return FittedRequest(_sized(full.question, sizes), self._window(sizes, sizes))
        return self._cut(full, sizes, room)

    def _cut(self, state: _State, full: _Sizes, room: int) -> FittedRequest:
        stages = state.stages(self.rules, self.writes)
        for _ in stages:
            # The sum of the parts is an upper bound; the request as a whole is counted as well.
            if state.bound <= room and (sizes := state.sizes()).total <= room:
                question = _sized(state.question, sizes)
                return FittedRequest(question, self._window(full, sizes), state.truncated)
        raise WindowTooSmall(self._too_small_message(state.sizes(), room))

    def prompt_tokens(self, hidden: int) -> int:
        """Tokens of the user message without `hidden` messages of the history."""
        if hidden not in self._prompts:
            text = self.conversation.without(hidden)
            self._prompts[hidden] = self._counter.count(text)
        return self._prompts[hidden]

    def _window(self, full: _Sizes, now: _Sizes) -> Window:
        pairs = zip(full.layers, now.layers, strict=True)
        layers = tuple(
            Layer(name=name, tokens=size, cut=max(before - size, 0))
            for (name, before), (_, size) in pairs
        )
        rules = self.rules
        return Window(
            size=rules.size, reserve=rules.reserve, layers=layers, exact=self._counter.exact
        )

    def _too_small_message(self, least: _Sizes, room: int) -> str:
        rules = self.rules
        parts = ", ".join(f"{name} {size}" for name, size in least.layers if size)
        how = "" if self._counter.exact else " (estimated)"
        name, _ = max(least.layers, key=lambda layer: layer[1])
        return (
            f"the context window of {rules.size} tokens is too small: without the {rules.reserve}"
            f" reserved for the answer, there is room for {room}, but the required parts take"
            f" {least.total}{how}: {parts}; {rules.advice}, or {_LESS[name]}"
        )


_LESS = {
    "system": "make the instruction shorter",
    "tools": "give the agent fewer tools",
    "history": "set history.messages to fewer",
    "incoming": "have shorter messages sent to it",
    "steps": "set result_budget to less",
}


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Tokens of each layer."""

    system: int
    tools: int
    history: int
    incoming: int
    steps: int

    @property
    def layers(self) -> tuple[tuple[str, int], ...]:
        return (
            ("system", self.system),
            ("tools", self.tools),
            ("history", self.history),
            ("incoming", self.incoming),
            ("steps", self.steps),
        )

    @property
    def total(self) -> int:
        return sum(size for _, size in self.layers)


def _sized(question: CompletionRequest, sizes: _Sizes) -> CompletionRequest:
    return replace(question, tokens=sizes.total)


class _State:
    """One request while it is being cut."""

    def __init__(
        self,
        context_budget: ContextBudget,
        build: BuildRequest,
        steps: list[ShownStep],
        tools: list[ToolSpec],
    ):
        self._context_budget, self._build = context_budget, build
        self._counter, self._conversation = (
            context_budget.rules.counter,
            context_budget.conversation,
        )
        self._steps: list[ShownStep | None] = list(steps)
        self._tools = tools
        self._hidden = 0
        self._made: CompletionRequest | None = None
        self.truncated = False
        # Sizes of the parts, computed on demand:
        self.bound = 0
        self._empty = 0
        self._step_sizes: list[int] = []
        self._tool_sizes: list[int] = []

    @property
    def question(self) -> CompletionRequest:
        if self._made is None:
            prompt = self._conversation.without(self._hidden)
            steps = [step for step in self._steps if step is not None]
            self._made = self._build(prompt, steps, self._tools)
        return self._made

    def hide(self, messages: int) -> None:
        """Omit this number of history messages."""
        self._hidden, self._made = messages, None

    def sizes(self) -> _Sizes:
        """The sizes of the whole request, by layer."""
        count, counter = self._counter.count, self._counter
        head, user, *rest = self.question.messages
        prompt = self._conversation.without(self._hidden)
        prompt_tokens = self._context_budget.prompt_tokens(self._hidden)
        around = message_tokens(counter, {**user, "content": ""})
        joined = 0  # steering messages that a dialect appends to the user message
        if user["content"] != prompt:
            joined = count(user["content"] or "") - prompt_tokens
        bare_head = self._build("", (), ()).messages[0]
        system = message_tokens(counter, bare_head)
        tool_text = message_tokens(counter, head) - system
        alone = min(self._context_budget.prompt_tokens(self._conversation.messages), prompt_tokens)
        return _Sizes(
            system=system + PER_ANSWER,
            tools=tool_text + sum(spec_tokens(counter, tool) for tool in self.question.tools),
            history=prompt_tokens - alone,
            incoming=alone + around,
            steps=joined + sum(message_tokens(counter, message) for message in rest),
        )

    # Cutting ------------------------------------------------------------------------------------

    def stages(self, rules: ContextRules, writes: Collection[str]) -> Iterator[None]:
        """Cut a little more each time, in an order that does not depend on the window."""
        room = rules.room or 0
        steps = [step for step in self._steps if step is not None]
        older, recent = step_changes(
            steps, rules.compression, rules.keep_steps, writes, self._counter
        )
        self._measure()
        yield from self._hide_history(self._conversation.spare, room)
        yield from self._shorten(range(len(self._tools)), short_spec)
        yield from self._change(older)
        called = {call.name for step in steps if isinstance(step, Step) for call in step.calls}
        unused = [at for at, tool in enumerate(self._tools) if tool.name not in called]
        yield from self._shorten(unused, bare_spec)
        yield from self._shorten(set(range(len(self._tools))) - set(unused), bare_spec)
        yield from self._hide_history(self._conversation.messages, room)
        yield from self._change(recent)

    def _measure(self) -> None:
        """The sizes of all parts, whose sum is an upper bound of the whole."""
        self._empty = none = self._size((), ())
        self._step_sizes = [self._step_size(step) for step in self._steps]
        self._tool_sizes = [self._tool_size(tool) for tool in self._tools]
        # Together they may be slightly larger than separately: each ends its line, and a dialect
        # adds an introduction as soon as there are tools at all.
        together = max(self._size((), self._tools) - none, sum(self._tool_sizes))
        self.bound = none + together + len(self._tools) + sum(self._step_sizes)
        self.bound += self._context_budget.prompt_tokens(self._hidden)

    def _size(self, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]) -> int:
        question = self._build("", steps, tools)
        messages = sum(message_tokens(self._counter, m) for m in question.messages)
        specs = sum(spec_tokens(self._counter, tool) for tool in question.tools)
        return PER_ANSWER + messages + specs

    def _step_size(self, step: ShownStep | None) -> int:
        if step is None:
            return 0
        return self._size([step], ()) - self._empty

    def _tool_size(self, tool: ToolSpec) -> int:
        return self._size((), [tool]) - self._empty

    def _hide_history(self, most: int, room: int) -> Iterator[None]:
        """Hide as many messages as needed, up to `most`."""
        spent = self._context_budget.prompt_tokens
        before = spent(self._hidden)
        others = self.bound - before
        hidden = first_that_fits(lambda n: others + spent(n), room, self._hidden, most)
        self.bound = others + spent(hidden)
        self.hide(hidden)
        while hidden < most and self.bound <= room < self.sizes().total:
            hidden += 1  # if a template's or dialect's parts are larger together
            self.hide(hidden)
        yield

    def _shorten(
        self, places: Iterable[int], how: Callable[[ToolSpec], ToolSpec]
    ) -> Iterator[None]:
        """Shorten the tools at these places, those that save most first."""
        shorter = {at: how(self._tools[at]) for at in places}
        sizes = {at: self._tool_size(tool) for at, tool in shorter.items()}
        wins = {at: self._tool_sizes[at] - size for at, size in sizes.items()}
        for at in sorted(wins, key=lambda place: (-wins[place], place)):
            if wins[at] > 0:
                self._tools[at], self._made = shorter[at], None
                self._tool_sizes[at] = sizes[at]
                self.bound -= wins[at]
                yield

    def _change(self, changes: Sequence[StepChange]) -> Iterator[None]:
        for change in changes:
            size = self._step_size(change.to)
            if size < self._step_sizes[change.at]:
                self.bound -= self._step_sizes[change.at] - size
                self._steps[change.at], self._step_sizes[change.at] = change.to, size
                self._made, self.truncated = None, True
                yield
