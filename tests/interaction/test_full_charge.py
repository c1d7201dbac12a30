"""A person in charge at the full screen: the real client, the real hub, no terminal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from textual.widgets import Input, OptionList, Static, TextArea

from hubbub.cli.full.charge import AnswerScreen, ApprovalScreen, ApprovalsScreen, StopScreen
from hubbub.client import Client
from hubbub.protocol.turns import Step, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.interaction.full_rig import FILE, Desk, next_event, sitting

pytestmark = pytest.mark.slow  # a whole screen is drawn for each key

ASKED = {"path": "a.txt"}


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(FILE) as network:
        yield network


@pytest.fixture
async def agent(network: LocalNetwork) -> Client:
    return await network.join("calculator", turns=True)


async def at_work(desk: Desk, agent: Client) -> TurnStart:
    """Ann has asked the calculator for something, and sees it work."""
    await desk.says("/dm calculator dig")
    event = await next_event(agent)
    assert event.wake is not None
    thread = event.message.thread_id
    start = TurnStart(id=event.wake.turn, thread_id=thread, messages=(event.message.id,))
    await agent.call("begin_turn", start=start)
    await agent.signal("activity", thread, {"state": "thinking", "turn": start.id, "step": 1})
    await desk.sees(lambda: "calculator is thinking" in desk.status)
    return start


async def asks(agent: Client, turn: str, call: str) -> str:
    found = await agent.call(
        "request_approval", turn=turn, call=call, tool="delete_file", arguments=ASKED
    )
    assert isinstance(found, dict)
    return str(found["id"])


async def stands(agent: Client, approval: str, key: str) -> object:
    """What there is of an approval as its agent reads it."""
    told = await agent.call("read_approval", id=approval)
    assert isinstance(told, dict)
    return told[key]


def offered(desk: Desk) -> list[str]:
    """The lines of the list that lies above everything."""
    return [str(option.prompt) for option in desk.app.screen.query_one(OptionList).options]


@pytest.mark.behaviour("H-133")
async def test_approvals_are_given_changed_denied_and_chosen_in_dialogs(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:

        async def dialog(approval_screen: type = ApprovalScreen) -> None:
            await desk.presses("f2")
            await desk.sees(lambda: isinstance(desk.app.screen, approval_screen))

        await desk.presses("f2")
        await desk.tells("nothing waits for your approval")
        start = await at_work(desk, agent)
        first = await asks(agent, start.id, "1.c1")
        await desk.sees(lambda: "1 to approve (F2)" in desk.status)
        await desk.tells("calculator asks to run delete_file in @calculator")
        await dialog()
        about = str(desk.app.screen.query(Static).first().render())
        assert "calculator asks to run delete_file" in about
        await desk.presses("enter")
        await desk.tells("is approved by ann")
        await desk.sees(lambda: "to approve" not in desk.status)
        assert await stands(agent, first, "final") == ASKED
        changed = await asks(agent, start.id, "1.c2")
        await desk.sees(lambda: "1 to approve" in desk.status)
        await dialog()
        arguments = desk.app.screen.query_one(TextArea)
        assert json.loads(arguments.text) == ASKED
        arguments.text = '{"path": '
        await desk.presses("ctrl+y")
        wrong = desk.app.screen.query_one("#wrong", Static)
        await desk.sees(lambda: "the arguments are no JSON" in str(wrong.render()))
        arguments.text = '{"path": "b.txt"}'
        await desk.presses("ctrl+y")
        await desk.tells("with other arguments")
        assert await stands(agent, changed, "final") == {"path": "b.txt"}
        denied, chosen = [await asks(agent, start.id, call) for call in ("1.c3", "1.c4")]
        await desk.sees(lambda: "2 to approve" in desk.status)
        await dialog(ApprovalsScreen)
        assert len(offered(desk)) == 2
        await desk.presses("j", "enter")
        await desk.sees(lambda: isinstance(desk.app.screen, ApprovalScreen))
        await desk.presses("enter")
        await desk.sees(lambda: "1 to approve" in desk.status)
        assert await stands(agent, chosen, "state") == "approved"
        await desk.says("/inbox")
        await desk.sees(lambda: desk.app.screen is not desk.chat)
        assert offered(desk)[0] == "Approvals"
        assert offered(desk)[1].startswith('delete_file {"path": "a.txt"}  calculator, until ')
        await desk.presses("enter")
        await desk.sees(lambda: isinstance(desk.app.screen, ApprovalScreen))
        await desk.presses("escape")
        await desk.sees(lambda: desk.app.screen is desk.chat)
        assert await stands(agent, denied, "state") == "pending"
        await dialog()
        desk.app.screen.query_one(Input).value = "not that one"
        await desk.presses("ctrl+n")
        await desk.tells("is denied by ann: not that one")
        assert await stands(agent, denied, "state") == "denied"


@pytest.mark.behaviour("H-134")
async def test_turns_and_everything_are_stopped_with_two_keys_and_go_on_by_the_same(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:

        async def stopping(*keys: str) -> None:
            await desk.presses("f4")
            await desk.sees(lambda: isinstance(desk.app.screen, StopScreen))
            await desk.presses(*keys)

        start = await at_work(desk, agent)
        step = Step(n=1, tokens_in=300, tokens_out=100, cost_usd=0.25, duration_ms=5.0)
        await agent.call("record_step", turn=start.id, step=step)
        await desk.presses("escape", "right_square_bracket")
        await desk.sees(lambda: "1 turn, 400 tokens, $0.25" in desk.details)
        await stopping()
        assert [line.split("  ")[0].strip() for line in offered(desk)] == [
            "this turn", "this thread", "this agent", "everything",
        ]  # fmt: skip
        await desk.presses("enter")
        await desk.tells(f"ann has stopped {start.id} (1 turn ended)")
        await stopping("end", "enter")
        await desk.sees(lambda: "everything is stopped" in desk.status)
        await desk.says("@calculator hello?")
        await desk.tells("calculator was not woken")
        await stopping()
        assert offered(desk)[-1].startswith("resume")
        await desk.presses("end", "enter")
        await desk.tells("everything may go on")
        await desk.sees(lambda: "stopped" not in desk.status)


@pytest.mark.behaviour("H-135")
async def test_an_agent_is_spoken_for_by_a_key(network: LocalNetwork, agent: Client) -> None:
    bob = await network.join("bob", "human")
    async with sitting(network) as desk:
        await desk.presses("escape", "t")
        await desk.tells("select an agent, or a message of one: k")
        await desk.says("/dm calculator")
        await desk.presses("escape", "t")
        await desk.sees(lambda: "you speak for calculator" in desk.status)
        await bob.call("send_text_message", to="calculator", text="2+2?")
        await desk.tells("calculator hears in @bob,@calculator: bob: 2+2?")
        await desk.says("/open dm.bob.calculator")
        await desk.reads("2+2?")
        await desk.says("/as calculator it is 4")
        while (said := (await next_event(bob)).message).sender_id == "hub":
            pass  # it tells bob that the agent is not woken
        assert (said.sender_id, said.spoken_by) == ("calculator", "ann")
        await desk.says("/open #general")
        await desk.says("/as calculator I am here")
        await desk.reads("[ann as calculator]")
        await desk.reads("I am here")
        await desk.says("/dm calculator")
        await desk.presses("escape", "t")
        await desk.sees(lambda: "you speak for calculator" not in desk.status)


async def test_long_answers_lie_above_everything_and_wishes_go_with_messages(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:
        await desk.says("/dm calculator dig")
        await next_event(agent)
        for command, words in (
            ("/interaction", "interaction i1  opened by ann"),
            ("/why m1", "interaction i1, hop 0"),
            ("/spending", "together: "),
            ("/stops", "nothing is stopped"),
        ):
            await desk.says(command)
            await desk.sees(lambda: isinstance(desk.app.screen, AnswerScreen))
            assert words in str(desk.app.screen.query_one(Static).render())
            await desk.presses("escape")
            await desk.sees(lambda: desk.app.screen is desk.chat)
        await desk.says("/queue later")
        assert (await next_event(agent)).message.mode == "queue"
        await desk.reads("[queue]")
