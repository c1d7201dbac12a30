"""One turn of a coding agent: what it decides, and how its program is asked.

prompt -> the program works, and its steps are recorded -> wait for a person, as often as it must
-> its last text is the answer -> end
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acp.schema import StopReason
from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.base import Completion, OnDelta
from hubbub.agents.prompt.tokens import TokenEstimate
from hubbub.agents.tools.approval import Approver
from hubbub.agents.tools.results import fit_result
from hubbub.agents.turn.activity import TurnActivity
from hubbub.agents.turn.driver import StepCalls
from hubbub.agents.turn.loop import (
    CallResult,
    Command,
    End,
    Park,
    QueryModel,
    RunTools,
    TimedCompletion,
)
from hubbub.agents.turn.loop import Record as RecordStep
from hubbub.agents.turn.reservations import CostModel
from hubbub.agents.turn.steps import with_result
from hubbub.config.agents import AgentConfig
from hubbub.errors import ModelError
from hubbub.interop.acp.network import NetworkTools
from hubbub.interop.acp.program import ProgramFailed
from hubbub.interop.acp.progress import Progress
from hubbub.interop.acp.prompting import Prompting
from hubbub.interop.acp.sessions import AcpSessions
from hubbub.interop.answer import ANSWER, MOST_FILES, cut, end_after
from hubbub.protocol.turns import Outcome, Step, ToolCallRecord
from hubbub.waiting import done_within

__all__ = ["AcpTurn", "Workspace"]

RECORD_EVERY_S = 0.2
"""Seconds between two looks at what a program does, which it may tell hundreds of times in one."""
_OUTCOMES: dict[StopReason, tuple[Outcome, str]] = {
    "max_tokens": ("max_steps", "its model has reached its limit of tokens"),
    "max_turn_requests": ("max_steps", "it has reached its own limit of requests in a turn"),
    "refusal": ("no_action", "the program refuses to go on"),
    "cancelled": ("cancelled", "the program has cancelled its work by itself"),
}
_CUT_OFF = "the process that the program ran in has ended while this ran"
_AGAIN = (
    "You were cut off in the middle of the following: the process that you ran in has ended. Find "
    "out what you have done already, do none of it twice, and go on."
)


@dataclass(frozen=True)
class Workspace:
    """What all turns of an agent share."""

    name: str
    config: AgentConfig
    sessions: AcpSessions
    network: NetworkTools
    approver: Approver
    workspace: Path
    text_bytes: int
    """Of a message, at most."""
    live: dict[str, Prompting] = field(default_factory=dict)
    """The prompts under way, by the turn that has begun them."""


class AcpTurn:
    """The state of one turn: a `Machine`, and what asks the program for it."""

    def __init__(
        self,
        place: Workspace,
        plan: TurnPlan,
        calls: StepCalls,
        activity: TurnActivity,
        steps: Sequence[Step],
        system: str,
        conversation: str,
    ):
        """`steps` are those of an earlier process, or from before the turn waited."""
        self.steps = list(steps)
        self._place, self._plan, self._calls, self._activity = place, plan, calls, activity
        self._system, self._conversation = system, conversation
        self._prompting = place.live.get(plan.id)
        self._leased = 0
        self._stopped: End | None = None

    # What it decides ----------------------------------------------------------------------------

    def start(self) -> list[Command]:
        """The first commands, or those that follow from the record."""
        if self._prompting is not None:
            return [QueryModel(self._prompting.progress.n)]
        if not self.steps:
            return [QueryModel(1)]
        last = self.steps[-1]
        if (answer := _answer_in(last)) is not None:
            sent = answer.result is not None
            return [end_after(answer)] if sent else [RunTools(last, (answer,), again=True)]
        cut = [CallResult(c.id, _CUT_OFF, "interrupted") for c in last.calls]
        return [RecordStep(self._settled(cut)), QueryModel(last.n + 1)]

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """The program has done what it could, or waits for a person."""
        prompting = self._prompting
        assert prompting is not None, "asked before"
        if prompting.waits_for and self._stopped is None:
            step = prompting.progress.step
            return [RecordStep(step), Park(step.n, tuple(prompting.waits_for))]
        response = prompting.response if self._stopped is None else None
        self._let_go()
        if response is None:
            assert self._stopped is not None, "else it waits, or has ended"
            return [RecordStep(prompting.progress.step), self._stopped]
        step = prompting.progress.final(response)
        self._keep(step)
        if response.stop_reason != "end_turn":
            outcome, reason = _OUTCOMES[response.stop_reason]
            return [RecordStep(step), End(outcome, reason, step.text)]
        call = self._answer(step)
        if call is None:
            return [RecordStep(step), End("finished", "", step.text)]
        step = step.model_copy(update={"calls": (*step.calls, call)})
        self._keep(step)
        return [RecordStep(step), RunTools(step, (call,), again=False)]

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """The answer is sent, or was refused."""
        step = self._settled(results, notes)
        answer = _answer_in(step)
        assert answer is not None, "nothing else is run"
        return [RecordStep(step), end_after(answer)]

    def _settled(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> Step:
        """The last step with these results."""
        last, given = self.steps[-1], {result.id: result for result in results}
        calls = tuple(with_result(call, given.get(call.id)) for call in last.calls)
        step = last.model_copy(update={"calls": calls, "notes": (*last.notes, *notes)})
        self._keep(step)
        return step

    def _keep(self, step: Step) -> None:
        self.steps = [*(s for s in self.steps if s.n != step.n), step]

    def _answer(self, step: Step) -> ToolCallRecord | None:
        """The call that answers with the step's text; None where nothing is to be said."""
        plan = self._plan
        wanted = plan.reply_required or not {"direct", "mention"}.isdisjoint(plan.reasons)
        if self._place.config.final_text == "record" or not (wanted and step.text):
            return None
        task = next((m.task for m in plan.incoming if m.task), None)
        if self._has_spoken() and task is None:
            return None
        assert self._prompting is not None, "it has ended just now"
        arguments: dict[str, JsonValue] = {"text": cut(step.text, self._place.text_bytes)}
        if task is not None:
            arguments["request"] = task
        if files := list(self._prompting.progress.touched)[:MOST_FILES]:
            arguments["files"] = [*files]
        return ToolCallRecord(id=f"{ANSWER}_{step.n}", name=ANSWER, arguments=arguments)

    def _has_spoken(self) -> bool:
        """Whether the program has sent a message by itself in this turn."""
        speaking = self._calls.toolbox.speaking
        calls = (call for step in self.steps for call in step.calls)
        return any(c.name in speaking and c.result is not None and c.error is None for c in calls)

    # How the program is asked -------------------------------------------------------------------

    async def ask(self, asked: QueryModel, hear: OnDelta | None) -> Completion:
        """Let the program work until it is done or waits for a person. Raises `ModelError`.

        Whatever else ends it ends the program's work, too.
        """
        try:
            if self._prompting is None:
                await self._calls.recorder.flush_start()  # who dies of it has died in this turn
                await self._reserve(asked.n)
                await self._begin(asked)
            else:
                self._prompting.go_on(self._calls, self._record)
            await self._follow()
        except ProgramFailed as exc:
            self._let_go()
            raise ModelError(str(exc)) from exc
        except BaseException:
            self._let_go()
            raise
        return Completion()

    async def _reserve(self, n: int) -> None:
        """Leave for the step. Raises `BudgetExhausted`, which is a `ModelError`."""
        self._leased = n
        cost_model = CostModel()
        reads = cost_model.counter.count(self._conversation)
        await self._calls.recorder.reservations.take(n, reads + cost_model.writes, 0.0)

    async def _begin(self, asked: QueryModel) -> None:
        place, calls = self._place, self._calls
        key = place.sessions.key(self._plan.thread_id)
        session, known = await place.sessions.of(key)
        told = hashlib.sha256(self._system.encode(errors="surrogatepass")).hexdigest()[:16]
        texts = [] if known.told == told else [self._system]
        texts += [_AGAIN] if self.steps else []
        texts += [self._conversation, *(steering.text for steering in asked.steering)]
        names = [tool.spec.name for tool in place.network.offered]
        progress = Progress(calls.recorder.clock, asked.n, place.workspace, self._fit, names)
        progress.cost = known.cost
        await place.sessions.remember(key, known.model_copy(update={"told": told}))
        mode = place.config.permission_mode
        prompting = Prompting(
            session, progress, mode, place.approver, place.name, calls, self._record
        )
        self._prompting = place.live[self._plan.id] = prompting
        place.network.callers[session.key] = prompting
        prompting.begin(texts)

    async def _follow(self) -> None:
        """Record what the program does, until there is something to decide."""
        prompting = self._prompting
        assert prompting is not None, "it has begun"
        progress = prompting.progress
        while True:
            await prompting.news.wait()
            prompting.news.clear()
            self._record()
            if progress.n > self._place.config.max_steps:
                words = f"not finished after {self._place.config.max_steps} steps"
                self._stopped = End("max_steps", words, progress.step.text)
                return
            if prompting.response is not None:
                await self._place.sessions.spent(self._plan.thread_id, progress.cost)
                return
            if progress.n > self._leased:
                await self._reserve(progress.n)
            if prompting.waits_for:
                return
            await self._show(progress)
            await done_within(prompting.urgent.wait(), RECORD_EVERY_S)

    async def _show(self, progress: Progress) -> None:
        if progress.running:
            await self._activity.show("calling", progress.n, progress.running)
        else:
            await self._activity.show("thinking", progress.n)

    def _record(self) -> None:
        prompting = self._prompting
        assert prompting is not None, "it has begun"
        names, prompting.progress.outside = prompting.progress.outside, []
        if fresh := self._calls.trust.read(names):
            prompting.progress.read_outside(fresh)
        for step in prompting.progress.fresh():
            self._keep(step)
            self._calls.recorder.step(step)

    def _let_go(self) -> None:
        """The prompt is over, or is to be over."""
        prompting = self._place.live.pop(self._plan.id, None)
        if prompting is not None:
            self._record()
            self._place.network.callers.pop(prompting.session.key, None)
            prompting.cancel()

    def _fit(self, text: str) -> str:
        return fit_result(text, self._place.config.result_budget, TokenEstimate())


def _answer_in(step: Step) -> ToolCallRecord | None:
    return next((call for call in step.calls if call.name == ANSWER), None)
