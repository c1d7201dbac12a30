"""Every tool that a model may be offered, as llama.cpp's server takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue

from hubbub.agents.fork import ForkTool
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.models.portable_schema import portable
from hubbub.agents.prompt.budget import bare, short
from hubbub.agents.roles.answers import judge_spec, plan_spec, route_spec
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.function import as_tool
from hubbub.agents.tools.registry import SelectTool
from hubbub.config.agents import AgentConfig, ForkConfig, RolesConfig
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.mods.loader import BUILT_IN, load_mods
from hubbub.testing.network import LocalNetwork

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: `make test` installs it")
from tests.interaction.grammars import Grammars, grammars

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grammars]:
    with grammars(tmp_path_factory.mktemp("grammars")) as server:
        yield server


@pytest.mark.behaviour("A-24")
async def test_an_engine_makes_a_grammar_of_every_tool_of_the_core_and_of_all_mods(
    server: Grammars, tmp_path: Path
) -> None:
    specs = [*await _of_agents(tmp_path), *_of_roles(), *_of_users()]
    assert len(specs) > 90
    for fewer in (whole, short, bare):
        offered = {spec.name: fewer(spec).offered for spec in specs}
        if server.complaint(*offered.items()) is not None:
            refused = {name: server.complaint((name, schema)) for name, schema in offered.items()}
            assert {name: why for name, why in refused.items() if why is not None} == {}
            raise AssertionError("one by one they are taken, but not together")


ODD: Mapping[str, Mapping[str, JsonValue]] = {
    "refers_to_itself": {
        "$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "n": {}}}},
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
    },
    "refers_to_nothing": {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "https://x"}}},
    "is_a_union": {
        "oneOf": [
            {"properties": {"by": {"const": "id"}, "id": {"type": "string"}}, "required": ["by"]},
            {"properties": {"by": {"const": "name"}, "name": {"type": ["string", "null"]}}},
        ]
    },
    "is_long": {
        "properties": {
            "a": {"type": "string", "minLength": 5000, "maxLength": 2000},
            "b": {"type": "array", "items": {"type": "string", "maxLength": 1999}, "maxItems": 99},
            "c": {"type": "string", "pattern": "^(?<!x)\\p{L}{1,3000}(?=y)$", "format": "regex"},
            "d": {"enum": [f"Europe/City{n}" for n in range(500)]},
        }
    },
    "has_many": {"properties": {f"option_{n}": {"type": "string"} for n in range(120)}},
    "has_rules": {
        "properties": {"a": {"not": {"type": "null"}}, "b": {"prefixItems": [{}, {}]}, "c": True},
        "patternProperties": {"^x-": {}},
        "propertyNames": {"pattern": "^[a-z]+$"},
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "dependentRequired": {"a": ["c"]},
        "allOf": [{"properties": {"d": {"uniqueItems": True, "items": {}}}}, {"minProperties": 3}],
    },
    "says_nothing": {},
}
"""Schemas as MCP servers and other people write them."""


def test_an_engine_makes_a_grammar_of_whatever_others_write(server: Grammars) -> None:
    offered = {name: portable(schema) for name, schema in ODD.items()}
    assert {name: server.complaint((name, one)) for name, one in offered.items()} == dict.fromkeys(
        ODD
    )


def test_the_engine_of_these_tests_refuses_what_it_cannot_hold(server: Grammars) -> None:
    text: JsonValue = {"type": "string", "maxLength": 2048}
    schema: Mapping[str, JsonValue] = {"type": "object", "properties": {"text": text}}
    assert "Failed to parse" in (server.complaint(("long", schema)) or "")


def whole(spec: ToolSpec) -> ToolSpec:
    return spec


async def _of_agents(folder: Path) -> list[ToolSpec]:
    """The tools of an agent that has all there are, of a network that runs all mods."""
    (folder / "notes").mkdir()
    (folder / "notes" / "tea.md").write_text("# Tea\n\nBrew it for three minutes.\n")
    config = AgentConfig.model_validate(
        {"select_over": 200, "knowledge": {"folders": ["notes"]}, "fork": {}}
    )
    file = NetworkFile(network=NetworkConfig(auth="open"))
    async with LocalNetwork(file, mods=load_mods(list(BUILT_IN))) as network:
        client = await network.join("bot")
        kit = ToolKit(config, "bot", folder, more=[ForkTool(ForkConfig())])
        toolbox = kit.toolbox(client.ready, client)
        everything = toolbox.for_turn(*toolbox.names)
    listed = SelectTool(toolbox.registry, {}, toolbox.names, 20)
    return [*everything.specs, listed.spec]


def _of_roles() -> list[ToolSpec]:
    executors = ["add", "helper"]
    return [route_spec(executors), plan_spec(executors, 8), judge_spec(RolesConfig().criteria, 3)]


class Address(BaseModel):
    street: Annotated[str, Field(max_length=4000)]
    number: int | None = None


def _order(
    articles: Annotated[list[Annotated[str, Field(max_length=9999)]], Field(max_length=5000)],
    to: Address | Literal["collect", "later"],
    labels: dict[str, list[Address]],
    at: Annotated[str | None, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = None,
) -> str:
    """Order things."""
    return "ordered"


def _of_users() -> list[ToolSpec]:
    return [as_tool(_order).spec]
