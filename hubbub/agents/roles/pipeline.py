"""Roles in one turn, as a pure state machine: events go in, commands come out.

    pipeline = Pipeline(rules, executors, steps, earlier)
    commands = pipeline.start()                       Record, AskRole, RunTools, Park, End
    commands = pipeline.answered([answered])
    commands = pipeline.ran(results)

The next command depends on the recorded steps alone (`hubbub.agents.roles.state`), so a resumed
turn, or one that continues after a question, continues where the record ends.

    kind         what it does
    router       route; run it; report the result
    planner      plan; report the plan
    executor     one call; report the result
    reflector    judge; report the judgement
    pipeline     route; plan; run ready steps in parallel until there are none; judge, unless the
                 router chose a single executor and that succeeded:
                 accept -> send the answer, retry_step -> run it again, replan -> plan,
                 escalate -> ask the person, and judge again in the turn that the answer starts

    at any time                                            next
    a router that is not sure                              ask the person
    an invalid answer of a role, once                      ask the role again
    ... twice                                              end: no_action
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
    Judgement,
    Plan,
    PlanStep,
    Route,
    WrongAnswer,
    WrongPlan,
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
    """The kind of agent, and its limits."""

    kind: Kind = "pipeline"
    config: RolesConfig = field(default_factory=RolesConfig)
    may_finish: bool = True
    """Whether it may do nothing: no reply is required."""
    max_tokens: int | None = None
    """Of all roles in one turn, input and output; None: no limit."""


@dataclass(frozen=True, slots=True)
class Executors:
    """Who can carry out steps: tools, by name with the schema of their arguments, and agents."""

    tools: Mapping[str, Mapping[str, JsonValue]]
    agents: Sequence[str] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them. A tool takes precedence over an agent of the same name."""
        return tuple(dict.fromkeys((*self.tools, *self.agents)))


