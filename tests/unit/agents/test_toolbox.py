"""Running the calls of a step: order, failures, and repetition."""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic import JsonValue

from hubbub import ToolFailed, tool
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.hub import HubTool, compact_result
from hubbub.agents.tools.policy import Retry, ToolOverrides
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.loop import CallResult
from hubbub.agents.turn.steps import TurnClock
from hubbub.errors import ConnectionLost, OperationError
from hubbub.ids import write_id
from hubbub.mods.files.schemas import WriteFile
from hubbub.protocol.messages import OperationInfo
from hubbub.protocol.turns import ToolCallRecord
from tests.unit.agents.builders import ManualClock, message
from tests.unit.agents.calling import POST, READ, ScriptedHub, call, failed, operation, record, text

SAY: dict[str, JsonValue] = {"channel": "desk", "text": "hi"}
LOOK: dict[str, JsonValue] = {"thread": "x"}


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@tool(idempotent=True)
def look() -> str:
    """Look."""
    return "seen"


def shown(info: OperationInfo) -> set[str]:
    """The arguments of an operation that a model is shown."""
    properties = HubTool(info, ScriptedHub(), "bot").spec.parameters["properties"]
    assert isinstance(properties, dict)
    return set(properties)


def hub_tools(hub: ScriptedHub, *infos: OperationInfo) -> Toolbox:
    return Toolbox([HubTool(info, hub, "bot") for info in infos or (POST, READ)])


async def run(
    box: Toolbox, *made: ToolCallRecord, clock: TurnClock | None = None
) -> list[CallResult]:
    async with asyncio.timeout(30):
        return await box.run("bot-m1", 1, made, made, clock=clock)


async def test_a_model_is_shown_an_operation_without_the_arguments_of_the_runtime() -> None:
    spec = HubTool(POST, ScriptedHub(), "bot").spec
    assert shown(POST) == {"channel", "text", "mentions", "quote", "attachments"}
    assert spec.description == "what post_to_channel does"
    assert "title" not in json.dumps(spec.parameters)
    assert shown(operation("write_file", "write", WriteFile)) == {"name", "text", "thread"}
    schema: dict[str, JsonValue] = {"properties": {"mode": {}, "untrusted": {}, "cause": {}}}
    poll = OperationInfo(name="poll", description="", permission="write", input_schema=schema)
    assert shown(poll) == {"mode", "untrusted"}, "a mod's own argument is shown"


async def test_a_model_cannot_set_the_arguments_of_the_runtime() -> None:
    hub = ScriptedHub()
    for name in ("cid", "cause"):
        error = await failed(hub_tools(hub), "post_to_channel", **SAY, **{name: "mine"})
        assert error["error"] == "invalid_arguments"
        assert f"there is no argument {name}" in str(error["message"])
    with pytest.raises(ToolFailed, match="no argument cid"):
        await HubTool(POST, hub, "bot").run({"cid": "mine"}, CallSite("bot-m1", 1, 0))
    assert hub.calls == []


@pytest.mark.behaviour("H-89", "M-129")
async def test_a_write_of_an_untrusted_turn_is_marked_untrusted() -> None:
    calls = [
        record("post_to_channel", SAY, "a"), record("read_thread", LOOK, "b"),
        record("write_file", {"name": "x", "text": "y"}, "c"),
    ]  # fmt: skip
    for untrusted, expected in ((False, None), (True, True)):
        hub = ScriptedHub()
        box = hub_tools(hub, POST, READ, operation("write_file", "write", WriteFile))
        await box.run("bot-m1", 1, calls, calls, untrusted=untrusted)
        marks = {name: args.get("untrusted") for name, _, _, args in hub.calls}
        assert marks == {"post_to_channel": expected, "read_thread": None, "write_file": expected}


