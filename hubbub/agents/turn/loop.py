"""The loop of a turn as a pure state machine: events go in, commands come out.

    loop = Loop(rules, tools, steps)        steps: recorded by an earlier process
    commands = loop.start()                 Record, AskModel, RunTools, Park, End
    commands = loop.answered([answered])
    commands = loop.ran(results)

The next command depends only on the recorded steps, so a resumed turn continues exactly where its
record ends. A message that steers the turn restarts two checks: a reply that it requires must be
sent after it, and earlier calls do not count as repetitions.

    last step                                              next
    none                                                   ask the model
    no calls, first time                                   ask again, with a correction
    no calls, second time                                  end: no_action
    repeats itself (`repetition`)                          end: loop_detected
    calls without results                                  run them; `finish` comes last
    calls waiting for a person                             park: the turn stops without ending
    calls that the requester runs                          end: finished, waiting
    `finish`, but helpers are running in the background    refuse it once; ask again
    `finish`, but a required reply was not sent            refuse it once; ask again
    `finish` with a message                                run it: send the message
    `finish` with an answer of the wrong type, 3 times     end: no_action
    `finish`                                               end: finished
    mode `interactive`, and a call had an effect           let the model word a question to a
                                                           person, ask it, then
                                                           end: finished, waiting;
                                                           cancelled if it cannot be asked
    the limit of steps or tokens is reached                end: max_steps
    otherwise                                              ask the model
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.tools.standard_tools import FINISH, WAIT_FOR
from hubbub.agents.turn.chat import no_action_reason
from hubbub.agents.turn.continuation import had_effect, is_question, question_step, waiting_reason
from hubbub.agents.turn.steps import (
    NOT_FIRST,
    NOT_RUN,
    CallResult,
    failure,
    repetition_reason,
    running_helpers,
    step_of,
    with_result,
)
from hubbub.protocol.turns import Outcome, Steering, Step, ToolCallRecord

__all__ = [
    "FINISH",
    "CallResult",
    "Command",
    "End",
    "Loop",
    "LoopRules",
    "Park",
    "QueryModel",
    "Record",
    "RunTools",
    "TimedCompletion",
    "begun",
    "failure",
    "hold_back",
    "park",
    "repetition",
]

# `begin_with`: the turn's first call must use that tool. Pure.


def begun(steps: Sequence[Step]) -> bool:
    """Whether a call of the turn has run; the first one used the tool of `begin_with`."""
    return any(call.error not in NOT_RUN for step in steps for call in step.calls)


def hold_back(step: Step, before: Sequence[Step], tool: str | None) -> Step:
    """The step that follows `before`. Calls that must wait for a call of `tool` get an error as
    their result. None: no call must wait.
    """
    if tool is None or begun(before):
        return step
    calls = tuple(call if call.name == tool else _too_early(call, tool) for call in step.calls)
    return step.model_copy(update={"calls": calls})


def _too_early(call: ToolCallRecord, tool: str) -> ToolCallRecord:
    if call.error is not None:
        return call
    hint = f"{call.name} has not run: this turn begins with {tool}. Call {tool} alone, and the "
    result = failure(NOT_FIRST, f"{hint}other tools when you have its result", near=[tool])
    return call.model_copy(update={"result": result, "error": NOT_FIRST})


_WINDOW, _THRESHOLD = 4, 3
TYPED_TRIES = 3
"""Failed attempts at a typed answer before the turn ends."""


@dataclass(frozen=True, slots=True)
class LoopRules:
    """Limits and options of a turn."""

    max_steps: int = 10
    max_tokens: int | None = None
    """Input and output of all steps together; None: no limit."""
    reply_required: bool = False
    speaking: frozenset[str] = frozenset()
    """Names of the tools that send a message."""
    external: frozenset[str] = frozenset()
    """Names of the tools that the requester runs."""
    quiet: frozenset[str] | None = None
    """Mode `interactive`: names of the tools that need no question afterwards. None: mode `auto`.
    """
    begin_with: str | None = None
    """The tool that the turn's first call must use."""
    answers: bool = True
    """Whether `finish` can send a message; otherwise its message is only the turn's reason."""
    final_text: Literal["record", "send"] = "record"
    """Whether text without a call counts as the message of a `finish`."""
    typed: str = ""
    """The type of the message of `finish`, if it is not text; the turn fails without an answer of
    that type."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record this step, replacing one with the same number."""

    step: Step


@dataclass(frozen=True, slots=True)
class QueryModel:
    """Query the model for the next step; its answer becomes step `n`."""

    n: int
    steering: tuple[Steering, ...] = field(default=(), kw_only=True)
    """Messages from people that the model has not seen."""
    wording_only: bool = field(default=False, kw_only=True)
    """Query only the wording of the question whether to continue."""

    def with_steering(self, steering: Sequence[Steering]) -> Self:
        """The same query, after these messages."""
        return replace(self, steering=tuple(steering))


