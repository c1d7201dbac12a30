"""Plain questions to models, of the hub itself: summaries, drafts, tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.config.agents import ModelConfig
from hubbub.errors import ModelError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Completions"]

_SETTINGS = (
    "temperature",
    "top_p",
    "reasoning_effort",
    "service_tier",
    "extra_body",
    "extra_headers",
)


class ModelText(NamedTuple):
    text: str
    tokens_in: int
    tokens_out: int
    usd: float | None
    """By the model's price."""


class Completions:
    """One client for each endpoint, from the first question to the end."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def ask(self, model: ModelConfig, messages: Sequence[Mapping[str, str]]) -> ModelText:
        """What the model says to `messages` (role, content). Raises `ModelError`."""
        await asyncio.to_thread(import_module, "openai")  # it takes longer than a step may
        import openai

        try:
            answer = await self._client(model).chat.completions.create(**_request(model, messages))
            text = _said(answer)
        except openai.APIStatusError as error:
            raise ModelError(f"its endpoint answers {error.status_code}") from error
        except openai.APITimeoutError as error:
            raise ModelError(f"its endpoint has not answered within {model.timeout:g} s") from error
        except openai.APIConnectionError as error:
            raise ModelError("its endpoint cannot be reached") from error
        except (openai.OpenAIError, ValueError) as error:
            raise ModelError("its endpoint's answer cannot be read") from error
        used = answer.usage
        read, written = (used.prompt_tokens, used.completion_tokens) if used else (0, 0)
        usd = model.price.of(read, written) if model.price and used else None
        return ModelText(text, read, written, usd)

    def _client(self, model: ModelConfig) -> AsyncOpenAI:
        import openai

        key = model.base_url, model.api_key
        if key not in self._clients:
            self._clients[key] = openai.AsyncOpenAI(
                base_url=model.base_url, api_key=model.api_key or "none"
            )
        return self._clients[key].with_options(timeout=model.timeout, max_retries=model.retries)


def _request(model: ModelConfig, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    # Any: keywords of a very wide function.
    request: dict[str, Any] = {"model": model.model, "messages": messages}
    said = {key: getattr(model, key) for key in _SETTINGS}
    request |= {key: value for key, value in said.items() if value not in (None, {})}
    if model.max_output_tokens is not None:
        newer = "api.openai.com" in model.base_url  # where the older name is refused
        request["max_completion_tokens" if newer else "max_tokens"] = model.max_output_tokens
    return request


def _said(answer: object) -> str:
    """The text of an answer. Raises `ValueError` for what an endpoint sent that is none."""
    choices = getattr(answer, "choices", None)
    if not choices:
        raise ValueError("no choices")
    return choices[0].message.content or ""
