"""Turns that continue after a question, and the earlier turn that an answer belongs to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.turn.continuation import (
    MOST_TURNS,
    Continuation,
    awaits_answer,
    continued_steps,
    had_effect,
    waiting_reason,
)
from hubbub.agents.turn.loop import Command, End, Loop, LoopRules, RunTools
from hubbub.agents.turn.steps import CallResult
from hubbub.errors import OperationError
from hubbub.ids import write_id
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Outcome, Step, ToolCallRecord, Turn, TurnEnd, TurnStart
from tests.unit.agents.builders import ME, answered, message

THREAD = "dm.alice.bot"
ASKED = waiting_reason({"question": "which?"})


def turn(
    id: str,
    *steps: Step,
    reason: str = ASKED,
    woken: str = "m1",
    outcome: Outcome = "finished",
    continues: str | None = None,
) -> Turn:
    return Turn(
        start=TurnStart(id=id, thread_id=THREAD, messages=(woken,), continues=continues),
        agent=ME,
        started_at=datetime(2025, 1, 1, tzinfo=UTC),
        steps=steps,
        end=TurnEnd(id=id, outcome=outcome, reason=reason),
    )


def step(n: int) -> Step:
    return Step(n=n)


def question_step(n: int, error: str | None = None) -> Step:
    """A question of the runtime's own, sent unless there is an error."""
    asked = ToolCallRecord(id="ask", name="ask_human", arguments={}, result="r", error=error)
    return Step(n=n, calls=(asked,), made="ask")


def asks(seq: int, turn: str) -> Message:
    """A question of the agent's own."""
    return message(seq, ME, thread=THREAD, kind="agent", cause=turn)


def plan(*incoming: Message) -> TurnPlan:
    return TurnPlan("bot-m9", THREAD, incoming, ("direct",) * len(incoming), True)


async def continuation(
    turns: dict[str, Turn], *before: Message, sender: str = "alice"
) -> Continuation:
    """What alice's next message after `before` continues."""

    async def read(id: str) -> Turn:
        if id not in turns:
            raise OperationError(ErrorCode.UNKNOWN_TURN, "no such turn")
        return turns[id]

    answer = message(9, sender, thread=THREAD)
    return await continued_steps((*before, answer), plan(answer), ME, read)


WOKEN = message(1, thread=THREAD)
ONE = {"bot-m1": turn("bot-m1", step(1), question_step(2))}


async def test_a_chain_of_questions_is_followed_to_its_start_up_to_a_limit() -> None:
    third = message(3, thread=THREAD)
    before = (WOKEN, asks(2, "bot-m1"), third)
    asked = ONE | {
        "bot-m3": turn("bot-m3", step(3), question_step(4), woken="m3", continues="bot-m1")
    }
    earlier = await continuation(asked, *before, asks(4, "bot-m3"))
    assert ([s.n for s in earlier.steps], earlier.turn) == ([1, 2, 3, 4], "bot-m3")
    answered = ONE | {"bot-m3": turn("bot-m3", step(3), woken="m3", continues="bot-m1")}
    assert await continuation(answered, *before) == Continuation(), "an answer is used once"
    cycle = {"bot-m1": turn("bot-m1", question_step(1), continues="bot-m1")}
    assert len((await continuation(cycle, *before[:2])).steps) == MOST_TURNS


async def test_the_turn_after_a_failed_one_continues_with_its_steps() -> None:
    failed = turn(
        "bot-m4", step(3), woken="m4", continues="bot-m1", outcome="model_error", reason="503"
    )
    aside = message(3, thread=THREAD)  # wakes no agent
    again = message(4, thread=THREAD)
    earlier = await continuation(ONE | {"bot-m4": failed}, WOKEN, asks(2, "bot-m1"), aside, again)
    assert ([s.n for s in earlier.steps], earlier.turn) == ([1, 2, 3], "bot-m4")


