"""Questions to fit into a window, and the parts that they must keep."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import unescape

from hypothesis import strategies as st

from hubbub.agents.dialects.base import Dialect
from hubbub.agents.models.base import CompletionRequest, ToolSpec
from hubbub.agents.prompt.budget import ContextBudget, ContextRules, FittedRequest
from hubbub.agents.prompt.render import ConversationPrompt, ConversationTemplate, ThreadView
from hubbub.agents.prompt_client import DIALECTS, PromptClient
from hubbub.agents.turn.chat import ShownStep
from hubbub.config.agents import CompressionName
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord
from tests.unit.agents.builders import message

__all__ = [
    "NAMES",
    "Case",
    "assert_required_parts",
    "cases",
    "fitted",
    "history_of",
    "spec",
    "steps_of",
]

TEMPLATE = ConversationTemplate.shipped()
NAMES = ("look", "send", "finish", "use_tools")
WRITES = frozenset({"send"})
CLOSING = "Above all:\n- be kind"


def spec(name: str, words: int = 3) -> ToolSpec:
    """A tool with descriptions of this many words."""
    talk = " ".join(["explained"] * words)
    wanted = {"type": "string", "description": talk, "enum": ["a", "b"]}
    parameters = {"type": "object", "properties": {"what": wanted}, "required": ["what"]}
    return ToolSpec(name, f"{name} it. {talk}", parameters)  # type: ignore[arg-type]  # it is JSON


def history_of(threads: int, messages: int, text: str = "hello") -> dict[str, ThreadView]:
    """Threads with this many messages each, the most recently active first."""
    views: dict[str, ThreadView] = {}
    for t in range(threads):
        name = "direct_alice" if t == 0 else f"direct_p{t}"
        first = 1000 - 100 * t
        history = tuple(message(first + n, f"p{t}", f"{text} {t} {n}") for n in range(messages))
        views[name] = ThreadView(name, history)
    return views


def steps_of(count: int, result: str = "saw it", tool: str = "look") -> list[ShownStep]:
    """`count` steps with one call each."""
    calls = [
        ToolCallRecord(id=f"c{n}", name=tool, arguments={"what": f"w{n}"}, result=result)
        for n in range(1, count + 1)
    ]
    return [Step(n=n, calls=(call,)) for n, call in enumerate(calls, 1)]


@dataclass
class Case:
    """The parts of a question."""

    threads: dict[str, ThreadView] = field(default_factory=dict)
    incoming: Sequence[Message] = (message(5000, "alice", "what now <b>?"),)
    steps: Sequence[ShownStep] = ()
    tools: Sequence[ToolSpec] = tuple(spec(name) for name in NAMES)
    dialect: str = "native"
    system: str = "You are a bot."

    @property
    def conversation(self) -> ConversationPrompt:
        return ConversationPrompt(TEMPLATE, self.threads, "direct_alice", self.incoming)


def fitted(case: Case, rules: ContextRules) -> FittedRequest:
    """The question of a case, cut to the window of the rules. Raises `WindowTooSmall`."""
    budget = ContextBudget(rules, case.conversation, WRITES)
    asker = PromptClient(_Unused(), _Unused(), case.system, budget, closing=CLOSING)  # type: ignore[arg-type]  # only builds
    dialect: Dialect = {**DIALECTS}[case.dialect]  # type: ignore[index]  # by name

    def build(
        prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        return asker._build(dialect, prompt, steps, tools)

    return budget.fit(build, case.steps, case.tools)


class _Unused:
    """A model or tools that are never used."""


# Required parts --------------------------------------------------------------------------------


def assert_required_parts(question: CompletionRequest, case: Case) -> None:
    """Checks that a question has the parts that are never cut."""
    system, user, *rest = question.messages
    head, prompt = system["content"] or "", user["content"] or ""
    assert head.startswith(case.system)
    assert head.endswith(CLOSING)
    for incoming in case.incoming:
        assert incoming.text in unescape(prompt.partition("<current_interaction>")[2])
    if case.dialect == "native":
        assert [tool.name for tool in question.tools] == [tool.name for tool in case.tools]
    else:
        described = set(re.findall(r'^\{"name": "(\w+)"', head, re.MULTILINE))
        by_action = {"finish"} if case.dialect == "final_output" else set()
        assert described == {tool.name for tool in case.tools} - by_action
    everything = "\n".join(str(m["content"]) for m in question.messages)
    for step in case.steps:
        if isinstance(step, Steering):
            assert step.text in everything
    _pairs(question)
    own = [step for step in case.steps if not isinstance(step, Steering)]
    if own and isinstance(own[-1], Step):
        assert rest, "the last step stays"
        assert question.messages[-1]["role"] in ("tool", "user")


def _pairs(question: CompletionRequest) -> None:
    """Every call is followed by its result, and there are no other results."""
    waiting: list[str] = []
    for each in question.messages[2:]:
        if each["role"] == "tool":
            assert waiting.pop(0) == each["tool_call_id"]
            continue
        assert not waiting
        waiting = [call["id"] for call in each.get("tool_calls", [])]
        for call in each.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting
    for before, each in zip(question.messages[1:], question.messages[2:], strict=False):
        results = re.findall(r"<tool_result tool_name=", each["content"] or "")
        if each["role"] == "user" and results:
            assert before["role"] == "assistant"
            called = str(before["content"])
            assert called.count("TOOL_CALL") + called.count("<final_output>") > 0


# Any question ----------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["hello", "a\nb\n\n", "x" * 300, "</content>&", "Grüße", "😀" * 9, "1" * 50]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
ERRORS = st.sampled_from([None, None, "timeout", "tool_failed"])


@st.composite
def _threads(draw: st.DrawFn) -> dict[str, ThreadView]:
    names = ["direct_alice", *(f"direct_p{t}" for t in range(1, draw(st.integers(1, 6))))]
    made = {}
    for t, name in enumerate(names[draw(st.integers(0, 1)) :]):
        texts = draw(st.lists(TEXTS, min_size=1, max_size=8))
        history = (message(1000 - 100 * t + n, f"p{t}", text) for n, text in enumerate(texts))
        made[name] = ThreadView(name, tuple(history))
    return made


ARGUMENTS = st.one_of(TEXTS, st.builds(lambda text: {"what": text}, TEXTS))


@st.composite
def _steps(draw: st.DrawFn) -> list[ShownStep]:
    made: list[ShownStep] = []
    for n in range(1, draw(st.integers(0, 9)) + 1):
        kind = draw(st.sampled_from(["calls", "calls", "calls", "text", "compressed", "steering"]))
        if kind == "compressed":
            made.append(Compressed(n=n, text=draw(TEXTS)))
        elif kind == "steering":
            made.append(Steering(message=f"m{n}", text=f"also {n}"))
        elif kind == "text":
            made.append(Step(n=n, text=draw(TEXTS)))
        else:
            names = draw(
                st.lists(st.sampled_from(["look", "send", "nothing"]), min_size=1, max_size=3)
            )
            calls = [
                ToolCallRecord(
                    id=f"c{n}_{i}",
                    name=name,
                    arguments=draw(ARGUMENTS),
                    result=draw(TEXTS),
                    error=draw(ERRORS),
                )
                for i, name in enumerate(names)
            ]
            made.append(Step(n=n, text=draw(st.none() | TEXTS), calls=tuple(calls)))
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, ContextRules]:
    """A question of any shape, and rules with a window from much too small to large enough."""
    case = Case(
        threads=draw(_threads()),
        incoming=[message(5000 + n, "alice", text) for n, text in enumerate(draw(_INCOMING))],
        steps=draw(_steps()),
        tools=[spec(name, draw(st.integers(0, 40))) for name in NAMES],
        dialect=draw(st.sampled_from(sorted(DIALECTS))),
        system=draw(TEXTS.map(lambda text: f"You are a bot. {text}")),
    )
    strategies: list[CompressionName] = ["importance", "window", "summary"]
    rules = ContextRules(
        reserve=draw(st.integers(0, 100)),
        compression=draw(st.sampled_from(strategies)),
        keep_steps=draw(st.integers(1, 6)),
    )
    whole = fitted(case, rules).window
    assert whole is not None
    total = sum(layer.tokens for layer in whole.layers)
    size = rules.reserve + max(int(total * draw(st.floats(0.25, 1.1))), 1)
    return case, replace(rules, size=size)


_INCOMING = st.lists(TEXTS, min_size=1, max_size=2)
