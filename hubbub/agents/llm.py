"""An agent that is a model: drives the loop with real models, tools and time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hubbub.agents.activity import Activities, Activity
from hubbub.agents.asking import Asker
from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.journal import Journal
from hubbub.agents.loop import AskModel, Command, End, Loop, Record, Rules, RunTools
from hubbub.agents.models.base import Model
from hubbub.agents.prompt.render import ConversationTemplate, render_conversation
from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.client import Client
from hubbub.config.models import AgentConfig
from hubbub.errors import ModelError
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message

__all__ = ["LlmBrain"]


class LlmBrain:
    """Takes turns by asking a model until it calls `finish`.

    `tools` makes the toolbox from what the hub offers; it is called for every connection.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        config: AgentConfig,
        model: Model,
        template: ConversationTemplate,
        tools: Callable[[Ready], Toolbox],
    ):
        self._inbox, self._config = inbox, config
        self._model, self._template, self._make_tools = model, template, tools
        self._tools = tools(client.ready)
        self._system = system_prompt(config.instruction, inbox.me, client.network)
        self._activities = Activities(partial(client.signal, "activity"))

    async def ready(self, ready: Ready) -> None:
        self._tools = self._make_tools(ready)
        await self._activities.repeat()

    def claims(self, message: Message) -> None:
        """Nothing: a turn of a model does not wait for messages."""

    def observes(self, message: Message) -> bool:
        return False

    async def observe(self, message: Message) -> None:
        """A model sees what did not wake it in its next prompt."""

    async def start(self) -> None:
        """A model has nothing to do before something wakes it."""

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        prompt = render_conversation(
            self._template, self._inbox.threads, plan, self._inbox.me, self._config.history
        )
        toolbox = self._tools
        steps = await journal.begin(
            model=self._model.name, system_prompt=self._system, prompt=prompt, tools=toolbox.names
        )
        rules = Rules(
            max_steps=self._config.max_steps,
            reply_required=plan.reply_required,
            speaking=toolbox.speaking,
        )
        loop = Loop(rules, toolbox.names, steps)
        async with self._activities.of(plan) as activity:
            asker = Asker(self._model, toolbox, self._system, prompt)
            turn = _Turn(asker, toolbox, loop, journal, activity)
            await turn.run(self._config.turn_timeout)


@dataclass(slots=True)
class _Turn:
    """One turn under way: carries out what the loop commands."""

    asker: Asker
    toolbox: Toolbox
    loop: Loop
    journal: Journal
    activity: Activity

    async def run(self, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._carry_out(self.loop.start())
        except TimeoutError:
            reason = f"not finished after {within:g} s"
            await self._carry_out(self.loop.stopped("timeout", reason))

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        todo = deque(commands)
        while todo:
            match todo.popleft():
                case Record(step):
                    self.journal.step(step)
                case AskModel(n):
                    todo.extend(await self._ask(n))
                case RunTools() as run:
                    todo.extend(await self._run_tools(run))
                case End(outcome, reason, text):
                    await self.journal.end(outcome, reason, text)

    async def _ask(self, n: int) -> list[Command]:
        await self.activity.show("thinking", n)
        clock = self.journal.clock
        at = clock.ms
        try:
            answer = await self.asker.ask(self.loop.steps)
        except ModelError as exc:
            return self.loop.stopped("model_error", str(exc))
        return self.loop.answered(answer, at, clock.since(at))

    async def _run_tools(self, run: RunTools) -> list[Command]:
        if self.toolbox.must_be_recorded(run.calls):
            await self.journal.step(run.step)
        turn, step = self.journal.plan.id, run.step
        await self.activity.show("calling", step.n, [call.name for call in run.calls])
        results = await self.toolbox.run(
            turn, step.n, step.calls, run.calls, again=run.again, clock=self.journal.clock
        )
        return self.loop.ran(results)
