"""Finds available models: API keys in the environment, servers on this machine."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "LOOPBACK",
    "ModelProposal",
    "find_models",
    "from_environment",
    "models_section",
    "on_server",
]

OPENAI = "https://api.openai.com/v1"
_KEYS = (
    ("OPENAI_API_KEY", OPENAI, "gpt-5-mini"),
    ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openai/gpt-5-mini"),
    ("MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-small-latest"),
    ("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"),
    (
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
    ),
)
"""Variable, endpoint, and a cheap model there that can call tools."""
LOOPBACK = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
)
"""Model servers at their default addresses."""
_WITHIN_S = 1.0
_MOST_BYTES = 1_000_000
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Ignores the proxies of the environment, since these servers are on this machine."""


@dataclass(frozen=True)
class ModelProposal:
    """A model that could be used."""

    model: str
    base_url: str
    """As written to the YAML; can refer to a variable."""
    key: str | None
    """The environment variable with the API key; None if none is needed."""
    source: str
    """How it was found."""


async def find_models(
    environ: Mapping[str, str], servers: Sequence[tuple[str, str]] | None = None
) -> list[ModelProposal]:
    """All available models, those with keys first. Takes at most about a second.

    `servers` are names and base URLs to try; None: `LOOPBACK`.
    """
    own = environ.get("OPENAI_BASE_URL")
    places = [
        *(LOOPBACK if servers is None else servers),
        *([("OPENAI_BASE_URL", own)] if own else []),
    ]
    proposals = await asyncio.gather(*(asyncio.to_thread(on_server, *place) for place in places))
    local = [proposal for proposal in proposals if proposal is not None]
    return [*from_environment(environ), *local]


def from_environment(environ: Mapping[str, str]) -> list[ModelProposal]:
    """The models for API keys in the environment."""
    proposals: list[ModelProposal] = []
    for variable, base_url, model in _KEYS:
        if not environ.get(variable):
            continue
        if base_url == OPENAI and environ.get("OPENAI_BASE_URL"):
            continue  # the key is for that server, which `find_models` tries
        proposals.append(ModelProposal(model, base_url, variable, f"{variable} is set"))
    return proposals


def on_server(name: str, base_url: str) -> ModelProposal | None:
    """The model of an OpenAI-compatible server, if one answers at `base_url`."""
    base_url = base_url.rstrip("/")
    try:
        with _DIRECT.open(f"{base_url}/models", timeout=_WITHIN_S) as response:
            listed = json.loads(response.read(_MOST_BYTES))
    except (OSError, ValueError):  # no server, or not a model server
        return None
    model = _first_chat_model(_ids(listed))
    if model is None:
        return None
    if name == "OPENAI_BASE_URL":
        return ModelProposal(model, "${OPENAI_BASE_URL}", None, f"OPENAI_BASE_URL is {base_url}")
    return ModelProposal(model, base_url, None, f"{name} answers at {base_url}")


def _ids(listed: object) -> Iterable[str]:
    """The ids in a model list from an untrusted server."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            yield entry["id"]


def _first_chat_model(ids: Iterable[str]) -> str | None:
    return next((name for name in ids if "embed" not in name.lower()), None)


def models_section(proposals: Sequence[ModelProposal]) -> str:
    """The section `models` of a YAML file; the first proposal is the default."""
    lines = ["models:"]
    for n, proposal in enumerate(proposals):
        lines.append(f"  {'default' if n == 0 else f'other{n}'}:    # {proposal.source}")
        lines.append(f"    model: {json.dumps(proposal.model)}")
        lines.append(f"    base_url: {json.dumps(proposal.base_url)}")
        if proposal.key:
            lines.append(f'    api_key: "${{{proposal.key}}}"')
    return "".join(f"{line}\n" for line in lines)
