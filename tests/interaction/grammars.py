"""llama.cpp's server as a check of tools: it makes one grammar of their schemas, as it would for
any model. Its model here is made on the spot, knows bytes only, and says nothing of interest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import httpx2
from pydantic import JsonValue

from tests.model.llama import TEMPLATE, serving

__all__ = ["Grammars", "grammars"]

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
