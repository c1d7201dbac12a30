"""Queries the model for the next step of a turn: from recorded steps to a completion.

prompt and steps -> context budget (what fits) -> dialect (how tools are described and called)
-> model -> dialect -> answer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from pydantic import JsonValue

from hubbub.agents.dialects.base import Dialect, Native
from hubbub.agents.dialects.final_output import FinalOutputObject
from hubbub.agents.dialects.tool_call import ToolCallLines
from hubbub.agents.models.base import (
    CallRequest,
    ChatModel,
    Completion,
    CompletionRequest,
    Delta,
    OnDelta,
    ToolSpec,
)
from hubbub.agents.prompt.budget import ContextBudget, FittedRequest, WindowTooSmall
from hubbub.agents.prompt.scratchpad import without_thoughts
from hubbub.agents.prompt.summary import Summary, summarise
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.tidy_steps import TIDY_STEPS, tidy_spec
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.chat import PROTECTED_STEPS, ShownStep, lost_calls, project
from hubbub.agents.turn.loop import FINISH, begun
from hubbub.agents.turn.reservations import BudgetedModel, CostModel, Reservations
from hubbub.agents.turn.steps import read_arguments
from hubbub.config.agents import Aliases, DialectName, ModelConfig, ModelSettings
from hubbub.errors import FormRefused, ToolsRefused
from hubbub.protocol.turns import Steering, Step

__all__ = [
    "DIALECTS",
    "DescribeTools",
    "DialectChoice",
    "EndpointLimits",
    "PromptClient",
    "callable_names",
    "described_tools",
    "first_tool",
    "initial_tools",
    "quiet_tools",
]

# The dialect of a model, and the detected limits of its endpoint.


DIALECTS: Mapping[DialectName, Dialect] = MappingProxyType(
    {d.name: d for d in (Native(), ToolCallLines(), FinalOutputObject())}
)
_FALLBACK: DialectName = "tool_call"


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """What was detected not to work, by endpoint and model."""

    without_tools: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why native tool calls do not work."""
    without_formats: set[tuple[str, str]] = field(default_factory=set)
    """Where no response format is accepted."""


PROCESS_LIMITS = EndpointLimits()
"""Shared by all agents of this process."""


class DialectChoice:
    """The dialect of one model: the configured one, or else `native` while it works.

    `required`: requests require a tool call, so an answer without one shows that the endpoint
    ignores that.
    """

    def __init__(
        self,
        config: ModelConfig | None = None,
        limits: EndpointLimits = PROCESS_LIMITS,
        aliases: Aliases | None = None,
    ):
        """Without a config: always `native`. `aliases` are other names that the model can use."""
        self.aliases = aliases or Aliases()
        self._final_output = FinalOutputObject(self.aliases)
        self._fixed: DialectName | None = config.dialect if config else "native"
        self._endpoint = (config.base_url, config.model) if config else ("", "")
        self._limits = limits
        self.required = config is not None and config.tool_choice == "required"
        form = config.structured_output if config is not None else False
        self._has_formats = config.is_openai if config is not None and form is None else bool(form)

    @property
    def current(self) -> Dialect:
        """The dialect to use now."""
        name = self._fixed or (_FALLBACK if self.fallback_reason else "native")
        return self._final_output if name == "final_output" else DIALECTS[name]

    @property
    def fallback_reason(self) -> str | None:
        """Why native tool calls are not used, if that was detected rather than configured."""
        return None if self._fixed else self._limits.without_tools.get(self._endpoint)

    @property
    def can_fall_back(self) -> bool:
        """Whether a failure of `native` can lead to another dialect."""
        return self._fixed is None

    @property
    def uses_format(self) -> bool:
        """Whether a typed answer is requested by a response format instead of the tool `finish`."""
        return (
            self._has_formats
            and self.current.name == "native"
            and self._endpoint not in self._limits.without_formats
        )

    def disable_formats(self) -> None:
        """Get typed answers of this model through `finish` for the rest of the process."""
        self._limits.without_formats.add(self._endpoint)

    def fall_back(self, reason: str) -> None:
        """Stop using native tool calls with this model for the rest of the process."""
        self._limits.without_tools.setdefault(self._endpoint, reason)


DescribeTools: TypeAlias = Callable[[Sequence[Step]], Sequence[ToolSpec]]
"""The tools described to a model after these steps: `Toolbox.described`, or a subset of it."""


