"""A network in a Python program: questions to agents, and answers as text and values."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import pytest
from pydantic import BaseModel, JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub import (
    Agent,
    Client,
    Hooks,
    LlmAgent,
    Message,
    Network,
    NoAnswer,
    PromptContext,
    ToolFailed,
    tool,
)
from hubbub.agents.tools.approval import ApprovalRequest, Approved
from hubbub.agents.turn.hooks import TurnInfo
from hubbub.client import WebSocketTransport
from hubbub.config.agents import AgentConfig, ModelConfig
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.embed.ask import Ask
from hubbub.errors import HubbubError, UserError
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Turns
from hubbub.testing.model_script import AnyAnswer, Refusal, ScriptRule, When
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer
from tests.interaction.agent_harness import call, playing, says
from tests.interaction.peers import soon


class Refund(BaseModel):
    order: int
    cents: int


class Refusing(BaseModel):
    why: str


@tool(permission="write")
async def price_of(order: int) -> int:
    """The price of an order in cents."""
    if order != 7:
        raise ToolFailed(f"there is no order {order}")
    return 1900


def clerk(model: ModelServer, name: str = "clerk", **more: Any) -> LlmAgent:
    usual: dict[str, Any] = {"model": "m", "retries": 0, "instruction": "You handle refunds."}
    return LlmAgent(name, base_url=model.base_url, **{**usual, **more})


def answers(*messages: JsonValue) -> list[AnyAnswer]:
    return [says(call("finish", message=message)) for message in messages]


TEXT = "All of it, word by word."
SLOW = ScriptedAnswer(calls=[call("finish", message=TEXT)], piece=6, chunk_delay_s=0.1)


async def streamed(question: Ask[Any]) -> str:
    return "".join([event.text or "" async for event in question])


async def test_an_agent_answers_with_a_tool_and_remembers_the_conversation() -> None:
    first = [says(call("price_of", order=7)), *answers("You get 19.00 back.")]
    async with playing(*first, *answers("As I said: 19.00.")) as model:
        agent = clerk(model, tools=[price_of], price={"input": 1, "output": 2})
        async with Network(agent, name="shop") as net:
            question = net.ask("clerk", "refund order 7")
            answer = await question
            again = await net.ask("clerk", "how much was it?")
    assert (answer.text, str(again)) == ("You get 19.00 back.", "As I said: 19.00.")
    assert question.answer is answer
    turn = answer.turn
    assert [call.name for step in turn.steps for call in step.calls] == ["price_of", "finish"]
    assert answer.tokens == turn.tokens_in + turn.tokens_out > 0
    assert answer.cost == pytest.approx((turn.tokens_in + 2 * turn.tokens_out) / 1_000_000)
    assert "You get 19.00 back." in (again.turn.prompt or ""), "it is one conversation"
    assert model.mistakes == []


async def test_a_question_streams_the_events_and_the_text_of_its_turn() -> None:
    texts: list[str] = []

    class Watching(Hooks):
        async def on_text(self, turn: TurnInfo, text: str) -> None:
            texts.append(text)

    async with (
        playing(says(call("price_of", order=7)), SLOW) as model,
        Network(clerk(model, tools=[price_of], stream=True, hooks=[Watching()])) as net,
    ):
        question = net.ask("clerk", "refund order 7")
        events = [event async for event in question]
    kinds = [event.kind for event in events if event.kind != "text"]
    assert kinds == [
        *("turn_start", "step", "tool_start", "tool_end"),
        *("step", "tool_start", "tool_end", "turn_end"),
    ]
    assert events[3].result is not None
    assert events[3].result.result == "1900"
    assert question.answer.text == texts[-1] == TEXT
    text = "".join(event.text or "" for event in events)
    assert text
    assert TEXT.startswith(text)


async def test_simultaneous_questions_each_stream_only_their_own_text() -> None:
    async with playing(SLOW, SLOW) as model:
        names = ("one", "two")
        async with Network(*(clerk(model, name, stream=True) for name in names)) as net:
            for text in await asyncio.gather(*(streamed(net.ask(to, "hello")) for to in names)):
                assert text
                assert TEXT.startswith(text)


VALUES: Sequence[tuple[Any, JsonValue, object]] = [
    (Refund, {"order": 7, "cents": 1900}, Refund(order=7, cents=1900)),
    (list[Refund], [{"order": 7, "cents": 5}], [Refund(order=7, cents=5)]),
    (list[Refund], [], []),
    (Refund | Refusing, {"why": "too late"}, Refusing(why="too late")),
    (bool, False, False),
    (int, "3", 3),
    (Literal["yes", "no"], "no", "no"),
    (str, "", ""),
    (dict[str, int], {"a": 1}, {"a": 1}),
]


WAYS: Mapping[str, dict[str, Any]] = {
    "native": {},
    "tool_call": {"dialect": "tool_call"},
    "final_output": {"dialect": "final_output"},
    "strict": {"strict": True},
    "json_schema": {"structured_output": True},
    "responses": {"api": "responses", "strict": True},
    "responses, json_schema": {"api": "responses", "structured_output": True, "stream": True},
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_can_have_any_type_in_every_dialect_and_api(way: str) -> None:
    values = VALUES if way in ("native", "strict", "json_schema") else VALUES[::2]
    async with (
        playing(*answers(*(message for _, message, _ in values))) as model,
        Network(clerk(model, tools=[], **WAYS[way])) as net,
    ):
        results = [await net.ask("clerk", "?", output=kind) for kind, _, _ in values]
    assert results == [expected for _, _, expected in values]
    assert model.mistakes == []
    forms = {request.form is not None for request in model.requests}
    assert forms == {"structured_output" in WAYS[way]}


async def test_an_endpoint_that_refuses_structured_output_gets_a_finish_tool() -> None:
    refused = Refusal(status=400, message="'response_format' of type 'json_schema' is unknown")
    async with (
        playing(refused, *answers({"order": 7, "cents": 5}, {"order": 8, "cents": 5})) as model,
        Network(clerk(model, structured_output=True, output=Refund)) as net,
    ):
        question = net.ask("clerk", "which refund?")
        await question
        await net.ask("clerk", "and the next?")
    forms = [request.form is not None for request in model.requests]
    assert forms == [True, False, False], "the refusal is remembered"
    notes = " ".join(question.answer.turn.steps[0].notes)
    assert "refuses the form of the answer" in notes


async def test_invalid_structured_output_is_corrected_and_tools_can_be_called_beside_it() -> None:
    prose = ScriptedAnswer(text="It is order seven.", ignore_tool_choice=True)
    async with (
        playing(
            says(call("price_of", order=7)), prose, *answers({"order": 7, "cents": 1})
        ) as model,
        Network(clerk(model, structured_output=True, output=Refund, tools=[price_of])) as net,
    ):
        refund: object = await net.ask("clerk", "which refund?")
    assert refund == Refund(order=7, cents=1)
    assert [request.tools for request in model.requests] == [["price_of"]] * 3
    assert "JSON" in str(model.requests[2].messages[-1].content)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_responses_api_works_like_chat_completions(stream: bool) -> None:
    first = says(call("price_of", order=7), call("price_of", order=8))
    async with (
        playing(first, SLOW, Refusal(status=400, message="no")) as model,
        Network(
            clerk(
                model, tools=[price_of], stream=stream, api="responses", reasoning_effort="low",
                max_output_tokens=99, price={"input": 1, "output": 2},
            )
        ) as net,
    ):  # fmt: skip
        question = net.ask("clerk", "refund order 7")
        text = await streamed(question)
        with pytest.raises(NoAnswer, match="refused the request"):
            await net.ask("clerk", "again")
    answer = question.answer
    assert answer.text == TEXT
    assert bool(text) is stream
    assert TEXT.startswith(text)
    errors = [call.error for step in answer.turn.steps for call in step.calls]
    assert errors == [None, "tool_failed", None]
    assert answer.tokens > 0
    assert answer.cost
    assert model.mistakes == []
    raw = model.requests[1].raw
    kinds = [item.get("type", item.get("role")) for item in raw["input"]]  # type: ignore[union-attr]
    assert kinds == ["user", *["function_call"] * 2, *["function_call_output"] * 2]
    assert (raw["store"], raw["reasoning"]) == (False, {"effort": "low"})
    assert raw["max_output_tokens"] == 99
    assert "You handle refunds." in str(raw["instructions"])


async def test_tools_are_strict_where_possible_and_null_arguments_mean_the_default() -> None:
    notes: list[object] = []

    @tool
    def note(text: str, tags: list[str] | None = None, loud: bool = False) -> str:
        """Note something."""
        notes.append((text, tags, loud))
        return "ok"

    @tool
    def store(values: dict[str, int]) -> str:
        """Store numbers under names of your own."""
        return "ok"

    written = says(call("note", text="a", tags=None, loud=None))
    async with (
        playing(written, *answers("done")) as model,
        Network(clerk(model, tools=[note, store], strict=True)) as net,
    ):
        await net.ask("clerk", "note a")
    assert notes == [("a", None, False)]
    strict = {t.function.name: t.function.strict for t in model.requests[0].body.tools}
    assert strict == {"note": True, "store": False, "finish": True}
    assert model.mistakes == [], "the server checks strict schemas as OpenAI does"


async def test_an_answer_of_the_wrong_type_is_returned_to_the_model_with_the_error() -> None:
    wrong: JsonValue = [{"order": "seven", "cents": 1900}]
    right: JsonValue = [{"order": 7, "cents": 1900}]
    silent = says(call("finish", reason="no idea"))
    async with (
        playing(silent, *answers(wrong, right)) as model,
        Network(clerk(model, output=list[Refund], tools=[])) as net,
    ):
        refunds: object = await net.ask("clerk", "which refunds?")
        assert refunds == [Refund(order=7, cents=1900)]
    errors = [str(request.messages[-1].content) for request in model.requests[1:]]
    assert "message" in errors[0]
    assert "order" in errors[1]


async def test_a_question_fails_after_three_answers_of_the_wrong_type(
    snapshot: SnapshotAssertion,
) -> None:
    async with (
        playing(*answers("x", "y", {"z": 1})) as model,
        Network(clerk(model, tools=[])) as net,
    ):
        with pytest.raises(NoAnswer) as failed:
            await net.ask("clerk", "how many?", output=int)
    assert str(failed.value) == snapshot
    assert failed.value.turn is not None


async def test_a_failed_question_gives_the_reason(snapshot: SnapshotAssertion) -> None:
    class Broken(Agent):
        async def on_direct(self, message: Message) -> str:
            raise RuntimeError("no paper left")

    async with (
        playing(Refusal(status=401)) as model,
        Network(clerk(model), Broken) as net,
    ):
        reasons = []
        for name in ("clerk", "broken"):
            with pytest.raises(NoAnswer) as failed:
                await net.ask(name, "hello")
            reasons.append(str(failed.value).replace(model.base_url, "http://model/v1"))
    assert reasons == snapshot


async def test_a_question_fails_with_the_reason_when_its_agent_is_stopped_before_the_turn(
    snapshot: SnapshotAssertion,
) -> None:
    begun = asyncio.Semaphore(0)

    class Busy(Agent):
        async def on_direct(self, message: Message) -> None:
            begun.release()
            await asyncio.Event().wait()

    async with Network(Busy, people={"boss": {"roles": ["owner"]}}) as net:
        others = [asyncio.ensure_future(net.ask("busy", "one", by=f"p{n}")) for n in range(4)]
        for _ in others:  # its limit of simultaneous turns
            await begun.acquire()
        boss = await net.join("boss", observe=True)
        question = asyncio.ensure_future(net.ask("busy", "two", by="ann"))
        async with soon():
            await anext(item async for item in boss.events() if isinstance(item, Event))
        await boss.call("stop", scope="agent", target="busy", reason="enough for today")
        with pytest.raises(NoAnswer) as failed:
            async with soon():
                await question
        await asyncio.wait(others)
        assert {type(other.exception()) for other in others} == {NoAnswer}
    assert str(failed.value) == snapshot


async def test_agents_delegate_to_each_other_and_people_have_separate_threads() -> None:
    class WordCounter(Agent):
        async def on_direct(self, message: Message) -> int:
            return len(message.text.split())

    rules = [
        ScriptRule(
            when=When(step=1, sender="^(ann|bob)$"),
            answer=says(call("delegate", to="word-counter", task="a b c"), call("finish")),
        ),
        ScriptRule(answer=says(call("finish", message="three"))),
    ]
    async with ModelServer(Script(rules=rules)) as model:
        agents = (clerk(model, "boss"), WordCounter)
        async with Network(*agents, people=["ann", "bob"], channels=["general"]) as net:
            counted = await net.ask("word-counter", "one two")
            both = await asyncio.gather(
                net.ask("word-counter", "one", by="ann"),
                net.ask("word-counter", "one two three", by="bob"),
                net.ask("word-counter", "one two three four", by="ann"),
            )
            answer = await net.ask("boss", "count", by="bob")
    assert counted.text == "2"
    assert answer.text == "three", "the boss delegates, and answers in another turn"
    assert [turn.agent for turn in answer.turns] == ["boss", "word-counter", "boss"]
    tools = {t.function.name: t.function for t in model.requests[0].body.tools}
    assert tools["delegate"].description.endswith("Agents here: word-counter.")
    assert answer.turn == answer.turns[-1]
    assert answer.tokens == sum(turn.tokens_in + turn.tokens_out for turn in answer.turns)
    assert [answer.text for answer in both] == ["1", "3", "4"]


async def test_tools_of_modules_and_objects_are_offered_if_their_condition_holds() -> None:
    class Desk:
        def __init__(self, owner: str):
            self.owner = owner

        @tool
        async def whose(self, what: str) -> str:
            """Tell whose something is."""
            return f"{what} is of {self.owner}"

        @tool(permission="write")
        def sell(self, what: str, cents: int) -> str:
            """Sell something."""
            return f"{self.owner} sold {what} for {cents}"

        def close(self) -> None:
            """Not a tool."""

    async def to_ann(context: PromptContext) -> bool:
        return context.thread == "direct_ann"

    @tool(when=to_ann)
    def discount() -> int:
        """Ann's discount in percent."""
        return 5

    module = ModuleType("pricing")
    module.price_of = price_of  # type: ignore[attr-defined]  # as an import would
    calls = [call("whose", what="it"), call("sell", what="it", cents=5)]
    async with playing(says(*calls), *answers("sold", "no")) as model:
        agent = clerk(model, tools=[Desk("bob"), module, discount])
        async with Network(agent, people=["ann", "eve"]) as net:
            await net.ask("clerk", "sell it", by="ann")
            answer = await net.ask("clerk", "cheaper?", by="eve")
    offered = [{t.function.name for t in r.body.tools} for r in model.requests]
    own = {"whose", "sell", "price_of"}
    assert offered[0] - {"finish", "use_tools"} == {*own, "discount"}
    assert offered[-1] - {"finish", "use_tools"} == own
    assert "discount" not in answer.turn.start.tools
    results = [message.content for message in model.requests[1].messages[-2:]]
    assert results == ["it is of bob", "bob sold it for 5"]


