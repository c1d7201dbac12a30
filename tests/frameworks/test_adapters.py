"""Agents of other frameworks take turns with the same guarantees and records as ours."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from hubbub import Client, Network, NoAnswer
from hubbub.errors import UserError
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer, Refusal, Script, ScriptedAnswer, ScriptedCall
from hubbub.testing.model_server import ModelServer
from tests.frameworks.guests import GUESTS, Make, price

pytestmark = [pytest.mark.frameworks, pytest.mark.behaviour("I-24")]


@pytest.fixture(params=GUESTS)
def make(request: pytest.FixtureRequest) -> Make:
    return GUESTS[request.param]


def calls(*named: tuple[str, dict[str, str]]) -> ScriptedAnswer:
    return ScriptedAnswer(
        calls=[ScriptedCall(tool=name, arguments={**args}) for name, args in named]
    )


def scripted(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=[*answers]))


def tools_of(turn: Turn) -> list[tuple[int, str, str | None]]:
    return [(step.n, call.name, call.error) for step in turn.steps for call in step.calls]


async def test_a_run_is_recorded_as_a_turn_with_its_steps_and_calls(make: Make) -> None:
    first = calls(("price", {"of": "tea"}), ("send_text_message", {"to": "bob", "text": "tea: 7"}))
    async with (
        scripted(first, ScriptedAnswer(text="It costs 7."), ScriptedAnswer(text="Seven.")) as model,
        Network(make(model), people=["ann", "bob"]) as net,
    ):
        bob = await net.join("bob")
        answer = await net.ask("clerk", "what is tea?", by="ann")
        again = await net.ask("clerk", "how much?", by="ann")
        message = await anext(e async for e in bob.events() if isinstance(e, Event))
    assert (answer.text, again.text) == ("It costs 7.", "Seven.")
    turn = answer.turn
    sent = (2, "answer", None)
    assert tools_of(turn) == [(1, "price", None), (1, "send_text_message", None), sent]
    assert turn.steps[0].calls[0].result == "7"
    assert turn.steps[0].untrusted == ("price",), "results of its own functions are untrusted"
    assert all(step.tokens_in and step.tokens_out for step in turn.steps)
    assert turn.end is not None
    assert turn.end.outcome == "finished"
    assert (message.message.text, message.message.sender_id) == ("tea: 7", "clerk")
    assert message.message.interaction_id == answer.messages[0].interaction_id
    prompt = str(model.requests[-1].messages)
    assert "how much?" in prompt
    assert "what is tea?" in prompt, "the thread is missing"


async def test_people_see_an_agents_activity_and_draft(make: Make) -> None:
    written = ScriptedAnswer(text="It costs seven. " * 8, hold="end", hold_after=6)
    async with scripted(written) as model, Network(make(model), people=["ann"]) as net:
        ann = await net.join("ann")
        await ann.call("send_text_message", to="clerk", text="what is tea?")
        signals = []
        async for item in ann.events():
            if isinstance(item, Signal):
                signals.append(item)
                if item.type == "partial":
                    break
        model.release("end")
    assert any("thinking" in str(signal.data) for signal in signals if signal.type == "activity")
    assert "It costs" in str(signals[-1].data)


async def test_a_model_error_ends_the_turn_with_its_reason(make: Make) -> None:
    async with (
        scripted(Refusal(status=400, message="no such model")) as model,
        Network(make(model), people=["ann"]) as net,
    ):
        with pytest.raises(NoAnswer, match="no such model") as raised:
            await net.ask("clerk", "what is tea?")
    assert raised.value.outcome == "model_error"


async def test_an_exhausted_budget_ends_the_run_before_the_next_request(make: Make) -> None:
    first = calls(("price", {"of": "tea"}))
    async with (
        scripted(first, ScriptedAnswer(text="It costs 7.")) as model,
        Network(make(model), people=["ann"], budgets={"tokens": 2000}) as net,
    ):
        with pytest.raises(NoAnswer) as raised:
            await net.ask("clerk", "what is tea? " * 200)
    assert raised.value.outcome == "budget_exhausted"
    assert len(model.requests) < 2, "a request was made without a budget"


async def test_a_stop_cancels_the_run(make: Make) -> None:
    async with (
        scripted(ScriptedAnswer(text="late", hold="never")) as model,
        Network(make(model), people=["ann"]) as net,
    ):
        question = asyncio.ensure_future(net.ask("clerk", "what is tea?"))
        await model.held("never")
        ann = await net.join("ann")
        await ann.call("stop", scope="agent", target="clerk")
        with pytest.raises(NoAnswer) as raised:
            await question
    assert raised.value.outcome == "cancelled"


async def test_a_restarted_agent_answers_an_interrupted_turn_once(
    make: Make,
) -> None:
    held = ScriptedAnswer(text="late", hold="never")
    sent = calls(("send_text_message", {"to": "bob", "text": "wait"}))
    async with (
        scripted(sent, held, sent, ScriptedAnswer(text="It costs 7.")) as model,
        Network(people=["ann", "bob"]) as net,
    ):
        url = await net.serve(page=False)
        ann = await net.join("ann")
        first = asyncio.create_task(make(model).served(url))
        await _arrived(ann, "clerk")
        await ann.call("send_text_message", to="clerk", text="what is tea?")
        await model.held("never")
        first.cancel()
        await asyncio.wait({first})
        second = asyncio.create_task(make(model).served(url))
        answer = await anext(
            e.message
            async for e in ann.events()
            if isinstance(e, Event) and e.message.sender_id == "clerk"
        )
        bob = await net.join("bob")
        threads = (await _texts(ann), await _texts(bob))
        second.cancel()
        await asyncio.wait({second})
    assert answer.text == "It costs 7."
    assert threads == (["what is tea?", "It costs 7."], ["wait"])


async def test_a_graph_that_adds_no_message_sends_none() -> None:
    """Its last message is the prompt, which has the agent's other threads."""
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    from hubbub.adapters.langgraph import LangGraphAgent

    graph = StateGraph(MessagesState)
    graph.add_node("silent", lambda state: {})
    graph.add_edge(START, "silent")
    with pytest.raises(UserError, match=r"not a StateGraph: call its `compile\(\)`"):
        LangGraphAgent(graph, "clerk")

    async def made(tools: object) -> object:
        return graph.compile(checkpointer=InMemorySaver())

    async with Network(LangGraphAgent(made, "clerk"), people=["ann"]) as net:
        assert not str(await net.ask("clerk", "what is tea?"))


