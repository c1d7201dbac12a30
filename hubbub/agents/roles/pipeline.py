"""Roles in one turn, as a pure state machine: events go in, commands come out.

    pipeline = RolePipeline(rules, executors, steps, earlier)
    commands = pipeline.start()                       Record, AskRole, RunTools, Park, End
    commands = pipeline.answered([answered])
    commands = pipeline.ran(results)

The next command depends only on the recorded steps (`hubbub.agents.roles.state`), so a resumed
turn, or one that continues after a question, continues where the record ends.

    kind         behaviour
    router       route; run it; report the result
    planner      plan; report the plan
    executor     one call; report the result
    reflector    judge; report the judgement
    pipeline     route; plan; run ready steps in parallel until none remain; judge, unless the
                 router chose a single executor, which succeeded:
                 accept -> send the answer, retry_step -> run it again, replan -> plan,
                 escalate -> ask the person, and judge again in the turn that the answer starts

    at any time                                            next
    the router is not confident                            ask the person
    a role's answer is invalid, first time                 query the role again
    ... second time                                        end: no_action
    the first role calls `finish`                          end: finished
    retries used up                                        ask the person
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from pydantic import JsonValue

from hubbub.agents.roles.plan import (
    ANSWER,
    JUDGE,
    MAKE_PLAN,
    ROUTE,
    SUBMIT_PLAN,
    InvalidAnswer,
    InvalidPlan,
    Judgement,
    Plan,
    PlanStep,
    Route,
    fill_arguments,
    fill_text,
    read,
    unresolved,
)
from hubbub.agents.roles.state import ONLY, WorkState, call_id, fold
from hubbub.agents.tools.ask_agent import ASK_AGENT
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.standard_tools import ASK_HUMAN, REPLY
from hubbub.agents.turn.continuation import waiting_reason
from hubbub.agents.turn.loop import (
    FINISH,
    Command,
    End,
    QueryModel,
    Record,
    RunTools,
    TimedCompletion,
    park,
)
from hubbub.agents.turn.steps import CallResult, failure, step_of, with_result
from hubbub.config.agents import RolesConfig
from hubbub.config.problems import nearest
from hubbub.protocol.turns import Made, Role, Steering, Step, ToolCallRecord

__all__ = ["AskRole", "Executors", "Kind", "PipelineRules", "RolePipeline"]

Kind = Literal["router", "planner", "executor", "reflector", "pipeline"]
_FIRST: Mapping[Kind, Role] = {
    "router": "router",
    "planner": "planner",
    "executor": "executor",
    "reflector": "reflector",
    "pipeline": "router",
}
_TOOL: Mapping[Role, str] = {"router": ROUTE, "planner": SUBMIT_PLAN, "reflector": JUDGE}


@dataclass(frozen=True, slots=True)
class PipelineRules:
    """The kind of agent and its limits."""

    kind: Kind = "pipeline"
    config: RolesConfig = field(default_factory=RolesConfig)
    may_finish: bool = True
    """Whether it can end without a reply, because none is required."""
    max_tokens: int | None = None
    """Input and output of all roles in one turn; None: no limit."""


@dataclass(frozen=True, slots=True)
class Executors:
    """Tools, with the schemas of their arguments by name, and agents that can carry out steps."""

    tools: Mapping[str, Mapping[str, JsonValue]]
    agents: Sequence[str] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names. A tool takes precedence over an agent of the same name."""
        return tuple(dict.fromkeys((*self.tools, *self.agents)))


@dataclass(frozen=True, slots=True)
class AskRole(QueryModel):
    """Query the model of `role`; its answer becomes step `n`."""

    role: Role
    work: WorkState
    number: int | None = None
    """For an executor: the plan's step that needs arguments; None: it chooses among all tools."""
    may_finish: bool = False

    def with_steering(self, steering: Sequence[Steering]) -> Self:
        """The same query with these messages. The role cannot finish if they require a reply."""
        may_finish = self.may_finish and not _wants_reply(steering)
        return replace(self, steering=tuple(steering), may_finish=may_finish)

    @property
    def all_steering(self) -> tuple[Steering, ...]:
        """All messages from people since the turn started, which the prompt shows."""
        return (*self.work.steered, *self.steering)

    @property
    def invalid(self) -> Sequence[Step]:
        """The role's invalid answers so far, without the messages that the prompt shows."""
        steps = self.work.invalid.get(self.number or 0, ())
        return [step.model_copy(update={"steered": ()}) for step in steps]


