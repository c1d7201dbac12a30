"""kill -9 of hub or agent at each stage of an approval: decided once, and run once at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.errors import OperationError
from hubbub.protocol.control import Approval, Approvals
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import Answer, Call, ModelServer, Rule, Script, When
from tests.e2e.support.agents import AgentProcess, all_present, running_agent
from tests.e2e.support.hubs import DEADLINE_S, HubProcess, running_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

POLL_S = 0.02
TURN = "clerk-m1"
STAGES = ["requested", "announced", "decided", "running", "resumed"]
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
PLAY = Script(
    rules=[
        Rule(when=When(step=1), answer=Answer(calls=[Call(tool="pay", arguments={"amount": 7})])),
        Rule(
            when=When(step=2),
            answer=Answer(calls=[Call(tool="finish", arguments={"reason": "done"})], hold="second"),
        ),
        Rule(when=When(step=3), answer=Answer(calls=[Call(tool="finish", arguments={})])),
    ]
)


class Office:
    """A clerk who may not pay without a word of ann's."""

    def __init__(
        self, folder: Path, hub: HubProcess, agent: AgentProcess, model: ModelServer, ann: Client
    ):
        self.folder, self.hub, self.agent, self.model, self.ann = folder, hub, agent, model, ann
        self.announced = asyncio.Event()

    async def listen(self) -> None:
        async for item in self.ann.events():
            if isinstance(item, Event):
                content = item.message.content
                if isinstance(content, dict) and content.get("code") == "approval":
                    self.announced.set()
                await self.ann.ack(item.seq)

    @property
    def paid(self) -> list[str]:
        file = self.folder / "paid.txt"
        return file.read_text().split() if file.exists() else []

    async def approvals(self, state: str) -> tuple[Approval, ...]:
        return Approvals.model_validate(
            await self.ann.call("list_approvals", state=state)
        ).approvals

    async def pending(self) -> Approval:
        while not (found := await self.approvals("pending")):  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(POLL_S)
        (approval,) = found
        return approval

    async def bring_to(self, stage: str) -> None:
        """Until the approval is at this stage."""
        await self.ann.call("send_text_message", to="clerk", text="pay the bill")
        approval = await self.pending()
        if stage == "announced":
            await self.announced.wait()
        if stage in ("decided", "running", "resumed"):
            await self.ann.call("approve", id=approval.id, hash=approval.hash)
        while stage == "running" and not self.paid:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(POLL_S)
        if stage == "resumed":
            await self.model.held("second")

    async def kill(self, victim: str) -> None:
        """kill -9, and start it again."""
        victims: list[Any] = [self.hub] if victim != "agent" else []
        victims += [self.agent] if victim != "hub" else []
        for process in victims:
            await process.kill()
        for process in victims:
            await process.start()

    async def turn(self) -> Turn:
        """The record of the turn, when it has ended."""
        while True:
            turn = Turn.model_validate(await self.ann.call("read_turn", id=TURN))
            if turn.end is not None:
                return turn
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def office(folder: Path) -> AsyncIterator[Office]:
    (folder / "tools.py").write_text(TOOLS)
    async with ModelServer(PLAY) as model, running_hub(folder) as hub:
        config = _config(folder, hub, model.base_url)
        arguments = ["--config", str(config), "--name", "clerk"]
        async with (
            Client(WebSocketTransport(hub.url), "ann", "human") as ann,
            running_agent(folder, arguments) as agent,
        ):
            await all_present(hub.url, "clerk")
            made = Office(folder, hub, agent, model, ann)
            listening = asyncio.create_task(made.listen())
            yield made
            listening.cancel()


@pytest.mark.behaviour("H-95")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", ["hub", "agent", "both"])
async def test_a_kill_leaves_one_decision_and_one_run_at_most(
    tmp_path: Path, stage: str, victim: str
) -> None:
    if stage != "running":
        (tmp_path / "gate").touch()
    async with office(tmp_path) as desk, asyncio.timeout(DEADLINE_S):
        if stage != "resumed":
            desk.model.release("second")
        await desk.bring_to(stage)
        await desk.kill(victim)
        if stage in ("requested", "announced"):
            approval = await desk.pending()
            await desk.ann.call("approve", id=approval.id, hash=approval.hash)
        (tmp_path / "gate").touch()
        desk.model.release("second")
        turn = await desk.turn()
        (approval,) = await desk.approvals("all")
        with pytest.raises(OperationError, match="not_pending"):
            await desk.ann.call("deny", id=approval.id)
    assert (approval.state, approval.decided_by) == ("started", "ann")
    (call,) = turn.steps[0].calls
    assert turn.end is not None
    assert turn.end.outcome == "finished"
    if call.error is None:
        assert (call.result, desk.paid) == ("paid 7", ["7"])
    else:
        assert call.error == "interrupted"
        assert len(desk.paid) <= 1
    # The result is told to the hub while the model is asked: both may be gone before it is kept.
    unsaved = (victim, stage) == ("both", "resumed")
    may_be_lost = unsaved or (victim != "hub" and stage in ("decided", "running"))
    assert call.error is None or may_be_lost
    if stage == "running":
        assert (call.error is None) == (victim == "hub")
    assert "Traceback" not in desk.agent.output()


def _config(folder: Path, hub: HubProcess, base_url: str) -> Path:
    path = folder / "agents.yaml"
    config: dict[str, JsonValue] = {
        "network": {"listen": hub.url.removeprefix("ws://"), "auth": "open"},
        "models": {"default": {"model": "scripted", "base_url": base_url, "api_key": "any"}},
        "agents": {
            "clerk": {"instruction": "Pay.", "tools": ["tools.py:pay", "send_text_message"]}
        },
    }
    path.write_text(json.dumps(config))
    return path
