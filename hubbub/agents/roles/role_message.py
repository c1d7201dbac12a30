"""The user message of roles: the conversation, who can do what, and the state of the work. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.budget import UserMessage, bare_spec, short_spec
from hubbub.agents.prompt.context import ParticipantSummary
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.roles.pipeline import AskRole
from hubbub.agents.roles.plan import Plan
from hubbub.agents.roles.state import StepResult, WorkState

__all__ = ["LEVELS", "DetailLevel", "RoleMessage", "executors_element", "role_prompt"]

_BEGIN, _END = "<conversation>", "</conversation>"
"""These occur once in a conversation, because participants' text is escaped."""


@dataclass(frozen=True, slots=True)
class DetailLevel:
    """How much of the executors and of the work is shown."""

    result: int = 4000
    """Characters of a step's result that other roles see; references stand for all of it."""
    executors: Literal["all", "short", "names"] = "all"
    earlier: bool = True
    """Whether abandoned plans are shown."""


LEVELS = (
    DetailLevel(),
    DetailLevel(1000, "short"),
    DetailLevel(200, "short"),
    DetailLevel(200, "names"),
    DetailLevel(60, "names", earlier=False),
)
"""From full detail to the least; a later one is used if the window is too small."""
_MARK = 40
"""Characters that a cut has to save: its marker takes some, too."""
_EARLY = 2
"""Levels that are used before the last messages of the incoming thread are left out."""


class RoleMessage:
    """The user message of a role. If not all fits, this is left out in order: older messages,
    details of executors and long results, the last messages, then more details. Goals of steps,
    judgements and incoming messages stay. See `hubbub.agents.prompt.budget.UserMessage`.
    """

    def __init__(
        self,
        conversation: UserMessage,
        tools: Sequence[ToolSpec],
        agents: Sequence[ParticipantSummary],
        consult: AskRole,
    ):
        self._conversation, self._consult = conversation, consult
        self._tools, self._agents = tools, agents
        self._texts: dict[int, str] = {}

    @property
    def text(self) -> str:
        """The full text."""
        return self.without(0)

    @property
    def messages(self) -> int:
        """How often something may be left out: a message each time, or a level of detail."""
        return self._conversation.messages + len(LEVELS) - 1

    @property
    def spare(self) -> int:
        """All of that: the rest must be asked with the whole tool that answers it."""
        return self.messages

    def without(self, n: int) -> str:
        """The text after leaving something out `n` times."""
        if n not in self._texts:
            self._texts[n] = self._rendered(*self._left(n))
        return self._texts[n]

    def _left(self, n: int) -> tuple[int, int]:
        """The number of hidden messages, and the level of detail."""
        spare, every = self._conversation.spare, self._conversation.messages
        early = min(max(n - spare, 0), _EARLY)
        late = max(n - every - _EARLY, 0)
        return n - early - late, early + late

    def _rendered(self, hidden: int, level: int) -> str:
        detail = LEVELS[level]
        executors = executors_element(self._tools, self._agents, detail)
        return role_prompt(self._conversation.without(hidden), executors, self._consult, detail)


def executors_element(
    tools: Iterable[ToolSpec], agents: Iterable[ParticipantSummary], detail: DetailLevel = LEVELS[0]
) -> str:
    """The executors as part of a prompt. Agents' self-descriptions are escaped."""
    lines = [
        *(_tool(tool, detail.executors) for tool in tools),
        *(_agent(agent, detail.executors) for agent in agents),
    ]
    return "\n".join(["<executors>", *lines, "</executors>"])


def _tool(tool: ToolSpec, words: Literal["all", "short", "names"]) -> str:
    if words == "names":
        return f'<tool name="{tool.name}">{escaped(bare_spec(tool).description).text}</tool>'
    spec = tool if words == "all" else short_spec(tool)
    about = escaped(f"{spec.description} Arguments: {spec.offered_text}").text
    return f'<tool name="{tool.name}">{about}</tool>'


def _agent(agent: ParticipantSummary, words: Literal["all", "short", "names"]) -> str:
    if words == "names":
        return f'<agent id="{agent.id}"/>'
    about = [agent.description] if agent.description and words == "all" else []
    about += [f"skills: {', '.join(agent.skills)}"] if agent.skills else []
    return f'<agent id="{agent.id}">{"; ".join(about)}</agent>'


def role_prompt(
    conversation: str, executors: str, consult: AskRole, detail: DetailLevel = LEVELS[0]
) -> str:
    """The user message of a role: the conversation, executors, the state of the work, and messages
    from people since it started.
    """
    shown, end, _ = conversation.partition(_END)
    _, begin, shown = shown.rpartition(_BEGIN)  # drops the text around it
    parts = [f"{begin}{shown}{end}".rstrip()]
    if consult.role in ("router", "planner"):
        parts.append(executors)
    work = consult.work
    if work.plan is not None or work.given_up or work.lessons:
        parts.append("\n".join(["<work>", *_work(work, detail), "</work>"]))
    parts += [message.text for message in consult.all_steering]
    parts.append(_task(consult))
    return "\n\n".join(parts)


def _task(consult: AskRole) -> str:
    plan = consult.work.plan
    match consult.role:
        case "router":
            return "Who does what the incoming message asks for?"
        case "planner":
            again = " The plans in <work> did not lead there." if consult.work.given_up else ""
            return f"What is to be done for the incoming message?{again}"
        case "executor":
            if plan is None or consult.number is None:
                return "Make the one call that the incoming message asks for."
            goal = escaped(plan.step(consult.number).goal).text
            return f"Make the call for step {consult.number}: {goal}"
        case "reflector":
            return "Judge the work." if plan is not None else "Judge the incoming message."


def _work(work: WorkState, detail: DetailLevel) -> Iterator[str]:
    for plan, results in work.given_up if detail.earlier else ():
        yield from _plan("earlier_plan", plan, results, detail)
    for lesson in work.lessons:
        yield f"<judgement>{escaped(lesson).text}</judgement>"
    if work.plan is not None:
        yield from _plan("plan", work.plan, work.results, detail)


def _plan(
    name: str, plan: Plan, results: Mapping[int, StepResult], detail: DetailLevel
) -> Iterator[str]:
    yield f"<{name}>"
    for step in plan.steps:
        given = json.dumps(step.arguments, ensure_ascii=False) if step.arguments else ""
        goal = escaped(" ".join(filter(None, (step.goal, given)))).text
        head = f'<step id="{step.id}" executor="{escaped(step.executor)}"'
        yield f"{head}>{goal}</step>"
        yield _result(step.id, results.get(step.id), detail.result)
    yield f"</{name}>"


def _result(number: int, result: StepResult | None, most: int) -> str:
    if result is None:
        return f'<result step="{number}" outcome="not run"/>'
    outcome = "succeeded" if result.error is None else f"failed: {result.error}"
    whole = "\n".join(filter(None, (result.changed, result.text)))
    text = escaped(_cut(whole, most)).text
    return f'<result step="{number}" outcome="{escaped(outcome)}">{text}</result>'


def _cut(text: str, most: int) -> str:
    if len(text) <= most + _MARK:
        return text
    half = most // 2
    return f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"
