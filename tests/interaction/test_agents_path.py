"""The number of our modules on the path from a message to a model's request."""

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
RECEIVED, TURN, ASKED = (
    "agents.runner._handle_event",
    "agents.llm.take_turn",
    "agents.models.openai.answer",
)


class Trace:
    """Our functions that a thread enters, in order: `module.function`, and the task."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, asyncio.Task[object] | None]] = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.suffix == ".py" and path.is_relative_to(FOLDER):
            parts = path.relative_to(FOLDER).with_suffix("").parts
            name = ".".join([*parts, frame.f_code.co_name]).replace(".__init__.", ".")
            self.entered.append((name, asyncio.current_task()))

    def modules(self, first: str, last: str) -> list[str]:
        """The distinct modules entered between the calls of `first` and `last`, by their tasks."""
        names = [name for name, _ in self.entered]
        begin = names.index(first)
        end = names.index(last, begin)
        tasks = (self.entered[begin][1], self.entered[end][1])
        path = (name for name, task in self.entered[begin:end] if task in tasks)
        return list(dict.fromkeys(name.rpartition(".")[0] for name in path))


class TracedAgent(threading.Thread):
    """An agent in a thread with its own loop, so that nothing else is traced."""

    def __init__(self, url: str, base_url: str):
        super().__init__(daemon=True)
        self._url, self._models = url, {"default": ModelConfig(model="m", base_url=base_url)}
        self.trace, self.joined = Trace(), threading.Event()
        self.loop, self._ended = asyncio.new_event_loop(), asyncio.Event()

    def run(self) -> None:
        self.loop.run_until_complete(self._live())
        self.loop.close()

    async def _live(self) -> None:
        async with Client(WebSocketTransport(self._url), "bot", "agent", turns=True) as client:
            work = asyncio.create_task(
                run_agent(AgentConfig(), "bot", client, Path(), self._models)
            )
            self.joined.set()
            await self._ended.wait()
            work.cancel()
            await asyncio.wait({work})

    def watch(self) -> None:
        """Trace from now on."""
        self.loop.call_soon_threadsafe(sys.setprofile, self.trace)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(sys.setprofile, None)
        self.loop.call_soon_threadsafe(self._ended.set)
        self.join()


async def test_few_modules_are_on_the_path_from_a_message_to_the_model(
    on_sockets: Networks,
) -> None:
    answer = says(call("send_text_message", to="ann", text="hi"), finish())
    last = answer.model_copy(update={"hold": "asked"})
    async with playing(answer, last) as model, harness(on_sockets) as net:
        ann = await net.person()
        agent = TracedAgent(net.network.local.url, model.base_url)
        agent.start()
        await asyncio.to_thread(agent.joined.wait)
        await ann.say("bot", "loads what is imported late")
        await net.turn("bot-m1")
        agent.watch()
        await ann.say("bot", "hello")
        await held(model, "asked")
        await asyncio.to_thread(agent.end)
    to_turn, to_model = agent.trace.modules(RECEIVED, TURN), agent.trace.modules(TURN, ASKED)
    to_turn.remove("client.items")  # the wait for the next event
    print("\nfrom the event to the turn:", *to_turn, sep="\n  ")
    print("from the turn to the model's request:", *to_model, sep="\n  ")
    assert len(to_turn) <= 10
    assert len(to_model) <= 35