async def test_a_program_can_decide_approvals_and_edit_arguments() -> None:
    paid: list[int] = []

    @tool(permission="write", confirm=True)
    async def refund(order: int, cents: int) -> str:
        """Pay money back."""
        paid.append(cents)
        return "paid"

    async def approve(request: ApprovalRequest) -> bool | Approved:
        cents = request.arguments["cents"]
        if cents == 2:
            return Approved({**request.arguments, "cents": 1}, by="bookkeeper")
        return cents == 1

    refunds = [says(call("refund", order=7, cents=cents)) for cents in (1, 2, 3)]
    async with (
        playing(*refunds, *answers("done")) as model,
        Network(clerk(model, tools=[refund]), approve=approve) as net,
    ):
        answer = await net.ask("clerk", "refund three times")
    calls = [c for step in answer.turn.steps for c in step.calls]
    assert paid == [1, 1]
    assert calls[1].changed is not None
    assert calls[1].changed.by == "bookkeeper"
    assert [c.error for c in calls] == [None, None, "denied", None]


async def test_settings_of_the_model_the_agent_and_the_question_are_merged() -> None:
    async with playing(*answers("a", "b")) as model:
        small: dict[str, JsonValue] = {"model": "m", "base_url": model.base_url, "temperature": 1}
        small |= {"extra_body": {"top_k": 5}, "service_tier": "flex"}
        agent = LlmAgent("clerk", model="small", top_p=0.5, reasoning_effort="low")
        async with Network(agent, models={"small": small}) as net:
            await net.ask("clerk", "one")
            more: dict[str, JsonValue] = {"extra_body": {"min_p": 1}, "extra_headers": {"X-A": "b"}}
            await net.ask("clerk", "two", settings={"temperature": 0, **more})
    first, second = (request.raw for request in model.requests)
    assert (first["temperature"], first["top_p"], first["top_k"]) == (1, 0.5, 5)
    assert (first["reasoning_effort"], first["service_tier"]) == ("low", "flex")
    assert (second["temperature"], second["top_p"]) == (0, 0.5)
    assert (second["top_k"], second["min_p"]) == (5, 1)
    assert model.requests[1].headers["x-a"] == "b"