async def test_pydantic_ais_outputs_are_json_and_its_deferred_calls_an_error() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.test import TestModel

    from hubbub.adapters.pydantic_ai import PydanticAiAgent

    prices = pydantic_ai.Agent(TestModel(call_tools=[]), output_type=list[Price])
    careful = pydantic_ai.Agent(
        TestModel(),
        tools=[pydantic_ai.Tool(price, requires_approval=True)],
        output_type=[str, pydantic_ai.DeferredToolRequests],
    )
    guests = (
        PydanticAiAgent(prices, "prices"),
        PydanticAiAgent(careful, "careful", network_tools=()),
    )
    async with Network(*guests, people=["ann"]) as net:
        assert str(await net.ask("prices", "what is tea?")) == '[{"of": "a"}]'
        with pytest.raises(NoAnswer, match="ended before price ran"):
            await net.ask("careful", "what is tea?")
    with pytest.raises(UserError, match=r"an instance of pydantic_ai.Agent, not 'openai:m'"):
        PydanticAiAgent("openai:m", "clerk")


@dataclass
class Price:
    of: str


async def _texts(client: Client) -> list[str]:
    page = await client.call("read_thread", thread="direct_clerk")
    return [message.text for message in ThreadPage.model_validate(page).messages]


async def _arrived(client: Client, name: str) -> None:
    async for item in client.events():
        if isinstance(item, Signal) and item.type == "presence" and name in str(item):
            return