@dataclass(frozen=True, slots=True)
class AskRole(QueryModel):
    """Ask the model of `role`; the answer becomes step `n`."""

    role: Role
    work: WorkState
    number: int | None = None
    """executor: the step of the plan that it fills in; None: it chooses among all tools."""
    may_finish: bool = False

    def with_steering(self, steering: Sequence[Steering]) -> Self:
        """The same role with these messages. It may not finish if a reply is required."""
        may_finish = self.may_finish and not _wants_reply(steering)
        return replace(self, steering=tuple(steering), may_finish=may_finish)

    @property
    def all_steering(self) -> tuple[Steering, ...]:
        """All messages that people sent since the turn started; its prompt shows them."""
        return (*self.work.steered, *self.steering)

    @property
    def wrong(self) -> Sequence[Step]:
        """Its invalid answers so far, without the messages that its prompt shows."""
        steps = self.work.wrong.get(self.number or 0, ())
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
        """`earlier` are the steps of the turns before, which led to the question that is answered
        now. `steps` were recorded in this turn by an earlier process.
        """
        self.steps = [*earlier, *steps]
        self._earlier = len(earlier)
        self._rules, self._executors = rules, executors

    def start(self) -> list[Command]:
        """The first commands, or those that follow from the steps of an earlier process."""
        return self._next(again=True)

    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]:
        """The models have answered the questions of the last commands, in that order."""
        recorded: list[Command] = []
        for place, given in enumerate(answers):
            step = self._judged(given)
            if place == 0:  # all were shown the same messages, which are recorded once
                step = step.model_copy(update={"steered": given.query.steering})
            self.steps.append(step)
            recorded.append(Record(step))
        return [*recorded, *self._next()]

    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]:
        """The calls of the last `RunTools` have run: one result for each."""
        by_id, last = {r.id: r for r in results}, self.steps[-1]
        calls = tuple(with_result(c, by_id.get(c.id)) for c in last.calls)
        update = {"calls": calls, "notes": (*last.notes, *notes)}
        self.steps[-1] = last.model_copy(update=update)
        parked = park(results, last.n)
        ran = Record(self.steps[-1])
        return [ran, *self._next()] if parked is None else [ran, parked]

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
        if work.said is not None:
            return [End("finished", _after(work.said, "answered"))]
        if work.waits:
            asked = self.steps[-1].calls[0]
            return [End("finished", _after(asked, waiting_reason(asked.arguments)))]
        if unusable := next((w for w in work.wrong.values() if len(w) > 1), None):
            reason = (
                f"the {unusable[-1].role} gave no answer that could be used, also after being told"
            )
            return [End("no_action", reason, unusable[-1].text)]
        following = self._advance(work)
        used = sum(step.tokens_in + step.tokens_out for step in self.steps[self._earlier :])
        most = self._rules.max_tokens
        if most is not None and used >= most and isinstance(following[0], AskRole):
            return [End("max_steps", f"not finished after {used} tokens (at most {most})")]
        return following

    def _advance(self, work: WorkState) -> list[Command]:
        if work.plan is not None:
            return self._work_on(work, work.plan)
        route, kind = work.route, self._rules.kind
        if kind == "reflector" and work.judgement is not None:
            score = work.judgement.score(self._rules.config.criteria)
            verdict = f"{score:g} of 5, {work.judgement.verdict}: {work.judgement.reasoning}"
            return self._say(verdict)
        if route is None and not work.given_up:
            return self._consult(work, _FIRST[kind])
        if route is not None and route.confidence < self._rules.config.min_confidence:
            question = (
                route.question or f"I am not sure what to do. Shall I hand it to {route.target}?"
            )
            return self._ask(question, route.options)
        if route is not None and route.target == ANSWER:
            return self._say(route.request)
        return self._consult(work, "planner")

    def _work_on(self, work: WorkState, plan: Plan) -> list[Command]:
        if self._rules.kind == "planner":
            return self._say(_outline(plan))
        ready = plan.ready(work.texts, work.results)
        if empty := [s.id for s in ready if self._lacks_arguments(work, s)]:
            n = self._n
            return [AskRole(n + i, "executor", work, id) for i, id in enumerate(empty)]
        if ready:
            return self._run(work, ready)
        simple = work.route is not None and work.route.target in self._executors.names
        skips = simple and not self._rules.config.judge_simple and _succeeded(work)
        if self._rules.kind != "pipeline" or skips:
            return self._say(_outcome(work))
        judgement = work.judgement
        if judgement is None:
            return self._consult(work, "reflector")
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

    def _consult(self, work: WorkState, role: Role) -> list[Command]:
        first = not work.given_up and work.plan is None and work.route is None
        required = not self._rules.may_finish or _wants_reply(work.steered)
        return [AskRole(self._n, role, work, None, first and not required and not self._earlier)]

    # Steps made by the runtime ------------------------------------------------------------------

    def _run(self, work: WorkState, ready: Sequence[PlanStep]) -> list[Command]:
        return self._runtime_step("run", [self._call(work, step) for step in ready])

    def _call(self, work: WorkState, step: PlanStep) -> ToolCallRecord:
        id = call_id(step.id)
        if step.executor not in self._executors.tools:
            text = fill_text(step.goal, work.texts)
            request: dict[str, JsonValue] = {"agent": step.executor, "text": text}
            return ToolCallRecord(id=id, name=ASK_AGENT, arguments=request)
        proposal = work.proposals.get(step.id)
        given = proposal.arguments if proposal is not None else step.arguments or {}
        schema = self._executors.tools[step.executor]
        arguments = fill_arguments(given, work.texts, schema)
        return ToolCallRecord(id=id, name=step.executor, arguments=arguments)

    def _lacks_arguments(self, work: WorkState, step: PlanStep) -> bool:
        known = step.arguments is not None or step.id in work.proposals
        return not known and step.executor in self._executors.tools

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

    def names(self, consult: AskRole) -> tuple[str, ...]:
        """The tools that the role may call."""
        finish = (FINISH,) if consult.may_finish else ()
        return (*self._tools(consult), *finish)

    def _tools(self, consult: AskRole) -> tuple[str, ...]:
        if consult.role != "executor":
            return (_TOOL[consult.role],)
        plan = consult.work.plan
        if plan is None or consult.number is None:
            return tuple(self._executors.tools)
        return (plan.step(consult.number).executor,)

    def _judged(self, given: TimedCompletion) -> Step:
        """The answer's step; its call has a result, which is `accepted` or says what is wrong."""
        consult = given.query
        assert isinstance(consult, AskRole), "nothing else was asked"
        step = step_of(given.answer, consult.n, self.names(consult), given.at_ms, given.duration_ms)
        calls = tuple(self._verdict(call, len(step.calls), consult) for call in step.calls)
        whose = {"role": consult.role, "plan_step": consult.number}
        if step.reasoning is None and consult.role != "executor":
            step = step.model_copy(update={"reasoning": _reasoning(calls)})
        return step.model_copy(update={"calls": calls, **whose})

    def _verdict(self, call: ToolCallRecord, calls: int, consult: AskRole) -> ToolCallRecord:
        if call.result is not None:
            return call
        result, error = "accepted", None
        try:
            if calls > 1:
                raise WrongAnswer(f"there are {calls} calls; make exactly one")
            if call.name != FINISH:
                self._check(consult, call)
        except (WrongAnswer, WrongPlan) as exc:
            error = "invalid_arguments"
            result = failure(error, str(exc), retry=True)
        return call.model_copy(update={"result": result, "error": error})

    def _check(self, consult: AskRole, call: ToolCallRecord) -> None:
        """Raises `WrongAnswer` or `WrongPlan`."""
        arguments = call.arguments
        match consult.role:
            case "router":
                route, known = read(Route, arguments), self.targets
                if route.target not in known:
                    hint = nearest(route.target, known)
                    raise WrongAnswer(f"target: there is no {route.target!r}{hint}")
                _check_references([route.request, route.question, *route.options], ())
            case "planner":
                most = self._rules.config.max_plan_steps
                read(Plan, arguments).checked(self._executors.names, most)
            case "reflector":
                self._check_judgement(read(Judgement, arguments), consult.work)
            case "executor":
                assert isinstance(arguments, dict), "what is no object is wrong already"
                self._check_call(consult.work, call.name, arguments)

    def _check_call(self, work: WorkState, tool: str, arguments: Mapping[str, JsonValue]) -> None:
        """Validate by the tool's own schema: here the role can still correct the call."""
        from hubbub.agents.tools.validation import ArgumentCheck  # a slow import

        schema = self._executors.tools[tool]
        _check_references([*arguments.values()], work.texts)
        try:
            ArgumentCheck(schema).check(fill_arguments(arguments, work.texts, schema))
        except ToolFailed as exc:
            if exc.error == "invalid_arguments":
                raise WrongAnswer(exc.message) from exc
        except ValueError:
            return  # the schema is invalid; running the call reports that

    def _check_judgement(self, judgement: Judgement, work: WorkState) -> None:
        texts = (judgement.answer, judgement.question, judgement.reasoning, *judgement.options)
        _check_references(texts, work.texts)
        config, accepted = self._rules.config, judgement.verdict == "accept"
        score = judgement.score(config.criteria)
        if accepted and score < config.min_score:
            raise WrongAnswer(
                f"scores: {score:g} together is not good enough to accept, which takes"
                f" {config.min_score:g}; give another verdict, or the scores that are deserved"
            )
        plan = work.plan
        if plan is None:
            return
        if judgement.verdict == "retry_step":
            self._check_retry(judgement, work, plan)
        elif accepted and not judgement.answer.strip():
            raise WrongAnswer("the verdict accept needs `answer`, which the person will read")

    def _check_retry(self, judgement: Judgement, work: WorkState, plan: Plan) -> None:
        again = next((step for step in plan.steps if step.id == judgement.step), None)
        if again is None:
            ids = [step.id for step in plan.steps]
            raise WrongAnswer(f"step: there is no step {judgement.step}; the steps are {ids}")
        if judgement.arguments is not None and again.executor in self._executors.tools:
            self._check_call(work, again.executor, judgement.arguments)

    @property
    def targets(self) -> tuple[str, ...]:
        """What a router may choose among."""
        plan = (MAKE_PLAN,) if self._rules.kind == "pipeline" else ()
        return (*self._executors.names, *plan, ANSWER)


