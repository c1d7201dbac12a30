"""The loop of a turn, without a model, tools or time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.dialects.base import Native
from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.turn.chat import chat_messages
from hubbub.agents.turn.continuation import waiting_reason
from hubbub.agents.turn.loop import (
    FINISH,
    CallResult,
    Command,
    End,
    Loop,
    LoopRules,
    Park,
    QueryModel,
    Record,
    RunTools,
    repetition,
)
from hubbub.protocol.messages import ReplyNeed
from hubbub.protocol.turns import Steering, Step, ToolCallRecord
from tests.unit.agents.builders import answered

TOOLS = ("send_text_message", "read_thread", "add")
SPEAKING = frozenset({"send_text_message"})


def call(name: str, arguments: object = None, id: str = "") -> CallRequest:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return CallRequest(id or f"id_{name}", name, text)


def calls(
    *made: CallRequest, text: str | None = None, finish_reason: str = "tool_calls"
) -> Completion:
    return Completion(
        text=text, calls=made, tokens_in=10, tokens_out=5, finish_reason=finish_reason
    )


def finish(reason: str = "done") -> CallRequest:
    return call(FINISH, {"reason": reason})


def loop_of(steps: tuple[Step, ...] = (), **rules: object) -> Loop:
    return Loop(LoopRules(speaking=SPEAKING, **rules), TOOLS, steps)  # type: ignore[arg-type]  # by name


def run(loop: Loop, answer: Completion) -> list[Command]:
    """Answer, and let every call succeed."""
    commands = answered(loop, answer)
    while isinstance(commands[-1], RunTools):
        commands = loop.ran([CallResult(c.id, "ok") for c in commands[-1].calls])
    return commands


def run_once(loop: Loop, answer: Completion) -> list[Command]:
    """Answer, and let the calls of this step succeed."""
    run_tools = answered(loop, answer)[-1]
    assert isinstance(run_tools, RunTools)
    return loop.ran([CallResult(c.id, "ok") for c in run_tools.calls])


def last(commands: list[Command]) -> Command:
    return commands[-1]


def test_a_step_is_recorded_before_its_tools_run_and_again_with_their_results() -> None:
    loop = loop_of()
    assert loop.start() == [QueryModel(1)]
    made = replace(calls(call("add", {"a": 1}), text="let me see"), cost_usd=0.0042)
    before, run_tools = answered(loop, made, at_ms=3.5, duration_ms=12.0)
    assert isinstance(before, Record)
    assert run_tools == RunTools(before.step, before.step.calls, again=False)
    assert before.step.calls[0].result is None
    assert (before.step.calls[0].at_ms, before.step.calls[0].duration_ms) == (None, None)
    after, ask = loop.ran([CallResult("id_add", "2", None, 20.5, 3.5)], ("a note",))
    assert isinstance(after, Record)
    assert ask == QueryModel(2)
    step = after.step
    assert step == loop.steps[0]
    assert (step.n, step.text, step.tokens_in, step.tokens_out) == (1, "let me see", 10, 5)
    assert (step.finish_reason, step.at_ms, step.duration_ms) == ("tool_calls", 3.5, 12.0)
    assert (step.cost_usd, step.notes) == (0.0042, ("a note",))
    done = step.calls[0]
    assert (done.result, done.at_ms, done.duration_ms) == ("2", 20.5, 3.5)


def test_a_cost_of_zero_differs_from_an_unknown_cost() -> None:
    for cost in (None, 0.0):
        loop = loop_of()
        answered(loop, replace(calls(call("add")), cost_usd=cost))
        assert loop.steps[0].cost_usd == cost


def test_results_are_matched_to_their_calls_in_any_order() -> None:
    loop = loop_of()
    answered(loop, calls(call("add", {"n": 1}, "a"), call("add", {"n": 2}, "b")))
    loop.ran([CallResult("b", "two"), CallResult("a", "one")])
    assert [c.result for c in loop.steps[0].calls] == ["one", "two"]


@pytest.mark.behaviour("A-6")
def test_identical_calls_of_one_step_all_run() -> None:
    run_tools = last(answered(loop_of(), calls(*(call("add", {"a": 6}, "dice"),) * 3)))
    assert isinstance(run_tools, RunTools)
    assert len({c.id for c in run_tools.calls}) == 3


def test_finish_ends_the_turn_with_its_reason_on_record() -> None:
    loop = loop_of()
    *_, record, end = answered(loop, calls(finish("nothing to do")))
    assert end == End("finished", "nothing to do")
    assert record == Record(loop.steps[0])
    assert loop.steps[0].calls[0].result == "finished"
    assert last(answered(loop_of(), calls(call(FINISH, "")))) == End("finished")


def test_other_calls_of_the_step_run_before_finish() -> None:
    loop = loop_of()
    commands = answered(loop, calls(finish("sent"), call("send_text_message", {"to": "a"})))
    assert isinstance(commands[-1], RunTools)
    assert [c.name for c in commands[-1].calls] == ["send_text_message"]
    after = loop.ran([CallResult("id_send_text_message", "m1")])
    assert after == [Record(loop.steps[0]), End("finished", "sent")]


def test_a_finish_with_invalid_arguments_does_not_end_the_turn() -> None:
    loop = loop_of()
    assert last(answered(loop, calls(call(FINISH, '{"reason": ')))) == QueryModel(2)
    assert loop.steps[0].calls[0].error == "invalid_arguments"
    loop = loop_of()
    assert last(answered(loop, calls(call(FINISH, "{", "a"), finish()))) == End("finished", "done")
    assert loop.steps[0].calls[0].error == "invalid_arguments"


def test_no_other_call_runs_before_the_required_first_one(snapshot: SnapshotAssertion) -> None:
    loop = loop_of(begin_with="read_thread")
    for n in (0, 1):
        assert last(answered(loop, calls(call("add")))) == QueryModel(n + 2)
        assert loop.steps[n].calls[0].error == "not_first"
    assert loop.steps[0].calls[0].result == snapshot
    run(loop, calls(call("read_thread")))
    assert isinstance(last(answered(loop, calls(call("add", {"n": 1})))), RunTools)


@pytest.mark.behaviour("W-10")
def test_a_silent_finish_is_refused_once_and_then_accepted() -> None:
    loop = loop_of(reply_required=True)
    assert last(answered(loop, calls(finish()))) == QueryModel(2)
    refused = loop.steps[0].calls[0]
    assert refused.error == "reply_required"
    assert (refused.result or "").startswith("REPLY_REQUIRED")
    assert last(answered(loop, calls(finish("silent")))) == End("finished", "silent")
    assert last(answered(loop_of(), calls(finish()))) == End("finished", "done"), "optional"


def test_only_a_message_that_was_sent_counts_as_a_reply() -> None:
    sends = call("send_text_message", {"to": "a"})
    loop = loop_of(reply_required=True)
    run(loop, calls(sends))
    assert last(answered(loop, calls(finish()))) == End("finished", "done")
    loop = loop_of(reply_required=True)
    assert last(run(loop, calls(finish(), sends))) == End("finished", "done")
    loop = loop_of(reply_required=True)
    answered(loop, calls(sends))
    loop.ran([CallResult("id_send_text_message", "no such participant", "unknown")])
    assert last(answered(loop, calls(finish()))) == QueryModel(3)
    loop = loop_of(reply_required=True)
    run(loop, calls(call("read_thread", {"thread": "x"})))
    assert last(answered(loop, calls(finish()))) == QueryModel(3)


def steered(reply: ReplyNeed = "required") -> Steering:
    return Steering(message="m9", reply=reply, text="<incoming_message/>")


class TestSteered:
    def replied(self, *, reply_required: bool = False) -> Loop:
        """A loop that has sent a message."""
        loop = loop_of(reply_required=reply_required)
        run(loop, calls(call("send_text_message", {"to": "ann"})))
        return loop

    @pytest.mark.behaviour("Y-5")
    def test_steering_is_recorded_and_an_earlier_message_does_not_answer_it(self) -> None:
        loop = self.replied(reply_required=True)
        record, *_, ask = answered(loop, calls(finish()), steered=[steered()])
        assert isinstance(record, Record)
        assert record.step.steered == (steered(),)
        assert ask == QueryModel(3)
        assert loop.steps[-1].calls[0].error == "reply_required"
        assert last(answered(loop, calls(finish("no")))) == End("finished", "no")

    def test_a_later_message_answers_it_and_an_optional_reply_is_not_demanded(self) -> None:
        loop = self.replied()
        commands = answered(loop, calls(call("send_text_message")), steered=[steered()])
        assert isinstance(last(commands), RunTools)
        loop.ran([CallResult("id_send_text_message", "ok")])
        assert last(answered(loop, calls(finish()))) == End("finished", "done")
        commands = answered(self.replied(), calls(finish()), steered=[steered("optional")])
        assert last(commands) == End("finished", "done")

    def test_a_reply_is_demanded_once_per_steering(self) -> None:
        loop = loop_of(reply_required=True)
        assert last(answered(loop, calls(finish("a")))) == QueryModel(2)
        assert last(answered(loop, calls(finish("b")), steered=[steered()])) == QueryModel(3)
        assert last(answered(loop, calls(finish("c")))) == End("finished", "c")

    def test_a_call_repeated_after_steering_is_not_a_loop(self) -> None:
        add = calls(call("add", {"a": 1}))
        loop = loop_of()
        run(loop, add)
        run(loop, add)
        assert isinstance(last(answered(loop, add, steered=[steered()])), RunTools)
        loop.ran([CallResult("id_add", "ok")])
        run(loop, add)
        assert isinstance(last(run(loop, add)), End)

    def test_a_resumed_loop_remembers_the_steering(self) -> None:
        first = self.replied()
        answered(first, calls(call("read_thread")), steered=[steered()])
        first.ran([CallResult("id_read_thread", "ok")])
        again = loop_of(tuple(first.steps))
        assert again.start() == [QueryModel(3)]
        assert last(answered(again, calls(finish()))) == QueryModel(4)


def test_a_finish_with_a_message_runs_after_other_calls_and_counts_as_a_reply() -> None:
    loop = loop_of(reply_required=True)
    answer = call(FINISH, {"message": "Paris", "reason": "known"})
    first = last(answered(loop, calls(answer, call("add"))))
    assert isinstance(first, RunTools)
    assert [c.name for c in first.calls] == ["add"]
    second = last(loop.ran([CallResult("id_add", "2")]))
    assert isinstance(second, RunTools)
    assert [c.name for c in second.calls] == [FINISH]
    assert last(loop.ran([CallResult("id_finish", "finished")])) == End("finished", "known")
    refused = loop_of(reply_required=True)
    assert isinstance(last(answered(refused, calls(answer))), RunTools)
    assert last(refused.ran([CallResult("id_finish", "no", "hop_limit")])) == QueryModel(2)
    assert last(answered(refused, calls(finish()))) == QueryModel(3), "nothing was sent"
    silent = loop_of(reply_required=True)
    assert last(answered(silent, calls(call(FINISH, {"message": " "})))) == QueryModel(2)
    for given in ({"message": "4"}, {"message": "4", "reason": ""}):
        helper = loop_of(answers=False)
        assert last(answered(helper, calls(call(FINISH, given)))) == End("finished", "4")
    again = loop_of((step(1, (FINISH, 1), message="Paris", result=None),))
    (unsent,) = again.steps[0].calls
    assert again.start() == [RunTools(again.steps[0], (unsent,), again=True)]


def test_the_same_message_of_two_finishes_in_one_step_is_sent_once() -> None:
    made = [
        call(FINISH, {"message": text}, id) for text, id in (("A", "1"), ("A", "2"), ("B", "3"))
    ]
    loop = loop_of(answers=True)
    ran = list[str]()
    commands = answered(loop, calls(*made))
    while isinstance(run_tools := last(commands), RunTools):
        ran += [each.id for each in run_tools.calls]
        commands = loop.ran([CallResult(each.id, "finished") for each in run_tools.calls])
    assert (ran, last(commands)) == (["1", "3"], End("finished", "A"))
    assert [each.result for each in loop.steps[0].calls] == ["finished"] * 3


TYPED = {"price": 3.5, "currency": "€"}


def test_a_turn_ends_after_three_answers_of_the_wrong_type() -> None:
    loops = {name: loop_of(typed=name) for name in ("Price", "")}
    for name, loop in loops.items():
        answered(loop, calls(call("add")))
        loop.ran([CallResult("id_add", "no", "failed")])
        for n in (1, 2, 3):
            answered(loop, calls(call(FINISH, {"message": {**TYPED, "n": n}})))
            error = json.dumps({"message": f"price {n} is none"})
            following = loop.ran([CallResult("id_finish", error, "invalid_answer")])[-1]
            assert following == (QueryModel(n + 2) if n < 3 or not name else end_of_typed())


def test_the_same_answer_of_the_wrong_type_ends_the_turn_with_the_error() -> None:
    loop = loop_of(typed="Price")
    for n in (1, 2, 3):
        (run_tools,) = answered(loop, calls(call(FINISH, {"message": {**TYPED, "n": 3}})))[1:]
        assert isinstance(run_tools, RunTools), n
        error = json.dumps({"message": "price 3 is none"})
        following = loop.ran([CallResult("id_finish", error, "invalid_answer")])
    assert following[-1] == end_of_typed()


def end_of_typed() -> End:
    reason = "3 answers are not of type Price; the last one: price 3 is none"
    return End("no_action", reason, json.dumps({**TYPED, "n": 3}, ensure_ascii=False))


def test_calls_that_the_requester_runs_end_the_turn_and_a_finish_beside_them_is_too_early(
    snapshot: SnapshotAssertion,
) -> None:
    external = frozenset({"read_thread"})
    loop = loop_of(external=external)
    run_tools = last(answered(loop, calls(call("add"), call("read_thread"), finish())))
    assert isinstance(run_tools, RunTools)
    assert [(c.name, c.external) for c in run_tools.calls] == [
        ("add", False),
        ("read_thread", True),
    ]
    results = [CallResult("id_add", "2"), CallResult("id_read_thread", "asked")]
    waits = End("finished", "waits for the results of read_thread")
    assert loop.ran(results) == [Record(loop.steps[0]), waits]
    *_, early = loop.steps[0].calls
    assert early.error == "too_early"
    assert early.result == snapshot
    assert loop_of(tuple(loop.steps), external=external).start() == [waits]
    failed = loop_of(external=external)
    answered(failed, calls(call("read_thread")))
    assert last(failed.ran([CallResult("id_read_thread", "no", "failed")])) == QueryModel(2)


def test_a_finish_that_would_end_helpers_at_work_is_refused_once(
    snapshot: SnapshotAssertion,
) -> None:
    forked = step(1, ("fork", 1), ("fork", 2), background=True)
    loop = loop_of((forked,))
    answered(loop, calls(call(FINISH, "{")))
    assert loop.steps[1].calls[0].error == "invalid_arguments"
    record, ask = answered(loop, calls(finish()))
    assert (record, ask) == (Record(loop.steps[2]), QueryModel(4))
    refused = loop.steps[2].calls[0]
    assert refused.error == "helpers_at_work"
    assert refused.result == snapshot
    assert last(answered(loop, calls(finish()))) == End("finished", "done")
    loop = loop_of((forked,))
    assert last(run(loop, calls(call("add")))) == QueryModel(3)
    record, run_tools = loop.join([1, 2])
    assert record == Record(loop.steps[-1])
    assert run_tools == RunTools(loop.steps[-1], loop.steps[-1].calls, again=False)
    joined, _ = loop.steps[-1].calls
    assert (joined.id, joined.name, joined.arguments) == ("helper_1", "wait_for", {"helper": 1})
    assert (loop.steps[-1].n, loop.steps[-1].made) == (3, "join")
    results = [CallResult("helper_1", "4"), CallResult("helper_2", "5")]
    assert last(loop.ran(results)) == QueryModel(4)
    assert last(answered(loop, calls(finish()))) == End("finished", "done")


def test_the_steps_of_continued_turns_count_towards_no_limit() -> None:
    earlier = tuple(step(n, ("add", n)) for n in (1, 2, 3))
    loop = Loop(LoopRules(max_steps=1), TOOLS, earlier=earlier)
    assert loop.start() == [QueryModel(4)]
    assert last(answered(loop, calls(finish()))) == End("finished", "done")


def test_text_without_a_call_is_sent_if_so_configured() -> None:
    loop = loop_of(final_text="send", reply_required=True)
    run_tools = last(answered(loop, Completion(text=" Paris. ")))
    assert isinstance(run_tools, RunTools)
    (made,) = run_tools.calls
    assert (made.name, made.arguments) == (FINISH, {"message": "Paris."})
    assert made.id == "call_1_0"
    assert loop.steps[0].text is None
    assert last(loop.ran([CallResult(made.id, "finished")])) == End("finished", "Paris.")
    for not_sent in (
        Completion(text="TOOL_CALL {", understood=False),
        Completion(text="Par", finish_reason="length"),
        Completion(text=" "),
        Completion(),
    ):
        assert last(answered(loop_of(final_text="send"), not_sent)) == QueryModel(2)
    run_tools = last(answered(loop_of(final_text="send"), calls(call("add"), text="let me see")))
    assert isinstance(run_tools, RunTools)
    assert run_tools.calls[0].name == "add"


@pytest.mark.behaviour("A-4")
def test_an_answer_without_a_call_is_corrected_once_per_turn() -> None:
    loop = loop_of()
    assert last(answered(loop, Completion(text="Hello!"))) == QueryModel(2)
    run(loop, calls(call("add")))
    reason = "the model answered without calling a tool, even after a correction"
    end = last(answered(loop, Completion(text="Hello again!")))
    assert end == End("no_action", reason, "Hello again!")
    empty = loop_of()
    assert last(answered(empty, Completion())) == QueryModel(2)
    resumed = loop_of((Step(n=1, text="Hello!"),))
    assert resumed.start() == [QueryModel(2)]
    for loop in (empty, resumed):
        end = last(answered(loop, Completion()))
        assert isinstance(end, End)
        assert end.outcome == "no_action"


def test_an_answer_that_could_not_call_a_tool_ends_the_turn_with_the_true_reason() -> None:
    too_many = Completion(calls=tuple(call("add") for _ in range(65)))
    answers = [
        (Native().read(too_many), "65 calls at once; at most 64 are carried out"),
        (Completion(finish_reason="content_filter"), "the endpoint's content filter withheld it"),
        (Completion(text="Par", finish_reason="length"), "it was cut off at its length limit"),
    ]
    for answer, cause in answers:
        loop = loop_of()
        answered(loop, answer)
        *_, correction = chat_messages("system", "prompt", loop.steps)
        assert (correction["content"] or "").startswith(f"Your answer had no effect: {cause}")
        end = last(answered(loop, answer))
        assert isinstance(end, End)
        assert end.outcome == "no_action"
        assert end.reason.startswith("the model's answer had no effect, even after a correction: ")
        assert cause in end.reason


@pytest.mark.behaviour("A-5")
def test_invalid_calls_are_recorded_unchanged_and_valid_ones_run() -> None:
    loop = loop_of()
    commands = answered(loop, calls(call("nope"), call("add", '{"a": "b', "x"), call("add")))
    assert isinstance(commands[-1], RunTools)
    assert [c.id for c in commands[-1].calls] == ["id_add"]
    unknown, broken, _ = loop.steps[0].calls
    assert (unknown.error, broken.error) == ("unknown_tool", "invalid_arguments")
    assert json.loads(unknown.result or "")["valid_names"] == sorted(TOOLS)
    assert broken.arguments == '{"a": "b'


def test_truncated_arguments_are_reported_as_cut_off() -> None:
    loop = loop_of()
    truncated = calls(call("add", '{"text": "very lo'), finish_reason="length")
    assert last(answered(loop, truncated)) == QueryModel(2)
    assert "cut off" in (loop.steps[0].calls[0].result or "")


def test_characters_that_the_wire_cannot_carry_are_made_visible() -> None:
    loop = loop_of()
    answer = calls(call("add", '{"a": "\\u0000", "\\ud800": ["\\u0007"]}'), text="x\0\ud800")
    answered(loop, answer)
    loop.ran([CallResult("id_add", "result\0")])
    step = loop.steps[0]
    assert step.text == "x⟦U+0000⟧⟦U+D800⟧"
    assert step.calls[0].arguments == {"a": "⟦U+0000⟧", "⟦U+D800⟧": ["⟦U+0007⟧"]}
    assert step.calls[0].result == "result⟦U+0000⟧"
    step.model_dump_json().encode()


@pytest.mark.behaviour("A-6")
def test_steps_and_tokens_are_bounded_and_the_last_step_runs() -> None:
    loops = {"2 steps": loop_of(max_steps=2), "30 tokens": loop_of(max_tokens=30)}
    for bound, loop in loops.items():
        assert last(run(loop, calls(call("add", {"n": 1})))) == QueryModel(2)
        end = last(run(loop, calls(call("add", {"n": 2}))))
        assert isinstance(end, End)
        assert (end.outcome, end.text) == ("max_steps", None)
        assert bound in end.reason
        assert loop.steps[1].calls[0].result == "ok"
    for loop in (loop_of(max_steps=1), loop_of(max_tokens=1)):
        end = last(answered(loop, Completion(text="Hm", tokens_in=1)))
        assert isinstance(end, End)
        assert (end.outcome, end.text) == ("max_steps", "Hm")
    finishing = loop_of(max_steps=1)
    assert last(answered(finishing, calls(finish()))) == End("finished", "done")


def test_an_interactive_turn_asks_whether_to_continue_after_calls_with_effects(
    snapshot: SnapshotAssertion,
) -> None:
    quiet = frozenset({"send_text_message", "ask_human", FINISH})
    loop = loop_of((step(1, ("send_text_message", 1)),), quiet=quiet)
    long, longer = {"x": "y" * 291}, {"x": "y" * 292}
    made = [call("add", long, "a"), call("add", longer, "b"), call("read_thread", {"to": "ü"}, "c")]
    answered(loop, calls(*made, call("send_text_message")))
    given = [CallResult("a", "z" * 300), CallResult("b", "z" * 301), CallResult("c", "", "broken")]
    wording = loop.ran([*given, CallResult("id_send_text_message", "sent")])[-1]
    assert wording == QueryModel(3, wording_only=True)
    written = Completion(text="Shall I?", tokens_in=5)
    asked, asking = answered(loop, written, at_ms=3.5, duration_ms=12.0, steered=[steered()])
    assert isinstance(asked, Record)
    assert (asked.step.tokens_in, asked.step.steered) == (5, (steered(),))
    assert (asked.step.at_ms, asked.step.duration_ms) == (3.5, 12.0)
    (question,) = asked.step.calls
    assert question.arguments == snapshot
    assert asking == RunTools(asked.step, (question,), again=False)
    end = last(loop.ran([CallResult(question.id, "m2")]))
    assert end == End("finished", waiting_reason(question.arguments))
    again = loop_of(tuple(loop.steps), quiet=quiet)
    assert again.start() == [end]
    limited = loop_of(quiet=quiet, max_steps=1)
    *_, asked, asking = run_once(limited, calls(call("add")))
    assert asked == Record(limited.steps[1])
    assert asking == RunTools(limited.steps[1], limited.steps[1].calls, again=False)


def test_the_tokens_of_a_helper_count_in_its_parents_turn() -> None:
    loop = loop_of(max_tokens=40)
    run(loop, calls(call("add")))
    helper = Loop(LoopRules(), TOOLS, parent=loop)
    assert last(run(helper, calls(call("add", {"n": 1})))) == QueryModel(2)
    overspent = End("max_steps", "not finished after 45 tokens (at most 40)")
    assert last(run(helper, calls(call("add", {"n": 2})))) == overspent
    assert last(run(loop, calls(call("add", {"n": 3})))) == replace(
        overspent, reason="not finished after 60 tokens (at most 40)"
    )


def step(
    n: int, *made: tuple[str, JsonValue], result: str | None = "ok", **more: JsonValue
) -> Step:
    records = tuple(
        ToolCallRecord(id=f"{n}_{i}", name=name, arguments={"x": x, **more}, result=result)
        for i, (name, x) in enumerate(made)
    )
    return Step(n=n, calls=records)


@pytest.mark.behaviour("A-6")
def test_a_repetition_is_a_call_three_times_in_four_steps_or_two_alternating() -> None:
    cases: list[tuple[str, str | None]] = [
        *[("A A", None), ("A A A", "A"), ("A B A A", "A"), ("A A B A", "A")],
        *[("A B C A", None), ("A B A C A", None), ("A B A", None), ("A B A B", "B")],
        *[("B A B A B", "B"), ("A B B A", None), ("AB AB", None), ("AB AC AD", "A")],
        *[("AAA", None), ("AAA AAA", None), ("AAA A A", "A")],
    ]
    for steps, repeated in cases:
        made = [step(n, *((x, 1) for x in names)) for n, names in enumerate(steps.split(), 1)]
        assert repetition(made) == repeated, steps
    assert repetition([step(n, ("A", n)) for n in range(1, 6)]) is None, "other arguments"


def test_the_call_that_completes_a_loop_does_not_run_in_any_spelling() -> None:
    loop = loop_of()
    run(loop, calls(call("add", '{"a": 1, "b": 2}')))
    run(loop, calls(call("add", '{"b": 2, "a": 1}')))
    commands = answered(loop, calls(call("add", '{"a": 1,"b": 2}')))
    assert not any(isinstance(c, RunTools) for c in commands)
    end = last(commands)
    assert isinstance(end, End)
    assert end.outcome == "loop_detected"
    assert "add" in end.reason
    assert loop.steps[2].calls[0].result is None


def test_the_end_of_a_loop_of_calls_that_cannot_run_or_are_refused_says_why() -> None:
    loop = loop_of()
    for _ in range(2):
        run(loop, calls(call("add", '{"a": 1'), finish_reason="length"))
    end = last(answered(loop, calls(call("add", '{"a": 1'), finish_reason="length")))
    assert isinstance(end, End)
    assert end.reason.startswith("add was called again and again: the answer was cut off at its")
    said = '{"message": "9 bytes are too many"}'
    for error, why in (("too_large", ": 9 bytes are too many"), ("tool_failed", "")):
        loop = loop_of()
        for _ in range(2):
            answered(loop, calls(call("add", '{"a": 1}')))
            loop.ran([CallResult("id_add", said, error)])
        end = last(answered(loop, calls(call("add", '{"a": 1}'))))
        assert isinstance(end, End)
        assert end.reason == f"add was called again and again{why}"


@pytest.mark.behaviour("T-2")
def test_calls_without_results_run_again_marked_as_repeated() -> None:
    loop = loop_of((step(1, ("add", 1), result=None),))
    (command,) = loop.start()
    assert isinstance(command, RunTools)
    assert command.again
    assert loop.ran([CallResult("1_0", "2")])[-1] == QueryModel(2)


def test_a_resumed_loop_continues_after_a_finished_step_or_ends_a_finished_turn() -> None:
    assert loop_of((step(1, ("add", 1)),)).start() == [QueryModel(2)]
    done = loop_of()
    answered(done, calls(finish("all done")))
    assert loop_of(tuple(done.steps)).start() == [End("finished", "all done")]
    odd = ToolCallRecord(id="f", name=FINISH, arguments=["all done"], result="finished")
    assert loop_of((Step(n=1, calls=(odd,)),)).start() == [End("finished")]


@pytest.mark.behaviour("H-80", "H-82", "H-84")
def test_a_step_with_a_parked_call_is_recorded_and_resumes_with_that_call() -> None:
    loop = loop_of()
    answered(loop, calls(call("add"), call("read_thread"), finish()))
    parked = CallResult("id_add", "", parked=("a1",))
    record, park = loop.ran([parked, CallResult("id_read_thread", "ok")])
    assert park == Park(1, ("a1",))
    assert isinstance(record, Record)
    assert [c.result for c in record.step.calls] == [None, "ok", None]
    again = loop_of(tuple(loop.steps))
    (run_tools,) = again.start()
    assert isinstance(run_tools, RunTools)
    assert ([c.name for c in run_tools.calls], run_tools.again) == (["add"], True)
    assert last(again.ran([CallResult("id_add", "3")])) == End("finished", "done")