def test_ask_sync_needs_no_event_loop_and_continues_a_stored_network(tmp_path: Path) -> None:
    class Counter(Agent):
        async def on_direct(self, message: Message) -> int:
            return len(await self.read_thread(message.thread_id))

    net = Network(Counter, store="sqlite:shop.db", folder=tmp_path)
    assert [net.ask_sync("counter", "how many?").text for _ in range(2)] == ["1", "3"]
    assert net.ask_sync("counter", "how many?", output=int) == 5


async def test_a_question_is_answered_when_the_delegated_work_ends_silently() -> None:
    class Silent(Agent):
        async def on_direct(self, message: Message) -> None:
            return None

    delegated = says(call("delegate", to="silent", task="x"), call("finish"))
    async with (
        playing(delegated, *answers("nothing came of it")) as model,
        Network(clerk(model), Silent) as net,
    ):
        answer = await net.ask("clerk", "hello")
    assert answer.text == "nothing came of it"


async def test_roles_use_the_model_of_their_agent() -> None:
    routed = says(call("route", target="answer", confidence=0.9, request="hi"))
    async with playing(routed) as model:
        agent = clerk(model, "guide", kind="pipeline", tools=[])
        async with Network(agent) as net:
            answer = await net.ask("guide", "hello")
    assert (answer.text, answer.turn.steps[0].model) == ("hi", "m")