def callable_names(toolbox: Toolbox, dialect: Dialect) -> tuple[str, ...]:
    """The tools that a model may call in a turn that starts in this dialect."""
    without = dialect.hides | dialect.beside
    return tuple(name for name in toolbox.names if name not in without)


def described_tools(
    offers: DescribeTools, dialect: Dialect, steps: Sequence[Step]
) -> tuple[ToolSpec, ...]:
    """The tools described to a model after `steps`."""
    specs = (s for s in offers(steps) if s.name not in dialect.hides)
    if len(steps) <= PROTECTED_STEPS:  # there is nothing to tidy up yet
        return tuple(s for s in specs if s.name != TIDY_STEPS)
    return tuple(tidy_spec(s, steps) if s.name == TIDY_STEPS else s for s in specs)


@dataclass(frozen=True, slots=True)
class PromptClient:
    """Asks the model in one turn."""

    model: ChatModel
    offers: DescribeTools
    system: str
    context_budget: ContextBudget
    """Keeps prompts within the model's window, and renders the user message."""
    choice: DialectChoice = field(default_factory=DialectChoice)
    closing: str = ""
    """The very end of the system message, after the dialect's part."""
    reservations: Reservations | None = None
    """The turn's budget reservations; None: the questions belong to no turn."""
    cost_model: CostModel = field(default_factory=CostModel)
    """For estimating the cost of a question."""
    settings: ModelSettings | None = None
    """The turn's settings, which override the model's config."""
    form: dict[str, JsonValue] | None = None
    """The JSON Schema of a typed answer: the arguments of `finish`."""
    contract: Callable[[DialectName, Sequence[ToolSpec]], str] | None = None
    """Describes how to call tools as text, below `system`; None: the default description."""
    scratchpad: bool = False
    """Whether the model can think in `<scratchpad>`. A dialect's text can hide thoughts until it is
    parsed, so this client removes them."""
    _opening: dict[tuple[str, bool], FittedRequest] = field(default_factory=dict, init=False)
    """The first question, which is recorded before it is sent; by dialect, and whether the request
    has a response format."""

    def first(self) -> tuple[str, str]:
        """The system message and the user message of the first question, as the model reads
        them."""
        dialect = self.choice.current
        try:
            question = self.question((), dialect)
        except WindowTooSmall:  # no query follows; the record shows what did not fit
            tools = described_tools(self.offers, dialect, ())
            question = self._build(dialect, self.context_budget.conversation.without(0), (), tools)
        system, prompt, *_ = question.messages
        return system["content"] or "", prompt["content"] or ""

    def question(
        self, steps: Sequence[Step], dialect: Dialect, steering: Sequence[Steering] = ()
    ) -> CompletionRequest:
        """The request after `steps` and the messages in `steering`.

        Raises `WindowTooSmall`.
        """
        return self._fitted(dialect, steps, self._shown(steps, steering)).question

    def _shown(self, steps: Sequence[Step], steering: Sequence[Steering]) -> Sequence[ShownStep]:
        """The steps after the model's own discards and compressions."""
        budget = self.context_budget
        return project(steps, steering, budget.rules.protect, budget.writes)

    def _fitted(
        self, dialect: Dialect, steps: Sequence[Step], shown: Sequence[ShownStep]
    ) -> FittedRequest:
        key = dialect.name, self.choice.uses_format
        if not shown and key in self._opening:
            return self._opening[key]
        tools = described_tools(self.offers, dialect, steps)
        fitted = self.context_budget.fit(partial(self._build, dialect), shown, tools)
        if not shown:
            self._opening[key] = fitted
        return fitted

    def _build(
        self, dialect: Dialect, prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        form = self.form if self.form is not None and self.choice.uses_format else None
        if form is not None:
            tools = [tool for tool in tools if tool.name != FINISH]
        tool_text = (self.contract or _default_contract)(dialect.name, tools)
        system_text = f"{self.system}\n\n{tool_text}" if tool_text else self.system
        question = dialect.question(system_text, prompt, steps, tools)
        if form is not None:
            question = replace(question, form=form)
        if self.settings is not None:
            question = replace(question, settings=self.settings)
        closing = "\n\n".join(filter(None, (self.closing, _IN_FORM if form is not None else "")))
        if not closing:
            return question
        system, *rest = question.messages
        system = {**system, "content": f"{system['content'] or ''}\n\n{closing}"}
        return replace(question, messages=[system, *rest])

    async def ask(
        self,
        steps: Sequence[Step],
        on_delta: OnDelta | None = None,
        steering: Sequence[Steering] = (),
        *,
        n: int = 1,
    ) -> Completion:
        """The model's answer after `steps` and the messages in `steering`. It becomes step `n` of
        the turn's record. Raises `ModelError`.

        If the endpoint turns out not to support tools, this query and all later ones describe the
        tools as text; the answer's notes report that.
        """
        answer = await self._answer(steps, on_delta, steering, n)
        return without_thoughts(answer) if self.scratchpad else answer

    async def _answer(
        self,
        steps: Sequence[Step],
        on_delta: OnDelta | None,
        steering: Sequence[Steering],
        n: int,
    ) -> Completion:
        dialect = self.choice.current
        attempts = _Attempts(on_delta, steering, n)
        try:
            answer = await self._request(dialect, steps, attempts)
        except ToolsRefused as exc:
            if not self._can_fall_back(dialect):
                raise
            return await self._request_as_text(
                f"the endpoint refuses tools: {exc}", steps, attempts
            )
        except FormRefused as exc:
            self.choice.disable_formats()
            answer = await self._answer(steps, on_delta, steering, n)
            note = f"the endpoint refuses the form of the answer: {exc}; asked for `finish`"
            return replace(answer, notes=(note, *answer.notes))
        if not self._ignores_tools(dialect, steps, answer):
            return answer if steps else self._with_fallback_note(answer, dialect)
        reason = "the endpoint answers without calling a tool, although the request requires a call"
        return _with_cost_of(answer, await self._request_as_text(reason, steps, attempts))

    async def _request(
        self, dialect: Dialect, steps: Sequence[Step], attempts: _Attempts
    ) -> Completion:
        on_delta = attempts.next() if attempts.on_delta else None
        shown = self._shown(steps, attempts.steering)
        fitted = self._fitted(dialect, steps, shown)
        summary = await self._summary(shown, attempts.n) if fitted.truncated else None
        if summary is not None and summary.compressed is not None:
            fitted = self._fitted(dialect, steps, summary.applied(shown))
        model = self._budgeted(attempts.n)
        answer = dialect.read(await model.answer(fitted.question, on_delta))
        if fitted.question.form is not None and answer.text and not answer.calls:
            call = CallRequest("", FINISH, answer.text)
            answer = replace(answer, calls=(call,), text=None)
        answer = _resolve_aliases(
            answer, self.choice.aliases, described_tools(self.offers, dialect, steps)
        )
        answer = replace(answer, window=fitted.window)
        return answer if summary is None else _with_summary(answer, summary)

    def _budgeted(self, n: int, *, warns: bool = True) -> ChatModel:
        """The model, with a reservation for step `n`. `warns`: the prompt shows low budgets."""
        if self.reservations is None:
            return self.model
        return BudgetedModel(self.model, self.reservations, n, self.cost_model, warns)

    async def _summary(self, shown: Sequence[ShownStep], n: int) -> Summary | None:
        """A summary of the older steps, if that is how they are configured to be compressed."""
        budget = self.context_budget
        if budget.rules.compression != "summary":
            return None
        model = self._budgeted(n, warns=False)
        return await summarise(model, shown, budget.rules, budget.writes)

    async def _request_as_text(
        self, reason: str, steps: Sequence[Step], attempts: _Attempts
    ) -> Completion:
        self.choice.fall_back(reason)
        dialect = self.choice.current
        answer = await self._request(dialect, steps, attempts)
        notes = (f"{reason}; asked again in {dialect.name}", *answer.notes)
        return replace(answer, dialect=dialect.name, notes=notes)

    def _can_fall_back(self, dialect: Dialect) -> bool:
        return dialect.name == "native" and self.choice.can_fall_back

    def _ignores_tools(self, dialect: Dialect, steps: Sequence[Step], answer: Completion) -> bool:
        """Whether this is the second answer in a row without a call, where one is required."""
        is_second = bool(steps) and all(
            not given.calls and not lost_calls(given) for given in (steps[-1], answer)
        )
        return is_second and self.choice.required and self._can_fall_back(dialect)

    def _with_fallback_note(self, answer: Completion, dialect: Dialect) -> Completion:
        """The first answer of a turn, with a note on why the tools were described as text."""
        reason = self.choice.fallback_reason
        if reason is None or dialect.name == "native":
            return answer
        return replace(answer, notes=(f"{dialect.name}: {reason}", *answer.notes))


def _default_contract(dialect: DialectName, tools: Sequence[ToolSpec]) -> str:
    return DIALECTS[dialect].instructions(tools)


_IN_FORM = (
    "There is no tool `finish` here: your answer is text, JSON of the form that is asked for."
)


def _resolve_aliases(answer: Completion, aliases: Aliases, tools: Iterable[ToolSpec]) -> Completion:
    """The answer with aliases replaced by the tools' own names. An argument that the tool defines
    itself is no alias, nor is one given next to the argument that it stands for.
    """
    names, fields = aliases.all_names, aliases.all_fields
    if not answer.calls or not (names or fields):
        return answer
    properties = {tool.name: tool.parameters.get("properties") for tool in tools}
    calls: list[CallRequest] = []
    for call in answer.calls:
        name = names.get(call.name, call.name)
        own = properties.get(name)
        given = _object(call.arguments)
        if given is not None:
            renames = {f: fields[f] for f in given if f in fields and fields[f] not in given}
            if isinstance(own, dict):
                renames = {alias: field for alias, field in renames.items() if alias not in own}
            if renames:
                renamed = {renames.get(field, field): value for field, value in given.items()}
                call = replace(call, arguments=json.dumps(renamed, ensure_ascii=False))
        calls.append(replace(call, name=name))
    return replace(answer, calls=tuple(calls))


def _object(arguments: str) -> dict[str, JsonValue] | None:
    """The arguments; None if they do not parse, which is reported elsewhere."""
    try:
        return read_arguments(arguments)
    except ValueError:
        return None


class _Attempts:
    """The requests for one answer (step `n`), with consecutively numbered attempts."""

    def __init__(self, on_delta: OnDelta | None, steering: Sequence[Steering], n: int):
        self.on_delta, self.steering, self.n = on_delta, steering, n
        self._last = 0

    def next(self) -> OnDelta:
        """The delta callback of the next request; its attempts follow the earlier ones."""
        before = self._last

        def count(delta: Delta) -> None:
            self._last = before + delta.attempt
            if self.on_delta is not None:
                self.on_delta(replace(delta, attempt=self._last))

        return count


def _with_summary(answer: Completion, summary: Summary) -> Completion:
    """The answer with the cost of the preceding summary, and the summary as its marks."""
    answer = _with_cost_of(summary.spent, answer)
    compressed = () if summary.compressed is None else (summary.compressed,)
    return replace(
        answer,
        discards=(*summary.discards, *answer.discards),
        compresses=(*compressed, *answer.compresses),
        notes=(summary.note, *answer.notes),
    )


def _with_cost_of(wasted: Completion, answer: Completion) -> Completion:
    """The answer with the cost of a discarded one."""
    costs = [cost for cost in (wasted.cost_usd, answer.cost_usd) if cost is not None]
    return replace(
        answer,
        tokens_in=wasted.tokens_in + answer.tokens_in,
        tokens_out=wasted.tokens_out + answer.tokens_out,
        cost_usd=sum(costs) if costs else None,
    )


# The agent settings `begin_with` (a turn's first call) and `mode` (when to ask a person).


def first_tool(toolbox: Toolbox, begin_with: str | None) -> str | None:
    """The tool that the turn must begin with; None if there is none, or it is currently absent."""
    entry = toolbox.registry.get(begin_with) if begin_with is not None else None
    return None if entry is None or entry.absent is not None else entry.name


def initial_tools(toolbox: Toolbox, first: str | None) -> DescribeTools:
    """Describes the tools; only the tool `first` until it was called."""
    entry = toolbox.registry.get(first) if first is not None else None
    if entry is None:
        return toolbox.described
    spec = entry.tool.spec
    return lambda steps: toolbox.described(steps) if begun(steps) else (spec,)


def quiet_tools(toolbox: Toolbox) -> frozenset[str]:
    """Tools after which the mode `interactive` does not ask: harmless ones, and those that send."""
    return toolbox.speaking | {FINISH, SELECT, TIDY_STEPS}
