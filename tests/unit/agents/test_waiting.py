"""Turns that go on after a question: which turn an answer belongs to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from hubbub.agents.inbox import Thread, TurnPlan
from hubbub.agents.models.base import Answer, CallRequest
from hubbub.agents.turn.interactive import acted, is_question, question, without_questions
from hubbub.agents.turn.loop import AskModel, End, Loop, Record, Rules, RunTools
from hubbub.agents.turn.recording import CallResult
from hubbub.agents.turn.waiting import ASKS, MOST_TURNS, Earlier, earlier_steps, waiting, waits
from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Outcome, Step, ToolCallRecord, Turn, TurnEnd, TurnStart
from tests.unit.agents.builders import ME, message

THREAD = "dm.alice.bot"
ASKED = waiting({"question": "which?"})


def turn(
    id: str,
    *steps: Step,
    reason: str = ASKED,
    woken: str = "m1",
    outcome: Outcome = "finished",
) -> Turn:
    return Turn(
        start=TurnStart(id=id, thread_id=THREAD, messages=(woken,)),
        agent=ME,
        started_at=datetime(2025, 1, 1, tzinfo=UTC),
        steps=steps,
        end=TurnEnd(id=id, outcome=outcome, reason=reason),
    )


def step(n: int, *notes: str) -> Step:
    return Step(n=n, notes=notes)


def question_step(n: int, *notes: str, error: str | None = None) -> Step:
    """A question of the runtime's own, which has been sent unless there is an error."""
    asked = ToolCallRecord(id="ask", name="ask_human", arguments={}, result="r", error=error)
    return Step(n=n, calls=(asked,), notes=(ASKS, *notes))


def asks(seq: int, turn: str) -> Message:
    """A question of the agent's own."""
    return message(seq, ME, thread=THREAD, kind="agent", cause=turn)


def plan(*incoming: Message) -> TurnPlan:
    return TurnPlan("bot-m9", THREAD, incoming, ("direct",) * len(incoming), True)


async def found(turns: dict[str, Turn], *before: Message, sender: str = "alice") -> Earlier:
    async def read(id: str) -> Turn:
        if id not in turns:
            raise OperationError(ErrorCode.UNKNOWN_TURN, "no such turn")
        return turns[id]

    thread = Thread(THREAD, (*before, message(9, sender, thread=THREAD)))
    return await earlier_steps(thread, plan(message(9, sender, thread=THREAD)), ME, read)


WOKEN = message(1, thread=THREAD)
ONE = {"bot-m1": turn("bot-m1", step(1), question_step(2))}


async def test_an_answer_goes_on_with_the_turn_that_asked() -> None:
    earlier = await found(ONE, WOKEN, asks(2, "bot-m1"))
    assert [s.n for s in earlier.steps] == [1, 2]
    assert (earlier.turn, earlier.first) == ("bot-m1", 3)
    assert earlier.noted(step(3, "x")).notes == ("x", "goes on with bot-m1")
    assert earlier.noted(step(4)) == step(4)


async def test_a_chain_of_questions_is_followed_to_its_beginning() -> None:
    turns = ONE | {
        "bot-m3": turn("bot-m3", step(3, "goes on with bot-m1"), question_step(4), woken="m3")
    }
    third = message(3, thread=THREAD)
    earlier = await found(turns, WOKEN, asks(2, "bot-m1"), third, asks(4, "bot-m3"))
    assert [s.n for s in earlier.steps] == [1, 2, 3, 4]
    assert earlier.turn == "bot-m3"


async def test_an_answer_is_taken_up_once() -> None:
    turns = ONE | {"bot-m3": turn("bot-m3", step(3, "goes on with bot-m1"), woken="m3")}
    assert await found(turns, WOKEN, asks(2, "bot-m1"), message(3, thread=THREAD)) == Earlier()


async def test_after_a_turn_that_failed_the_next_one_goes_on_with_what_it_did() -> None:
    failed = turn(
        "bot-m4", step(3, "goes on with bot-m1"), woken="m4", outcome="model_error", reason="503"
    )
    aside = message(3, thread=THREAD)  # woke nobody
    again = message(4, thread=THREAD)
    earlier = await found(ONE | {"bot-m4": failed}, WOKEN, asks(2, "bot-m1"), aside, again)
    assert [s.n for s in earlier.steps] == [1, 2, 3]
    assert earlier.turn == "bot-m4"


