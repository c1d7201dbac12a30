"""An agent's own tools: calls, repeated calls, and what the model sees of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.agents.tools.approval import ApprovalRequest, Approved, Verdict
from hubbub.config.models import McpServerConfig
from hubbub.errors import ConfigError
from hubbub.loading import load_module
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks, soon
from tests.interaction.scripted import Config, Scene, ending, scene

TOOLS = '''
import asyncio
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hubbub import ToolFailed, tool

HERE = Path(__file__).parent
DONE = asyncio.Queue()
OPEN = asyncio.Event()
tries = 0


@tool
def look() -> str:
    """Look around. There is much to see."""
    return "seen"


@tool(permission="write")
async def pay(amount: int) -> str:
    """Pay an amount."""
    DONE.put_nowait(amount)
    if amount > 100:
        await OPEN.wait()
    return f"paid {amount}"


@tool(idempotent=True)
async def peer(what: str) -> str:
    """Look closer."""
    DONE.put_nowait(what)
    await OPEN.wait()
    return f"{what} is fine"


@tool(idempotent=True)
def fetch() -> str:
    """Fetch something that is not always there."""
    global tries
    tries += 1
    if tries < 3:
        raise ToolFailed("not yet", retry=True)
    return "fetched"


@tool(name="sell")
def sell_it(item: str) -> str:
    """Sell an item."""
    raise ToolFailed(f"no {item} left", error="sold_out", near=["tea", "milk"])


def plain(a: Annotated[int, Field(ge=0)], b: int = 2) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


def process() -> dict[str, object]:
    """Describe the process."""
    return {"pid": os.getpid(), "folder": os.getcwd()}


def records(n: int) -> list[int]:
    """Many records."""
    return list(range(n))


def silent(a: int) -> int:
    return a


def outer():
    def inner() -> None:
        """In."""
    return inner


inner = outer()
NUMBER = 7
'''
OK = says(send("ann", "ok"), finish())


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def named(*names: str) -> JsonValue:
    return [*(f"tools.py:{name}" for name in names), "send_text_message"]


def offered(s: Scene, request: int = 0) -> set[str]:
    return set(s.model.requests[request].tools)


async def test_functions_become_tools_and_long_results_are_cut(
    in_memory: Networks, shop: Path
) -> None:
    asks = says(call("plain", a=1), call("sell", item="pie"), call("records", n=5000))
    tools = named("plain", "sell_it", "records")
    async with scene(in_memory, asks, OK, base=shop, tools=tools, result_budget=100) as s:
        turn = await s.turn()
        first = s.model.requests[0]
        assert first.tools == ["plain", "sell", "records", "send_text_message", "finish"]
        function = first.body.tools[0].function
        assert function.description == "Add two numbers."
        assert function.parameters["required"] == ["a"]
        assert function.parameters["properties"] == {
            "a": {"minimum": 0, "type": "integer"},
            "b": {"default": 2, "type": "integer"},
        }
        added, sold, many = [m.text for m in s.model.requests[1].messages if m.role == "tool"]
        assert json.loads(added) == {"sum": 3}
        assert json.loads(sold) == {
            "error": "sold_out",
            "message": "no pie left",
            "retry": False,
            "valid_names": ["tea", "milk"],
        }
        assert turn.steps[0].calls[1].error == "sold_out"
        cut = json.loads(many)
        assert cut["records"][:2] == [0, 1]
        assert "of 5000" in cut["records_cut"]


async def done(module: Mapping[str, object]) -> object:
    """Wait for a tool to run. Returns its argument."""
    queue = module["DONE"]
    assert isinstance(queue, asyncio.Queue)
    async with soon():
        return await queue.get()


async def test_after_a_crash_only_an_idempotent_tool_runs_again(
    in_memory: Networks, shop: Path
) -> None:
    module = vars(load_module(shop / "tools.py"))
    answers = (says(call("pay", amount=200)), OK, says(call("peer", what="tea")), OK)
    async with scene(in_memory, *answers, base=shop, tools=named("pay", "peer")) as s:
        turn_id = await s.say("pay")
        assert await done(module) == 200
        await s.restart()
        turn = await s.net.turn(turn_id)
        assert json.loads(s.told())["error"] == "interrupted"
        assert (turn.attempts, len(s.model.requests)) == (2, 2)
        await s.say("look")
        assert await done(module) == "tea"
        await s.restart()
        assert await done(module) == "tea", "without another payment"
        gate = module["OPEN"]
        assert isinstance(gate, asyncio.Event)
        gate.set()
        assert await s.heard() == "ok"
        assert await s.heard() == "ok"
        assert s.told() == "tea is fine"


async def test_tools_excluded_by_mode_or_config_do_not_exist_for_the_model(
    in_memory: Networks, shop: Path
) -> None:
    config: Config = {"permission_mode": "read_only", "disabled_tools": ["records"]}
    tools, pays = named("look", "pay", "records"), says(call("pay", amount=1))
    async with scene(in_memory, pays, OK, base=shop, tools=tools, **config) as s:
        turn = await s.turn()
        assert {"look", "send_text_message", "finish"} <= offered(s)
        assert not {"pay", "records"} & offered(s)
        assert not {"pay", "records"} & set(turn.start.tools)
        refused = turn.steps[0].calls[0]
        assert refused.error == "unknown_tool"
        assert "records" not in str(refused.result)
        assert ending(turn)[0] == "finished"


class ApproveAll:
    """Approves everything, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[ApprovalRequest] = []

    async def approve(self, call: ApprovalRequest) -> Verdict:
        self.requests.append(call)
        return Approved(call.arguments)