async def test_a_message_that_answers_no_open_question_continues_no_turn() -> None:
    asked = [WOKEN, asks(2, "bot-m1")]
    cases: list[tuple[dict[str, Turn], list[Message]]] = [
        (ONE, [WOKEN]),  # the agent sent nothing
        ({}, asked),  # the record is gone
        ({"bot-m1": turn("bot-m1", reason="done")}, asked),
        # The reason alone is no proof: a model can finish with the same text.
        ({"bot-m1": turn("bot-m1", step(1), reason=ASKED)}, asked),
        ({"bot-m1": turn("bot-m1", question_step(1, error="hop_limit"))}, asked),
        ({"bot-m1": turn("bot-m1", question_step(1), outcome="timeout")}, asked),
        (ONE, [WOKEN, asks(2, "m1")]),  # sent outside a turn
        (ONE, [WOKEN, asks(2, "other-m1")]),
    ]
    for turns, before in cases:
        assert await continuation(turns, *before) == Continuation()
    # Only the person who was asked can answer; if the thread no longer shows who, anyone can.
    assert await continuation(ONE, *asked, sender="carol") == Continuation()
    assert (await continuation(ONE, asked[1], sender="carol")).turn == "bot-m1"


@pytest.mark.behaviour("I-15")
async def test_external_results_are_taken_only_from_the_participant_who_has_the_tool() -> None:
    def results(seq: int, sender: str, output: str) -> Message:
        content = {"external_results": [{"id": write_id("bot-m1", 1, 0), "output": output}]}
        return message(seq, sender, thread=THREAD).model_copy(update={"content": content})

    handed = ToolCallRecord(
        id="c", name="get_weather", arguments={}, result="handed over", external=True
    )
    asked = turn("bot-m1", Step(n=1, calls=(handed,)))

    async def read(id: str) -> Turn:
        if id != "bot-m1":
            raise OperationError(ErrorCode.UNKNOWN_TURN, "no such turn")
        return asked

    for others in ((), (results(4, "carol", "a lie"),), (results(10, "carol", "a lie"),)):
        answers = sorted((results(9, "alice", "rain"), *others), key=lambda m: m.seq)
        incoming = plan(*(m for m in answers if m.seq > 8))
        messages = (WOKEN, asks(2, "bot-m1"), *answers)
        earlier = await continued_steps(messages, incoming, ME, read)
        assert [c.result for s in earlier.steps for c in s.calls] == ["rain"]


# The mode `interactive` --------------------------------------------------------------------------

QUIET = frozenset({"say", "finish", "ask_human"})
INTERACTIVE = LoopRules(quiet=QUIET, speaking=frozenset({"say", "ask_human"}), max_steps=3)


def calls(*names: str, error: str | None = None) -> Step:
    made = (ToolCallRecord(id=n, name=n, arguments={}, result="r", error=error) for n in names)
    return Step(n=1, calls=tuple(made))


def test_only_calls_that_ran_outside_the_quiet_tools_had_an_effect() -> None:
    for step, expected in [
        (calls("work"), True), (calls("work", "say"), True), (calls("work", error="timeout"), True),
        (calls("say"), False), (calls("finish"), False), (calls("work", "ask_human"), False),
        (calls("work", error="invalid_arguments"), False),
        (calls("work", error="unknown_tool"), False), (calls("work", error="not_first"), False),
    ]:  # fmt: skip
        assert had_effect(step, QUIET) is expected, step


def answer(*names: str) -> Completion:
    return Completion(calls=tuple(CallRequest(n, n, "{}") for n in names))


def ran(loop: Loop, run: Command, error: str | None = None) -> list[Command]:
    assert isinstance(run, RunTools)
    return loop.ran([CallResult(c.id, "too far" if error else "ok", error) for c in run.calls])


def test_a_question_that_cannot_be_sent_ends_the_turn() -> None:
    loop = Loop(INTERACTIVE, ["work", "ask_human"])
    loop.start()
    ran(loop, answered(loop, answer("work"))[-1])
    *_, question = answered(loop, answer())  # the model has no wording for the question
    end = ran(loop, question, "hop_limit")[-1]
    assert isinstance(end, End)
    assert end.outcome == "cancelled"
    assert "ask_human failed: too far" in end.reason
    assert not awaits_answer(loop.steps)
    # A process that resumes the turn ends it as well, because no person let it continue.
    assert Loop(INTERACTIVE, ["work", "ask_human"], loop.steps).start() == [end]
