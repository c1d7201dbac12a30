"""Turns that end with a question and continue in the turn that the answer starts.

The last step of such a turn is a question made by the runtime (`Step.made`), or has calls that the
requester runs (`ToolCallRecord.external`), so a model cannot make a turn wait by what it writes.
The answer is the next message in the thread; the turn that it starts finds the question, which is
the agent's own last message there and names the turn that asked. So the connection follows from the
thread and the records alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.base import Completion
from hubbub.agents.tools.standard_tools import ASK_HUMAN
from hubbub.agents.turn.steps import NOT_FIRST, NOT_RUN, read_arguments, step_of
from hubbub.errors import OperationError
from hubbub.ids import turn_id, write_id
from hubbub.protocol.external_tools import results_in
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, ToolCallRecord, Turn
from hubbub.wording import shortened

__all__ = [
    "QUESTION_PROMPT",
    "Continuation",
    "ReadTurn",
    "awaits_answer",
    "continued_steps",
    "had_effect",
    "is_question",
    "question_step",
    "waiting_reason",
    "without_questions",
]

_WAITS = "waits for an answer"
QUESTION_PROMPT = (
    "Now the one who wrote to you is asked before you go on. Call `ask_human`: say in a sentence "
    "or two what you have done and what came of it, and ask what to do next, with two or three "
    "short `options`, `stop` among them."
)
"""Asks a model to word the question whether to continue."""
MOST_TURNS = 20
"""Turns in a row that continue each other."""

ReadTurn = Callable[[str], Awaitable[Turn]]
"""Reads the record of one of the agent's turns. Raises `OperationError`."""


def waiting_reason(asked: JsonValue) -> str:
    """The reason of a turn that ends with this question (the arguments of `ask_human`)."""
    question = asked.get("question") if isinstance(asked, dict) else None
    return f"{_WAITS}: {question}" if isinstance(question, str) else _WAITS


@dataclass(frozen=True, slots=True)
class Continuation:
    """The steps of the turns that led to the question which a turn answers."""

    steps: tuple[Step, ...] = ()
    """Oldest first; empty if the turn answers no question."""
    turn: str | None = None
    """The turn that asked."""


async def continued_steps(
    messages: Sequence[Message], plan: TurnPlan, me: str, read: ReadTurn, *, below: int = 10**6
) -> Continuation:
    """The steps that this turn continues. There are none, unless it answers the question of the
    agent's last turn in this thread, comes from a participant that woke that turn, and no turn has
    finished with the answer since. Steps from number `below` on are left out.
    """
    turn = await _unfinished(messages, plan, me, read, below)
    last, earlier = turn.start.id if turn is not None else None, list[Sequence[Step]]()
    while turn is not None and len(earlier) < MOST_TURNS:
        results = results_in(_of_askers(messages, plan, turn))
        earlier.insert(0, [_with(results, turn.start.id, step) for step in _below(turn, below)])
        name = turn.start.continues
        turn = await _readable(name, read) if name is not None else None
    return Continuation(tuple(step for steps in earlier for step in steps), last)


async def _unfinished(
    messages: Sequence[Message], plan: TurnPlan, me: str, read: ReadTurn, below: int
) -> Turn | None:
    """The turn that asked, or the last one that tried to continue it since."""
    question = _last_message(messages, plan, me)
    asked = question.cause_id if question is not None else None
    if question is None or asked is None or not asked.startswith(f"{me}-"):
        return None
    turn = await _readable(asked, read)
    if turn is None or not (_ended_so(turn, below) and _answers(messages, plan, turn)):
        return None
    for message in _between(messages, question, plan):
        later = await _readable(turn_id(me, message.seq), read)  # None: it did not wake the agent
        if later is not None and later.start.continues == turn.start.id:
            if later.end is not None and later.end.outcome == "finished":
                return None
            turn = later
    return turn


async def _readable(name: str, read: ReadTurn) -> Turn | None:
    """The turn's record; None if there is none (any more)."""
    try:
        return await read(name)
    except OperationError:
        return None


def _below(turn: Turn, below: int) -> Sequence[Step]:
    return [step for step in turn.steps if step.n < below]


def _with(results: Mapping[str, str], turn: str, step: Step) -> Step:
    """The step with the results of those calls that the requester has run."""
    if not any(call.external for call in step.calls):
        return step
    ids = (write_id(turn, step.n, index) for index in range(len(step.calls)))
    calls = (
        call.model_copy(update={"result": results[id]}) if call.external and id in results else call
        for id, call in zip(ids, step.calls, strict=True)
    )
    return step.model_copy(update={"calls": tuple(calls)})


def _last_message(messages: Sequence[Message], plan: TurnPlan, me: str) -> Message | None:
    """The agent's last message before the incoming ones."""
    first = min(message.seq for message in plan.incoming)
    return next((m for m in reversed(messages) if m.seq < first and m.sender_id == me), None)