def _check_references(values: Sequence[JsonValue], results: Collection[int]) -> None:
    """Raises `WrongAnswer` if text to be sent or run has a reference without a result."""
    wrong = unresolved(values, results)
    if wrong is not None:
        raise WrongAnswer(wrong)


def _wants_reply(steering: Iterable[Steering]) -> bool:
    return any(message.reply == "required" for message in steering)


def _after(call: ToolCallRecord, reason: str) -> str:
    """The turn's reason after something was sent, or failed to be."""
    return reason if call.error is None else f"{call.name} failed: {call.result}"


def _outcome(work: WorkState) -> str:
    """The result of the last step that has one."""
    number, result = max(work.results.items())
    if result.error is None:
        return result.text or "done"
    what = f"step {number}" if number != ONLY or len(work.results) > 1 else "it"
    return f"I could not do {what}: {result.text}"


def _outline(plan: Plan) -> str:
    """A plan as people read it."""
    return "\n".join(_line(plan, step) for step in plan.steps)


def _line(plan: Plan, step: PlanStep) -> str:
    needs = ", ".join(str(n) for n in sorted(plan.needs(step.id)))
    after = f", after {needs}" if needs else ""
    results = {other.id: f"the result of step {other.id}" for other in plan.steps}
    return f"{step.id}. {fill_text(step.goal, results)} ({step.executor}{after})"


def _reasoning(calls: Iterable[ToolCallRecord]) -> str | None:
    """The role's own reason for its answer."""
    given = (call.arguments for call in calls)
    reasons = (each.get("reasoning") for each in given if isinstance(each, dict))
    return next((text for text in reasons if isinstance(text, str) and text), None)


def _succeeded(work: WorkState) -> bool:
    return all(result.error is None for result in work.results.values())