@dataclass(frozen=True, slots=True)
class TimedCompletion:
    """A model's answer, with the time of the query in milliseconds since the turn's start."""

    query: QueryModel
    answer: Completion
    at_ms: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of the step, which have no results."""

    step: Step
    calls: tuple[ToolCallRecord, ...]
    again: bool
    """An earlier process may have run them already."""


@dataclass(frozen=True, slots=True)
class End:
    """The turn ends."""

    outcome: Outcome
    reason: str = ""
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Park:
    """Calls of the last step wait for a person. The turn stops, and resumes from its record."""

    step: int
    approvals: tuple[str, ...]


Command = Record | QueryModel | RunTools | Park | End


def park(results: Sequence[CallResult], step: int) -> Park | None:
    """The command to park, if any of these calls waits for a person."""
    approvals = [result.parked for result in results if result.parked is not None]
    return Park(step, tuple(id for ids in approvals for id in ids)) if approvals else None


class Loop:
    """The state of one turn. Every method returns the commands to carry out, in order."""

    def __init__(
        self,
        rules: LoopRules,
        tools: Collection[str],
        steps: Sequence[Step] = (),
        earlier: Sequence[Step] = (),
        parent: Loop | None = None,
    ):
        """`tools` are the names that the model can call, with or without `finish`. `earlier` are
        the steps of turns that this one continues; limits do not count them. `parent` is the turn's
        own loop if this is the loop of a helper, whose tokens count there.
        """
        self.steps = [*earlier, *steps]
        self._parent = parent
        self.helper_tokens = 0
        """Tokens of the turn's sub-agents, which count towards its limit."""
        self._earlier = len(earlier)
        self._rules = rules
        self._tools = sorted({*tools, FINISH})

    def start(self) -> list[Command]:
        """The first commands, or those that follow the steps of an earlier process."""
        return self._next(again=True)

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """Process the model's answer."""
        (completion,) = answers
        if self._must_ask_person():
            return self._ask_person(completion)
        answer = self._with_finish(completion.answer)
        step = step_of(answer, self._n, self._tools, completion.at_ms, completion.duration_ms)
        step = hold_back(step, self._own_steps, self._rules.begin_with)
        if external := self._rules.external:
            calls = (c.model_copy(update={"external": c.name in external}) for c in step.calls)
            step = step.model_copy(update={"calls": tuple(calls)})
        self.steps.append(step.model_copy(update={"steered": completion.query.steering}))
        if self._parent is not None:
            self._parent.helper_tokens += step.tokens_in + step.tokens_out
        return self._recorded()

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """Process the results of the last `RunTools`, one for each call."""
        self._settle(results)
        last = self.steps[-1]
        if notes:
            last = self.steps[-1] = last.model_copy(update={"notes": (*last.notes, *notes)})
        if (parked := park(results, last.n)) is not None:
            return [Record(last), parked]
        return self._recorded()

    def _recorded(self) -> list[Command]:
        """The commands to record the last step, and those that follow it."""
        last = self.steps[-1]
        following = self._next()
        if isinstance(following[0], Record) and following[0].step.n == last.n:
            return following  # `finish` was completed too: one record covers both
        return [Record(last), *following]

    def _with_finish(self, answer: Completion) -> Completion:
        """The answer, with text turned into a call of `finish` if that is configured."""
        text = (answer.text or "").strip()
        is_complete = answer.understood and answer.finish_reason != "length"
        if self._rules.final_text == "record" or answer.calls or not text or not is_complete:
            return answer
        call = CallRequest("", FINISH, json.dumps({"message": text}))
        return replace(answer, text=None, calls=(call,))

    # Deciding -----------------------------------------------------------------------------------

    def _next(self, *, again: bool = False) -> list[Command]:
        if not self._own_steps:
            return [self._query()]
        last = self.steps[-1]
        if not last.calls:
            return [self._after_text(last)]
        if (failed := self._typed_failure()) is not None:
            return [failed]
        repeated = repetition(self.steps)
        if repeated is not None and not (self._rules.typed and repeated == FINISH):
            return [End("loop_detected", repetition_reason(self.steps, repeated))]
        open_calls = tuple(c for c in last.calls if c.result is None and c.name != FINISH)
        if open_calls:
            return [RunTools(last, open_calls, again)]
        if external := [c.name for c in last.calls if c.external and c.error is None]:
            return self._hand_over(external)
        if self._abandons_helpers(last):
            return self._refuse_finish()
        if (answer := self._unsent_answer(last)) is not None:
            return [RunTools(last, (answer,), again)]
        if any(c.name == FINISH and c.error is None for c in last.calls):
            return self._finish(last)
        if is_question(last):
            return [_end_after_question(last.calls[0])]
        following = self._query()
        if not self._must_ask_person():
            return [following]
        if isinstance(following, QueryModel):
            return [replace(following, wording_only=True)]
        # The limit is reached: the question has a standard wording.
        return self._ask_person(TimedCompletion(QueryModel(self._n), Completion()))

    def _must_ask_person(self) -> bool:
        """Whether a person must be asked whether to continue."""
        quiet, last = self._rules.quiet, self._own_steps[-1:]
        return quiet is not None and bool(last) and had_effect(last[0], quiet)

    def _ask_person(self, completion: TimedCompletion) -> list[Command]:
        """The step that asks a person, in the model's wording if there is one."""
        step = question_step(self.steps[-1], self._rules.quiet or (), self._n, completion.answer)
        times = {"at_ms": completion.at_ms, "duration_ms": completion.duration_ms}
        step = step.model_copy(update={**times, "steered": completion.query.steering})
        self.steps.append(step)
        return [Record(step), RunTools(step, step.calls, again=False)]

    def _hand_over(self, names: Sequence[str]) -> list[Command]:
        """End a turn whose calls the requester runs; a `finish` in the same step is too early."""
        result = failure("too_early", "the results of your calls are not here yet", retry=True)
        early = [c.id for c in self.steps[-1].calls if c.name == FINISH and c.result is None]
        self._settle([CallResult(id, result, "too_early") for id in early])
        record: list[Command] = [Record(self.steps[-1])] if early else []
        return [*record, End("finished", f"waits for the results of {', '.join(names)}")]

    def join(self, helpers: Sequence[int]) -> list[Command]:
        """The next step, with the results of background helpers that have ended."""
        calls = tuple(
            ToolCallRecord(id=f"helper_{n}", name=WAIT_FOR, arguments={"helper": n})
            for n in helpers
        )
        step = Step(n=self._n, calls=calls, made="join")
        self.steps.append(step)
        return [Record(step), RunTools(step, calls, again=False)]

    def _abandons_helpers(self, last: Step) -> bool:
        """Whether a `finish` would end running helpers, and none was refused for that yet."""
        finishes = any(c.name == FINISH and c.result is None for c in last.calls)
        calls = (c for step in self._own_steps for c in step.calls)
        warned = any(c.error == _AT_WORK for c in calls)
        return finishes and not warned and bool(running_helpers(self._own_steps))

    def _refuse_finish(self) -> list[Command]:
        numbers = ", ".join(map(str, running_helpers(self._own_steps)))
        message = (
            f"at work in the background: helper {numbers}. Your turn has not ended. Call "
            f"`{WAIT_FOR}` for what you need; `finish` again ends your turn, and theirs with it"
        )
        result = failure(_AT_WORK, message, retry=True)
        last = self.steps[-1].calls
        self._settle([CallResult(c.id, result, _AT_WORK) for c in last if c.name == FINISH])
        return [Record(self.steps[-1]), self._query()]

    @property
    def _own_steps(self) -> Sequence[Step]:
        """The steps of this turn."""
        return self.steps[self._earlier :]

    @property
    def _n(self) -> int:
        """The number of the next step."""
        return self.steps[-1].n + 1 if self.steps else 1

    def _after_text(self, last: Step) -> Command:
        if sum(1 for step in self._own_steps if not step.calls) > 1:
            return End("no_action", no_action_reason(last), last.text)
        return self._query()

    def token_limit_reason(self) -> str | None:
        """The reason to end the turn if its tokens are used up; None if they are not."""
        if self._parent is not None:
            return self._parent.token_limit_reason()
        used = self.helper_tokens + sum(
            step.tokens_in + step.tokens_out for step in self._own_steps
        )
        limit = self._rules.max_tokens
        if limit is None or used < limit:
            return None
        return f"not finished after {used} tokens (at most {limit})"

    def _query(self) -> Command:
        last = self._own_steps[-1] if self._own_steps else None
        last_text = None if last is None or last.calls else last.text
        count = sum(step.made is None for step in self._own_steps)
        if count >= self._rules.max_steps:
            return End("max_steps", f"not finished after {count} steps", last_text)
        if (reason := self.token_limit_reason()) is not None:
            return End("max_steps", reason, last_text)
        return QueryModel(self._n)

    # `finish` -----------------------------------------------------------------------------------

    def _finish(self, last: Step) -> list[Command]:
        call = next(c for c in last.calls if c.name == FINISH and c.error is None)
        unsettled = any(c.name == FINISH and c.result is None for c in last.calls)
        refuse = call.result is None and self._reply_missing()
        if unsettled:
            outcome = (_REPLY_REQUIRED, "reply_required") if refuse else ("finished", None)
            self._settle([CallResult(c.id, *outcome) for c in last.calls if c.name == FINISH])
        record: list[Command] = [Record(self.steps[-1])] if unsettled else []
        if refuse:
            return [*record, self._query()]
        return [*record, End("finished", _reason_of(call))]

    def _reply_missing(self) -> bool:
        """Whether a required reply is missing, and no `finish` was refused for that yet."""
        requests = [s.n for s in self._own_steps if any(t.reply == "required" for t in s.steered)]
        if not requests and not self._rules.reply_required:
            return False
        since = requests[-1] if requests else 1
        calls = [c for step in self._own_steps if step.n >= since for c in step.calls]
        return not any(map(self._has_sent, calls)) and all(
            c.error != "reply_required" for c in calls
        )

    def _has_sent(self, call: ToolCallRecord) -> bool:
        return call.name in self._rules.speaking and bool(call.result) and not call.error

    def _is_answer(self, call: ToolCallRecord) -> bool:
        """Whether the call is a `finish` with a message."""
        has_message = bool(_message_of(call) or self._rules.typed)
        return self._rules.answers and call.name == FINISH and has_message

    def _unsent_answer(self, last: Step) -> ToolCallRecord | None:
        """The next `finish` with a message. Models repeat a call within a step: the same message
        is not sent twice."""
        finishes = [c for c in last.calls if c.name == FINISH]
        sent = [_message_of(c) for c in finishes if c.result is not None and c.error is None]
        unsent = (c for c in finishes if c.result is None and _message_of(c) not in sent)
        return next(filter(self._is_answer, unsent), None)

    def _typed_failure(self) -> End | None:
        """The end of a turn whose model failed to give a typed answer; None otherwise."""
        if not self._rules.typed:
            return None
        calls = [c for step in self._own_steps for c in step.calls if c.name == FINISH and c.error]
        if len(calls) < TYPED_TRIES:
            return None
        last = calls[-1]
        error: dict[str, str] = json.loads(last.result or "{}")
        failures = f"{len(calls)} answers are not of type {self._rules.typed}"
        reason = f"{failures}; the last one: {error.get('message')}"
        return End("no_action", reason, _message_of(last))

    # Steps --------------------------------------------------------------------------------------

    def _settle(self, results: Sequence[CallResult]) -> None:
        last, by_id = self.steps[-1], {result.id: result for result in results}
        calls = tuple(with_result(c, by_id.get(c.id)) for c in last.calls)
        self.steps[-1] = last.model_copy(update={"calls": calls})


