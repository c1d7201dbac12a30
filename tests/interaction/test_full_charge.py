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


async def asks(agent: Client, turn: str, call: str = "1.c1") -> str:
    found = await agent.call(
        "request_approval", turn=turn, call=call, tool="delete_file", arguments=ASKED
    )
    assert isinstance(found, dict)
    return str(found["id"])


async def stands(agent: Client, approval: str) -> dict[str, object]:
    """An approval as its agent reads it."""
    told = await agent.call("read_approval", id=approval)
    assert isinstance(told, dict)
    return dict(told)


def offered(desk: Desk) -> list[str]:
    """The lines of the list that lies above everything."""
    return [str(option.prompt) for option in desk.app.screen.query_one(OptionList).options]


async def asked(desk: Desk, agent: Client) -> str:
    """The calculator asks, and ann looks at it."""
    start = await at_work(desk, agent)
    approval = await asks(agent, start.id)
    await desk.sees(lambda: "1 to approve (F2)" in desk.status)
    assert any("calculator asks to run delete_file in @calculator" in told for told in desk.told)
    await desk.presses("f2")
    await desk.sees(lambda: isinstance(desk.app.screen, ApprovalScreen))
    return approval


@pytest.mark.behaviour("H-133")
async def test_an_approval_is_given_in_a_dialog(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        approval = await asked(desk, agent)
        about = str(desk.app.screen.query(Static).first().render())
        assert "calculator asks to run delete_file" in about
        await desk.presses("enter")
        await desk.sees(lambda: any("is approved by ann" in told for told in desk.told))
        await desk.sees(lambda: "to approve" not in desk.status)
        assert (await stands(agent, approval))["final"] == ASKED


async def test_arguments_are_changed_in_the_dialog(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        approval = await asked(desk, agent)
        arguments = desk.app.screen.query_one(TextArea)
        assert json.loads(arguments.text) == ASKED
        arguments.text = '{"path": '
        await desk.presses("ctrl+y")
        wrong = desk.app.screen.query_one("#wrong", Static)
        await desk.sees(lambda: "the arguments are no JSON" in str(wrong.render()))
        arguments.text = '{"path": "b.txt"}'
        await desk.presses("ctrl+y")
        await desk.sees(lambda: any("with other arguments" in told for told in desk.told))
        assert (await stands(agent, approval))["final"] == {"path": "b.txt"}


async def test_an_approval_is_denied_with_a_reason(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        approval = await asked(desk, agent)
        desk.app.screen.query_one(Input).value = "not that one"
        await desk.presses("ctrl+n")
        await desk.sees(lambda: any("is denied by ann: not that one" in t for t in desk.told))
        assert (await stands(agent, approval))["state"] == "denied"


async def test_among_several_approvals_one_is_chosen(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        await desk.presses("f2")
        await desk.sees(lambda: "nothing waits for your approval" in desk.told)
        start = await at_work(desk, agent)
        ids = [await asks(agent, start.id, call) for call in ("1.c1", "1.c2")]
        await desk.sees(lambda: "2 to approve" in desk.status)
        await desk.presses("f2")
        await desk.sees(lambda: isinstance(desk.app.screen, ApprovalsScreen))
        assert len(offered(desk)) == 2
        await desk.presses("j", "enter")
        await desk.sees(lambda: isinstance(desk.app.screen, ApprovalScreen))
        await desk.presses("enter")
        await desk.sees(lambda: "1 to approve" in desk.status)
        assert (await stands(agent, ids[1]))["state"] == "approved"
        await desk.presses("f2", "escape")
        await desk.sees(lambda: desk.app.screen is desk.chat)
        assert (await stands(agent, ids[0]))["state"] == "pending"


@pytest.mark.behaviour("H-134")
async def test_the_turn_that_runs_here_is_stopped_with_two_keys(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:
        start = await at_work(desk, agent)
        await desk.presses("f4")
        await desk.sees(lambda: isinstance(desk.app.screen, StopScreen))
        assert [line.split("  ")[0].strip() for line in offered(desk)] == [
            "this turn", "this thread", "this agent", "everything",
        ]  # fmt: skip
        await desk.presses("enter")
        stopped = f"ann has stopped {start.id} (1 turn ended)"
        await desk.sees(lambda: stopped in desk.told)


async def test_everything_is_stopped_and_goes_on_by_the_same_key(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:
        await desk.sees(lambda: "● calculator  idle" in desk.listed("#people"))
        await desk.presses("f4")
        await desk.sees(lambda: isinstance(desk.app.screen, StopScreen))
        await desk.presses("end", "enter")
        await desk.sees(lambda: "everything is stopped" in desk.status)
        await desk.says("@calculator hello?")
        await desk.sees(lambda: any("calculator was not woken" in told for told in desk.told))
        await desk.presses("f4")
        await desk.sees(lambda: isinstance(desk.app.screen, StopScreen))
        assert offered(desk)[-1].startswith("resume")
        await desk.presses("end", "enter")
        await desk.sees(lambda: "everything may go on" in desk.told)
        await desk.sees(lambda: "stopped" not in desk.status)


@pytest.mark.behaviour("H-135")
async def test_an_agent_is_spoken_for_by_a_key(network: LocalNetwork, agent: Client) -> None:
    bob = await network.join("bob", "human")
    async with sitting(network) as desk:
        await desk.presses("escape", "t")
        await desk.sees(lambda: "select an agent, or a message of one: k" in desk.told)
        await desk.says("/dm calculator")
        await desk.presses("escape", "t")
        await desk.sees(lambda: "you speak for calculator" in desk.status)
        await bob.call("send_text_message", to="calculator", text="2+2?")
        heard = "calculator hears in @bob,@calculator: bob: 2+2?"
        await desk.sees(lambda: heard in desk.told)
        await desk.says("/open dm.bob.calculator")
        await desk.reads("2+2?")
        await desk.says("/as calculator it is 4")
        while (said := (await next_event(bob)).message).sender_id == "hub":
            pass  # it tells bob that the agent is not woken
        assert (said.sender_id, said.spoken_by) == ("calculator", "ann")
        await desk.says("/dm calculator")
        await desk.presses("escape", "t")
        await desk.sees(lambda: "you speak for calculator" not in desk.status)


async def test_what_one_says_as_an_agent_is_marked(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        await desk.says("/takeover calculator 5m")
        await desk.sees(lambda: "you speak for calculator" in desk.status)
        await desk.says("/as calculator I am here")
        await desk.reads("[ann as calculator]")
        await desk.reads("I am here")


async def test_long_answers_lie_above_everything(network: LocalNetwork, agent: Client) -> None:
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


async def test_a_wish_for_the_turn_that_runs_goes_with_the_message(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:
        await desk.says("/dm calculator")
        await desk.says("/queue later")
        assert (await next_event(agent)).message.mode == "queue"
        await desk.reads("[queue]")


async def test_the_inbox_has_approvals_first(network: LocalNetwork, agent: Client) -> None:
    async with sitting(network) as desk:
        start = await at_work(desk, agent)
        await asks(agent, start.id)
        await desk.sees(lambda: "1 to approve" in desk.status)
        await desk.says("/inbox")
        await desk.sees(lambda: desk.app.screen is not desk.chat)
        assert offered(desk)[0] == "Approvals"
        assert offered(desk)[1].startswith('delete_file {"path": "a.txt"}  calculator, until ')
        await desk.presses("enter")
        await desk.sees(lambda: isinstance(desk.app.screen, ApprovalScreen))


async def test_details_of_a_thread_say_what_was_spent_today(
    network: LocalNetwork, agent: Client
) -> None:
    async with sitting(network) as desk:
        start = await at_work(desk, agent)
        step = Step(n=1, tokens_in=300, tokens_out=100, cost_usd=0.25, duration_ms=5.0)
        await agent.call("record_step", turn=start.id, step=step)
        await desk.presses("escape", "right_square_bracket")
        await desk.sees(lambda: "1 turn, 400 tokens, $0.25" in desk.details)
