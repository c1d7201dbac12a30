"""Model requests of the hub itself: summaries, drafts, tests."""

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
    """Computed from the model's price."""


class Completions:
    """Requests to models, with one client per endpoint, created on first use."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._asking: set[asyncio.Task[Any] | None] = set()

    async def close(self) -> None:
        """Cancel all that wait for an answer."""
        for task in self._asking:
            if task is not None:
                task.cancel()
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def ask(self, model: ModelConfig, messages: Sequence[Mapping[str, str]]) -> ModelText:
        """The model's response to `messages` (role, content). Raises `ModelError`."""
        await asyncio.to_thread(
            import_module, "openai"
        )  # the import takes longer than a step is allowed to
        import openai

        task = asyncio.current_task()
        self._asking.add(task)
        try:
            answer = await self._client(model).chat.completions.create(**_request(model, messages))
            text = _text(answer)
        except openai.APIStatusError as error:
            raise ModelError(f"its endpoint returned status {error.status_code}") from error
        except openai.APITimeoutError as error:
            raise ModelError(f"its endpoint did not respond within {model.timeout:g} s") from error
        except openai.APIConnectionError as error:
            raise ModelError("its endpoint cannot be reached") from error
        except (openai.OpenAIError, ValueError) as error:
            raise ModelError("its endpoint's response is not valid") from error
        finally:
            self._asking.discard(task)
        used = answer.usage
        read, written = (used.prompt_tokens, used.completion_tokens) if used else (0, 0)
        details = used.prompt_tokens_details if used else None
        cached = min(details.cached_tokens or 0, read) if details else 0
        usd = model.price.of(read, written, cached) if model.price and used else None
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
    # Any: keyword arguments of a function with many types.
    request: dict[str, Any] = {"model": model.model, "messages": messages}
    settings = {key: getattr(model, key) for key in _SETTINGS}
    request |= {key: value for key, value in settings.items() if value not in (None, {})}
    if model.max_output_tokens is not None:
        newer = "api.openai.com" in model.base_url  # which refuses the older name
        request["max_completion_tokens" if newer else "max_tokens"] = model.max_output_tokens
    return request


def _text(answer: object) -> str:
    """The text of a response. Raises `ValueError` if it has no choices."""
    choices = getattr(answer, "choices", None)
    if not choices:
        raise ValueError("no choices")
    return choices[0].message.content or ""
