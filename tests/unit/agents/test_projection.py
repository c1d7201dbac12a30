"""What a model is shown again of its steps: the marks that it makes, and what they cannot do."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.turn.chat import ALWAYS_SHOWN, Kept, chat_messages, cut_words, project
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord


def steps(count: int, marks: dict[int, Step] | None = None) -> list[Step]:
    """So many steps; those in `marks` mark others."""
    made = []
    for n in range(1, count + 1):
        call = ToolCallRecord(id=f"c{n}", name="look", arguments={"n": n}, result=f"saw {n}")
        step = (marks or {}).get(n, Step(n=n))
        made.append(step.model_copy(update={"calls": (call,)}))
    return made


def shown(kept: Sequence[Kept]) -> list[int | str]:
    return [_shown(step) for step in kept]


def _shown(step: Kept) -> int | str:
    if isinstance(step, Steering):
        return step.message
    return step.text if isinstance(step, Compressed) else step.n


def test_a_marked_step_goes_or_is_in_fewer_words_but_not_the_last_five() -> None:
    made = steps(9)
    assert project(made) == made
    mark = Step(n=7, discards=(1,), compresses=(Compressed(n=2, text="two"),))
    assert shown(project(steps(7, {7: mark}))) == ["two", 3, 4, 5, 6, 7]
    mark = Step(n=7, discards=(2, 3, 6, 7, 8))
    assert shown(project(steps(7, {7: mark}))) == [1, 3, 4, 5, 6, 7]
    assert shown(project(steps(8, {7: mark}))) == [1, 4, 5, 6, 7, 8]
    both = Step(n=7, discards=(1, 2), compresses=(Compressed(n=1, text="one"),))
    later = Step(n=8, discards=(1,), compresses=(Compressed(n=2, text="two"),))
    assert shown(project(steps(8, {7: both})))[:2] == ["one", 3]
    assert shown(project(steps(8, {7: both, 8: later})))[:2] == ["two", 3]
    chat = chat_messages("s", "p", [Compressed(n=3, text="nothing new"), *steps(1)])
    assert chat[2] == {"role": "assistant", "content": "[my step 3, in fewer words] nothing new"}


def said(id: str) -> Steering:
    return Steering(message=id, text=f"<incoming_message id={id}/>")


def test_what_people_said_in_between_stands_before_the_answer_to_it_and_stays() -> None:
    marks = {2: Step(n=2, steered=(said("m5"), said("m6")))}
    kept = project(steps(3, marks), [said("m9")])
    assert shown(kept) == [1, "m5", "m6", 2, 3, "m9"]
    chat = chat_messages("s", "p", kept)
    roles = [message["role"] for message in chat[2:]]
    answer = ["assistant", "tool"]
    assert roles == [*answer, "user", "user", *answer, *answer, "user"]
    assert chat[4]["content"] == said("m5").text
    marks = {1: Step(n=1, steered=(said("m5"),)), 7: Step(n=7, discards=(1,))}
    assert shown(project(steps(7, marks)))[:2] == ["m5", 2]


NUMBERS = st.integers(1, 14)
MARKS = st.builds(
    lambda discards, compresses: (tuple(discards), tuple(compresses)),
    st.lists(NUMBERS, max_size=3),
    st.lists(st.builds(Compressed, n=NUMBERS, text=st.text(max_size=3)), max_size=2),
)


@given(st.lists(MARKS, max_size=12))
def test_pairs_stay_together_order_stays_and_so_do_the_last_steps(
    marks: list[tuple[tuple[int, ...], tuple[Compressed, ...]]],
) -> None:
    made = steps(
        len(marks), {n: Step(n=n, discards=d, compresses=c) for n, (d, c) in enumerate(marks, 1)}
    )
    kept = project(made)
    numbers = [step.n for step in kept if not isinstance(step, Steering)]
    assert numbers == sorted(set(numbers))
    assert kept[-ALWAYS_SHOWN:] == made[-ALWAYS_SHOWN:]
    chat = chat_messages("s", "p", kept)
    called = [call["id"] for message in chat for call in message.get("tool_calls", [])]
    assert called == [message["tool_call_id"] for message in chat if "tool_call_id" in message]


@given(st.text(max_size=50), st.integers(1, 1000))
def test_a_long_text_is_cut_in_its_middle(text: str, times: int) -> None:
    cut = cut_words(text * times)
    assert len(cut) < 8100
    assert cut == text * times or (cut[:4000] == (text * times)[:4000] and "characters" in cut)
