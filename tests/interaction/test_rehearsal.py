"""Agents that play a case: nothing they do reaches anybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.agents.prompt.cases import Performance
from hubbub.agents.rehearsal import rehearse
from hubbub.app.prompts import operations
from hubbub.app.scenes import scene
from hubbub.config.cases import Case
from hubbub.config.models import AgentConfig, ModelConfig, NetworkFile
from hubbub.errors import ConfigError
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Participant
from hubbub.testing.model_server import Answer, Call, ModelServer, Refusal, Script
from tests.interaction.agent_rig import call, finish, says, send

pytestmark = pytest.mark.behaviour("Q-11")

ORDERS = """
from hubbub import tool
from hubbub.agents.turn.hooks import Hooks


@tool(permission="write", confirm=True)
def find_order(order: int) -> str:
    '''Look an order up.'''
    raise SystemExit("this must never run")


class Spy(Hooks):
    def __init__(self):
        raise SystemExit("nor this")
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
FOUND = Call(tool="find_order", arguments={"order": 7})


async def play(
    folder: Path,
    *answers: Answer | Refusal,
    agent: dict[str, JsonValue] | None = None,
    endpoint: dict[str, JsonValue] | None = None,
    **case: JsonValue,
) -> tuple[Performance, ModelServer]:
    """One turn of `clerk` about the case, with these answers of its model."""
    (folder / "orders.py").write_text(ORDERS)
    tools: JsonValue = ["send_text_message", "orders.py:find_order"]
    config = AgentConfig.model_validate({"instruction": "Help.", "tools": tools, **(agent or {})})
    told = Case.model_validate({**CASE, **case})
    async with ModelServer(Script(answers=list(answers))) as server:
        model = {"model": "m", "base_url": server.base_url, "retries": 0, **(endpoint or {})}
        models = {"default": ModelConfig.model_validate(model)}
        stage = scene(told, "clerk", NETWORK, READY)
        performance = await rehearse(config, "clerk", stage, folder, models, told.results)
    return performance, server


async def test_a_conversation_goes_on_over_several_steps_with_given_results(tmp_path: Path) -> None:
    performance, server = await play(
        tmp_path,
        says(FOUND),
        says(send("ann", "It is on its way.")),
        says(finish()),
        results={"find_order": {"state": "sent"}},
    )
    assert performance.outcome == "finished"
    assert performance.said == ("It is on its way.",)
    names = [call.name for call in performance.calls]
    assert names == ["find_order", "send_text_message", "finish"]
    assert performance.calls[0].result == '{"state": "sent"}'
    assert server.requests[1].tool_result == '{"state": "sent"}'


async def test_the_model_reads_the_threads_of_the_case(tmp_path: Path) -> None:
    _, server = await play(tmp_path, says(send("ann", "hi"), finish()))
    prompt = server.requests[0].prompt
    assert prompt.index("direct_ann") < prompt.index("channel_help"), "the last one is the newest"
    assert "Hi, what is it?" in prompt
    assert 'sender="bob" kind="human"' in prompt
    assert server.requests[0].incoming == "where is order 7?"
    assert "find_order" in server.requests[0].tools


async def test_an_agent_with_a_memory_remembers_nothing_and_says_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remembers: JsonValue = {"tools": ["send_text_message", "recall", "orders.py:find_order"]}
    assert isinstance(remembers, dict)
    _, server = await play(tmp_path, says(send("ann", "hi"), finish()), agent=remembers)
    assert "<memory>" not in str(server.requests[0].raw["messages"])
    assert "memory cannot be read" not in capsys.readouterr().err


async def test_the_same_case_gives_the_same_prompt(tmp_path: Path) -> None:
    prompts = []
    for _ in range(2):
        _, server = await play(tmp_path, says(send("ann", "hi"), finish()))
        prompts.append([message.text for message in server.requests[0].messages])
    assert prompts[0] == prompts[1]


async def test_a_call_without_a_result_ends_the_rehearsal_and_is_recorded(tmp_path: Path) -> None:
    performance, server = await play(tmp_path, says(FOUND))
    assert (performance.lacking, performance.outcome) == ("find_order", None)
    assert [(call.name, call.result) for call in performance.calls] == [("find_order", None)]
    assert len(server.requests) == 1


async def test_arguments_are_checked_as_ever(tmp_path: Path) -> None:
    performance, _ = await play(
        tmp_path,
        says(call("find_order", order="seven")),
        says(send("ann", "hi"), finish()),
        results={"find_order": "x"},
    )
    assert performance.calls[0].error == "invalid_arguments"
    assert performance.lacking is None


async def test_a_given_result_of_a_speaking_tool_is_told_and_its_words_are_heard(
    tmp_path: Path,
) -> None:
    results: JsonValue = {"send_text_message": "the hub is full"}
    performance, server = await play(
        tmp_path, says(send("ann", "hi")), says(finish()), results=results
    )
    assert performance.said == ("hi",)
    assert server.requests[1].tool_result == "the hub is full"