class RolePipeline:
    """The state of one turn. Every method returns the commands to carry out, in order; several
    `AskRole` commands run in parallel.
    """

    def __init__(
        self,
        rules: PipelineRules,
        executors: Executors,
        steps: Sequence[Step] = (),
        earlier: Sequence[Step] = (),
    ):
        """`earlier` are the steps of previous turns, which led to the question that was answered
        now. `steps` were recorded in this turn by an earlier process.
        """
        self.steps = [*earlier, *steps]
        self._earlier = len(earlier)
        self._rules, self._executors = rules, executors

    def start(self) -> list[Command]:
        """The first commands, or those that follow the steps of an earlier process."""
        return self._next(again=True)

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """Process the models' answers to the last queries, in the same order."""
        recorded: list[Command] = []
        for index, completion in enumerate(answers):
            step = self._checked_step(completion)
            if index == 0:  # all queries showed the same messages, which are recorded once
                step = step.model_copy(update={"steered": completion.query.steering})
            self.steps.append(step)
            recorded.append(Record(step))
        return [*recorded, *self._next()]

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """Process the results of the last `RunTools`, one for each call."""
        by_id, last = {r.id: r for r in results}, self.steps[-1]
        calls = tuple(with_result(c, by_id.get(c.id)) for c in last.calls)
        update = {"calls": calls, "notes": (*last.notes, *notes)}
        self.steps[-1] = last.model_copy(update=update)
        parked = park(results, last.n)
        record = Record(self.steps[-1])
        return [record, *self._next()] if parked is None else [record, parked]

    # Deciding -----------------------------------------------------------------------------------

    def _next(self, *, again: bool = False) -> list[Command]:
        work = fold(self.steps, self._rules.config, self._earlier)
        if work.running is not None:
            open_calls = tuple(c for c in work.running.calls if c.result is None)
            return [RunTools(work.running, open_calls, again)]
        if work.finished is not None:
            given = work.finished.arguments
            reason = given.get("reason") if isinstance(given, dict) else None
            return [End("finished", reason if isinstance(reason, str) else "")]
        if work.reply is not None:
            return [End("finished", _end_reason(work.reply, "answered"))]
        if work.has_asked:
            asked = self.steps[-1].calls[0]
            return [End("finished", _end_reason(asked, waiting_reason(asked.arguments)))]
        if unusable := next((w for w in work.invalid.values() if len(w) > 1), None):
            reason = f"the {unusable[-1].role} gave no valid answer, even after a correction"
            return [End("no_action", reason, unusable[-1].text)]
        following = self._advance(work)
        used = sum(step.tokens_in + step.tokens_out for step in self.steps[self._earlier :])
        limit = self._rules.max_tokens
        if limit is not None and used >= limit and isinstance(following[0], AskRole):
            return [End("max_steps", f"not finished after {used} tokens (at most {limit})")]
        return following

    def _advance(self, work: WorkState) -> list[Command]:
        if work.plan is not None:
            return self._advance_plan(work, work.plan)
        route, kind = work.route, self._rules.kind
        if kind == "reflector" and work.judgement is not None:
            score = work.judgement.score(self._rules.config.criteria)
            verdict = f"{score:g} of 5, {work.judgement.verdict}: {work.judgement.reasoning}"
            return self._say(verdict)
        if route is None and not work.abandoned:
            return self._ask_role(work, _FIRST[kind])
        if route is not None and route.confidence < self._rules.config.min_confidence:
            question = (
                route.question or f"I am not sure what to do. Shall I hand it to {route.target}?"
            )
            return self._ask(question, route.options)
        if route is not None and route.target == ANSWER:
            return self._say(route.request)
        return self._ask_role(work, "planner")

    def _advance_plan(self, work: WorkState, plan: Plan) -> list[Command]:
        if self._rules.kind == "planner":
            return self._say(_outline(plan))
        ready = plan.ready(work.texts, work.results)
        if incomplete := [s.id for s in ready if self._lacks_arguments(work, s)]:
            n = self._n
            return [AskRole(n + i, "executor", work, id) for i, id in enumerate(incomplete)]
        if ready:
            return self._run(work, ready)
        is_simple = work.route is not None and work.route.target in self._executors.names
        skips_judging = is_simple and not self._rules.config.judge_simple and _succeeded(work)
        if self._rules.kind != "pipeline" or skips_judging:
            return self._say(_outcome(work))
        judgement = work.judgement
        if judgement is None:
            return self._ask_role(work, "reflector")
        if judgement.verdict == "accept":
            answer = fill_text(judgement.answer, work.texts).strip()
            return self._say(answer or _outcome(work))
        question = judgement.question or f"I could not get it done: {judgement.reasoning}"
        return self._ask(
            fill_text(question, work.texts),
            [fill_text(option, work.texts) for option in judgement.options],
        )

    @property
    def _n(self) -> int:
        return self.steps[-1].n + 1 if self.steps else 1

    def _ask_role(self, work: WorkState, role: Role) -> list[Command]:
        first = not work.abandoned and work.plan is None and work.route is None
        required = not self._rules.may_finish or _wants_reply(work.steered)
        return [AskRole(self._n, role, work, None, first and not required and not self._earlier)]

    # Steps of the runtime -----------------------------------------------------------------------

    def _run(self, work: WorkState, ready: Sequence[PlanStep]) -> list[Command]:
        return self._runtime_step("run", [self._call(work, step) for step in ready])

    def _call(self, work: WorkState, step: PlanStep) -> ToolCallRecord:
        id = call_id(step.id)
        if step.executor not in self._executors.tools:
            text = fill_text(step.goal, work.texts)
            request: dict[str, JsonValue] = {"agent": step.executor, "text": text}
            return ToolCallRecord(id=id, name=ASK_AGENT, arguments=request)
        proposal = work.proposals.get(step.id)
        template = proposal.arguments if proposal is not None else step.arguments or {}
        schema = self._executors.tools[step.executor]
        arguments = fill_arguments(template, work.texts, schema)
        return ToolCallRecord(id=id, name=step.executor, arguments=arguments)

    def _lacks_arguments(self, work: WorkState, step: PlanStep) -> bool:
        has_arguments = step.arguments is not None or step.id in work.proposals
        return not has_arguments and step.executor in self._executors.tools

    def _ask(self, question: str, options: Sequence[str]) -> list[Command]:
        asked: dict[str, JsonValue] = {"question": question, "options": list(options)}
        return self._runtime_step(
            "ask", [ToolCallRecord(id="ask", name=ASK_HUMAN, arguments=asked)]
        )

    def _say(self, text: str) -> list[Command]:
        arguments: dict[str, JsonValue] = {"text": text}
        return self._runtime_step(
            "say", [ToolCallRecord(id="say", name=REPLY, arguments=arguments)]
        )

    def _runtime_step(self, made: Made, calls: Sequence[ToolCallRecord]) -> list[Command]:
        step = Step(n=self._n, calls=tuple(calls), made=made)
        self.steps.append(step)
        return [Record(step), RunTools(step, step.calls, again=False)]

    # Answers of the models ----------------------------------------------------------------------

    def names(self, query: AskRole) -> tuple[str, ...]:
        """The names of the tools that the role can call."""
        finish = (FINISH,) if query.may_finish else ()
        return (*self._tools(query), *finish)

    def _tools(self, query: AskRole) -> tuple[str, ...]:
        if query.role != "executor":
            return (_TOOL[query.role],)
        plan = query.work.plan
        if plan is None or query.number is None:
            return tuple(self._executors.tools)
        return (plan.step(query.number).executor,)

    def _checked_step(self, completion: TimedCompletion) -> Step:
        """The answer's step. Its call has the result `accepted` or an error message."""
        query = completion.query
        assert isinstance(query, AskRole), "a pipeline has no other queries"
        names = self.names(query)
        step = step_of(completion.answer, query.n, names, completion.at_ms, completion.duration_ms)
        calls = tuple(self._checked_call(call, len(step.calls), query) for call in step.calls)
        update = {"role": query.role, "plan_step": query.number}
        if step.reasoning is None and query.role != "executor":
            step = step.model_copy(update={"reasoning": _reasoning(calls)})
        return step.model_copy(update={"calls": calls, **update})

    def _checked_call(self, call: ToolCallRecord, calls: int, query: AskRole) -> ToolCallRecord:
        if call.result is not None:
            return call
        result, error = "accepted", None
        try:
            if calls > 1:
                raise InvalidAnswer(f"there are {calls} calls; make exactly one")
            if call.name != FINISH:
                self._check(query, call)
        except (InvalidAnswer, InvalidPlan) as exc:
            error = "invalid_arguments"
            result = failure(error, str(exc), retry=True)
        return call.model_copy(update={"result": result, "error": error})

    def _check(self, query: AskRole, call: ToolCallRecord) -> None:
        """Raises `InvalidAnswer` or `InvalidPlan`."""
        arguments = call.arguments
        match query.role:
            case "router":
                route, targets = read(Route, arguments), self.targets
                if route.target not in targets:
                    hint = nearest(route.target, targets)
                    raise InvalidAnswer(f"target: there is no {route.target!r}{hint}")
                _check_references([route.request, route.question, *route.options], ())
            case "planner":
                max_steps = self._rules.config.max_plan_steps
                read(Plan, arguments).validate_for(self._executors.names, max_steps)
            case "reflector":
                self._check_judgement(read(Judgement, arguments), query.work)
            case "executor":
                assert isinstance(arguments, dict), "other arguments are already refused"
                self._check_call(query.work, call.name, arguments)

    def _check_call(self, work: WorkState, tool: str, arguments: Mapping[str, JsonValue]) -> None:
        """Validate by the tool's own schema, while the role can still correct the call."""
        from hubbub.agents.tools.validation import ArgumentCheck  # a slow import

        schema = self._executors.tools[tool]
        _check_references([*arguments.values()], work.texts)
        try:
            ArgumentCheck(schema).check(fill_arguments(arguments, work.texts, schema))
        except ToolFailed as exc:
            if exc.error == "invalid_arguments":
                raise InvalidAnswer(exc.message) from exc
        except ValueError:
            return  # the schema is invalid; running the call reports that

    def _check_judgement(self, judgement: Judgement, work: WorkState) -> None:
        texts = (judgement.answer, judgement.question, judgement.reasoning, *judgement.options)
        _check_references(texts, work.texts)
        config, is_accepted = self._rules.config, judgement.verdict == "accept"
        score = judgement.score(config.criteria)
        if is_accepted and score < config.min_score:
            raise InvalidAnswer(
                f"scores: {score:g} together is not good enough to accept, which takes"
                f" {config.min_score:g}; give another verdict, or the scores that are deserved"
            )
        plan = work.plan
        if plan is None:
            return
        if judgement.verdict == "retry_step":
            self._check_retry(judgement, work, plan)
        elif is_accepted and not judgement.answer.strip():
            raise InvalidAnswer("the verdict accept needs `answer`, which the person will read")

    def _check_retry(self, judgement: Judgement, work: WorkState, plan: Plan) -> None:
        retried = next((step for step in plan.steps if step.id == judgement.step), None)
        if retried is None:
            ids = [step.id for step in plan.steps]
            raise InvalidAnswer(f"step: there is no step {judgement.step}; the steps are {ids}")
        if judgement.arguments is not None and retried.executor in self._executors.tools:
            self._check_call(work, retried.executor, judgement.arguments)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that a router can choose from."""
        plan = (MAKE_PLAN,) if self._rules.kind == "pipeline" else ()
        return (*self._executors.names, *plan, ANSWER)


def _check_references(values: Sequence[JsonValue], results: Collection[int]) -> None:
    """Raises `InvalidAnswer` if text to send or run has a reference without a result."""
    error = unresolved(values, results)
    if error is not None:
        raise InvalidAnswer(error)


def _wants_reply(steering: Iterable[Steering]) -> bool:
    return any(message.reply == "required" for message in steering)


def _end_reason(call: ToolCallRecord, reason: str) -> str:
    """The turn's reason after a call that sent a message, or failed to."""
    return reason if call.error is None else f"{call.name} failed: {call.result}"


def _outcome(work: WorkState) -> str:
    """The result of the last step with one."""
    number, result = max(work.results.items())
    if result.error is None:
        return result.text or "done"
    what = f"step {number}" if number != ONLY or len(work.results) > 1 else "it"
    return f"I could not do {what}: {result.text}"


def _outline(plan: Plan) -> str:
    """A plan as text for people."""
    return "\n".join(_line(plan, step) for step in plan.steps)


def _line(plan: Plan, step: PlanStep) -> str:
    needs = ", ".join(str(n) for n in sorted(plan.needs(step.id)))
    after = f", after {needs}" if needs else ""
    results = {other.id: f"the result of step {other.id}" for other in plan.steps}
    return f"{step.id}. {fill_text(step.goal, results)} ({step.executor}{after})"


def _reasoning(calls: Iterable[ToolCallRecord]) -> str | None:
    """The role's own reason for its answer."""
    arguments = (call.arguments for call in calls)
    reasons = (each.get("reasoning") for each in arguments if isinstance(each, dict))
    return next((text for text in reasons if isinstance(text, str) and text), None)


def _succeeded(work: WorkState) -> bool:
    return all(result.error is None for result in work.results.values())