def _between(messages: Sequence[Message], question: Message, plan: TurnPlan) -> Sequence[Message]:
    """Messages between the question and the incoming messages, oldest first."""
    first = min(message.seq for message in plan.incoming)
    return [m for m in messages if question.seq < m.seq < first and m.sender_kind != "system"]


def _answers(messages: Sequence[Message], plan: TurnPlan, turn: Turn) -> bool:
    """Whether the sender woke that turn; true if its messages are no longer available."""
    asked = _askers(messages, turn)
    return not asked or any(message.sender_id in asked for message in plan.incoming)


def _askers(messages: Sequence[Message], turn: Turn) -> Set[str]:
    """The participants that woke the turn; empty if their messages are no longer available."""
    woke = set(turn.start.messages)
    return {m.sender_id for m in messages if m.id in woke}


def _of_askers(messages: Sequence[Message], plan: TurnPlan, turn: Turn) -> Sequence[Message]:
    """Messages of the participants that woke the turn, oldest first: other participants of the
    thread do not run their tools. All messages, if those participants are not available.
    """
    asked = _askers(messages, turn)
    messages = (*messages, *plan.incoming)
    return [message for message in messages if not asked or message.sender_id in asked]


def awaits_answer(steps: Sequence[Step]) -> bool:
    """Whether the turn that ends with these steps continues after an answer."""
    last = steps[-1] if steps else None
    if last is None:
        return False
    if any(call.external and call.error is None for call in last.calls):
        return True
    if last.made not in ("ask", "confirm"):
        return False
    return all(call.error is None and call.result is not None for call in last.calls)


def _ended_so(turn: Turn, below: int) -> bool:
    """Whether the turn ended with a question."""
    return (
        turn.end is not None
        and turn.end.outcome == "finished"
        and awaits_answer(_below(turn, below))
    )


# The mode `interactive`: after each step that has an effect, a person is asked whether to continue.
# The question is a step made by the runtime, with a call of `ask_human` that the model has worded.
# The turn ends with it, and the answer starts a turn that continues the same steps. Models are not
# shown the question, only the answer. Pure.


_MAX_QUESTION, _MOST_OPTIONS = 2000, 10
"""Characters of a question in the model's words, and number of options."""
_MOST = 300
"""Characters of a call's arguments, and of its result, that the question shows."""


def had_effect(step: Step, quiet: Collection[str]) -> bool:
    """Whether a call of the step had an effect that a person should know of: it ran, and its tool
    is not `quiet`. If the step has already asked a person, it does not count.
    """
    if any(call.name == ASK_HUMAN and call.error is None for call in step.calls):
        return False
    return any(call.name not in quiet and call.error not in NOT_RUN for call in step.calls)


def question_step(step: Step, quiet: Collection[str], n: int, answer: Completion) -> Step:
    """Step `n`: the question whether to continue, in the model's words or as a list of calls."""
    asked = _model_question(answer)
    if asked is None:
        lines = [_call_line(c) for c in step.calls if c.name not in quiet and c.error != NOT_FIRST]
        listed = "\n".join([*lines, "Shall I go on?"])
        asked = {"question": listed, "options": ["go on", "stop"]}
    question = step_of(replace(answer, text=None, calls=()), n, ())
    call = ToolCallRecord(id=f"ask_{n}", name=ASK_HUMAN, arguments=asked)
    return question.model_copy(update={"calls": (call,), "made": "confirm"})


def _model_question(answer: Completion) -> dict[str, JsonValue] | None:
    """The arguments of `ask_human` that the model gave; None if they cannot be sent."""
    given = next((call.arguments for call in answer.calls if call.name == ASK_HUMAN), None)
    try:
        asked = read_arguments(given or "")
    except ValueError:
        return None
    question, options = asked.get("question"), asked.get("options") or []
    if not isinstance(question, str) or not question.strip() or not isinstance(options, list):
        return None
    texts = [text for text in options if isinstance(text, str) and text.strip()]
    return {"question": shortened(question, _MAX_QUESTION), "options": [*texts[:_MOST_OPTIONS]]}


def is_question(step: Step) -> bool:
    return step.made == "confirm"


def without_questions(steps: Sequence[Step]) -> list[Step]:
    """The steps as a model sees them."""
    return [step for step in steps if not is_question(step)]


def _call_line(call: ToolCallRecord) -> str:
    arguments = _cut(json.dumps(call.ran_with, ensure_ascii=False))
    outcome = "has failed" if call.error else "gives"
    return f"`{call.name}` with `{arguments}` {outcome}: {_cut(call.result or '')}"


def _cut(text: str) -> str:
    return shortened(text, _MOST)
