"""The loop of a turn as a pure state machine: events go in, commands come out.

    loop = Loop(rules, tools, steps)        steps: recorded by an earlier process
    commands = loop.start()                 Record, AskModel, RunTools, Park, End
    commands = loop.answered([answered])
    commands = loop.ran(results)

The next command depends on the recorded steps alone, so a resumed turn continues exactly where its
record ends. A message that steers the turn restarts two checks: a reply that it requires must be
sent after it, and calls before it do not count as repetitions.

    last step                                              next
    none                                                   ask the model
    no calls, for the first time                           ask again, with a correction
    no calls, for the second time                          end: no_action
    repeats itself (`repetition`)                          end: loop_detected
    calls without results                                  run them; `finish` comes last
    calls that wait for a person                           park: the turn stops, and is not over
    calls handed over to the requester                     end: finished, waiting
    `finish`, but helpers are running in the background    point that out, once; ask again
    `finish`, but a reply is required and nothing sent     point that out, once; ask again
    `finish` with a message                                run it: the message is sent
    `finish` whose answer does not fit, three times        end: no_action
    `finish`                                               end: finished
    mode `interactive`, and a call had an effect           ask the model to word a question to a
                                                           person, ask that, then
                                                           end: finished, waiting;
                                                           cancelled if that cannot be asked
    as many steps or tokens as allowed                     end: max_steps
    otherwise                                              ask the model
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.tools.standard_tools import FINISH, WAIT_FOR
from hubbub.agents.turn.continuation import had_effect, is_question, question_step, waiting_reason
from hubbub.agents.turn.steps import (
    NOT_FIRST,
    NOT_RUN,
    CallResult,
    failure,
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
    "held_back",
    "park",
    "repetition",
]

# `begin_with`: the first call of the turn must be one of that tool. Pure.


def begun(steps: Sequence[Step]) -> bool:
    """Whether a call of the turn has been carried out; it was of the tool to begin with."""
    return any(call.error not in NOT_RUN for step in steps for call in step.calls)


def held_back(step: Step, before: Sequence[Step], tool: str | None) -> Step:
    """The step that follows `before`. Calls that must wait for a call of `tool` get a result that
    says so. None: nothing must wait.
    """
    if tool is None or begun(before):
        return step
    calls = tuple(call if call.name == tool else _not_yet(call, tool) for call in step.calls)
    return step.model_copy(update={"calls": calls})


def _not_yet(call: ToolCallRecord, tool: str) -> ToolCallRecord:
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
    """Of all steps together, input and output; None: no limit."""
    reply_required: bool = False
    speaking: frozenset[str] = frozenset()
    """Names of the tools that send a message."""
    external: frozenset[str] = frozenset()
    """Names of the tools that the requester runs."""
    quiet: frozenset[str] | None = None
    """Mode `interactive`: names of the tools after which no question is asked. None: mode `auto`.
    """
    begin_with: str | None = None
    """The tool that the turn's first call must use."""
    answers: bool = True
    """Whether `finish` may send a message; otherwise its message is only the turn's reason."""
    final_text: Literal["record", "send"] = "record"
    """Whether text without a call counts as the message of a `finish`."""
    typed: str = ""
    """The type of the message of `finish`, if it is not text: without such an answer the turn
    fails."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record this step, replacing one with the same number."""

    step: Step


@dataclass(frozen=True, slots=True)
class QueryModel:
    """Ask the model what comes after the steps so far; the answer becomes step `n`."""

    n: int
    fresh: tuple[Steering, ...] = field(default=(), kw_only=True)
    """Messages from people that the model has not seen yet."""
    words: bool = field(default=False, kw_only=True)
    """Only ask for the words of the question whether to continue."""

    def with_steering(self, steering: Sequence[Steering]) -> Self:
        """The same question, after these messages."""
        return replace(self, fresh=tuple(steering))