async def cancelled_turns(net: Network, agent: str, begun: Awaitable[object]) -> list[str]:
    """The outcomes of the agent's turns after a question to the clerk was cancelled."""
    question = asyncio.ensure_future(_awaited(net.ask("clerk", "think")))
    async with soon():
        await begun
    question.cancel()
    await asyncio.wait({question})
    ann = await net.join("ann", observe=True)
    turns = Turns.model_validate(await ann.call("list_turns", agent=agent)).turns
    return [str(turn.outcome) for turn in turns]


async def test_cancelling_a_question_stops_its_turn() -> None:
    async with (
        playing(ScriptedAnswer(calls=[call("finish")], hold="for ever")) as model,
        Network(clerk(model)) as net,
    ):
        assert await cancelled_turns(net, "clerk", model.held("for ever")) == ["cancelled"]


async def test_cancelling_a_question_stops_the_turns_of_delegated_work() -> None:
    begun = asyncio.Event()

    class Worker(Agent):
        async def on_direct(self, message: Message) -> None:
            begun.set()
            await asyncio.Event().wait()

    delegated = says(call("delegate", to="worker", task="think"), call("finish"))
    async with playing(delegated) as model, Network(clerk(model), Worker) as net:
        assert await cancelled_turns(net, "worker", begun.wait()) == ["cancelled"]


