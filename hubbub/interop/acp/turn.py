"""One turn of a coding agent: its state machine, and the prompting of its program.

prompt -> the program works and its steps are recorded -> park for a person, any number of times
-> the last text is the answer -> end
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
from hubbub.interop.answer import ANSWER, MAX_FILES, end_after, truncate
from hubbub.protocol.turns import Outcome, Step, ToolCallRecord
from hubbub.waiting import done_within

__all__ = ["AcpTurn", "Workspace"]

RECORD_EVERY_S = 0.2
"""Seconds between records of a program's steps, which it can update hundreds of times a second."""
_OUTCOMES: dict[StopReason, tuple[Outcome, str]] = {
    "max_tokens": ("max_steps", "its model reached its token limit"),
    "max_turn_requests": ("max_steps", "it reached its own limit of requests per turn"),
    "refusal": ("no_action", "the program refused to continue"),
    "cancelled": ("cancelled", "the program cancelled its own work"),
}
_INTERRUPTED = "the program's process ended while this ran"
_RESUMED = (
    "You were interrupted in the middle of the following: the process that you ran in ended. Find "
    "out what you have already done, do none of it twice, and continue."
)


@dataclass(frozen=True)
class Workspace:
    """State shared by all turns of an agent."""

    name: str
    config: AgentConfig
    sessions: AcpSessions
    network: NetworkTools
    approver: Approver
    workspace: Path
    text_bytes: int
    """Limit of a message's text."""
    live: dict[str, Prompting] = field(default_factory=dict)
    """The running prompts, by turn."""


