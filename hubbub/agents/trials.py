"""Trials: asks a model once more for the first step of a recorded turn, for the agent's owner to
see.

The prompt is the recorded one, optionally with another system message or for another model. Tools
are described as they are now; none of the calls is carried out, nothing is sent, and no turn
starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from hubbub.agents.dialects.text_dialect import TextDialect
from hubbub.agents.models.base import ChatModel, Completion, CompletionRequest, ToolSpec
from hubbub.agents.models.providers import open_model
from hubbub.agents.parts import context_rules
from hubbub.agents.prompt.budget import ContextBudget, ContextRules, FixedMessage
from hubbub.agents.prompt.scratchpad import ThinkingModel, without_thoughts
from hubbub.agents.prompt_client import (
    DIALECTS,
    DescribeTools,
    DialectChoice,
    PromptClient,
    first_tool,
    initial_tools,
)
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.chat import chat_messages
from hubbub.agents.turn.loop import FINISH, hold_back
from hubbub.agents.turn.record_limits import within_limits
from hubbub.agents.turn.steps import TurnClock, step_of
from hubbub.client import Client
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.config.problems import nearest
from hubbub.errors import ConfigError, ConnectionLost, ModelError, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.agents import Trial, TurnTried
from hubbub.protocol.frames import Ready
from hubbub.protocol.turns import Step, Turn

__all__ = ["TrialRunner", "TurnTrials"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Asks a model as an agent with one model would. `tools` makes its toolbox."""

    config: AgentConfig
    models: Mapping[str, ModelConfig]
    tools: Callable[[Ready], Toolbox]
    scratchpad: bool
    """Whether the model may think in `<scratchpad>` before it acts."""

    async def ask(self, turn: Turn, trial: Trial, ready: Ready) -> tuple[str, Step]:
        """The name of the model at its endpoint, and the first step of the turn as it answers now.

        Raises `ModelError`, also for a model that does not exist and a record without a prompt.
        """
        label = trial.model or self.config.model
        if label not in self.models:
            raise ModelError(f"there is no model {label!r}{nearest(label, self.models)}")
        config = self.models[label].with_settings(self.config.model_settings)
        model = open_model(config, label)
        try:
            thinking = ThinkingModel(model) if self.scratchpad else model
            rules = await self._rules(turn.agent, label)
            return model.name, await self._step(turn, trial, thinking, config, rules, ready)
        finally:
            await model.close()

    async def _rules(self, agent: str, model: str) -> ContextRules:
        """The limits of a prompt for that model."""
        config = self.config.model_copy(update={"model": model})
        try:
            return await context_rules(config, agent, self.models[model])
        except ConfigError as exc:
            raise ModelError(str(exc)) from exc

    async def _step(
        self,
        turn: Turn,
        trial: Trial,
        model: ChatModel,
        config: ModelConfig,
        rules: ContextRules,
        ready: Ready,
    ) -> Step:
        start = turn.start
        system = turn.system_prompt if trial.system_prompt is None else trial.system_prompt
        if turn.prompt is None:
            raise ModelError("the record of this turn has no prompt")
        clock = TurnClock()
        at = clock.ms
        before = start.continues
        toolbox = self.tools(ready).for_turn()
        wanted = self.config.begin_with
        first = first_tool(toolbox, wanted if not before and wanted in start.tools else None)
        now, then = initial_tools(toolbox, first), {*start.tools, FINISH}

        def as_then(steps: Sequence[Step]) -> Sequence[ToolSpec]:
            return [spec for spec in now(steps) if spec.name in then]

        context_budget = ContextBudget(rules, FixedMessage(turn.prompt), toolbox.writing)
        answer = await _answer(model, config, start.dialect, system or "", context_budget, as_then)
        if self.scratchpad:  # a dialect may have hidden thoughts until it was parsed
            answer = without_thoughts(answer)
        notes = [*_missing(start.tools, toolbox.names)]
        if before:
            notes.append(f"the steps of {before}, which the turn continues, were not shown")
        answer = replace(answer, notes=(*notes, *answer.notes))
        step = step_of(answer, 1, sorted({*start.tools, FINISH}), at, clock.since(at))
        return hold_back(step, (), first)


async def _answer(
    model: ChatModel,
    config: ModelConfig,
    dialect: str | None,
    system: str,
    context_budget: ContextBudget,
    offers: DescribeTools,
) -> Completion:
    """In a text dialect the recorded system message has the tools, so it is used unchanged."""
    spoken = next((each for each in DIALECTS.values() if each.name == dialect), None)
    if isinstance(spoken, TextDialect):
        fitted = context_budget.fit(
            lambda text, *_: CompletionRequest(chat_messages(system, text, ())), (), ()
        )
        return replace(spoken.read(await model.answer(fitted.question)), window=fitted.window)
    client = PromptClient(model, offers, system, context_budget, DialectChoice(config))
    return await client.ask(())


def _missing(then: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    gone = [name for name in then if name not in now]
    return [f"tools that it had then and has no more: {', '.join(gone)}"] if gone else []


class TurnTrials:
    """Answers the hub's signals `try_turn`. Without a workbench it replies that it cannot."""

    def __init__(self, client: Client, runner: TrialRunner | None = None):
        self._client, self._runner = client, runner

    async def take(self, data: JsonValue) -> None:
        """Handle the data of such a signal."""
        trial = Trial.model_validate(data)
        tried = await self._tried(trial)
        try:
            await self._client.call("turn_tried", **dict(tried))
        except OperationError as exc:  # the owner left, or it took too long
            log.info("tried turn no longer awaited", turn=trial.turn, error=str(exc))
        except ConnectionLost:
            return  # the hub notifies the waiting owner

    async def _tried(self, trial: Trial) -> TurnTried:
        client, request = self._client, trial.request
        if self._runner is None:
            return TurnTried(request=request, error=_CANNOT)
        try:
            async with asyncio.timeout(trial.within_s):
                turn = Turn.model_validate(await client.call("read_turn", id=trial.turn))
                model, step = await self._runner.ask(turn, trial, client.ready)
        except TimeoutError:
            why = f"the model has not answered within {trial.within_s:g} s"
            return TurnTried(request=request, error=why)
        except (ModelError, OperationError, ConnectionLost) as exc:
            return TurnTried(request=request, error=str(exc) or type(exc).__name__)
        except Exception as exc:  # the agent continues after any error
            log.warning("a turn could not be tried", turn=trial.turn, exc_info=exc)
            return TurnTried(request=request, error=f"the trial failed: {type(exc).__name__}")
        short = within_limits(step.model_dump(mode="json"), client.hello.limits)
        return TurnTried(request=request, model=model, step=Step.model_validate(short))


_CANNOT = "an agent of this kind does not try turns again: only one that is a single model does"