async def _awaited(question: Any) -> object:
    return await question


async def test_a_served_network_accepts_clients_and_its_agents_leave_before_it_stops(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Idle(Agent):
        pass

    async with AsyncExitStack() as outside:
        async with Network(Idle(), openai=True) as net:
            url = await net.serve()
            client = Client(WebSocketTransport(url), "eve", "human")
            eve = await outside.enter_async_context(client)
            assert eve.network == "hubbub"
        assert capfd.readouterr().err == "", "no agent saw the hub stop"


async def test_a_served_network_raises_what_its_block_raised() -> None:
    async def failing(error: Exception) -> None:
        async with Network(openai=True, mcp=True) as net:
            await net.serve()
            raise error

    for error in (KeyError("mine"), ExceptionGroup("mine", [KeyError("one")])):
        with pytest.raises(type(error)) as raised:
            await failing(error)
        assert raised.value is error


async def test_invalid_arguments_are_reported_in_a_sentence(snapshot: SnapshotAssertion) -> None:
    def undocumented(x: int) -> int:
        return x

    class Strange:
        pass

    async def ask(*agents: Any, **more: Any) -> None:
        async with Network(*agents, **more) as net:
            await net.ask("clerk", "hello")

    def network(*agents: Any, **more: Any) -> Any:
        return lambda: ask(*agents, **more)

    agent = LlmAgent("clerk", base_url="http://127.0.0.1:9/v1", retries=0)
    cases: Mapping[str, Any] = {
        "argument": lambda: LlmAgent("clerk", max_steps=0),
        "section": lambda: LlmAgent("clerk", history={"message": 3}),
        "tool": lambda: LlmAgent("clerk", tools=[undocumented]),
        "nothing": lambda: LlmAgent("clerk", tools=[7]),
        "output": lambda: LlmAgent("clerk", output=Strange),
        "name": lambda: Network(LlmAgent("a b")),
        "twice": lambda: Network(agent, agent),
        "budgets": lambda: Network(budgets={"hops": "many"}),
        "operation": network(LlmAgent("clerk", base_url="http://x/v1", tools=["send_txt_message"])),
        "mod": network(agent, mods=["serch"]),
        "store": network(agent, store="postgres:x"),
        "nobody": lambda: _asks(Network(agent), "clark"),
        "question": lambda: _asks(Network(agent), "clerk", output=Strange),
        "both": lambda: Network(agent, models={"clerk": {"model": "m"}}),
        "no list": lambda: LlmAgent("clerk", tools="shop.py:refund"),
        "no agent": lambda: Network([agent]),  # type: ignore[arg-type]
        "no people": lambda: Network(agent, people="ann"),
        "an object": lambda: _asks(Network(agent), agent),
        "not entered": lambda: _asks(Network(agent), "clerk"),
        "join": lambda: Network(agent).join("ann"),
        "serve": lambda: Network(agent).serve(),
        "loop": lambda: Network(agent).ask_sync("clerk", "hello"),
        "file": network(LlmAgent("clerk", tools=["shop.py:refund"], base_url="http://x/v1")),
    }
    messages = {}
    for name, case in cases.items():
        with pytest.raises(HubbubError) as error:
            await _run(case)
        messages[name] = str(error.value).replace(str(Path.cwd()), "FOLDER")
    assert messages == snapshot


async def test_a_missing_api_key_is_reported_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=r"^the model of clerk, gpt-5-mini, has no key: set OPENAI"):
        await Network(LlmAgent("clerk", model="gpt-5-mini")).__aenter__()
    shared = Network(LlmAgent("clerk", model="small"), models={"small": {"model": "gpt-5-mini"}})
    with pytest.raises(UserError, match="the model of clerk, gpt-5-mini, has no key"):
        await shared.__aenter__()
    async with Network(LlmAgent("clerk", model="gpt-5-mini", api_key="sk")):
        pass


