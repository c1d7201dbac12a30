"""Dry runs of an agent against a case, without side effects."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.app.prompts import operations
from hubbub.config.cases import Case
from hubbub.config.models import AgentConfig, NetworkFile
from hubbub.errors import ConfigError
from hubbub.lab.cases import case_fixture
from hubbub.lab.dry_run import dry_run
from hubbub.lab.expectations import CaseRun
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Participant
from hubbub.testing.model_server import ModelServer, Refusal, Script, ScriptedAnswer, ScriptedCall
from tests.interaction.agent_harness import call, finish, model_config, says, send

pytestmark = pytest.mark.behaviour("Q-11")

ORDERS = """
from hubbub import tool
from hubbub.agents.turn.hooks import Hooks


@tool(permission="write", confirm=True)
def find_order(order: int) -> str:
    '''Look an order up.'''
    raise SystemExit("must never run")


class Spy(Hooks):
    def __init__(self):
        raise SystemExit("must never run")
"""
CASE: dict[str, JsonValue] = {
    "name": "c",
    "agent": "clerk",
    "threads": {
        "channel_help": [{"from": "bob", "text": "anybody?"}],
        "direct_ann": ["hello", {"from": "clerk", "text": "Hi, what is it?"}],
    },
    "incoming": "where is order 7?",
    "expect": ["ends_with_finish"],
}
NETWORK = NetworkFile.model_validate({"humans": {"ann": {}, "bob": {}}})
READY = Ready(
    participant="clerk",
    kind="agent",
    resumed=False,
    head=0,
    cursor=0,
    participants=tuple(Participant(id=n, kind="human", present=True) for n in NETWORK.humans),
    operations=operations(NETWORK),
)
FIND_ORDER = ScriptedCall(tool="find_order", arguments={"order": 7})


async def play(
    folder: Path,
    *answers: ScriptedAnswer | Refusal,
    agent: dict[str, JsonValue] | None = None,
    endpoint: dict[str, JsonValue] | None = None,
    **case: JsonValue,
) -> tuple[CaseRun, ModelServer]:
    """A dry run of `clerk` with these answers of its model."""
    (folder / "orders.py").write_text(ORDERS)
    tools: JsonValue = ["send_text_message", "orders.py:find_order"]
    config = AgentConfig.model_validate({"instruction": "Help.", "tools": tools, **(agent or {})})
    validated = Case.model_validate({**CASE, **case})
    async with ModelServer(Script(answers=list(answers))) as server:
        models = {"default": model_config(server, **(endpoint or {}))}
        stage = case_fixture(validated, "clerk", NETWORK, READY)
        run = await dry_run(config, "clerk", stage, folder, models, validated.results)
    return run, server


@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_dry_run_takes_several_steps_with_given_results(
    tmp_path: Path, dialect: str
) -> None:
    run, server = await play(
        tmp_path,
        *[says(FIND_ORDER), says(send("ann", "It is on its way.")), says(finish())],
        results={"find_order": {"state": "sent"}},
        agent={"permission_mode": "ask"},  # approvals are granted
        endpoint={"dialect": dialect},
    )
    assert (run.outcome, run.sent) == ("finished", ("It is on its way.",))
    names = [call.name for call in run.calls]
    assert names == ["find_order", "send_text_message", "finish"]
    first = run.calls[0]
    assert (first.error, first.result) == (None, '{"state": "sent"}')
    if dialect == "native":
        assert server.requests[1].tool_result == '{"state": "sent"}'


async def test_the_model_reads_the_same_threads_in_every_dry_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools: JsonValue = ["send_text_message", "recall", "orders.py:find_order"]
    prompts = []
    for _ in range(2):
        answer = says(send("ann", "hi"), finish())
        _, server = await play(tmp_path, answer, agent={"tools": tools})
        (request,) = server.requests
        prompts.append([message.text for message in request.messages])
    assert prompts[0] == prompts[1]
    prompt = request.prompt
    assert prompt.index("direct_ann") < prompt.index("channel_help"), "the newest thread comes last"
    assert "Hi, what is it?" in prompt
    assert 'sender="bob" kind="human"' in prompt
    assert request.incoming == "where is order 7?"
    assert "find_order" in request.tools
    assert "<memory>" not in str(request.raw["messages"]), "memory is empty"
    assert "memory cannot be read" not in capsys.readouterr().err


async def test_calls_are_validated_and_one_without_result_ends_the_dry_run(tmp_path: Path) -> None:
    run, server = await play(
        tmp_path,
        *[says(send("anne", "hi")), says(call("find_order", order="seven"))],
        *[says(call("broadcast_text_message", text="hi")), says(FIND_ORDER)],
        results={"broadcast_text_message": "the hub is full"},
        agent={"tools": ["send_text_message", "broadcast_text_message", "orders.py:find_order"]},
    )
    errors = [call.error for call in run.calls]
    assert errors == ["unknown_participant", "invalid_arguments", None, None]
    assert run.sent == ("hi",)
    assert server.requests[3].tool_result == "the hub is full", "the result given by the case"
    assert (run.lacking, run.outcome) == ("find_order", None)
    assert (run.calls[-1].name, run.calls[-1].result) == ("find_order", None)
    assert len(server.requests) == 4
    look = call("list_participants")
    run, _ = await play(tmp_path, says(look), agent={"tools": ["list_participants"]})
    assert run.lacking == "list_participants", "a read needs a result too"


MESSAGES: list[tuple[str, dict[str, JsonValue]]] = [
    ("post_to_channel", {"channel": "help", "text": "hi"}),
    ("broadcast_text_message", {"text": "hi"}),
    ("reply", {"message_id": "m1", "text": "hi"}),
    ("send_text_message", {"to": ["ann", "bob"], "text": "hi"}),
    ("send_text_message", {"to": "channel_help", "text": "hi"}),
    ("send_message", {"to": "ann", "content": {"a": 1}}),
    ("decline", {"reason": "no"}),
    ("ask_human", {"question": "why?"}),
]


async def test_messages_of_every_kind_stay_inside_the_dry_run(tmp_path: Path) -> None:
    answers = [says(call(tool, **arguments)) for tool, arguments in MESSAGES]
    run, _ = await play(
        tmp_path, *answers, says(finish()), agent={"tools": None, "select_over": 200}
    )
    errors = {call.name: call.error for call in run.calls}
    assert errors == dict.fromkeys(errors)
    assert len(run.sent) == len(MESSAGES)
    assert run.outcome == "finished"


async def test_hooks_greetings_and_mcp_servers_are_left_out(tmp_path: Path) -> None:
    run, server = await play(
        tmp_path,
        says(send("ann", "hi"), finish()),
        agent={
            "hooks": ["orders.py:Spy"],
            "greet": "hello all",
            "mcp": ["find", "shop"],
            "begin_with": "shop_look",
            "disabled_tools": ["shop_burn", "decline"],
            "tool_settings": {"shop_buy": {"confirm": True}, "find_order": {"timeout": "5s"}},
        },
    )
    assert (run.outcome, run.sent) == ("finished", ("hi",))
    assert "find_order" in server.requests[0].tools, "not a tool of the server `find`"
    assert "decline" not in server.requests[0].tools


async def test_a_config_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no tool 'find_ordr'"):
        await play(tmp_path, agent={"mcp": ["shop"], "disabled_tools": ["shop_x", "find_ordr"]})
    with pytest.raises(ConfigError, match="there is no model 'other'"):
        await play(tmp_path, agent={"model": "other"})


async def test_every_kind_of_agent_with_roles_can_be_dry_run(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Hmm.", ignore_tool_choice=True)] * 8
    for kind in ("router", "planner", "executor", "pipeline"):
        run, server = await play(tmp_path, *answers, agent={"kind": kind})
        assert server.mistakes == []
        assert run.outcome not in (None, "handler_error", "model_error"), kind


async def test_the_model_selects_among_many_tools_as_in_a_real_turn(tmp_path: Path) -> None:
    select = says(call("use_tools", names=["find_order"]))
    run, server = await play(tmp_path, select, says(FIND_ORDER), agent={"select_over": 1})
    assert "find_order" not in server.requests[0].tools
    assert "find_order" in server.requests[1].tools
    assert run.lacking == "find_order"


async def test_a_failing_model_is_reported_as_the_outcome(tmp_path: Path) -> None:
    run, _ = await play(tmp_path, Refusal(status=401, message="no"))
    assert run.outcome == "model_error"
    assert "refused the API key" in run.reason


async def test_several_incoming_messages_are_one_turn(tmp_path: Path) -> None:
    run, server = await play(
        tmp_path,
        says(send("channel_help", "hi"), finish()),
        incoming=[{"from": "bob", "text": "one"}, {"from": "eve", "text": "two"}],
        thread="channel_help",
    )
    assert run.outcome == "finished"
    prompt = server.requests[0].prompt
    assert prompt.count("<incoming_message ") == 2
    assert "<incoming_thread_id>channel_help</incoming_thread_id>" in prompt
    assert len(server.requests) == 1
