"""Every tool that a model can be offered has a schema that llama.cpp's server accepts."""

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
"""The name of a tool and the schema of its arguments."""
_WIDTH, _CONTEXT = 32, 32_768


class Grammars:
    """A server that compiles tools to grammars."""

    def __init__(self, client: httpx2.Client):
        self._client = client

    def complaint(self, *tools: Function) -> str | None:
        """The server's error for these tools; None if they constrain the output of the model."""
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
        # The first byte of `<tool_call>`; without a grammar, this model starts with another one.
        text = answer.json()["choices"][0]["message"]["content"]
        return None if text == "<" else f"unconstrained, it writes {text!r}"


@contextmanager
def grammars(folder: Path) -> Iterator[Grammars]:
    """A server for the length of the block; the file of its model is in the folder."""
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
    """A model of one layer with all weights 0, in the format GGUF (version 3)."""
    bytes_ = [f"<0x{n:02X}>" for n in range(256)]
    tokens, kinds = ["<unk>", "<s>", "</s>", *bytes_], [2, 3, 3, *[6] * 256]
    metadata = [
        _entry("general.architecture", "llama"),
        _entry("llama.context_length", _CONTEXT),
        _entry("llama.embedding_length", _WIDTH),
        _entry("llama.feed_forward_length", _WIDTH),
        _entry("llama.block_count", 1),
        _entry("llama.attention.head_count", 1),
        _entry("llama.attention.layer_norm_rms_epsilon", 1e-5),
        _entry("tokenizer.ggml.model", "llama"),
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
    offsets = accumulate(sizes, initial=0)  # rows of 128 bytes, so all are multiples of 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(metadata)) + b"".join(metadata)
    for (name, shape), offset in zip(shapes.items(), offsets, strict=False):
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += _text(name) + dimensions + struct.pack("<IQ", 0, offset)
    return head + bytes(-len(head) % 32) + bytes(sum(sizes))


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode("ascii")


def _entry(key: str, value: str | float) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", 8) + _text(value)
    kind, form = (4, "I") if isinstance(value, int) else (6, "f")
    return _text(key) + struct.pack(f"<I{form}", kind, value)


def _list(key: str, kind: int, items: Sequence[bytes]) -> bytes:
    return _text(key) + struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)


pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: `make test` installs it")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grammars]:
    with grammars(tmp_path_factory.mktemp("grammars")) as server:
        yield server


@pytest.mark.behaviour("A-24")
async def test_an_engine_accepts_every_tool_of_the_core_and_of_all_mods(
    server: Grammars, tmp_path: Path
) -> None:
    specs = [*await _agent_specs(tmp_path), *_role_specs(), as_tool(_order).spec]
    assert len(specs) > 90
    for versions in (specs, map(short_spec, specs), map(bare_spec, specs)):
        offered = {spec.name: spec.offered for spec in versions}
        if server.complaint(*offered.items()) is not None:
            refused = {name: server.complaint((name, schema)) for name, schema in offered.items()}
            assert {name: error for name, error in refused.items() if error is not None} == {}
            raise AssertionError("each is accepted alone, but not together")


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
    "is_empty": {},
}
"""Schemas as in MCP servers and other people's tools."""


def test_an_engine_accepts_unusual_schemas_once_they_are_portable(server: Grammars) -> None:
    complaints = {name: server.complaint((name, portable(odd))) for name, odd in ODD.items()}
    assert complaints == dict.fromkeys(ODD)


def test_the_engine_rejects_a_schema_that_was_not_made_portable(server: Grammars) -> None:
    text: JsonValue = {"type": "string", "maxLength": 2048}
    schema: Mapping[str, JsonValue] = {"type": "object", "properties": {"text": text}}
    assert "Failed to parse" in (server.complaint(("long", schema)) or "")


async def _agent_specs(folder: Path) -> list[ToolSpec]:
    """The tools of an agent with all of them, on a network with all mods."""
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
        specs = toolbox.for_turn(*toolbox.names).specs
    return [*specs, SelectTool(toolbox.registry, {}, toolbox.names, 20).spec]


def _role_specs() -> list[ToolSpec]:
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
