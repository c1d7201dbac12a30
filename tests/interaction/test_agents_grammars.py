"""Every tool that a model may be offered, as llama.cpp's server takes it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

import httpx2
import pytest
from pydantic import BaseModel, Field, JsonValue

from hubbub.agents.fork import ForkTool
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.models.portable_schema import portable
from hubbub.agents.prompt.budget import bare_spec, short_spec
from hubbub.agents.roles.plan import judge_spec, plan_spec, route_spec
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.function import as_tool
from hubbub.agents.tools.registry import SelectTool
from hubbub.config.agents import AgentConfig, ForkConfig, RolesConfig
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.mods.loader import BUILT_IN, load_mods
from hubbub.testing.network import LocalNetwork
from tests.model.llama import TEMPLATE, serving

Function = tuple[str, Mapping[str, JsonValue]]
"""A tool's name, and the schema of its arguments."""
_WIDTH, _CONTEXT = 32, 32_768


class Grammars:
    """A server that makes grammars of tools."""

    def __init__(self, client: httpx2.Client):
        self._client = client

    def complaint(self, *tools: Function) -> str | None:
        """What the server says against the tools; None: what the model writes is bound by them."""
        functions = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in tools
        ]
        question = {
            "messages": [{"role": "user", "content": "go"}],
            "tools": functions,
            "tool_choice": "required",
            "max_tokens": 1,
            "temperature": 0,
        }
        answer = self._client.post("chat/completions", json=question)
        if answer.status_code != 200:
            return answer.text
        # The first byte of `<tool_call>`: unbound, this model begins with another one.
        said = answer.json()["choices"][0]["message"]["content"]
        return None if said == "<" else f"not bound, it says {said!r}"


@contextmanager
def grammars(folder: Path) -> Iterator[Grammars]:
    """A server for as long as the block lasts; its model's file is written to the folder."""
    weights = folder / "bytes.gguf"
    weights.write_bytes(_model())
    template = TEMPLATE.read_text("utf-8").replace(
        "{{ tool | tojson }}", "{{ tool.function.name }}"
    )
    with (
        serving(weights, template, _CONTEXT) as url,
        httpx2.Client(base_url=url, timeout=60) as http,
    ):
        yield Grammars(http)


def _model() -> bytes:
    """A model of one layer whose weights are all 0, in the format GGUF (version 3)."""
    bytes_ = [f"<0x{n:02X}>" for n in range(256)]
    tokens, kinds = ["<unk>", "<s>", "</s>", *bytes_], [2, 3, 3, *[6] * 256]
    facts = [
        _fact("general.architecture", "llama"),
        _fact("llama.context_length", _CONTEXT),
        _fact("llama.embedding_length", _WIDTH),
        _fact("llama.feed_forward_length", _WIDTH),
        _fact("llama.block_count", 1),
        _fact("llama.attention.head_count", 1),
        _fact("llama.attention.layer_norm_rms_epsilon", 1e-5),
        _fact("tokenizer.ggml.model", "llama"),
        _list("tokenizer.ggml.tokens", 8, [_text(token) for token in tokens]),
        _list("tokenizer.ggml.scores", 6, [struct.pack("<f", 0.0)] * len(tokens)),
        _list("tokenizer.ggml.token_type", 5, [struct.pack("<i", kind) for kind in kinds]),
    ]
    square, row = (_WIDTH, _WIDTH), (_WIDTH,)
    of_layer = {
        **dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), square),
        **dict.fromkeys(("ffn_gate", "ffn_up", "ffn_down"), square),
        **dict.fromkeys(("attn_norm", "ffn_norm"), row),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (_WIDTH, len(tokens)),
        "output_norm.weight": row,
        **{f"blk.0.{name}.weight": shape for name, shape in of_layer.items()},
    }
    sizes = [4 * shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes.values()]
    places = accumulate(sizes, initial=0)  # rows of 128 bytes: all lie at multiples of 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(facts)) + b"".join(facts)
    for (name, shape), place in zip(shapes.items(), places, strict=False):
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += _text(name) + dimensions + struct.pack("<IQ", 0, place)
    return head + bytes(-len(head) % 32) + bytes(sum(sizes))


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode("ascii")


def _fact(key: str, value: str | float) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", 8) + _text(value)
    return (
        _text(key)
        + struct.pack("<I", 4 if isinstance(value, int) else 6)
        + (struct.pack("<I" if isinstance(value, int) else "<f", value))
    )


def _list(key: str, kind: int, items: Sequence[bytes]) -> bytes:
    return _text(key) + struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)


pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: `make test` installs it")

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
    for fewer in (whole, short_spec, bare_spec):
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