async def test_a_chain_has_an_end() -> None:
    turns = {"bot-m1": turn("bot-m1", question_step(1, "goes on with bot-m1"))}
    earlier = await found(turns, WOKEN, asks(2, "bot-m1"))
    assert len(earlier.steps) == MOST_TURNS


@pytest.mark.parametrize(
    ("turns", "before"),
    [
        (ONE, [WOKEN]),  # the agent has said nothing
        ({}, [WOKEN, asks(2, "bot-m1")]),  # the record is no more
        ({"bot-m1": turn("bot-m1", reason="done")}, [WOKEN, asks(2, "bot-m1")]),
        # The words alone say nothing: a model may choose them as the reason to finish.
        ({"bot-m1": turn("bot-m1", step(1), reason=ASKED)}, [WOKEN, asks(2, "bot-m1")]),
        (
            {"bot-m1": turn("bot-m1", question_step(1, error="hop_limit"))},
            [WOKEN, asks(2, "bot-m1")],
        ),
        (
            {"bot-m1": turn("bot-m1", question_step(1), outcome="timeout")},
            [WOKEN, asks(2, "bot-m1")],
        ),
        (ONE, [WOKEN, asks(2, "m1")]),  # said outside a turn
        (ONE, [WOKEN, asks(2, "other-m1")]),
    ],
)
async def test_what_nobody_waits_for_is_new_work(
    turns: dict[str, Turn], before: list[Message]
) -> None:
    assert await found(turns, *before) == Earlier()


async def test_only_who_was_asked_can_answer() -> None:
    assert await found(ONE, WOKEN, asks(2, "bot-m1"), sender="carol") == Earlier()
    forgotten = await found(ONE, asks(2, "bot-m1"), sender="carol")
    assert forgotten.turn == "bot-m1"


def test_the_reason_of_a_turn_says_that_it_waits() -> None:
    assert ASKED == "waits for an answer: which?"
    assert waiting("not even an object") == "waits for an answer"


def test_a_turn_waits_when_its_last_step_is_a_question_that_was_sent() -> None:
    assert waits([step(1), question_step(2)])
    assert not waits([question_step(1), step(2)])
    assert not waits([question_step(1, error="hop_limit")])
    unsent = ToolCallRecord(id="ask", name="ask_human", arguments={})
    assert not waits([Step(n=1, calls=(unsent,), notes=(ASKS,))])
    assert not waits([])


def test_nothing_goes_on_with_an_empty_record() -> None:
    assert Earlier().first == 1
    assert Earlier().noted(step(1)) == step(1)


# The mode `interactive` --------------------------------------------------------------------------

QUIET = frozenset({"say", "finish", "ask_human"})
INTERACTIVE = Rules(quiet=QUIET, speaking=frozenset({"say", "ask_human"}), max_steps=3)


def calls(*names: str, error: str | None = None) -> Step:
    made = (ToolCallRecord(id=n, name=n, arguments={}, result="r", error=error) for n in names)
    return Step(n=1, calls=tuple(made))


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (calls("work"), True),
        (calls("work", "say"), True),
        (calls("work", error="timeout"), True),
        (calls("say"), False),
        (calls("finish"), False),
        (calls("work", "ask_human"), False),
        (calls("work", error="invalid_arguments"), False),
        (calls("work", error="unknown_tool"), False),
    ],
)
def test_a_person_is_asked_after_what_did_something(made: Step, asked: bool) -> None:
    assert acted(made, QUIET) is asked


