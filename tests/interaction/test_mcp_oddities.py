"""MCP servers that offer odd tools and say odd things: what is wrong is told, the rest goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue
from structlog.testing import capture_logs

from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.tooling import McpServerConfig
from tests.interaction import raw_mcp_server
from tests.interaction.test_mcp import SITE, Gate, names, started, tool_of
from tests.unit.agents.calling import failed, text

pytestmark = pytest.mark.slow

PROGRAM = str(Path(raw_mcp_server.__file__))
OBJECT: JsonValue = {"type": "object", "properties": {}}


def raw(*tools: JsonValue, **script: JsonValue) -> McpServerConfig:
    """A server with these tools."""
    said = json.dumps({"tools": list(tools), **script})
    return McpServerConfig(command=[sys.executable, PROGRAM, said], timeout=30)


def offered(name: JsonValue, schema: JsonValue = OBJECT, **more: JsonValue) -> JsonValue:
    return {"name": name, "inputSchema": schema, **more}


def nested(levels: int) -> JsonValue:
    schema: JsonValue = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@asynccontextmanager
async def heard(
    folder: Path, shop: McpServerConfig
) -> AsyncIterator[tuple[McpServers, dict[str, str]]]:
    """A server, and the reasons why tools of theirs were left out."""
    with capture_logs() as records:
        async with started(folder, shop=shop) as made:
            left_out = "MCP tool is left out"
            reasons = {r["tool"]: r["reason"] for r in records if r["event"] == left_out}
            yield made, reasons


@pytest.mark.behaviour("K-12")
class TestUnusableTools:
    @pytest.mark.parametrize(
        ("tool", "name", "says"),
        [
            (offered("bad", {"type": "string"}), "bad", "inputSchema.type"),
            (offered("bad", {}), "bad", "inputSchema.type"),
            (offered("bad", {"type": "object", "properties": [1]}), "bad", "properties"),
            (offered("bad", nested(60)), "bad", "nested too deep"),
            (offered("bad", {"type": "object", "required": "a"}), "bad", "required"),
            (offered(5), "5", "name"),
            (offered("bad", OBJECT, annotations=[]), "bad", "annotations"),
            ({"description": "x"}, "?", "name"),
            ("bad", "?", "dictionary"),
            (
                offered("bad", {"type": "object", "properties": {"a": {"type": "strin"}}}),
                "shop_bad",
                "no JSON Schema",
            ),
        ],
    )
    async def test_one_is_left_out_with_a_reason_and_the_others_are_there(
        self, tmp_path: Path, tool: JsonValue, name: str, says: str
    ) -> None:
        shop = raw(offered("ok"), tool, offered("too"))
        async with heard(tmp_path, shop=shop) as (servers, reasons):
            assert servers.absences() == {}
            assert names(servers) == {"shop_ok", "shop_too"}
            assert await tool_of(servers, "shop_ok").run({}, SITE) == "ok"
            assert list(reasons) == [name]
            assert says in reasons[name]
            assert "\n" not in reasons[name]

    async def test_a_listing_that_is_none_makes_the_server_absent_for_a_short_reason(
        self, tmp_path: Path
    ) -> None:
        said = McpServerConfig(command=[sys.executable, PROGRAM, '{"tools": {"a": 1}}'], timeout=30)
        async with started(tmp_path, Gate(), shop=said) as servers:
            why = servers.absences()["shop"]
            assert "tools" in why
            assert "\n" not in why
            assert len(why) < 400


class TestNames:
    @pytest.mark.behaviour("K-12")
    async def test_tools_whose_names_become_the_same_are_all_there(self, tmp_path: Path) -> None:
        shop = raw(offered("a b"), offered("a_b"), offered("a.b"))
        async with heard(tmp_path, shop=shop) as (servers, _):
            made = names(servers)
            assert len(made) == 3
            assert all(name.startswith("shop_a_b") for name in made)
            said = {name: await tool_of(servers, name).run({}, SITE) for name in made}
            assert set(said.values()) == {"a b", "a_b", "a.b"}
            assert said["shop_a_b"] == "a_b"

    async def test_their_names_do_not_depend_on_the_order(self, tmp_path: Path) -> None:
        one = raw(offered("a b"), offered("a.b"))
        other = raw(offered("a.b"), offered("a b"))
        async with heard(tmp_path, shop=one) as (servers, _):
            first = names(servers)
        async with heard(tmp_path, shop=other) as (servers, _):
            assert names(servers) == first
            assert len(first) == 2

    async def test_one_that_is_offered_twice_is_left_out_with_a_reason(
        self, tmp_path: Path
    ) -> None:
        async with heard(tmp_path, shop=raw(offered("a"), offered("a"))) as (servers, reasons):
            assert names(servers) == {"shop_a"}
            assert "two tools" in reasons["shop_a"]

    async def test_of_two_servers_with_one_name_for_a_tool_it_is_said_which_goes_first(
        self, tmp_path: Path
    ) -> None:
        with capture_logs() as records:
            one, other = raw(offered("b_c")), raw(offered("c"))
            async with started(tmp_path, a=one, a_b=other) as servers:
                assert await tool_of(servers, "a_b_c").run({}, SITE) == "b_c"
                servers.tools()
        (told,) = [r for r in records if r["event"] == "MCP tool is left out"]
        assert (told["tool"], told["server"]) == ("a_b_c", "a_b")


class TestErrors:
    @pytest.mark.parametrize("code", [-32000, -32603])
    async def test_the_servers_own_words_are_told(self, tmp_path: Path, code: int) -> None:
        shop = raw(offered("buy"), error={"code": code, "message": "the till is broken"})
        async with started(tmp_path, shop=shop) as servers:
            box = Toolbox([], source=servers)
            for _ in range(2):
                told = await failed(box, "shop_buy")
                assert (told["error"], told["message"]) == ("tool_failed", "the till is broken")
            assert servers.absences() == {}

    async def test_without_one_it_works(self, tmp_path: Path) -> None:
        async with started(tmp_path, shop=raw(offered("buy"))) as servers:
            assert await text(Toolbox([], source=servers), "shop_buy") == "buy"
