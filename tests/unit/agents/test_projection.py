"""The steps that a model is shown again, after its own discards and compressions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.turn.chat import (
    PROTECTED,
    PROTECTED_STEPS,
    ShownStep,
    chat_messages,
    cut_answer,
    project,
)
from hubbub.config.agents import ProtectedName
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord


def steps(count: int, marks: dict[int, Step] | None = None) -> list[Step]:
    """`count` steps, some of which discard or compress others (`marks`)."""
    made = []
    for n in range(1, count + 1):
        call = ToolCallRecord(id=f"c{n}", name="look", arguments={"n": n}, result=f"saw {n}")
        step = (marks or {}).get(n, Step(n=n))
        made.append(step.model_copy(update={"calls": (call,)}))
    return made


def shown(projected: Sequence[ShownStep]) -> list[int | str]:
    return [_shown(step) for step in projected]


def _shown(step: ShownStep) -> int | str:
    if isinstance(step, Steering):
        return step.message
    return step.text if isinstance(step, Compressed) else step.n


NUMBERS = st.integers(1, 14)
MARKS = st.builds(
    lambda discards, compresses: (tuple(discards), tuple(compresses)),
    st.lists(NUMBERS, max_size=3),
    st.lists(st.builds(Compressed, n=NUMBERS, text=st.text(max_size=3)), max_size=2),
)


@given(st.lists(MARKS, max_size=12))
def test_call_pairs_the_order_and_the_last_steps_are_preserved(
    marks: list[tuple[tuple[int, ...], tuple[Compressed, ...]]],
) -> None:
    made = steps(
        len(marks), {n: Step(n=n, discards=d, compresses=c) for n, (d, c) in enumerate(marks, 1)}
    )
    projected = project(made)
    numbers = [step.n for step in projected if not isinstance(step, Steering)]
    assert numbers == sorted(set(numbers))
    assert projected[-PROTECTED_STEPS:] == made[-PROTECTED_STEPS:]
    chat = chat_messages("s", "p", projected)
    called = [call["id"] for message in chat for call in message.get("tool_calls", [])]
    assert called == [message["tool_call_id"] for message in chat if "tool_call_id" in message]


def test_the_protected_parts_of_a_discarded_step_stay() -> None:
    failed = ToolCallRecord(id="a", name="look", arguments={}, result="no", error="tool_failed")
    wrote = ToolCallRecord(id="b", name="send", arguments={"to": "ann"}, result="sent")
    steering = Steering(message="m7", reply="optional", text="make it two")
    made = [
        Step(n=1, calls=(failed,)), Step(n=2, calls=(wrote,), steered=(steering,)), *steps(9)[2:8],
        Step(n=9, calls=(wrote,), discards=(1, 2, 3, 8)),
    ]  # fmt: skip
    lines = ["look({}): failed (tool_failed)", "m7", 'send({"to": "ann"}): done']
    table: list[tuple[Collection[ProtectedName], list[int | str]]] = [
        (PROTECTED, [*lines, 4, 5, 6, 7, 8, 9]),
        ({"errors"}, [lines[0], 4, 5, 6, 7, 9]),
        ({"results", "requirements"}, [*lines[1:], 4, 5, 6, 7, 9]),
        (set(), [4, 5, 6, 7, 9]),
    ]
    for protect, expected in table:
        assert shown(project(made, (), protect, {"send"})) == expected
    summarised = made[-1].model_copy(update={"compresses": (Compressed(n=4, text="all"),)})
    assert shown(project([*made[:-1], summarised], (), {"errors", "results"}, {"send"})) == [
        "all", 5, 6, 7, 9,
    ]  # fmt: skip


@given(st.text(max_size=50), st.integers(1, 1000))
def test_a_long_text_is_cut_in_the_middle(text: str, times: int) -> None:
    cut = cut_answer(text * times)
    assert len(cut) < 8100
    assert cut == text * times or (cut[:4000] == (text * times)[:4000] and "characters" in cut)