async def _run(case: Any) -> None:
    result = case()
    if inspect.isawaitable(result):
        await result


def _asks(net: Network, agent: Any, **more: Any) -> Any:
    return net.ask(agent, "hello", **more)


def test_every_setting_of_the_yaml_has_a_python_argument() -> None:
    agent = set(inspect.signature(LlmAgent).parameters) - {"name", "output"}
    handlers = {"class_", "settings", "object", "a2a", "acp", "command"}  # agents without a model
    yaml_only = {"process", "model_settings", "rollout"}
    assert agent == {*AgentConfig.model_fields, *ModelConfig.model_fields} - handlers - yaml_only
    network = set(inspect.signature(Network).parameters) - {"agents", "folder", "approve"}
    # Arguments of `serve`, or what `hubbub up` starts.
    listening = {"listen", "agent_folder", "bridges", "gateway_token"}
    sections = {*NetworkFile.model_fields, *NetworkConfig.model_fields} - {"network", "agents"}
    assert network == (sections - listening - {"humans"}) | {"people"}
    kinds = get_args(AgentConfig.model_fields["kind"].annotation)
    assert set(kinds) - {"python", "a2a", "acp", "program"} == set(get_args(_kind_of_agents()))


def _kind_of_agents() -> object:
    return inspect.signature(LlmAgent, eval_str=True).parameters["kind"].annotation


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"{message.text}!"


