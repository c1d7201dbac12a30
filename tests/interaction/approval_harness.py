"""Agents whose tools ask people first, and the people whom they ask."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction.agent_harness import Harness, finish, says, send
from tests.interaction.peers import Peer, soon

__all__ = ["Shop", "asked", "noted", "parked", "replies", "script", "the_call"]

TOOLS = '''
import asyncio
from pathlib import Path

from hubbub import tool
from tests.interaction.approval_harness import noted


def note(line: str) -> None:
    noted(Path(__file__).parent, line)


@tool(permission="write", confirm=True)
def pay(amount: int, to: str = "bob") -> str:
    """Pay an amount to somebody. It cannot be taken back."""
    note(f"paid {amount} to {to}")
    return f"paid {amount} to {to}"


@tool(permission="write", confirm=True, idempotent=True)
def settle(bill: str) -> str:
    """Settle a bill; doing it again changes nothing."""
    note(f"settled {bill}")
    return f"settled {bill}"


@tool(permission="write", confirm=True)
async def dig(depth: int) -> str:
    """Dig. It never ends."""
    note(f"digging {depth}")
    await asyncio.Event().wait()
    return "never"


@tool(permission="write", confirm="untrusted", untrusted=False)
def publish(text: str) -> str:
    """Publish a text where everybody reads it."""
    note(f"published {text}")
    return "published"


@tool
def fetch(page: str) -> str:
    """Fetch a page."""
    return f"the page {page}"


@tool(untrusted=False)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)
'''
NAMES = ("pay", "settle", "dig", "publish", "fetch", "add")


_shops: dict[Path, Shop] = {}


def noted(folder: Path, line: str) -> None:
    """A tool of this folder's has done something, in whatever thread."""
    _shops[folder].note(line)


class Shop:
    """An agent with these tools."""

    def __init__(self, net: Harness, model: ModelServer, folder: Path, name: str = "bot"):
        self.net, self.model, self.folder, self.name = net, model, folder, name
        self.dialect: str | None = None
        self.done: list[str] = []
        """What its tools have done, in order."""
        self._news, self._loop = asyncio.Event(), asyncio.get_running_loop()
        _shops[folder] = self
        (folder / "tools.py").write_text(TOOLS)

    def note(self, line: str) -> None:
        self.done.append(line)
        self._loop.call_soon_threadsafe(self._news.set)

    async def start(self, *hub_tools: str, **config: JsonValue) -> None:
        """(Re)start it. Besides its own it has these tools of the hub, and `send_text_message`."""
        named: list[JsonValue] = [f"tools.py:{name}" for name in NAMES]
        tools = [*named, "send_text_message", *hub_tools]
        agent = AgentConfig.model_validate({"tools": tools, **config})
        endpoint = {"model": "m", "base_url": self.model.base_url, "retries": 0}
        models = {"default": ModelConfig.model_validate({**endpoint, "dialect": self.dialect})}
        await self.net.configured(self.name, agent, self.folder, models)

    async def until_done(self, count: int) -> None:
        async with soon():
            while len(self.done) < count:
                self._news.clear()
                await self._news.wait()


def script(*answers: ScriptedAnswer, **rules: ScriptedAnswer) -> Script:
    """These answers in a row; a message with one of the words has the answers of its rule."""
    return Script(
        answers=list(answers),
        rules=[
            rule
            for word, answer in rules.items()
            for rule in (
                ScriptRule(when=When.model_validate({"incoming": word, "step": 1}), answer=answer),
                ScriptRule(
                    when=When.model_validate({"incoming": word, "step": 2}),
                    answer=says(finish()),
                ),
            )
        ],
    )


def replies(text: str) -> ScriptedAnswer:
    """The model answers ann, and is done."""
    return says(send("ann", text), finish())


async def asked(person: Peer, count: int = 1) -> list[dict[str, Any]]:
    """The approvals that wait for the person, oldest first, when there are so many."""
    while True:
        heard = len(person.signals)
        found: list[dict[str, Any]] = (await person.call("list_approvals"))["approvals"]
        if len(found) >= count:
            assert len(found) == count
            return found[::-1]
        await person.until(partial(_has_news, person, heard))


async def parked(net: Harness, person: Peer, turn: str = "bot-m1", calls: int = 1) -> list[Any]:
    """The approvals of a turn that has stopped to wait: its agent shows that it waits for them."""
    found = await asked(person, calls)
    await person.until(lambda: any(_waits(s, turn) for s in person.signals))
    person.signals[:] = [s for s in person.signals if not _waits(s, turn)]
    return found


def _has_news(person: Peer, heard: int) -> bool:
    return any(signal["type"] == "approval" for signal in person.signals[heard:])


def _waits(signal: dict[str, Any], turn: str) -> bool:
    data = signal.get("data") or {}
    told = signal["type"] == "activity" and data.get("state") == "waiting"
    return bool(told and data.get("for") == "approval" and data.get("turn") == turn)


def the_call(turn: Turn, tool: str) -> Any:
    """The record of the call of a tool."""
    (found,) = [c for step in turn.steps for c in step.calls if c.name == tool]
    return found