def test_the_question_tells_what_was_done_in_a_few_words() -> None:
    done = Step(
        n=1,
        calls=(
            ToolCallRecord(id="a", name="work", arguments={"x": "y" * 999}, result="z" * 999),
            ToolCallRecord(id="b", name="say", arguments={}, result="sent"),
            ToolCallRecord(id="c", name="rest", arguments={}, result="no", error="broken"),
        ),
    )
    asked = question(done, QUIET, 2)
    given = asked.calls[0].arguments
    assert isinstance(given, dict)
    text = given["question"]
    assert isinstance(text, str)
    assert len(text) < 800
    assert "`say`" not in text
    assert "`rest` with `{}` has failed: no" in text
    assert text.endswith("Shall I go on?")
    assert is_question(asked)
    assert without_questions([done, asked]) == [done]


def answer(*names: str) -> Answer:
    return Answer(calls=tuple(CallRequest(n, n, "{}") for n in names))


def ran(loop: Loop, run: RunTools) -> list[object]:
    return list(loop.ran([CallResult(c.id, "ok") for c in run.calls]))


def test_an_interactive_turn_ends_with_its_question_and_the_next_goes_on() -> None:
    loop = Loop(INTERACTIVE, ["work", "ask_human"])
    loop.start()
    (_, run) = loop.answered(answer("work"))
    assert isinstance(run, RunTools)
    done, asked, asking = ran(loop, run)
    assert isinstance(done, Record)
    assert isinstance(asked, Record)
    assert isinstance(asking, RunTools)
    assert [done.step.n, asked.step.n] == [1, 2]
    assert done.step.calls[0].result == "ok"
    # A crash before the question is sent: it is sent by the next process.
    again = Loop(INTERACTIVE, ["work", "ask_human"], loop.steps).start()
    assert again == [RunTools(asked.step, asked.step.calls, again=True)]
    _, end = ran(loop, asking)
    assert isinstance(end, End)
    assert waits(loop.steps)
    following = Loop(INTERACTIVE, ["work", "ask_human"], (), loop.steps)
    assert following.start() == [AskModel(3)]
    assert following.answered(answer("finish"))[-1] == End("finished", "")


def test_a_turn_that_goes_on_is_bounded_as_if_it_had_nothing_before() -> None:
    earlier = [calls("say").model_copy(update={"n": n}) for n in range(1, 9)]
    loop = Loop(Rules(max_steps=2), ["a", "b", "say"], (), earlier)
    assert loop.start() == [AskModel(9)]
    for name, n in (("a", 9), ("b", 10)):
        (_, run) = loop.answered(answer(name))
        assert isinstance(run, RunTools)
        assert run.step.n == n
        commands = ran(loop, run)
    assert isinstance(commands[-1], End)
    assert commands[-1].outcome == "max_steps"


def test_a_question_that_cannot_be_sent_ends_the_turn() -> None:
    loop = Loop(INTERACTIVE, ["work", "ask_human"])
    loop.start()
    (_, run) = loop.answered(answer("work"))
    assert isinstance(run, RunTools)
    asking = ran(loop, run)[-1]
    assert isinstance(asking, RunTools)
    record, end = loop.ran([CallResult(c.id, "too far", "hop_limit") for c in asking.calls])
    assert isinstance(record, Record)
    assert isinstance(end, End)
    assert end.outcome == "cancelled"
    assert "ask_human failed: too far" in end.reason
    assert not waits(loop.steps)
    # A process that takes the turn up again ends it as well: nobody has said that it may go on.
    assert Loop(INTERACTIVE, ["work", "ask_human"], loop.steps).start() == [end]


def test_a_model_that_finishes_in_these_words_waits_for_nothing() -> None:
    loop = Loop(INTERACTIVE, ["work", "ask_human"])
    loop.start()
    words = CallRequest("f", "finish", '{"reason": "waits for an answer: which?"}')
    end = loop.answered(Answer(calls=(words,)))[-1]
    assert end == End("finished", "waits for an answer: which?")
    assert not waits(loop.steps)


def test_what_was_said_before_is_no_reply_to_what_came_now() -> None:
    said: dict[str, JsonValue] = {}
    before = Step(n=1, calls=(ToolCallRecord(id="x", name="say", arguments=said, result="sent"),))
    rules = Rules(reply_required=True, speaking=frozenset({"say"}))
    loop = Loop(rules, ["say"], (), [before])
    loop.start()
    assert loop.answered(answer("finish"))[-1] == AskModel(3)