async def test_an_exception_leaves_the_network_with_its_cause() -> None:
    async def run() -> None:
        async with Network(Echo):
            try:
                raise KeyError("order")
            except KeyError as error:
                raise ValueError("no order") from error

    with pytest.raises(ValueError, match="no order") as caught:
        await run()
    assert isinstance(caught.value.__cause__, KeyError)
    assert isinstance(caught.value.__context__, KeyError)


async def test_the_rate_limit_of_participants_does_not_fail_questions_asked_at_once() -> None:
    """The program follows all of them as one participant, the operator."""
    names = [f"echo{n}" for n in range(20)]
    limits: Mapping[str, JsonValue] = {"calls_per_second": 0.01, "burst": 30}
    async with Network(
        *[type("Named", (Echo,), {"name": name}) for name in names], limits=limits
    ) as net:
        answers = await asyncio.gather(*[net.ask(name, "hi", by=f"of-{name}") for name in names])
    assert {answer.text for answer in answers} == {"hi!"}


async def test_an_agent_object_takes_part_in_one_network_at_a_time() -> None:
    """It answered the questions of the one in the other."""
    echo = Echo()
    async with Network(echo) as net:
        assert str(await net.ask("echo", "one")) == "one!"
        with pytest.raises(UserError, match="already runs in a network"):
            async with Network(echo) as other:
                await other.ask("echo", "two")
        assert str(await net.ask("echo", "three")) == "three!"
    async with Network(echo) as again:
        assert str(await again.ask("echo", "four")) == "four!"


async def test_a_network_is_not_entered_twice_at_once() -> None:
    async with Network(Echo) as net:
        with pytest.raises(UserError, match="already running"):
            async with net:
                pass
        assert str(await net.ask("echo", "one")) == "one!"


async def test_a_question_awaited_in_another_event_loop_is_refused() -> None:
    async with Network(Echo) as net:

        def in_a_thread() -> None:
            asyncio.run(_awaited_answer(net))

        with pytest.raises(UserError, match="run_coroutine_threadsafe"):
            await asyncio.to_thread(in_a_thread)
        loop = asyncio.get_running_loop()
        future = await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(_awaited_answer(net), loop)
        )
        assert await asyncio.wrap_future(future) == "hi!"


async def _awaited_answer(net: Network) -> str:
    return str(await net.ask("echo", "hi"))


async def test_a_question_that_is_dropped_before_it_was_asked_warns() -> None:
    async with Network(Echo) as net:
        with pytest.warns(RuntimeWarning, match="never asked: await it") as caught:
            net.ask("echo", "hello")
        assert caught[0].filename == __file__
        await net.ask("echo", "hello")
        async for _ in net.ask("echo", "hello"):
            pass


async def test_a_text_of_an_agent_without_a_model_can_be_the_value() -> None:
    async with Network(Echo) as net:
        assert await net.ask("echo", "hi", output=str) == "hi!"
        assert await net.ask("echo", "12", output=Literal["12!", "13!"]) == "12!"  # type: ignore[call-overload]
        with pytest.raises(NoAnswer, match="not a valid int"):
            await net.ask("echo", "12", output=int)


async def test_a_name_that_no_person_can_have_is_refused_in_a_sentence() -> None:
    async with Network(Echo) as net:
        with pytest.raises(UserError, match="'Zoë B' cannot be a name: use 1 to 64 letters"):
            await net.ask("echo", "hi", by="Zoë B")