@pytest.mark.behaviour("H-88", "M-125")
async def test_a_result_with_untrusted_content_is_untrusted() -> None:
    cases: list[tuple[JsonValue, bool]] = [
        ({"messages": [{"sender_id": "ann", "content": "x", "untrusted": True}]}, True),
        ({"messages": [{"sender_id": "ann", "content": "x", "untrusted": False}]}, False),
        ({"threads": [{"messages": [{"sender_id": "ann", "untrusted": True}]}]}, True),
        ({"messages": [{"sender_id": "ann", "content": {"untrusted": True}}]}, False),
        (None, False),
        ({"text": "a file that says so of itself", "untrusted": True}, True),
        ({"text": "x", "untrusted": False}, False),
        ({"files": [{"id": "f1", "untrusted": True}]}, False),
    ]
    for value, untrusted in cases:
        result = await call(hub_tools(ScriptedHub(value)), "read_thread", LOOK)
        assert result.untrusted is untrusted, value


@pytest.mark.behaviour("T-2")
async def test_a_write_has_its_cause_and_a_stable_cid_and_a_read_has_neither() -> None:
    hub = ScriptedHub()
    box = hub_tools(hub)
    assert box.speaking == {"post_to_channel"}
    short = {"id": "m7", "thread_id": "direct_ann", "absent": ["ann"]}
    assert json.loads(await text(box, "post_to_channel", **SAY)) == short
    await call(box, "post_to_channel", SAY, again=True)
    await call(box, "read_thread", LOOK)
    sent = ("post_to_channel", write_id("bot-m1", 1, 0), "bot-m1", SAY)
    assert hub.calls == [sent, sent, ("read_thread", None, None, LOOK)]
    done, open_ = record("post_to_channel", SAY, "a"), record("post_to_channel", SAY, "b")
    await box.run("bot-m1", 2, [done, open_], [open_])
    assert hub.calls[-1][1] == write_id("bot-m1", 2, 1), "numbered by its position in the step"


async def test_a_refusal_or_a_lost_connection_is_the_error_of_the_call() -> None:
    near = {"near": ["desk"]}
    refused = OperationError("rate_limited", "too fast", temporary=True, details=near)
    once = ToolPolicy(overrides={"post_to_channel": ToolOverrides(retry=Retry(attempts=1))})
    box = Toolbox([HubTool(POST, ScriptedHub(refused), "bot")], once)
    assert await failed(box, "post_to_channel", **SAY) == {
        "error": "rate_limited", "message": "too fast", "retry": True, "valid_names": ["desk"],
    }  # fmt: skip
    error = await failed(hub_tools(ScriptedHub(ConnectionLost(1000))), "read_thread", **LOOK)
    assert error["error"] == "connection_lost"


async def test_an_invalid_schema_is_an_error_only_when_the_tool_is_called() -> None:
    text: JsonValue = {"type": "nothing"}
    schema: dict[str, JsonValue] = {"properties": {"text": text}, "required": []}
    name = "send_text_message"
    info = OperationInfo(name=name, description="", permission="write", input_schema=schema)
    box = hub_tools(ScriptedHub(), info)
    await box.prepare()
    assert (await failed(box, name, text="hi"))["error"] == "invalid_schema"


@pytest.mark.behaviour("A-9")
async def test_calls_run_in_parallel_and_results_keep_their_order() -> None:
    meeting = asyncio.Barrier(3)

    @tool
    async def meet(n: int) -> int:
        """Meet."""
        await meeting.wait()
        return 2 * n

    made = [record("meet", {"n": n}, f"c{n}") for n in (3, 1, 2)]
    results = await run(Toolbox([meet]), *made)
    assert [(r.id, r.result) for r in results] == [("c3", "6"), ("c1", "2"), ("c2", "4")]
    calls = [record("double", {"n": "x"}, "a"), record("double", {"n": 2}, "b")]
    results = await run(Toolbox([double]), *calls)
    assert [r.error for r in results] == ["invalid_arguments", None]


