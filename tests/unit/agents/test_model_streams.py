"""Streamed answers, refusals of tools, and the choice of a dialect."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hubbub.agents.models.base import Completion, CompletionRequest, Delta, ToolSpec
from hubbub.agents.models.openai import OpenAIModel, refuses_tools
from hubbub.agents.prompt.budget import ContextBudget, ContextRules, FixedMessage
from hubbub.agents.prompt_client import DialectChoice, EndpointLimits, PromptClient
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.client.calls import Backoff
from hubbub.config.models import ModelConfig
from hubbub.errors import ModelError, ToolsRefused
from hubbub.protocol.turns import Step
from hubbub.testing import model_script as script
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Refusal, Script, ScriptedCall
from tests.unit.agents.scripted_model import ScriptedModel

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
QUESTION = CompletionRequest([{"role": "user", "content": "1 + 2?"}], (ADD,))
CALLING = script.ScriptedAnswer(
    text="Let me see, please.",
    calls=[
        ScriptedCall(tool="add", arguments={"a": 1, "b": 23}),
        ScriptedCall(tool="finish", arguments="{}"),
    ],
)


async def asked(
    *answers: AnyAnswer, question: CompletionRequest = QUESTION, **config: object
) -> tuple[Completion, list[Delta], ModelServer]:
    """A model's answer through its endpoint, and its deltas."""
    deltas: list[Delta] = []
    async with ModelServer(Script(answers=list(answers))) as server:
        settings = {"model": "m", "base_url": server.base_url, "retries": 1, **config}
        model = OpenAIModel(ModelConfig.model_validate(settings), backoff=Backoff(first_s=0))
        try:
            return await model.answer(question, deltas.append), deltas, server
        finally:
            await model.close()


def text(deltas: Sequence[Delta], attempt: int = 1) -> str:
    return "".join(d.text for d in deltas if d.call is None and d.attempt == attempt)


async def test_a_streamed_answer_arrives_piece_by_piece() -> None:
    answer, deltas, _ = await asked(CALLING, stream=True)
    assert text(deltas) == answer.text == "Let me see, please."
    assert len([d for d in deltas if d.call is None]) > 1
    for index, call in enumerate(answer.calls):
        pieces = [d for d in deltas if d.call == index]
        assert "".join(d.text for d in pieces) == call.arguments
        assert {d.name for d in pieces} == {call.name}


async def test_pieces_of_an_interrupted_answer_belong_to_an_attempt_of_their_own() -> None:
    cut = CALLING.model_copy(update={"cut_after": 3})
    answer, deltas, _ = await asked(cut, CALLING, stream=True)
    assert CALLING.text is not None
    assert CALLING.text.startswith(text(deltas, 1))
    assert text(deltas, 1) not in ("", CALLING.text)
    assert text(deltas, 2) == CALLING.text
    assert [d.attempt for d in deltas] == sorted(d.attempt for d in deltas)
    assert answer.notes == ("the answer was interrupted and requested again (1 times)",)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_without_tools_has_no_tool_fields(stream: bool) -> None:
    question = CompletionRequest(QUESTION.messages)
    _, _, server = await asked(script.ScriptedAnswer(text="3"), question=question, stream=stream)
    assert not {"tools", "tool_choice"} & server.requests[0].raw.keys()


