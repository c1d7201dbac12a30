"""kill -9 of hub or agent at each stage of an approval: one decision, and at most one run."""

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
    reader, _ = await asyncio.open_connection("127.0.0.1", GATE)
    await reader.read()
    return f"paid {amount}"
'''


class Gate:
    """Holds each `pay` that connects, until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def hold(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.set()
        await self.opened.wait()
        writer.close()


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
    """A clerk whose payments ann has to approve."""

    def __init__(
        self,
        ledger: Path,
        gate: Gate,
        hub: HubProcess,
        agent: AgentProcess,
        model: ModelServer,
        ann: Client,
    ):
        self.gate, self.hub, self.agent, self.model, self.ann = gate, hub, agent, model, ann
        self._ledger = ledger
        self.announced = asyncio.Event()
        self.received = asyncio.Event()
        """Set by each event, and by a reconnect."""
        self.turn_id = ""

    async def listen(self) -> None:
        async for item in self.ann.events():
            self.received.set()
            if isinstance(item, Event):
                content = item.message.content
                if isinstance(content, dict) and content.get("code") == "approval":
                    self.announced.set()
                await self.ann.ack(item.seq)

    def clear(self) -> None:
        for event in (self.announced, self.gate.reached, self.gate.opened):
            event.clear()
        self._ledger.write_text("")

    @property
    def paid(self) -> list[str]:
        return self._ledger.read_text().split()

    async def approval(self) -> Approval:
        """The approval of this turn, once it has been requested."""
        while True:
            answer = await self.ann.call("list_approvals", state="all")
            for approval in Approvals.model_validate(answer).approvals:
                if approval.turn == self.turn_id:
                    return approval

    async def approve(self) -> None:
        approval = await self.approval()
        await self.ann.call("approve", id=approval.id, hash=approval.hash)

    async def bring_to(self, victim: str, stage: str) -> None:
        """Starts a turn, and returns when its approval is at this stage."""
        sent = await self.ann.call("send_text_message", to="clerk", text=f"pay {victim}-{stage}")
        assert isinstance(sent, dict)
        self.turn_id = f"clerk-{sent['id']}"
        await self.approval()
        if stage == "announced":
            await self.announced.wait()
        if stage in ("decided", "running", "resumed"):
            await self.approve()
        if stage == "running":
            await self.gate.reached.wait()
        if stage == "resumed":
            await self.model.held(victim)

    async def kill(self, victim: str) -> None:
        """kill -9, then a restart."""
        victims: list[HubProcess | AgentProcess] = [self.hub] if victim != "agent" else []
        victims += [self.agent] if victim != "hub" else []
        for process in victims:
            await process.kill()
        for process in victims:
            await process.start()

    async def turn(self) -> Turn:
        """The record of the turn, once it has ended."""
        while True:
            self.received.clear()
            turn = Turn.model_validate(await self.ann.call("read_turn", id=self.turn_id))
            if turn.end is not None:
                return turn
            await self.received.wait()  # the signal that it has ended, or a restarted hub


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    folder, gate = tmp_path_factory.mktemp("office"), Gate()
    server = await asyncio.start_server(gate.hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    (folder / "tools.py").write_text(TOOLS.replace("GATE", str(port)))
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
            office = Office(folder / "paid.txt", gate, hub, agent, model, ann)
            listening = asyncio.create_task(office.listen())
            yield office
            listening.cancel()
            server.close()
            assert "Traceback" not in agent.output()


@pytest.mark.behaviour("H-95")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_a_kill_at_any_stage_leaves_one_decision_and_at_most_one_run(
    office: Office, stage: str, victim: str
) -> None:
    office.clear()
    if stage != "running":
        office.gate.opened.set()
    async with asyncio.timeout(DEADLINE_S):
        await office.bring_to(victim, stage)
        await office.kill(victim)
        if stage in ("requested", "announced"):
            await office.approve()
        office.gate.opened.set()
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
    # The result is recorded at the hub while the model is asked; a kill of both can lose it.
    unrecorded = (victim, stage) == ("both", "resumed")
    may_be_lost = unrecorded or (victim != "hub" and stage in ("decided", "running"))
    assert call.error is None or may_be_lost
    if stage == "running":
        assert (call.error is None) == (victim == "hub")
