"""kill -9 of hub or agent at each stage of an approval: decided once, and run once at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.errors import OperationError
from hubbub.protocol.control import Approval, Approvals
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
    When,
)
from tests.e2e.support.agents import AgentProcess, all_present, llm_config, running_agent
from tests.e2e.support.hubs import DEADLINE_S, QUICK, HubProcess, running_hub

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

POLL_S = 0.02
STAGES = ["requested", "announced", "decided", "running", "resumed"]
VICTIMS = ["hub", "agent", "both"]
TOOLS = '''
import asyncio
from pathlib import Path

from hubbub import tool

HERE = Path(__file__).parent


@tool(permission="write", confirm=True)
async def pay(amount: int) -> str:
    """Pay an amount."""
    with (HERE / "paid.txt").open("a") as file:
        file.write(f"{amount}\\n")
    while not (HERE / "gate").exists():
        await asyncio.sleep(0.01)
    return f"paid {amount}"
'''


def rule(tool: str, hold: str | None = None, **when: Any) -> ScriptRule:
    arguments = {"amount": 7} if tool == "pay" else {}
    answer = ScriptedAnswer(calls=[ScriptedCall(tool=tool, arguments=arguments)], hold=hold)
    return ScriptRule(when=When(**when), answer=answer)


PLAY = Script(
    rules=[
        rule("pay", step=1),
        *(rule("finish", hold=victim, step=2, incoming=f"{victim}-resumed") for victim in VICTIMS),
        rule("finish"),
    ]
)


class Office:
    """A clerk who may not pay without a word of ann's."""

    def __init__(
        self, folder: Path, hub: HubProcess, agent: AgentProcess, model: ModelServer, ann: Client
    ):
        self.hub, self.agent, self.model, self.ann = hub, agent, model, ann
        self.gate, self._file = folder / "gate", folder / "paid.txt"
        self.announced = asyncio.Event()
        self.news = asyncio.Event()
        """Something has come, or the connection has come back."""
        self.turn_id = ""

    async def listen(self) -> None:
        async for item in self.ann.events():
            self.news.set()
            if isinstance(item, Event):
                content = item.message.content
                if isinstance(content, dict) and content.get("code") == "approval":
                    self.announced.set()
                await self.ann.ack(item.seq)

    def clear(self) -> None:
        self.announced.clear()
        self._file.write_text("")
        self.gate.unlink(missing_ok=True)

    @property
    def paid(self) -> list[str]:
        return self._file.read_text().split()

    async def approval(self) -> Approval:
        """That of this turn, once it is there."""
        while True:
            told = await self.ann.call("list_approvals", state="all")
            for each in Approvals.model_validate(told).approvals:
                if each.turn == self.turn_id:
                    return each  # else asked again: the question itself takes its time

    async def approve(self) -> None:
        approval = await self.approval()
        await self.ann.call("approve", id=approval.id, hash=approval.hash)

    async def bring_to(self, victim: str, stage: str) -> None:
        """Until the approval of a new turn is at this stage."""
        told = await self.ann.call("send_text_message", to="clerk", text=f"pay {victim}-{stage}")
        assert isinstance(told, dict)
        self.turn_id = f"clerk-{told['id']}"
        await self.approval()
        if stage == "announced":
            await self.announced.wait()
        if stage in ("decided", "running", "resumed"):
            await self.approve()
        while stage == "running" and not self.paid:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(POLL_S)
        if stage == "resumed":
            await self.model.held(victim)

    async def kill(self, victim: str) -> None:
        """kill -9, and start it again."""
        victims: list[HubProcess | AgentProcess] = [self.hub] if victim != "agent" else []
        victims += [self.agent] if victim != "hub" else []
        for process in victims:
            await process.kill()
        for process in victims:
            await process.start()

    async def turn(self) -> Turn:
        """The record of the turn, when it has ended."""
        while True:
            self.news.clear()
            turn = Turn.model_validate(await self.ann.call("read_turn", id=self.turn_id))
            if turn.end is not None:
                return turn
            await self.news.wait()  # the signal that it has ended, or another hub may know of it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    (folder / "tools.py").write_text(TOOLS)
    clerk: Mapping[str, JsonValue] = {
        "instruction": "Pay.",
        "tools": ["tools.py:pay", "send_text_message"],
    }
    async with ModelServer(PLAY) as model, running_hub(folder) as hub:
        arguments = llm_config(folder, hub, model, "clerk", clerk)
        async with (
            Client(WebSocketTransport(hub.url), "ann", "human", options=QUICK) as ann,
            running_agent(folder, arguments) as agent,
        ):
            await all_present(hub.url, "clerk")
            made = Office(folder, hub, agent, model, ann)
            listening = asyncio.create_task(made.listen())
            yield made
            listening.cancel()
            assert "Traceback" not in agent.output()


@pytest.mark.behaviour("H-95")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_a_kill_leaves_one_decision_and_one_run_at_most(
    office: Office, stage: str, victim: str
) -> None:
    office.clear()
    if stage != "running":
        office.gate.touch()
    async with asyncio.timeout(DEADLINE_S):
        await office.bring_to(victim, stage)
        await office.kill(victim)
        if stage in ("requested", "announced"):
            await office.approve()
        office.gate.touch()
        office.model.release(victim)
        turn = await office.turn()
        approval = await office.approval()
        with pytest.raises(OperationError, match="not_pending"):
            await office.ann.call("deny", id=approval.id)
    assert (approval.state, approval.decided_by) == ("started", "ann")
    (call,) = turn.steps[0].calls
    assert turn.end is not None
    assert turn.end.outcome == "finished"
    if call.error is None:
        assert (call.result, office.paid) == ("paid 7", ["7"])
    else:
        assert call.error == "interrupted"
        assert len(office.paid) <= 1
    # The result is told to the hub while the model is asked: both may be gone before it is kept.
    unsaved = (victim, stage) == ("both", "resumed")
    may_be_lost = unsaved or (victim != "hub" and stage in ("decided", "running"))
    assert call.error is None or may_be_lost
    if stage == "running":
        assert (call.error is None) == (victim == "hub")