@dataclass(frozen=True, slots=True)
class TimedCompletion:
    """A model's answer, and when it was asked, in milliseconds since the turn's start."""

    asked: QueryModel
    answer: Completion
    at_ms: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of the step, which have no result yet."""

    step: Step
    calls: tuple[ToolCallRecord, ...]
    again: bool
    """An earlier process may have run them already."""


@dataclass(frozen=True, slots=True)
class End:
    """The turn is over."""

    outcome: Outcome
    reason: str = ""
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Park:
    """Calls of the last step wait for a person. The turn stops, and continues from its record."""

    step: int
    approvals: tuple[str, ...]


Command = Record | QueryModel | RunTools | Park | End


def park(results: Sequence[CallResult], step: int) -> Park | None:
    """The command to park, if any of these calls waits for a person."""
    waits = [result.parked for result in results if result.parked is not None]
    return Park(step, tuple(id for ids in waits for id in ids)) if waits else None


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
        """`tools` are the names a model may call; `finish` need not be among them. `earlier` are
        the steps of turns that this one continues; limits do not count them. `parent` is the turn's
        own loop, if this is the loop of a helper, whose tokens count there.
        """
        self.steps = [*earlier, *steps]
        self._parent = parent
        self.apart = 0
        """Tokens of the turn's sub-agents, which count with its own."""
        self._earlier = len(earlier)
        self._rules = rules
        self._tools = sorted({*tools, FINISH})

    def start(self) -> list[Command]:
        """The first commands, or those that follow from the steps of an earlier process."""
        return self._next(again=True)

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """The model has answered."""
        (given,) = answers
        if self._has_acted():
            return self._put_question(given)
        answer = self._finished(given.answer)
        step = step_of(answer, self._n, self._tools, given.at_ms, given.duration_ms)
        step = held_back(step, self._own, self._rules.begin_with)
        if external := self._rules.external:
            calls = (c.model_copy(update={"external": c.name in external}) for c in step.calls)
            step = step.model_copy(update={"calls": tuple(calls)})
        self.steps.append(step.model_copy(update={"steered": given.asked.fresh}))
        if self._parent is not None:
            self._parent.apart += step.tokens_in + step.tokens_out
        return self._recorded()

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """The calls of the last `RunTools` have run: one result for each."""
        self._settle(results)
        if notes:
            last = self.steps[-1]
            self.steps[-1] = last.model_copy(update={"notes": (*last.notes, *notes)})
        ran = len(self.steps) - 1
        if (parked := park(results, self.steps[ran].n)) is not None:
            return [Record(self.steps[ran]), parked]
        return self._recorded()

    def _recorded(self) -> list[Command]:
        """The commands to record the last step, and what follows from it."""
        last = self.steps[-1]
        following = self._next()
        if isinstance(following[0], Record) and following[0].step.n == last.n:
            return following  # `finish` was completed as well: one record covers both
        return [Record(last), *following]

    def _finished(self, answer: Completion) -> Completion:
        """The answer, with text turned into a call of `finish` where that is configured."""
        text = (answer.text or "").strip()
        whole = answer.understood and answer.finish_reason != "length"
        if self._rules.final_text == "record" or answer.calls or not text or not whole:
            return answer
        call = CallRequest("", FINISH, json.dumps({"message": text}))
        return replace(answer, text=None, calls=(call,))

    # Deciding -----------------------------------------------------------------------------------

    def _next(self, *, again: bool = False) -> list[Command]:
        if not self._own:
            return [self._ask()]
        last = self.steps[-1]
        if not last.calls:
            return [self._after_text(last)]
        if (misfit := self._typed_failure()) is not None:
            return [misfit]
        if (repeated := repetition(self.steps)) is not None:
            return [End("loop_detected", f"{repeated} was called again and again")]
        open_calls = tuple(c for c in last.calls if c.result is None and c.name != FINISH)
        if open_calls:
            return [RunTools(last, open_calls, again)]
        if out := [c.name for c in last.calls if c.external and c.error is None]:
            return self._hand_over(out)
        if self._leaves_helpers(last):
            return self._refuse_to_leave()
        saying = next((c for c in last.calls if c.result is None and self._is_answer(c)), None)
        if saying is not None:
            return [RunTools(last, (saying,), again)]
        if any(c.name == FINISH and c.error is None for c in last.calls):
            return self._finish(last)
        if is_question(last):
            return [_asked(last.calls[0])]
        following = self._ask()
        if not self._has_acted():
            return [following]
        if isinstance(following, QueryModel):
            return [replace(following, words=True)]
        return self._put_question(
            TimedCompletion(QueryModel(self._n), Completion())
        )  # no budget for words

    def _has_acted(self) -> bool:
        """Whether a person has to be asked whether to continue."""
        quiet, last = self._rules.quiet, self._own[-1:]
        return quiet is not None and bool(last) and had_effect(last[0], quiet)

    def _put_question(self, given: TimedCompletion) -> list[Command]:
        """The step that asks a person, in the model's words if it gave some."""
        asking = question_step(self.steps[-1], self._rules.quiet or (), self._n, given.answer)
        times = {"at_ms": given.at_ms, "duration_ms": given.duration_ms}
        asking = asking.model_copy(update={**times, "steered": given.asked.fresh})
        self.steps.append(asking)
        if self._parent is not None:
            self._parent.apart += asking.tokens_in + asking.tokens_out
        return [Record(asking), RunTools(asking, asking.calls, again=False)]

    def _hand_over(self, names: Sequence[str]) -> list[Command]:
        """End a turn whose calls the requester runs; a `finish` beside them is too early."""
        result = failure("too_early", "the results of your calls are not here yet", retry=True)
        early = [c.id for c in self.steps[-1].calls if c.name == FINISH and c.result is None]
        self._settle([CallResult(id, result, "too_early") for id in early])
        record: list[Command] = [Record(self.steps[-1])] if early else []
        return [*record, End("finished", f"waits for the results of {', '.join(names)}")]

    def join(self, helpers: Sequence[int]) -> list[Command]:
        """These helpers in the background have ended: their results become the next step."""
        calls = tuple(
            ToolCallRecord(id=f"helper_{n}", name=WAIT_FOR, arguments={"helper": n})
            for n in helpers
        )
        step = Step(n=self._n, calls=calls, made="join")
        self.steps.append(step)
        return [Record(step), RunTools(step, calls, again=False)]

    def _leaves_helpers(self, last: Step) -> bool:
        """Whether a `finish` would end running helpers, and that was not pointed out yet."""
        finishes = any(c.name == FINISH and c.result is None for c in last.calls)
        calls = (c for step in self._own for c in step.calls)
        warned = any(c.error == _AT_WORK for c in calls)
        return finishes and not warned and bool(running_helpers(self._own))

    def _refuse_to_leave(self) -> list[Command]:
        numbers = ", ".join(map(str, running_helpers(self._own)))
        words = (
            f"at work in the background: helper {numbers}. Your turn has not ended. Call "
            f"`{WAIT_FOR}` for what you need; `finish` again ends your turn, and theirs with it"
        )
        result = failure(_AT_WORK, words, retry=True)
        last = self.steps[-1].calls
        self._settle([CallResult(c.id, result, _AT_WORK) for c in last if c.name == FINISH])
        return [Record(self.steps[-1]), self._ask()]

    @property
    def _own(self) -> Sequence[Step]:
        """The steps of this turn."""
        return self.steps[self._earlier :]

    @property
    def _n(self) -> int:
        """The number of the next step."""
        return self.steps[-1].n + 1 if self.steps else 1

    def _after_text(self, last: Step) -> Command:
        if sum(1 for step in self._own if not step.calls) > 1:
            reason = "the model answered without calling a tool, also after being told"
            return End("no_action", reason, last.text)
        return self._ask()

    def overspent(self) -> str | None:
        """Why the model may not be asked again in this turn, if its tokens are used up."""
        if self._parent is not None:
            return self._parent.overspent()
        used = self.apart + sum(step.tokens_in + step.tokens_out for step in self._own)
        most = self._rules.max_tokens
        if most is None or used < most:
            return None
        return f"not finished after {used} tokens (at most {most})"

    def _ask(self) -> Command:
        last = self._own[-1] if self._own else None
        last_words = None if last is None or last.calls else last.text
        asked = sum(step.made is None for step in self._own)
        if asked >= self._rules.max_steps:
            return End("max_steps", f"not finished after {asked} steps", last_words)
        if (overspent := self.overspent()) is not None:
            return End("max_steps", overspent, last_words)
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
            return [*record, self._ask()]
        return [*record, End("finished", _reason_of(call))]

    def _reply_missing(self) -> bool:
        """Whether a required reply is missing, and this was not pointed out yet."""
        asked = [s.n for s in self._own if any(t.reply == "required" for t in s.steered)]
        if not asked and not self._rules.reply_required:
            return False
        since = asked[-1] if asked else 1
        calls = [c for step in self._own if step.n >= since for c in step.calls]
        return not any(map(self._has_sent, calls)) and all(
            c.error != "reply_required" for c in calls
        )

    def _has_sent(self, call: ToolCallRecord) -> bool:
        speaks = call.name in self._rules.speaking if call.name != FINISH else self._is_answer(call)
        return speaks and bool(call.result) and not call.error

    def _is_answer(self, call: ToolCallRecord) -> bool:
        """Whether the call is a `finish` with a message."""
        has_message = bool(_message_of(call) or self._rules.typed)
        return self._rules.answers and call.name == FINISH and has_message

    def _typed_failure(self) -> End | None:
        """The end of a turn whose model fails to give a typed answer."""
        if not self._rules.typed:
            return None
        calls = [c for step in self._own for c in step.calls if c.name == FINISH and c.error]
        if len(calls) < TYPED_TRIES:
            return None
        last = calls[-1]
        failed: dict[str, str] = json.loads(last.result or "{}")
        tries = f"{len(calls)} answers are no {self._rules.typed}"
        return End("no_action", f"{tries}; of the last: {failed.get('message')}", _message_of(last))

    # Steps --------------------------------------------------------------------------------------

    def _settle(self, results: Sequence[CallResult]) -> None:
        last, given = self.steps[-1], {result.id: result for result in results}
        calls = tuple(with_result(c, given.get(c.id)) for c in last.calls)
        self.steps[-1] = last.model_copy(update={"calls": calls})


