"""Properties of the loop for any answers of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.turn.chat import CORRECTION, ChatMessage, chat_messages
from hubbub.agents.turn.loop import (
    FINISH,
    CallResult,
    Command,
    End,
    Loop,
    LoopRules,
    QueryModel,
    Record,
    RunTools,
)
from hubbub.protocol.turns import Step
from tests.unit.agents.builders import answered

TOOLS = ("send", "read")
NAMES = st.sampled_from([*TOOLS, *TOOLS, FINISH, "unknown", ""])
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', '{"a": 2}', '{"reason": "r"}', "{", "[]", ""])
CALLS = st.lists(
    st.builds(CallRequest, st.sampled_from(["", "x", "y"]), NAMES, ARGUMENTS), max_size=3
)
ANSWERS = st.builds(
    Completion,
    text=st.none() | st.text(max_size=5),
    calls=CALLS.map(tuple),
    tokens_in=st.integers(0, 50),
    tokens_out=st.integers(0, 50),
    finish_reason=st.sampled_from(["stop", "tool_calls", "length", None]),
)
RULES = st.builds(
    LoopRules,
    max_steps=st.integers(1, 6),
    max_tokens=st.none() | st.integers(50, 400),
    reply_required=st.booleans(),
    speaking=st.just(frozenset({"send"})),
)


class World:
    """Carries out commands with drawn answers and drawn failures of calls."""

    def __init__(self, rules: LoopRules, answers: Sequence[Completion], failing: Sequence[bool]):
        self.rules, self.answers, self.failing = rules, list(answers), list(failing)
        self.recorded: dict[int, Step] = {}
        self.asked: list[int] = []
        self.end: End | None = None
        self.ran: list[str] = []

    def run(self, loop: Loop, die_after: int | None = None) -> None:
        """Run until the turn ends, or until the process dies after `die_after` commands."""
        todo = loop.start()
        done = 0
        while todo and self.end is None:
            if done == die_after:
                return
            done += 1
            command = todo.pop(0)
            todo += self.carry_out(loop, command)

    def carry_out(self, loop: Loop, command: Command) -> list[Command]:
        match command:
            case Record(step):
                self.recorded[step.n] = step
            case QueryModel(n=n):
                self.asked.append(n)
                answer = self.answers[n - 1] if n <= len(self.answers) else Completion()
                return answered(loop, answer)
            case RunTools(step, calls):
                self.ran += [f"{step.n}/{c.id}" for c in calls]
                return loop.ran([self.result(c.id, step.n) for c in calls])
            case End():
                self.end = command
        return []

    def result(self, id: str, n: int) -> CallResult:
        failed = self.failing[n % len(self.failing)]
        return CallResult(id, "failed" if failed else "ok", "tool_failed" if failed else None)


WORLDS = st.builds(
    World, RULES, st.lists(ANSWERS, max_size=8), st.lists(st.booleans(), min_size=1, max_size=4)
)


@pytest.mark.behaviour("A-6")
@given(WORLDS)
def test_every_turn_ends_in_order_with_a_true_record(world: World) -> None:
    loop = Loop(world.rules, TOOLS)
    world.run(loop)
    assert world.end is not None
    assert world.asked == list(range(1, len(world.asked) + 1))
    assert len(world.asked) <= world.rules.max_steps
    assert [world.recorded[n] for n in sorted(world.recorded)] == loop.steps
    everything = [(s.n, c) for s in loop.steps for c in s.calls]
    invalid = {
        f"{n}/{c.id}" for n, c in everything if c.name not in TOOLS or isinstance(c.arguments, str)
    }
    assert len(world.ran) == len(set(world.ran)), "no call runs twice"
    assert not invalid & set(world.ran), "no invalid call runs"
    reminders = [c.error for _, c in everything].count("reply_required")
    sent = any(c.name == "send" and c.result == "ok" for _, c in everything)
    if not world.rules.reply_required:
        assert not reminders
    elif world.end.outcome == "finished" and not sent:
        assert reminders >= 1, "a turn ends without a reply only after a reminder"


@pytest.mark.behaviour("T-2")
@given(WORLDS, st.integers(0, 20))
def test_a_resumed_turn_ends_like_an_uninterrupted_one(world: World, died: int) -> None:
    whole = World(world.rules, world.answers, world.failing)
    whole.run(Loop(whole.rules, TOOLS))
    world.run(Loop(world.rules, TOOLS), die_after=died)
    recorded = [world.recorded[n] for n in sorted(world.recorded)]
    world.run(Loop(world.rules, TOOLS, recorded))
    assert world.end == whole.end
    assert world.recorded == whole.recorded


def assert_calls_are_answered(chat: Sequence[ChatMessage]) -> None:
    """Each call is followed by one tool message, in order."""
    at = 0
    while at < len(chat):
        made = chat[at].get("tool_calls", [])
        following = chat[at + 1 : at + 1 + len(made)]
        assert [m.get("tool_call_id") for m in following] == [c["id"] for c in made]
        assert len({c["id"] for c in made}) == len(made)
        for c in made:
            assert isinstance(json.loads(c["function"]["arguments"]), dict)
        at += 1 + len(made)


@given(WORLDS)
def test_the_chat_answers_every_call_in_order(world: World) -> None:
    loop = Loop(world.rules, TOOLS)
    todo = loop.start()
    while todo and world.end is None:
        command = todo.pop(0)
        if isinstance(command, QueryModel):
            chat = chat_messages("system", "prompt", loop.steps)
            assert [m["role"] for m in chat[:2]] == ["system", "user"]
            assert_calls_are_answered(chat)
            assert chat[-1]["role"] != "assistant"
        todo += world.carry_out(loop, command)


def test_a_chat_has_corrections_and_only_names_that_endpoints_accept() -> None:
    chat = chat_messages("s", "p", [Step(n=1, text="Hi")])
    assert chat[2:] == [
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": CORRECTION},
    ]
    assert chat_messages("s", "p", [Step(n=1)])[2:] == [{"role": "user", "content": CORRECTION}]
    loop = Loop(LoopRules(), TOOLS)
    odd_calls = (CallRequest("a", "functions.send now", "{"), CallRequest("b", "", ""))
    answered(loop, Completion(calls=odd_calls))
    shown = chat_messages("s", "p", loop.steps)[2]["tool_calls"]
    assert [c["function"]["name"] for c in shown] == ["functions_send_now", "_"]
    assert json.loads(shown[0]["function"]["arguments"]) == {"not_json": "{"}