async def test_a_custom_approver_decides_instead_of_people(in_memory: Networks, shop: Path) -> None:
    answers = (says(call("pay", amount=7)), OK)
    async with scene(in_memory, *answers, base=shop, started=False, tools=named("pay")) as s:
        s.approver = approver = ApproveAll()
        await s.start(permission_mode="ask")
        turn = await s.turn()
        assert turn.steps[0].calls[0].result == "paid 7"
        (request,) = approver.requests
        assert (request.tool, request.arguments) == ("pay", {"amount": 7})
        assert request.site.turn == "bot-m1"


async def test_attempts_of_a_retried_tool_are_recorded(in_memory: Networks, shop: Path) -> None:
    answers = (says(call("fetch")), OK)
    settings: Config = {"tool_settings": {"fetch": {"attempts": 4, "backoff": "1ms"}}}
    async with scene(in_memory, *answers, base=shop, tools=named("fetch"), **settings) as s:
        fetched = (await s.turn()).steps[0].calls[0]
        assert (fetched.result, fetched.attempts) == ("fetched", 3)
        assert s.told(1) == "fetched"


async def test_a_model_picks_some_of_many_tools(in_memory: Networks, shop: Path) -> None:
    picks = (says(call("use_tools", names=["look", "recrods"])), says(call("look")), OK)
    tools = named("look", "pay", "fetch", "records")
    config: Config = {"select_over": 3, "disabled_tools": ["pay"]}
    async with scene(in_memory, *picks, base=shop, tools=tools, **config) as s:
        turn = await s.turn()
        assert {"use_tools", "send_text_message", "finish"} <= offered(s)
        assert not {"look", "fetch", "records"} & offered(s)
        select = next(t for t in s.model.requests[0].body.tools if t.function.name == "use_tools")
        assert "look: Look around\n" in str(select.function.description)
        assert "pay" not in str(select.function.description)
        assert "records" in str(turn.steps[0].calls[0].result), "the nearest name"
        assert "look" in offered(s, 1)
        assert not {"fetch", "records"} & offered(s, 1)
        assert turn.steps[1].calls[0].result == "seen"


async def test_an_invalid_tool_is_a_config_error_at_the_start(
    in_memory: Networks, shop: Path
) -> None:
    (shop / "more.py").write_text("def pay() -> None:\n    '''Pay again.'''\n")
    sandboxed: JsonValue = {"inner": {"sandbox": "process"}}
    cases: list[tuple[list[JsonValue], JsonValue, str]] = [
        (["tools.py:NUMBER"], {}, "is not a function"),
        (["tools.py:silent"], {}, "needs a docstring"),
        (["tools.py:pey"], {}, "no 'pey' in it; did you mean pay?"),
        (["tools.py:inner"], sandboxed, "top level of a file"),
        (["tools.py:pay", "more.py:pay"], {}, "agents.bot.tools: there are two tools called"),
    ]
    for tools, settings, message in cases:
        async with scene(in_memory, base=shop, tools=tools, tool_settings=settings) as s:
            error = await s.net.death("bot")
            assert isinstance(error, ConfigError), tools
            assert message in str(error)


class TestTemplate:
    async def ask(self, networks: Networks, folder: Path, template: str) -> tuple[list[str], str]:
        """The prompts that a template makes of "a <b", and the message to the person."""
        (folder / "mine.j2").write_text(template)
        async with scene(networks, OK, base=folder, template="mine.j2") as s:
            await s.turn("a <b")
            return [request.prompt for request in s.model.requests], await s.heard()

    async def test_a_custom_template_makes_the_prompt(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        template = "{{ incoming_message.sender_id }} says {{ incoming_message.text }}"
        assert await self.ask(in_memory, tmp_path, template) == (["ann says a &lt;b"], "ok")

    async def test_a_template_that_fails_on_a_message_ends_that_turn(
        self, in_memory: Networks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        template = "{{ 1 // (incoming_message.text | length - 4) }}"
        prompts, heard = await self.ask(in_memory, tmp_path, template)
        assert prompts == []
        assert "mine.j2:1: the template fails" in heard
        assert "ConfigError" in capfd.readouterr().err


@pytest.mark.slow
async def test_the_operator_can_run_a_function_in_a_sandbox(
    in_memory: Networks, shop: Path
) -> None:
    config: Config = {
        "tool_settings": {"process": {"sandbox": "process"}},
        "sandbox": {"memory": "400MiB"},
    }
    answers = (says(call("process")), OK)
    async with scene(in_memory, *answers, base=shop, tools=named("process"), **config) as s:
        await s.turn()
        result = json.loads(s.told(1))
        assert result["pid"] != os.getpid()
        assert "hubbub-" in result["folder"]


@pytest.mark.slow
@pytest.mark.behaviour("K-12", "K-13")
async def test_calls_of_an_mcp_servers_tools_and_its_end_are_recorded(
    in_memory: Networks, shop: Path
) -> None:
    answers = (says(call("shop_add", a=1)), says(call("shop_die")), OK)
    async with scene(in_memory, *answers, base=shop, started=False) as s:
        command = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]
        s.servers = {"shop": McpServerConfig(command=command)}
        await s.start(mcp=["shop"])
        turn = await s.turn()
        assert "shop_add" in turn.start.tools
        assert turn.steps[0].calls[0].result == "3"
        assert turn.steps[1].calls[0].error == "tool_absent"
        assert turn.steps[2].notes == ("the tools of shop are absent: it has ended",)
        assert "shop_add" in offered(s, 1)
        assert "shop_add" not in offered(s, 2)
