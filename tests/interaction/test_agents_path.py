"""From a message to a model's request: which modules of ours one real turn passes."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType

import hubbub
from hubbub.agents.launch import run_agent
from hubbub.client import Client
from hubbub.client.transport import WebSocketTransport
from hubbub.config.models import AgentConfig, ModelConfig
from tests.interaction.agent_harness import call, finish, harness, held, playing, says
from tests.interaction.peers import Networks

FOLDER = Path(hubbub.__file__).parent
HEARD, TURN, ASKED = (
    "agents.runner._handle_event",
    "agents.llm.take_turn",
    "agents.models.openai.answer",
)


class Trace:
    """The functions of ours that a thread enters, in order: `module.function`, and its task."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, asyncio.Task[object] | None]] = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.suffix == ".py" and path.is_relative_to(FOLDER):
            parts = path.relative_to(FOLDER).with_suffix("").parts
            name = ".".join([*parts, frame.f_code.co_name]).replace(".__init__.", ".")
            self.entered.append((name, asyncio.current_task()))

    def modules(self, first: str, last: str) -> list[str]:
        """Those that are entered from the call of `first` to that of `last`, each once, by the
        tasks of these two.
        """
        names = [name for name, _ in self.entered]
        begin = names.index(first)
        end = names.index(last, begin)
        tasks = (self.entered[begin][1], self.entered[end][1])
        passed = (name for name, task in self.entered[begin:end] if task in tasks)
        return list(dict.fromkeys(name.rpartition(".")[0] for name in passed))


class Alone(threading.Thread):
    """An agent in a thread with a loop of its own: what it does is traced, and nothing else."""

    def __init__(self, url: str, base_url: str):
        super().__init__(daemon=True)
        self._url, self._models = url, {"default": ModelConfig(model="m", base_url=base_url)}
        self.trace, self.joined = Trace(), threading.Event()
        self.loop, self._over = asyncio.new_event_loop(), asyncio.Event()

    def run(self) -> None:
        self.loop.run_until_complete(self._live())
        self.loop.close()

    async def _live(self) -> None:
        async with Client(WebSocketTransport(self._url), "bot", "agent", turns=True) as client:
            work = asyncio.create_task(
                run_agent(AgentConfig(), "bot", client, Path(), self._models)
            )
            self.joined.set()
            await self._over.wait()
            work.cancel()
            await asyncio.wait({work})

    def watch(self) -> None:
        """From now on."""
        self.loop.call_soon_threadsafe(sys.setprofile, self.trace)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(sys.setprofile, None)
        self.loop.call_soon_threadsafe(self._over.set)
        self.join()


async def test_few_modules_stand_between_a_message_and_the_model(on_sockets: Networks) -> None:
    answer = says(call("send_text_message", to="ann", text="hi"), finish())
    last = answer.model_copy(update={"hold": "asked"})
    async with playing(answer, last) as model, harness(on_sockets) as net:
        ann = await net.person()
        agent = Alone(net.network.local.url, model.base_url)
        agent.start()
        await asyncio.to_thread(agent.joined.wait)
        await ann.say("bot", "this one loads all that is loaded late")
        await net.turn("bot-m1")
        agent.watch()
        await ann.say("bot", "hello")
        await held(model, "asked")
        await asyncio.to_thread(agent.end)
    to_turn, to_model = agent.trace.modules(HEARD, TURN), agent.trace.modules(TURN, ASKED)
    to_turn.remove("client.items")  # the wait for the next event
    print("\nfrom the event to the turn:", *to_turn, sep="\n  ")
    print("from the turn to the model's request:", *to_model, sep="\n  ")
    assert len(to_turn) <= 10
    assert len(to_model) <= 35