_AT_WORK = "helpers_at_work"
"""The error of a `finish` that would have ended helpers."""
_REPLY_REQUIRED = (
    "REPLY_REQUIRED: a person waits for an answer and nothing has been sent in this turn. "
    "Send a reply, then call finish. If you mean to stay silent, call finish again."
)


def repetition(steps: Sequence[Step]) -> str | None:
    """The name of a call that repeats without progress, if the last step has one.

    That is the same call (name and arguments) in three of the last four steps, or two alternating
    steps in the last four. Equal calls within one step (three throws of a die) do not count, nor do
    calls before a person steered the turn.
    """
    recent: list[Step] = []
    for step in steps[-_WINDOW:]:
        recent = [step] if step.steered else [*recent, step]
    window = [[_signature(c) for c in step.calls] for step in recent]
    for signature in window[-1]:
        if sum(signature in calls for calls in window) >= _THRESHOLD:
            return signature[0]
    alternates = len(window) == _WINDOW and window[:2] == window[2:] and all(window)
    return window[-1][0][0] if alternates else None


def _end_after_question(call: ToolCallRecord) -> End:
    """The end of the turn after the question whether to continue, or after a failure to ask it."""
    if call.error is None:
        return End("finished", waiting_reason(call.arguments))
    reason = f"{call.name} failed: {call.result}"
    return End("cancelled", f"no person could be asked whether to continue: {reason}")


def _signature(call: ToolCallRecord) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _reason_of(finish: ToolCallRecord) -> str:
    reason = finish.arguments.get("reason") if isinstance(finish.arguments, dict) else None
    return reason if isinstance(reason, str) and reason else _message_of(finish)


def _message_of(finish: ToolCallRecord) -> str:
    """The message to the sender, as JSON if it is not text; empty if there is none."""
    message = finish.arguments.get("message") if isinstance(finish.arguments, dict) else None
    if message is None or isinstance(message, str):
        return (message or "").strip()
    return json.dumps(message, ensure_ascii=False)
