"""The state of a pipeline, computed from its recorded steps. Pure.

The fields of a step define its kind:

    role                an answer of that role: one call, whose result is `accepted` or an error; an
                        executor's answer is the call that it proposes for `plan_step`
    made: run           calls for steps of the plan, in parallel, with the ids `step_N`
    made: ask           a question to the person, whose answer starts another turn
    made: say           the answer to the person
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.agents.roles.plan import ANSWER, MAKE_PLAN, Judgement, Plan, PlanStep, Route
from hubbub.agents.turn.chat import describe_changes
from hubbub.agents.turn.loop import FINISH
from hubbub.config.agents import RolesConfig
from hubbub.protocol.turns import Role, Steering, Step, ToolCallRecord

__all__ = ["ONLY", "Role", "StepResult", "WorkState", "call_id", "fold"]

_CALL_ID = re.compile(r"step_(\d+)\Z")
ONLY = 1
"""The number of the only step if there is no plan."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step of the plan."""

    text: str
    error: str | None = None
    """The kind of failure; None for success."""
    changed: str = ""
    """Text about a person's changes to the call before it ran."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The call that an executor proposes for a step."""

    tool: str
    arguments: dict[str, JsonValue]


@dataclass(slots=True)
class WorkState:
    """The state of the work."""

    route: Route | None = None
    plan: Plan | None = None
    results: dict[int, StepResult] = field(default_factory=dict)
    """By the number of the plan's step."""
    proposals: dict[int, Proposal] = field(default_factory=dict)
    judgement: Judgement | None = None
    """The last one if it ends the turn, with an answer or with a question to the person."""
    retries: int = 0
    """Number of retried steps and plans since the last question to a person."""
    lessons: list[str] = field(default_factory=list)
    """Why earlier attempts were not good enough, oldest first."""
    abandoned: list[tuple[Plan, dict[int, StepResult]]] = field(default_factory=list)
    """Abandoned plans, with their results."""
    invalid: dict[int, list[Step]] = field(default_factory=dict)
    """Consecutive invalid answers: of an executor by its step, of other roles at 0."""
    finished: ToolCallRecord | None = None
    """The call of `finish`, if the first role decides that there is nothing to do."""
    running: Step | None = None
    """The step with calls without a result."""
    has_asked: bool = False
    """A question was sent in this turn."""
    reply: ToolCallRecord | None = None
    """The call that sent the answer, or failed to."""
    steered: list[Steering] = field(default_factory=list)
    """People's messages since the turn started that a role has seen."""

    @property
    def texts(self) -> dict[int, str]:
        """The results of the steps that succeeded."""
        return {n: r.text for n, r in self.results.items() if r.error is None}


def call_id(number: int) -> str:
    """The id of the call that runs a step of the plan."""
    return f"step_{number}"


def fold(steps: Sequence[Step], config: RolesConfig, earlier: int = 0) -> WorkState:
    """The state after `steps`. The first `earlier` ones are from earlier turns, which ended with
    the question that was answered now.
    """
    work = WorkState()
    for position, step in enumerate(steps):
        if any(call.result is None for call in step.calls):
            work.running = step
        if position >= earlier:  # the conversation contains messages of earlier turns
            work.steered += step.steered
        match step.made:
            case "run":
                _apply_run(work, step)
            case "ask" | "confirm":
                _apply_question(work, is_answered=position < earlier)
            case "say":
                work.reply = step.calls[0]
            case None:
                _apply_answer(work, step, config)
    return work


def _apply_run(work: WorkState, step: Step) -> None:
    for call in step.calls:
        match = _CALL_ID.match(call.id)
        if match and call.result is not None:
            work.results[int(match[1])] = StepResult(
                call.result, call.error, describe_changes(call)
            )


def _apply_question(work: WorkState, *, is_answered: bool) -> None:
    if not is_answered:
        work.has_asked = True
        return
    work.judgement, work.retries = None, 0
    if work.plan is None:
        work.route = None


def _apply_answer(work: WorkState, step: Step, config: RolesConfig) -> None:
    number = step.plan_step or 0
    call = step.calls[0] if len(step.calls) == 1 else None
    if call is None or call.error is not None or not isinstance(call.arguments, dict):
        work.invalid.setdefault(number, []).append(step)
        return
    work.invalid.pop(number, None)
    if call.name == FINISH:
        work.finished = call
        return
    match step.role:
        case "router":
            _apply_route(work, Route.model_validate(call.arguments), config)
        case "planner":
            _apply_plan(work, Plan.model_validate(call.arguments))
        case "executor":
            work.proposals[number or ONLY] = Proposal(call.name, call.arguments)
            if work.plan is None:
                only = PlanStep(id=ONLY, goal=call.name, executor=call.name)
                work.plan = Plan(steps=(only,))
        case "reflector":
            _apply_judgement(work, Judgement.model_validate(call.arguments), config)


def _apply_route(work: WorkState, route: Route, config: RolesConfig) -> None:
    work.route = route
    if route.confidence >= config.min_confidence and route.target not in (ANSWER, MAKE_PLAN):
        goal = route.request or route.target
        work.plan = Plan(steps=(PlanStep(id=ONLY, goal=goal, executor=route.target),))


def _apply_plan(work: WorkState, plan: Plan) -> None:
    work.plan, work.results, work.proposals = plan, {}, {}


def _apply_judgement(work: WorkState, judgement: Judgement, config: RolesConfig) -> None:
    is_retry = judgement.verdict in ("retry_step", "replan")
    if work.plan is None or not is_retry or work.retries >= config.max_retries:
        work.judgement = judgement
        return
    work.retries += 1
    work.lessons.append(judgement.reasoning)
    if judgement.verdict == "replan":
        work.abandoned.append((work.plan, work.results))
        work.plan, work.results, work.proposals = None, {}, {}
    elif judgement.step is not None:
        _retry(work, work.plan, judgement.step, judgement.arguments)


def _retry(
    work: WorkState, plan: Plan, number: int, arguments: dict[str, JsonValue] | None
) -> None:
    for again in plan.after(number):
        work.results.pop(again, None)
        work.proposals.pop(again, None)
    if arguments is not None:
        work.proposals[number] = Proposal(plan.step(number).executor, arguments)
