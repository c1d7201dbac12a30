"""What an operator says of tools in the YAML, in the turns of a real agent."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.agents.tools.approval import ApprovalRequest, Approved, Verdict
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import Call, ModelServer, Script
from tests.interaction import mcp_server
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks

TOOLS = '''
import os
from pathlib import Path

from hubbub import ToolFailed, tool

HERE = Path(__file__).parent


@tool
def look() -> str:
    """Look around. There is much to see."""
    return "seen"


@tool(permission="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    with (HERE / "paid.txt").open("a") as book:
        book.write(f"{amount}\\n")
    return f"paid {amount}"


@tool(idempotent=True)
def fetch() -> str:
    """Fetch something that is not always there."""
    tries = HERE / "tries.txt"
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    if len(tries.read_text()) < 3:
        raise ToolFailed("not yet", retry=True)
    return "fetched"


def whereabouts() -> dict[str, object]:
    """Tell where this runs."""
    return {"pid": os.getpid(), "folder": os.getcwd()}


def records(n: int) -> list[int]:
    """Many records."""
    return list(range(n))
'''
NAMES = ("look", "pay", "fetch", "whereabouts", "records")


class Person:
    """Approves everything, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def approve(self, call: ApprovalRequest) -> Verdict:
        self.asked.append(call)
        return Approved(call.arguments)


class Shop:
    """An agent with these tools, which is told things by ann."""

    def __init__(self, net: Rig, model: ModelServer, folder: Path):
        self.net, self.model, self.folder = net, model, folder
        self.approver: Person | None = None
        self.servers: dict[str, McpServerConfig] = {}
        (folder / "tools.py").write_text(TOOLS)

    async def start(self, **config: JsonValue) -> None:
        named = [f"tools.py:{name}" for name in NAMES]
        agent = AgentConfig.model_validate({"tools": [*named, "send_text_message"], **config})
        models = {"default": ModelConfig(model="m", base_url=self.model.base_url, retries=0)}

        await self.net.configured(
            "bot",
            agent,
            self.folder,
            models,
            approver=self.approver,
            mcp_servers=self.servers,
        )

    async def turn(self) -> Turn:
        ann = await self.net.person()
        await ann.say("bot", "please")
        return await self.net.turn("bot-m1")

    def offered(self, request: int = 0) -> list[str]:
        return [t.function.name for t in self.model.requests[request].body.tools]

    def result(self, request: int = -1) -> str:
        return self.model.requests[request].body.messages[-1].text


def script(*calls: Call) -> Script:
    """The model makes these calls, one a step, then answers and is done."""
    return Script(answers=[*(says(c) for c in calls), says(send("ann", "ok"), finish())])


