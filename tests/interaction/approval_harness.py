"""Agents whose tools need approval, and the people who decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.config.models import AgentConfig, NetworkFile
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction.agent_harness import Harness, finish, harness, model_config, says, send
from tests.interaction.peers import Networks, Peer, soon

__all__ = ["Shop", "asked", "at_shop", "noted", "parked", "replies", "script", "the_call"]

TOOLS = '''
import asyncio
from pathlib import Path

from hubbub import tool
from tests.interaction.approval_harness import noted


def note(line: str) -> None:
    noted(Path(__file__).parent, line)


@tool(permission="write", confirm=True)
def pay(amount: int, to: str = "bob") -> str:
    """Pay an amount. It cannot be taken back."""
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
    """Record what a tool of this folder did, from any thread."""
    _shops[folder].note(line)


class Shop:
    """An agent with these tools."""

    def __init__(self, net: Harness, model: ModelServer, folder: Path, name: str = "bot"):
        self.net, self.model, self.folder, self.name = net, model, folder, name
        self.dialect: str | None = None
        self.done: list[str] = []
        """What its tools did, in order."""
        self._changed, self._loop = asyncio.Event(), asyncio.get_running_loop()
        _shops[folder] = self
        (folder / "tools.py").write_text(TOOLS)

    def note(self, line: str) -> None:
        self.done.append(line)
        self._loop.call_soon_threadsafe(self._changed.set)

    async def start(self, *hub_tools: str, **config: JsonValue) -> None:
        """(Re)start the agent with its tools, `send_text_message` and these tools of the hub."""
        own: list[JsonValue] = [f"tools.py:{name}" for name in NAMES]
        tools = [*own, "send_text_message", *hub_tools]
        agent = AgentConfig.model_validate({"tools": tools, **config})
        models = {"default": model_config(self.model, dialect=self.dialect)}
        await self.net.configured(self.name, agent, self.folder, models)

    async def until_done(self, count: int) -> None:
        async with soon():
            while len(self.done) < count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def at_shop(
    networks: Networks,
    folder: Path,
    played: Script,
    *tools: str,
    file: NetworkFile | None = None,
    dialect: str | None = None,
    **config: Any,
) -> AsyncIterator[tuple[Harness, Peer, Shop]]:
    """The network, Ann, and an agent with the tools of a shop whose model plays the script."""
    async with ModelServer(played) as model, harness(networks, file) as net:
        ann, shop = await net.person(), Shop(net, model, folder)
        shop.dialect = dialect
        await shop.start(*tools, **config)
        yield net, ann, shop


def script(*answers: ScriptedAnswer, **rules: ScriptedAnswer) -> Script:
    """These answers in a row; a message with one of the keywords gets the answer of its rule."""
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
    """An answer that sends Ann a message and ends the turn."""
    return says(send("ann", text), finish())


async def asked(person: Peer, count: int = 1) -> list[dict[str, Any]]:
    """Wait for `count` pending approvals. Returns them, oldest first."""
    while True:
        seen = len(person.signals)
        pending: list[dict[str, Any]] = (await person.call("list_approvals"))["approvals"]
        if len(pending) >= count:
            assert len(pending) == count
            return pending[::-1]
        await person.until(partial(_has_approval_signal, person, seen))


async def parked(net: Harness, person: Peer, turn: str = "bot-m1", calls: int = 1) -> list[Any]:
    """Wait until the agent signals that a turn waits for approvals. Returns these approvals."""
    pending = await asked(person, calls)
    await person.until(lambda: any(_waits(s, turn) for s in person.signals))
    person.signals[:] = [s for s in person.signals if not _waits(s, turn)]
    return pending


def _has_approval_signal(person: Peer, seen: int) -> bool:
    return any(signal["type"] == "approval" for signal in person.signals[seen:])


def _waits(signal: dict[str, Any], turn: str) -> bool:
    data = signal.get("data") or {}
    waiting = signal["type"] == "activity" and data.get("state") == "waiting"
    return bool(waiting and data.get("for") == "approval" and data.get("turn") == turn)


def the_call(turn: Turn, tool: str) -> Any:
    """The record of the only call of a tool."""
    (record,) = [c for step in turn.steps for c in step.calls if c.name == tool]
    return record