@pytest.mark.behaviour("A-9")
async def test_writes_wait_for_each_other_while_other_calls_run() -> None:
    hub, monotonic, looked = ScriptedHub(), ManualClock(), asyncio.Event()
    hub.go.clear()

    @tool
    async def peek() -> str:
        """Peek."""
        looked.set()
        return "seen"

    made = [
        record("post_to_channel", {"channel": "c", "text": "1"}, "a"),
        record("peek", {}, "b"),
        record("post_to_channel", {"channel": "c", "text": "2"}, "c"),
    ]
    box = Toolbox([HubTool(POST, hub, "bot"), peek])
    task = asyncio.create_task(run(box, *made, clock=TurnClock(monotonic=monotonic)))
    async with asyncio.timeout(30):
        await hub.was_called.wait()
        await looked.wait()
    assert [arguments["text"] for *_, arguments in hub.calls] == ["1"]
    monotonic.now += 2.0
    hub.go.set()
    first, _, second = await task
    assert [arguments["text"] for *_, arguments in hub.calls] == ["1", "2"]
    assert (first.at_ms, first.duration_ms) == (0.0, 2000.0)
    assert (second.at_ms, second.duration_ms) == (2000.0, 0.0), "it starts when the first has ended"


@pytest.mark.behaviour("A-5")
async def test_an_exception_is_reported_with_its_type_or_the_tools_own_message() -> None:
    sold_out = ToolFailed("no pie today", error="sold_out", retry=True, near=["soup"])
    raised = {"1": ZeroDivisionError("by zero"), "2": sold_out, "3": TimeoutError("of theirs")}

    @tool
    def order(dish: str) -> str:
        """Order."""
        raise raised[dish]

    box = Toolbox([order])
    assert await failed(box, "order", dish="1") == {
        "error": "tool_failed", "message": "ZeroDivisionError: by zero", "retry": False,
    }  # fmt: skip
    assert await failed(box, "order", dish="2") == {
        "error": "sold_out", "message": "no pie today", "retry": True, "valid_names": ["soup"],
    }  # fmt: skip
    assert (await failed(box, "order", dish="3"))["message"] == "TimeoutError: of theirs"


async def test_a_call_that_may_have_run_is_repeated_only_if_idempotent() -> None:
    assert (await call(Toolbox([double]), "double", {"n": 1}, again=True)).error == "interrupted"
    assert (await call(Toolbox([look]), "look", again=True)).result == "seen"
    box = Toolbox([double, look, HubTool(POST, ScriptedHub(), "bot")])
    assert box.must_be_recorded([record("double")])
    assert not box.must_be_recorded([record("look"), record("post_to_channel")])
    assert Toolbox([double]).names == ("double", "finish")
    assert [spec.name for spec in Toolbox([double]).specs] == ["double", "finish"]


def test_a_message_in_a_result_is_reduced_to_sender_time_and_content() -> None:
    sent = message(3, "ann", {"a": None, "b": []}, thread="dm.ann.bot.t2")
    wire = sent.model_copy(update={"mentions": ("bot",)}).model_dump(mode="json")
    short = {
        "id": "m3",
        "thread": "direct_ann.t2",
        "sender": "ann",
        "kind": "human",
        "sent_at": "2025-03-01T12:00:03Z",
        "content": {"a": None, "b": []},
        "mentions": ["bot"],
    }
    result = compact_result({"thread_id": "dm.ann.bot", "messages": [wire], "more": False}, "bot")
    assert result == {"thread_id": "direct_ann", "messages": [short], "more": False}


@pytest.mark.behaviour("H-87")
def test_a_message_in_a_result_keeps_its_author_untrusted_and_request_marks() -> None:
    wire: JsonValue = {
        "id": "m3",
        "sender_id": "clerk",
        "sender_kind": "agent",
        "content": "it is paid",
        "sent_by": "ann",
        "untrusted": True,
        "request": {"id": "m2", "kind": "result", "outcome": "", "deadline": None},
    }
    assert compact_result(wire, "bot") == {
        "id": "m3",
        "sender": "clerk",
        "kind": "agent",
        "content": "it is paid",
        "sent_by": "ann",
        "untrusted": True,
        "request": {"id": "m2", "kind": "result"},
    }
