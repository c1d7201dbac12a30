"""Messages to roles, cut to the model's window."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.budget import ContextBudget, ContextRules, WindowTooSmall
from hubbub.agents.prompt.context import ParticipantSummary
from hubbub.agents.prompt.render import ConversationPrompt, ConversationTemplate
from hubbub.agents.prompt.tokens import TokenEstimate, message_tokens, spec_tokens
from hubbub.agents.prompt_client import DIALECTS, DialectChoice, PromptClient
from hubbub.agents.roles.context import LEVELS, RoleMessage
from hubbub.agents.roles.pipeline import AskRole
from hubbub.agents.roles.plan import Plan, judge_spec, plan_spec, route_spec
from hubbub.agents.roles.state import StepResult, WorkState
from hubbub.config.agents import ModelConfig, RolesConfig
from hubbub.protocol.turns import Role, Steering, Step, ToolCallRecord
from tests.examples import examples
from tests.unit.agents.builders import message
from tests.unit.agents.windows import history_of, spec

GOAL = "what the first step is for"
PLAN = Plan.model_validate(
    {"steps": [
        {"id": 1, "goal": GOAL, "executor": "look"},
        {"id": 2, "goal": "write to $step_1_result", "executor": "helper1"},
    ]}
)  # fmt: skip
SYSTEM = "You are a role."
STEERING = Steering(message="m9", text="<incoming_message>make it two</incoming_message>")


def shown(
    role: Role, *, history: int = 12, results: int = 5000, tools: int = 5, agents: int = 3
) -> RoleMessage:
    """A role's message about a conversation, an abandoned plan, and one with results."""
    outcomes = {1: StepResult("r" * results), 2: StepResult("e" * results, "timeout")}
    work = WorkState(
        plan=PLAN, results=outcomes, abandoned=[(PLAN, outcomes)], lessons=["too slow"]
    )
    incoming = [message(5000, "alice", "what now <b>?")]
    return RoleMessage(
        ConversationPrompt(
            ConversationTemplate.shipped(), history_of(2, history), "direct_alice", incoming
        ),
        [spec(f"tool{n}", 40) for n in range(tools)],
        [
            ParticipantSummary(f"helper{n}", "agent", "does many things " * 9, ("all",))
            for n in range(agents)
        ],
        AskRole(3, role, work, steering=(STEERING,)),
    )


TOOLS: dict[str, ToolSpec] = {
    "router": route_spec(["look", "helper1"]),
    "planner": plan_spec(["look", "helper1"], 8),
    "reflector": judge_spec(RolesConfig().criteria, 3),
}


@pytest.mark.behaviour("A-21")
def test_history_is_cut_first_then_descriptions_and_results_then_the_latest_messages() -> None:
    full = shown("planner", history=5)
    assert (full.messages, full.spare) == (10 + len(LEVELS) - 1, full.messages)
    assert full.without(0) == full.text
    shortest = full.without(full.messages)
    without_others, shorter = full.without(7), full.without(8)
    assert "r" * 1500 in without_others
    assert "hello 0 4" in without_others
    assert "hello 0 1" not in without_others
    assert "r" * 1500 not in shorter
    assert "r" * 400 in shorter
    assert "hello 0 4" in shorter
    assert "does many things" not in shorter
    assert "hello 0 4" not in full.without(full.messages - 2)
    assert "<earlier_plan>" in full.without(full.messages - 1)
    assert "<earlier_plan>" not in shortest
    assert all(f'<tool name="tool{n}">Arguments: what</tool>' in shortest for n in range(5))
    assert all(f'<agent id="helper{n}"/>' in shortest for n in range(3))


@given(
    role=st.sampled_from(["router", "planner", "reflector"]),
    history=st.integers(0, 12),
    results=st.sampled_from([0, 50, 90, 230, 1020, 4030, 9000]),
    tools=st.integers(0, 8),
    agents=st.integers(0, 8),
)
@settings(max_examples=examples(25))
def test_each_cut_shortens_the_message_and_keeps_the_required_parts(
    role: Role, history: int, results: int, tools: int, agents: int
) -> None:
    full = shown(role, history=history, results=results, tools=tools, agents=agents)
    texts = [full.without(n) for n in range(full.messages + 1)]
    # When the first message goes, the template adds a line about it.
    sizes = [len(text) for text in texts[1:]]
    assert sizes == sorted(sizes, reverse=True)
    for text in texts:
        assert "what now <b>?" in unescape(text.partition("<current_interaction>")[2])
        assert GOAL in text
        assert "<judgement>too slow</judgement>" in text
        assert STEERING.text in text
        assert 'outcome="failed: timeout"' in text
        if role != "reflector":
            assert len(re.findall(r"<tool name=", text)) == tools
            assert len(re.findall(r"<agent id=", text)) == agents


class _NoModel:
    """Is never called."""


WRONG = Step(
    n=2,
    calls=(
        ToolCallRecord(id="c", name="judge", arguments={"score": 9}, result="no", error="invalid"),
    ),
)


@pytest.mark.behaviour("A-21")
@given(
    room=st.integers(300, 9000),
    role=st.sampled_from(["router", "planner", "reflector"]),
    dialect=st.sampled_from(sorted(DIALECTS)),
    history=st.integers(0, 12),
    results=st.sampled_from([50, 1020, 9000]),
    wrong=st.booleans(),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_question_to_a_role_never_exceeds_its_window(
    room: int, role: Role, dialect: str, history: int, results: int, wrong: bool
) -> None:
    message_of = shown(role, history=history, results=results)
    choice = DialectChoice(ModelConfig.model_validate({"model": "m", "dialect": dialect}))
    asker = PromptClient(
        _NoModel(),  # type: ignore[arg-type]  # only builds
        lambda steps: (TOOLS[role],),
        SYSTEM,
        ContextBudget(ContextRules(size=room + 100, reserve=100), message_of),
        choice,
        "Above all: be kind",
    )
    try:
        question = asker.question([WRONG] if wrong else [], choice.current)
    except WindowTooSmall:
        assert room < 1700, "the required parts fit into 1700 tokens"
        return
    counter = TokenEstimate()
    size = sum(message_tokens(counter, m) for m in question.messages)
    assert size + sum(spec_tokens(counter, tool) for tool in question.tools) <= room
    text = "\n".join(str(m["content"]) for m in question.messages)
    assert SYSTEM in text
    assert "Above all: be kind" in text
    assert "what now <b>?" in unescape(text)
    assert "make it two" in text
    assert TOOLS[role].name in text or [t.name for t in question.tools] == [TOOLS[role].name]