async def test_refusals_of_tools_are_distinguished_from_other_errors() -> None:
    extra = "'msg': 'Extra inputs are not permitted', 'input': [{'role': 'messages'}]}]"
    for message in [
        "registry.example/gemma:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
        "tool_choice 'required' is not supported", "Unrecognized request argument supplied: tools",
        "Function calling is not enabled for models/x",
        "No endpoints found that support tool use. Try disabling add.",
        "tools param requires --jinja flag", "Unsupported parameter: 'tool_choice'",
        "This model doesn't support function calling.",
        "`tools` and `tool_choice` are not supported by this model",
        "Invalid value: 'required' for tool_choice",
        *("tools not supported", "Function calling isn't supported", "No support for tools"),
        "body.tools: Extra inputs are not permitted", "Unrecognized key(s) in object: 'tools'",
        f"[{{'type': 'extra_forbidden', 'loc': ('body', 'tools'), {extra}",
    ]:  # fmt: skip
        assert refuses_tools(message), message
    parameter = "Invalid parameter: messages with role 'tool' must be a response to a preceding "
    for message in [
        *("the prompt is too long", "temperature is not supported", "tool_call_id is not known"),
        "messages.3: tool results must follow their calls",
        f"{parameter} message with 'tool_calls'. user said: tools not supported",
        "An assistant message with 'tool_calls' must be followed by tool messages",
        "Invalid 'messages[3].tool_calls': array too long; not supported",
        "Invalid schema for function 'add': 'oneOf' is not permitted",
        "Invalid 'tools[0].function.name': string does not match pattern",
        "tools.0.function.strict: Extra inputs are not permitted",
    ]:
        assert not refuses_tools(message), message
    refusal = Refusal(status=400, message="does not support tools")
    with pytest.raises(ToolsRefused):
        await asked(refusal)
    forbidden = Refusal(status=401, message="tools are not allowed with this key")
    without_tools = CompletionRequest(QUESTION.messages)
    for answer in (asked(refusal, question=without_tools), asked(forbidden)):
        with pytest.raises(ModelError) as caught:
            await answer
        assert not isinstance(caught.value, ToolsRefused)


UNLIMITED = ContextBudget(ContextRules(), FixedMessage("prompt"))


@pytest.mark.behaviour("A-17")
class TestAsking:
    TALK = Completion(text="Hello", tokens_in=10, tokens_out=2, cost_usd=0.5)
    LINE = 'TOOL_CALL {"tool_name": "finish"}'

    def client(
        self, endpoint: ScriptedModel, limits: EndpointLimits | None = None, **config: object
    ) -> PromptClient:
        settings = ModelConfig.model_validate({"model": "m", **config})
        choice = DialectChoice(settings, limits or EndpointLimits())
        return PromptClient(endpoint, Toolbox([]).described, "system", UNLIMITED, choice)

    async def test_attempts_are_numbered_on_and_wasted_answers_are_charged(self) -> None:
        pieces = [Delta("a"), Delta("b", attempt=2)]
        refusal = ToolsRefused("no tools")
        model = ScriptedModel(refusal, Completion(text=self.LINE), deltas=pieces)
        deltas: list[Delta] = []
        answer = await self.client(model).ask([], deltas.append)
        assert [c.name for c in answer.calls] == ["finish"]
        assert [d.attempt for d in deltas] == [1, 2, 3, 4]
        calling = Completion(text=self.LINE, tokens_in=20, tokens_out=3, cost_usd=0.25)
        model = ScriptedModel(self.TALK, calling)
        answer = await self.client(model).ask([Step(n=1, text="Hello")])
        assert (answer.tokens_in, answer.tokens_out, answer.cost_usd) == (30, 5, 0.75)

    async def test_a_configured_dialect_or_a_missing_choice_is_not_changed(self) -> None:
        model = ScriptedModel(self.TALK)
        client = self.client(model, dialect="final_output")
        assert (await client.ask([Step(n=1, text="Hello")])).calls == ()
        assert len(model.questions) == 1
        model = ScriptedModel(ToolsRefused("no tools"))
        client = PromptClient(model, Toolbox([]).described, "s", UNLIMITED)
        with pytest.raises(ToolsRefused):
            await client.ask([])

    async def test_the_limits_of_an_endpoint_are_shared_by_all_clients_of_its_model(self) -> None:
        limits = EndpointLimits()
        endpoint = ScriptedModel(ToolsRefused("no tools"), Completion(text=self.LINE))
        await self.client(endpoint, limits).ask([])
        answer = await self.client(endpoint, limits).ask([])
        assert answer.notes == ("tool_call: the endpoint refuses tools: no tools",)
        assert endpoint.questions[-1].tools == ()
        await self.client(endpoint, limits).ask([Step(n=1, text="x")])
        for other in ({"model": "other"}, {"base_url": "http://127.0.0.1:1/v1"}):
            assert self.client(endpoint, limits, **other).choice.current.name == "native"