_AT_WORK = "helpers_at_work"
"""The failure of a `finish` that would have ended helpers."""
_REPLY_REQUIRED = (
    "REPLY_REQUIRED: a person waits for an answer and nothing has been sent in this turn. "
    "Send a reply, then call finish. If you mean to stay silent, call finish again."
)


def repetition(steps: Sequence[Step]) -> str | None:
    """The name of a call that repeats without progress, if the last step shows one.

    That is the same call (name and arguments) in three of the last four steps, or two steps that
    alternated for four. Equal calls within one step (three throws of a die) do not count, nor do
    calls from before a person steered the turn.
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


def _asked(call: ToolCallRecord) -> End:
    """The end of the turn after the question whether to continue was asked, or could not be."""
    if call.error is None:
        return End("finished", waiting_reason(call.arguments))
    failed = f"{call.name} failed: {call.result}"
    return End("cancelled", f"nobody could be asked whether to go on: {failed}")


def _signature(call: ToolCallRecord) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _reason_of(finish: ToolCallRecord) -> str:
    reason = finish.arguments.get("reason") if isinstance(finish.arguments, dict) else None
    return reason if isinstance(reason, str) and reason else _message_of(finish)


def _message_of(finish: ToolCallRecord) -> str:
    """The message to the sender, as JSON if it is not text; empty: none."""
    message = finish.arguments.get("message") if isinstance(finish.arguments, dict) else None
    if message is None or isinstance(message, str):
        return (message or "").strip()
    return json.dumps(message, ensure_ascii=False)
