"""Features of CrewAI beyond agents with native tool calls: crews, and custom models."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub import Network
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import Script, ScriptedAnswer, ScriptedCall
from hubbub.testing.model_server import ModelServer
from tests.frameworks.guests import price, quiet_crewai

crewai = quiet_crewai()
from crewai.tools import tool  # noqa: E402  # after the check for the package

from hubbub.adapters.crewai import CrewAiAgent  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.behaviour("I-24")]


class Scripted(crewai.BaseLLM):  # type: ignore[misc, name-defined]  # where it is not installed
    """A custom model, which emits no events for its calls."""

    answers: list[str]

    def call(self, messages: object, tools: object = None, **_: object) -> str:
        return self.answers.pop(0)


def agent_with(llm: object, tools: list[Any]) -> Any:
    return crewai.Agent(
        role="clerk", goal="Tell prices.", backstory="You know them.", llm=llm, tools=tools
    )


def tools_of(turn: Turn) -> list[tuple[str, str | None]]:
    return [(call.name, call.result) for step in turn.steps for call in step.calls]


async def test_a_crew_takes_a_turn_with_the_networks_tools() -> None:
    first = ScriptedAnswer(
        calls=[ScriptedCall(tool="send_text_message", arguments={"to": "bob", "text": "hm"})]
    )
    rest = [ScriptedAnswer(text="A note."), ScriptedAnswer(text="It costs 7.")]
    async with ModelServer(Script(answers=[first, *rest])) as model:
        llm = crewai.LLM("openai/m", base_url=model.base_url, api_key="none")

        def crew(network: Any) -> Any:
            noting, answering = agent_with(llm, [*network]), agent_with(llm, [])
            tasks = [
                crewai.Task(description=text, expected_output="a text", agent=agent)
                for text, agent in [("Note: {conversation}", noting), ("Answer.", answering)]
            ]
            return crewai.Crew(agents=[noting, answering], tasks=tasks)

        async with Network(CrewAiAgent(crew, "clerk"), people=["ann", "bob"]) as net:
            answer = await net.ask("clerk", "what is tea?", by="ann")
    assert answer.text == "It costs 7."
    assert [step.text for step in answer.turn.steps] == [None, "A note.", "It costs 7."]
    assert [name for name, _ in tools_of(answer.turn)] == ["send_text_message", "answer"]
    assert "what is tea?" in str(model.requests[0].messages)


async def test_tool_calls_of_a_custom_model_are_recorded() -> None:
    call = 'Thought: I look.\nAction: price\nAction Input: {"of": "tea"}'
    final = "Thought: I know.\nFinal Answer: It costs 7."
    llm = Scripted(model="mine", answers=[call, final])
    guest = CrewAiAgent(agent_with(llm, [tool(price)]), "clerk")
    async with Network(guest, people=["ann"]) as net:
        answer = await net.ask("clerk", "what is tea?", by="ann")
    assert answer.text == "It costs 7."
    assert tools_of(answer.turn)[0] == ("price", "7")
    assert answer.turn.steps[0].untrusted == ("price",)


async def test_an_exception_in_a_tool_is_reported_to_the_model_as_a_failed_call() -> None:
    def broken(of: str) -> int:
        """Return the price of an item."""
        raise RuntimeError("no list of prices")

    first = ScriptedAnswer(calls=[ScriptedCall(tool="broken", arguments={"of": "tea"})])
    async with ModelServer(Script(answers=[first, ScriptedAnswer(text="I cannot say.")])) as model:
        llm = crewai.LLM("openai/m", base_url=model.base_url, api_key="none")
        guest = CrewAiAgent(agent_with(llm, [tool(broken)]), "clerk")
        async with Network(guest, people=["ann"]) as net:
            answer = await net.ask("clerk", "what is tea?", by="ann")
    failed = answer.turn.steps[0].calls[0]
    assert failed.error == "failed"
    assert "no list of prices" in str(failed.result)
