"""The state of a pipeline, computed from its recorded steps. Pure.

The fields of a step say what it is:

    role                an answer of that role: one call, whose result is `accepted` or an error; an
                        executor's answer is the call that it proposes for `plan_step`
    made: run           calls for steps of the plan, in parallel; their ids are `step_N`
    made: ask           a question to the person; an answer to it starts another turn
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
"""The number of the only step, where no plan is needed."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step of the plan."""

    text: str
    error: str | None = None
    """The kind of failure; None: it succeeded."""
    changed: str = ""
    """Who changed what of its call before it ran, in words."""


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
    """By number of the plan's step."""
    proposals: dict[int, Proposal] = field(default_factory=dict)
    judgement: Judgement | None = None
    """The last one, if it ends the turn: with an answer, or with a question to the person."""
    retries: int = 0
    """Retried steps and plans since a person was asked last."""
    lessons: list[str] = field(default_factory=list)
    """Why earlier attempts were not good enough, oldest first."""
    given_up: list[tuple[Plan, dict[int, StepResult]]] = field(default_factory=list)
    """Abandoned plans, with their results."""
    wrong: dict[int, list[Step]] = field(default_factory=dict)
    """Consecutive invalid answers: of an executor by its step, of others at 0."""
    finished: ToolCallRecord | None = None
    """The call of `finish`: there is nothing to do."""
    running: Step | None = None
    """The step that has calls without result."""
    waits: bool = False
    """A question was sent in this turn."""
    said: ToolCallRecord | None = None
    """The answer, whether it was sent or failed to be."""
    steered: list[Steering] = field(default_factory=list)
    """Messages of people since the turn started that a role was shown."""

    @property
    def texts(self) -> dict[int, str]:
        """The results of the steps that have succeeded."""
        return {n: r.text for n, r in self.results.items() if r.error is None}


def call_id(number: int) -> str:
    """The id of the call that runs a step of the plan."""
    return f"step_{number}"


def fold(steps: Sequence[Step], config: RolesConfig, earlier: int = 0) -> WorkState:
    """The state after `steps`; the first `earlier` of them are from earlier turns, which ended with
    a question that is answered now.
    """
    work = WorkState()
    for position, step in enumerate(steps):
        if any(call.result is None for call in step.calls):
            work.running = step
        if position >= earlier:  # messages in earlier turns are in the conversation
            work.steered += step.steered
        match step.made:
            case "run":
                _ran(work, step)
            case "ask" | "confirm":
                _asked(work, answered=position < earlier)
            case "say":
                work.said = step.calls[0]
            case None:
                _answered(work, step, config)
    return work


def _ran(work: WorkState, step: Step) -> None:
    for call in step.calls:
        found = _CALL_ID.match(call.id)
        if found and call.result is not None:
            work.results[int(found[1])] = StepResult(
                call.result, call.error, describe_changes(call)
            )


def _asked(work: WorkState, *, answered: bool) -> None:
    if not answered:
        work.waits = True
        return
    work.judgement, work.retries = None, 0
    if work.plan is None:
        work.route = None


def _answered(work: WorkState, step: Step, config: RolesConfig) -> None:
    number = step.plan_step or 0
    call = step.calls[0] if len(step.calls) == 1 else None
    if call is None or call.error is not None or not isinstance(call.arguments, dict):
        work.wrong.setdefault(number, []).append(step)
        return
    work.wrong.pop(number, None)
    if call.name == FINISH:
        work.finished = call
        return
    match step.role:
        case "router":
            _routed(work, Route.model_validate(call.arguments), config)
        case "planner":
            _planned(work, Plan.model_validate(call.arguments))
        case "executor":
            work.proposals[number or ONLY] = Proposal(call.name, call.arguments)
            if work.plan is None:
                only = PlanStep(id=ONLY, goal=call.name, executor=call.name)
                work.plan = Plan(steps=(only,))
        case "reflector":
            _judged(work, Judgement.model_validate(call.arguments), config)


def _routed(work: WorkState, route: Route, config: RolesConfig) -> None:
    work.route = route
    if route.confidence >= config.min_confidence and route.target not in (ANSWER, MAKE_PLAN):
        goal = route.request or route.target
        work.plan = Plan(steps=(PlanStep(id=ONLY, goal=goal, executor=route.target),))


def _planned(work: WorkState, plan: Plan) -> None:
    work.plan, work.results, work.proposals = plan, {}, {}


def _judged(work: WorkState, judgement: Judgement, config: RolesConfig) -> None:
    again = judgement.verdict in ("retry_step", "replan")
    if work.plan is None or not again or work.retries >= config.max_retries:
        work.judgement = judgement
        return
    work.retries += 1
    work.lessons.append(judgement.reasoning)
    if judgement.verdict == "replan":
        work.given_up.append((work.plan, work.results))
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