async def test_a_mode_and_a_ban_are_seen_by_the_model_as_absence(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with ModelServer(script(call("pay", amount=1))) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(permission_mode="read_only", disabled_tools=["records"])
        turn = await shop.turn()
        assert {"look", "send_text_message", "finish"} <= set(shop.offered())
        assert not {"pay", "records"} & set(shop.offered())
        assert not {"pay", "records"} & set(turn.start.tools)
        refused = turn.steps[0].calls[0]
        assert refused.error == "unknown_tool"
        assert "records" not in str(refused.result)
        assert turn.end is not None
        assert turn.end.outcome == "finished"
        assert not (tmp_path / "paid.txt").exists()


async def test_an_approver_of_ones_own_is_asked_in_the_place_of_people(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with ModelServer(script(call("pay", amount=7))) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        shop.approver = Person()
        await shop.start(permission_mode="ask")
        turn = await shop.turn()
        assert turn.steps[0].calls[0].result == "paid 7"
        (asked,) = shop.approver.asked
        assert (asked.tool, asked.arguments) == ("pay", {"amount": 7})
        assert asked.site.turn == "bot-m1"
        assert (tmp_path / "paid.txt").read_text() == "7\n"


async def test_what_the_runtime_repeated_stands_in_the_record(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with ModelServer(script(call("fetch"))) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(tool_settings={"fetch": {"attempts": 4, "backoff": "1ms"}})
        turn = await shop.turn()
        fetched = turn.steps[0].calls[0]
        assert (fetched.result, fetched.attempts) == ("fetched", 3)
        assert shop.result(1) == "fetched"


async def test_of_many_tools_it_picks_some(in_memory: Networks, tmp_path: Path) -> None:
    picks = [call("use_tools", names=["look", "recrods"]), call("look")]
    async with ModelServer(script(*picks)) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(select_over=3, disabled_tools=["pay"])
        turn = await shop.turn()
        assert {"use_tools", "send_text_message", "finish"} <= set(shop.offered(0))
        assert not {"look", "fetch", "records"} & set(shop.offered(0))
        lines = next(t for t in model.requests[0].body.tools if t.function.name == "use_tools")
        assert "look: Look around\n" in str(lines.function.description)
        assert "pay" not in str(lines.function.description)
        assert "records" in str(turn.steps[0].calls[0].result)
        assert "look" in shop.offered(1)
        assert not {"fetch", "records"} & set(shop.offered(1))
        assert turn.steps[1].calls[0].result == "seen"


async def test_results_are_cut_to_the_agents_budget(in_memory: Networks, tmp_path: Path) -> None:
    async with ModelServer(script(call("records", n=5000))) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(result_budget=100)
        await shop.turn()
        told = json.loads(shop.result(1))
        assert told["records"][:2] == [0, 1]
        assert "of 5000" in told["records_cut"]


@pytest.mark.parametrize(
    ("config", "says_what"),
    [
        ({"disabled_tools": ["payy"]}, r"disabled_tools: .* 'payy'; did you mean 'pay'\?"),
        ({"tool_settings": {"lok": {}}}, r"tool_settings: there is no tool 'lok'; .* 'look'\?"),
        ({"mcp": ["shop"]}, "mcp: there is no MCP server 'shop'; add it"),
        ({"tools": ["tools.py:inner"]}, "top level of a file"),
    ],
)
async def test_a_misspelled_name_is_refused_before_anything_starts(
    in_memory: Networks, tmp_path: Path, config: dict[str, JsonValue], says_what: str
) -> None:
    async with ModelServer(Script()) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        inner = (
            "\n\ndef outer():\n    def inner() -> None:\n        '''In.'''\n    return inner\n\n"
        )
        more = "inner = outer()\n"
        (tmp_path / "tools.py").write_text(TOOLS + inner + more)
        settings: JsonValue = {"inner": {"sandbox": "process"}}
        if "tools" in config:
            config = {**config, "tool_settings": settings}
        await shop.start(**config)
        error = await net.death("bot")
        assert isinstance(error, ConfigError)
        with pytest.raises(ConfigError, match=says_what):
            raise error


@pytest.mark.slow
async def test_the_operator_confines_a_function(in_memory: Networks, tmp_path: Path) -> None:
    async with ModelServer(script(call("whereabouts"))) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        await shop.start(
            tool_settings={"whereabouts": {"sandbox": "process"}}, sandbox={"memory": "400MiB"}
        )
        await shop.turn()
        told = json.loads(shop.result(1))
        assert told["pid"] != os.getpid()
        assert "hubbub-" in told["folder"]


@pytest.mark.slow
@pytest.mark.behaviour("K-12", "K-13")
async def test_tools_of_a_server_and_its_death_stand_in_the_record(
    in_memory: Networks, tmp_path: Path
) -> None:
    calls = [call("shop_add", a=1), call("shop_die")]
    async with ModelServer(script(*calls)) as model, rig(in_memory) as net:
        shop = Shop(net, model, tmp_path)
        command = [sys.executable, str(Path(mcp_server.__file__))]
        shop.servers = {"shop": McpServerConfig(command=command)}
        await shop.start(mcp=["shop"])
        turn = await shop.turn()
        assert "shop_add" in turn.start.tools
        assert [c.calls[0].result for c in turn.steps[:1]] == ["3"]
        assert turn.steps[1].calls[0].error == "tool_absent"
        assert turn.steps[2].notes == ("the tools of shop are absent: it has ended",)
        assert "shop_add" in shop.offered(1)
        assert "shop_add" not in shop.offered(2)