class AcpTurn:
    """One turn: a `Machine`, and the prompting of the program for it."""

    def __init__(
        self,
        shared: Workspace,
        plan: TurnPlan,
        calls: StepCalls,
        activity: TurnActivity,
        steps: Sequence[Step],
        system: str,
        conversation: str,
    ):
        """`steps` were recorded by an earlier process, or before the turn was parked."""
        self.steps = list(steps)
        self._shared, self._plan, self._calls, self._activity = shared, plan, calls, activity
        self._system, self._conversation = system, conversation
        self._prompting = shared.live.get(plan.id)
        self._reserved = 0
        self._stopped: End | None = None

    # The state machine --------------------------------------------------------------------------

    def start(self) -> list[Command]:
        """The first commands, or those that follow from the recorded steps."""
        if self._prompting is not None:
            return [QueryModel(self._prompting.progress.n)]
        if not self.steps:
            return [QueryModel(1)]
        last = self.steps[-1]
        if (answer := _answer_in(last)) is not None:
            sent = answer.result is not None
            return [end_after(answer)] if sent else [RunTools(last, (answer,), again=True)]
        interrupted = [CallResult(c.id, _INTERRUPTED, "interrupted") for c in last.calls]
        return [RecordStep(self._with_results(interrupted)), QueryModel(last.n + 1)]

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """Handle a program that has ended its prompt or waits for a person."""
        prompting = self._prompting
        assert prompting is not None, "`ask` began it"
        if prompting.pending_approvals and self._stopped is None:
            step = prompting.progress.step
            return [RecordStep(step), Park(step.n, tuple(prompting.pending_approvals))]
        response = prompting.response if self._stopped is None else None
        self._end_prompt()
        if response is None:
            assert self._stopped is not None, "the prompt neither waits nor has ended"
            return [RecordStep(prompting.progress.step), self._stopped]
        step = prompting.progress.final(response)
        self._replace_step(step)
        if response.stop_reason != "end_turn":
            outcome, reason = _OUTCOMES[response.stop_reason]
            return [RecordStep(step), End(outcome, reason, step.text)]
        call = self._answer_call(step)
        if call is None:
            return [RecordStep(step), End("finished", "", step.text)]
        step = step.model_copy(update={"calls": (*step.calls, call)})
        self._replace_step(step)
        return [RecordStep(step), RunTools(step, (call,), again=False)]

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """Handle the result of the answer: sent or refused."""
        step = self._with_results(results, notes)
        answer = _answer_in(step)
        assert answer is not None, "no other tool is run"
        return [RecordStep(step), end_after(answer)]

    def _with_results(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> Step:
        """The last step with these results."""
        last, by_id = self.steps[-1], {result.id: result for result in results}
        calls = tuple(with_result(call, by_id.get(call.id)) for call in last.calls)
        step = last.model_copy(update={"calls": calls, "notes": (*last.notes, *notes)})
        self._replace_step(step)
        return step

    def _replace_step(self, step: Step) -> None:
        self.steps = [*(s for s in self.steps if s.n != step.n), step]

    def _answer_call(self, step: Step) -> ToolCallRecord | None:
        """The call that answers with the step's text; None if there is nothing to send."""
        plan = self._plan
        wanted = plan.reply_required or not {"direct", "mention"}.isdisjoint(plan.reasons)
        if self._shared.config.final_text == "record" or not (wanted and step.text):
            return None
        request = next((m.task for m in plan.incoming if m.task), None)
        if self._has_posted() and request is None:
            return None
        assert self._prompting is not None, "it just ended"
        arguments: dict[str, JsonValue] = {"text": truncate(step.text, self._shared.text_bytes)}
        if request is not None:
            arguments["request"] = request
        if files := list(self._prompting.progress.touched)[:MAX_FILES]:
            arguments["files"] = [*files]
        return ToolCallRecord(id=f"{ANSWER}_{step.n}", name=ANSWER, arguments=arguments)

    def _has_posted(self) -> bool:
        """Whether the program sent a message with a tool in this turn."""
        speaking = self._calls.toolbox.speaking
        calls = (call for step in self.steps for call in step.calls)
        return any(c.name in speaking and c.result is not None and c.error is None for c in calls)

    # Prompting ----------------------------------------------------------------------------------

    async def ask(self, query: QueryModel, hear: OnDelta | None) -> Completion:
        """Run the program until its prompt ends or waits for a person. Raises `ModelError`.

        Any exception, cancellation included, also ends the program's work.
        """
        try:
            if self._prompting is None:
                await self._calls.recorder.flush_start()  # so a crash is attributed to this turn
                await self._reserve(query.n)
                await self._begin(query)
            else:
                self._prompting.resume(self._calls, self._record)
            await self._follow()
        except ProgramFailed as exc:
            self._end_prompt()
            raise ModelError(str(exc)) from exc
        except BaseException:
            self._end_prompt()
            raise
        return Completion()

    async def _reserve(self, n: int) -> None:
        """Reserve budget for the step. Raises `BudgetExhausted`, which is a `ModelError`."""
        self._reserved = n
        cost_model = CostModel()
        reads = cost_model.counter.count(self._conversation)
        await self._calls.recorder.reservations.take(n, reads + cost_model.writes, 0.0)

    async def _begin(self, query: QueryModel) -> None:
        shared, calls = self._shared, self._calls
        key = shared.sessions.key(self._plan.thread_id)
        session, saved = await shared.sessions.open(key)
        digest = hashlib.sha256(self._system.encode(errors="surrogatepass")).hexdigest()[:16]
        texts = [] if saved.told == digest else [self._system]
        texts += [_RESUMED] if self.steps else []
        texts += [self._conversation, *(steering.text for steering in query.steering)]
        names = [tool.spec.name for tool in shared.network.offered]
        clock, trust = calls.recorder.clock, calls.trust
        progress = Progress(clock, query.n, shared.workspace, self._fit, names, trust)
        progress.cost = saved.cost
        await shared.sessions.save(key, saved.model_copy(update={"told": digest}))
        mode = shared.config.permission_mode
        prompting = Prompting(
            session, progress, mode, shared.approver, shared.name, calls, self._record
        )
        self._prompting = shared.live[self._plan.id] = prompting
        shared.network.callers[session.key] = prompting
        prompting.begin(texts)

    async def _follow(self) -> None:
        """Record the program's steps until the prompt ends, waits or reaches a limit."""
        prompting = self._prompting
        assert prompting is not None, "the prompt has begun"
        progress = prompting.progress
        while True:
            await prompting.changed.wait()
            prompting.changed.clear()
            self._record()
            if progress.n > self._shared.config.max_steps:
                reason = f"not finished after {self._shared.config.max_steps} steps"
                self._stopped = End("max_steps", reason, progress.step.text)
                return
            if prompting.response is not None:
                await self._shared.sessions.record_cost(self._plan.thread_id, progress.cost)
                return
            if progress.n > self._reserved:
                await self._reserve(progress.n)
            if prompting.pending_approvals:
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
        assert prompting is not None, "the prompt has begun"
        for step in prompting.progress.changed_steps():
            self._replace_step(step)
            self._calls.recorder.step(step)

    def _end_prompt(self) -> None:
        """End the prompt, cancelling it if it still runs."""
        prompting = self._shared.live.pop(self._plan.id, None)
        if prompting is not None:
            self._record()
            self._shared.network.callers.pop(prompting.session.key, None)
            prompting.cancel()

    def _fit(self, text: str) -> str:
        return fit_result(text, self._shared.config.result_budget, TokenEstimate())


def _answer_in(step: Step) -> ToolCallRecord | None:
    return next((call for call in step.calls if call.name == ANSWER), None)