async def test_a_message_to_nobody_fails_as_at_the_hub(tmp_path: Path) -> None:
    performance, _ = await play(
        tmp_path, says(send("anne", "hi")), says(send("ann", "hi"), finish())
    )
    assert performance.calls[0].error == "unknown_participant"
    assert performance.said == ("hi",)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("post_to_channel", {"channel": "help", "text": "hi"}),
        ("broadcast_text_message", {"text": "hi"}),
        ("reply", {"message_id": "m1", "text": "hi"}),
        ("send_text_message", {"to": ["ann", "bob"], "text": "hi"}),
        ("send_text_message", {"to": "channel_help", "text": "hi"}),
        ("send_message", {"to": "ann", "content": {"a": 1}}),
        ("decline", {"reason": "no"}),
        ("ask_human", {"question": "why?"}),
    ],
)
async def test_whatever_an_agent_says_stays_on_the_stage(
    tmp_path: Path, tool: str, arguments: dict[str, JsonValue]
) -> None:
    performance, _ = await play(
        tmp_path,
        says(call(tool, **arguments)),
        says(finish()),
        agent={"tools": None, "select_over": 200},
    )
    assert performance.calls[0].error is None
    assert len(performance.said) == 1
    assert performance.outcome == "finished"


async def test_tools_of_the_hub_that_only_look_need_a_result_too(tmp_path: Path) -> None:
    look = call("list_participants")
    performance, _ = await play(tmp_path, says(look), agent={"tools": ["list_participants"]})
    assert performance.lacking == "list_participants"


async def test_what_needs_approval_has_it(tmp_path: Path) -> None:
    performance, _ = await play(
        tmp_path,
        says(FOUND),
        says(send("ann", "x"), finish()),
        results={"find_order": "x"},
        agent={"permission_mode": "ask"},
    )
    assert performance.calls[0].error is None


async def test_hooks_greetings_and_mcp_servers_stay_at_home(tmp_path: Path) -> None:
    performance, _ = await play(
        tmp_path,
        says(send("ann", "hi"), finish()),
        agent={"hooks": ["orders.py:Spy"], "greet": "hello all", "mcp": ["nowhere"]},
    )
    assert performance.said == ("hi",)
    assert performance.outcome == "finished"


async def test_what_is_said_of_the_tools_of_mcp_servers_stays_at_home_too(tmp_path: Path) -> None:
    performance, server = await play(
        tmp_path,
        says(send("ann", "hi"), finish()),
        agent={
            "mcp": ["find", "shop"],
            "begin_with": "shop_look",
            "disabled_tools": ["shop_burn", "decline"],
            "tool_settings": {"shop_buy": {"confirm": True}, "find_order": {"timeout": "5s"}},
        },
    )
    assert performance.outcome == "finished"
    assert "find_order" in server.requests[0].tools, "it is none of the server's"
    assert "decline" not in server.requests[0].tools


async def test_a_misspelled_tool_is_still_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no tool 'find_ordr'"):
        await play(tmp_path, agent={"mcp": ["shop"], "disabled_tools": ["shop_x", "find_ordr"]})


async def test_of_many_tools_the_model_picks_for_real(tmp_path: Path) -> None:
    picked = says(call("use_tools", names=["find_order"]))
    performance, server = await play(tmp_path, picked, says(FOUND), agent={"select_over": 1})
    assert "find_order" not in server.requests[0].tools
    assert "find_order" in server.requests[1].tools
    assert performance.lacking == "find_order"


async def test_a_model_that_fails_is_told_as_such(tmp_path: Path) -> None:
    performance, _ = await play(tmp_path, Refusal(status=401, message="no"))
    assert performance.outcome == "model_error"
    assert "refused the API key" in performance.reason


async def test_a_mistake_in_the_config_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no model 'other'"):
        await play(tmp_path, agent={"model": "other"})


@pytest.mark.parametrize("dialect", ["tool_call", "final_output"])
async def test_other_dialects_rehearse_alike(tmp_path: Path, dialect: str) -> None:
    performance, _ = await play(
        tmp_path,
        says(FOUND),
        says(send("ann", "It is on its way.")),
        says(finish()),
        results={"find_order": "sent"},
        endpoint={"dialect": dialect},
    )
    assert performance.outcome == "finished"
    assert performance.said == ("It is on its way.",)


async def test_messages_that_come_together_are_one_turn(tmp_path: Path) -> None:
    performance, server = await play(
        tmp_path,
        says(send("channel_help", "hi"), finish()),
        incoming=[{"from": "bob", "text": "one"}, {"from": "eve", "text": "two"}],
        thread="channel_help",
    )
    assert performance.outcome == "finished"
    prompt = server.requests[0].prompt
    assert prompt.count("<incoming_message ") == 2
    assert "<incoming_thread_id>channel_help</incoming_thread_id>" in prompt
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["router", "planner", "executor", "pipeline"])
async def test_roles_rehearse_too(tmp_path: Path, kind: str) -> None:
    said = [Answer(text="Hmm.", ignore_tool_choice=True)] * 8
    performance, server = await play(tmp_path, *said, agent={"kind": kind})
    assert server.mistakes == []
    assert performance.outcome not in (None, "handler_error", "model_error")
