"""Models behind OpenAI-compatible endpoints: chat completions with tools, through `openai`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hubbub.agents.models.base import Answer, CallRequest, Delta, OnDelta, Question, ToolSpec
from hubbub.config.models import ModelConfig
from hubbub.errors import ModelError, ToolsRefused

if TYPE_CHECKING:
    from openai import APIStatusError
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCallFunction

__all__ = ["OpenAIModel"]

_OF_TOOLS = re.compile(r"\btool|function.?call", re.IGNORECASE)
_REFUSING = re.compile(
    r"(not|n't|un)[ -]?(\w{1,12} )?"
    r"(support|recogni|permitted|allowed|available|enabled|implement|expected|known)"
    r"|no endpoints|requires|extra (field|input|param)|disabled|invalid (param|value)",
    re.IGNORECASE,
)


class OpenAIModel:
    """A model of one endpoint. Retries and timeouts are the `openai` client's.

    `label` is its name in the config's `models` section, for what error messages advise.
    """

    def __init__(self, config: ModelConfig, label: str = "default"):
        import openai  # slow to import: only for agents that have a model

        self._openai = openai
        self._config, self._label = config, label
        self._client = openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=config.api_key or "none",  # servers on one's own machine want no key
            timeout=config.timeout,
            max_retries=config.retries,
        )
        self._tools: tuple[Sequence[ToolSpec], list[dict[str, object]]] = ((), [])

    @property
    def name(self) -> str:
        return self._config.model

    async def close(self) -> None:
        await self._client.close()

    async def answer(self, question: Question, on_delta: OnDelta | None = None) -> Answer:
        """Ask once. A stream that breaks off is asked for again, as often as `retries` says."""
        try:
            if self._config.stream:
                return self._priced(await self._streamed(question, on_delta))
            return self._priced(await self._whole(question))
        except self._openai.OpenAIError as exc:
            if question.tools and self._refuses_tools(exc):
                raise ToolsRefused(self._advice(exc)) from exc
            raise ModelError(self._advice(exc)) from exc
        except _Broken as exc:
            raise ModelError(f"{self._place} {exc}") from exc
        except ValueError as exc:  # its JSON
            raise ModelError(f"{self._place} answers with something that is no JSON") from exc

    def _priced(self, answer: Answer) -> Answer:
        """The answer with what it cost. No tokens at all: the endpoint does not count them."""
        price, counted = self._config.price, answer.tokens_in + answer.tokens_out > 0
        if price is None or not counted:
            return answer
        return replace(answer, cost_usd=price.of(answer.tokens_in, answer.tokens_out))

    async def _whole(self, question: Question) -> Answer:
        create = self._client.chat.completions.with_raw_response.create
        response = await create(**self._request(question))
        return _noted(_answer(response.parse()), response.retries_taken)

    async def _streamed(self, question: Question, on_delta: OnDelta | None) -> Answer:
        request = self._request(question)
        request["stream"], request["stream_options"] = True, {"include_usage": True}
        create = self._client.chat.completions.with_raw_response.create
        attempt, refused = 0, 0
        while True:
            response = await create(**request)
            attempt, refused = attempt + 1, refused + response.retries_taken
            try:
                async with response.parse() as stream:
                    answer = await _assemble(stream, _Listener(on_delta, attempt))
                return _noted(answer, refused, attempt - 1)
            except (self._openai.APIConnectionError, _Broken, ValueError):
                if attempt > self._config.retries:
                    raise

    def _request(self, question: Question) -> dict[str, Any]:  # keywords of a very wide function
        config = self._config
        request: dict[str, Any] = {
            "model": config.model,
            "messages": question.messages,
        }
        if question.tools:  # endpoints refuse an empty list, and a choice without tools
            request["tools"] = self._told(question.tools)
            request["tool_choice"] = config.tool_choice
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if config.max_output_tokens is not None:
            ours = "api.openai.com" in config.base_url  # where the older name is refused
            request["max_completion_tokens" if ours else "max_tokens"] = config.max_output_tokens
        return request

    def _told(self, tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
        if self._tools[0] is not tools:
            self._tools = (tools, [_function(tool) for tool in tools])
        return self._tools[1]

    # Errors -------------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f"the model endpoint {self._config.base_url}"

    def _advice(self, exc: Exception) -> str:
        """One sentence: which endpoint, what happened, what to do."""
        openai, config, key = self._openai, self._config, f"models.{self._label}"
        tries = config.retries + 1
        match exc:
            case openai.APITimeoutError():
                what = f"did not answer within {config.timeout:g} s ({tries} attempts)"
                return f"{self._place} {what}; raise {key}.timeout or use a faster model"
            case openai.APIConnectionError():
                what = f"cannot be reached or broke off ({tries} attempts)"
                return f"{self._place} {what}; is the server running, is {key}.base_url right?"
            case openai.APIStatusError():
                return f"{self._place} {self._status_advice(exc, key)}"
            case _:
                return f"{self._place} failed: {exc}"

    def _refuses_tools(self, exc: Exception) -> bool:
        """Whether the endpoint says that it takes no tools, or none that are required."""
        if not isinstance(exc, self._openai.APIStatusError):
            return False
        if exc.status_code not in _REFUSALS:
            return False
        told = exc.message[:2000]
        return _OF_TOOLS.search(told) is not None and _REFUSING.search(told) is not None

    def _status_advice(self, exc: APIStatusError, key: str) -> str:
        status = exc.status_code
        if status in (401, 403):
            return f"refused the API key ({status}); set {key}.api_key"
        if status == 404:
            return f"has no model {self._config.model!r} (404); check {key}.model and .base_url"
        if status == 429:
            return "refused because of too many requests or a used-up quota (429); try later"
        if status >= 500:
            return (
                f"failed ({status}) in every one of {self._config.retries + 1} attempts; try later"
            )
        hint = ""
        if "tool_choice" in exc.message and self._config.tool_choice == "required":
            hint = f"; set {key}.tool_choice to auto"
        elif self._refuses_tools(exc):
            hint = f"; set {key}.dialect to tool_call"
        return f"refused the request ({status}): {exc.message[:300]}{hint}"


_REFUSALS = frozenset({400, 404, 405, 422, 500, 501})
"""With these, servers refuse what they have not learned: llama.cpp does so with 500."""


class _Broken(Exception):
    """The endpoint answered with something that is no whole answer."""


def _function(tool: ToolSpec) -> dict[str, object]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _answer(completion: ChatCompletion) -> Answer:
    """The answer in a completion, from an endpoint that may leave out what it likes."""
    choices = getattr(completion, "choices", None)
    if not choices:
        raise _Broken("answered with something that is no chat completion; is base_url right?")
    message, usage = choices[0].message, completion.usage
    calls = []
    for call in message.tool_calls or ():
        if call.type == "function":
            function = call.function
            calls.append(CallRequest(call.id or "", function.name or "", function.arguments or ""))
    return Answer(
        text=message.content or None,
        calls=tuple(calls),
        tokens_in=(usage.prompt_tokens or 0) if usage else 0,
        tokens_out=(usage.completion_tokens or 0) if usage else 0,
        finish_reason=choices[0].finish_reason,
        reasoning=_reasoning(message),
    )


def _reasoning(part: object) -> str | None:
    """What a model thought before it answered, by either of the names that endpoints have for it:
    no part of the API that the library knows.
    """
    for name in ("reasoning_content", "reasoning"):
        thought = getattr(part, name, None)
        if thought and isinstance(thought, str):
            return thought
    return None


def _noted(answer: Answer, refused: int, broken: int = 0) -> Answer:
    """The answer with notes of how often it had to be asked for again."""
    notes = list(answer.notes)
    if refused:
        notes.append(f"the request failed for now and was repeated ({refused} times)")
    if broken:
        notes.append(f"the answer broke off and was asked for again ({broken} times)")
    return replace(answer, notes=tuple(notes))


@dataclass(slots=True)
class _Fragments:
    """A call that arrives piece by piece."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, id: str | None, function: ChoiceDeltaToolCallFunction | None) -> str:
        """Returns the piece of the arguments that has come."""
        self.id = self.id or id or ""
        if function is None:
            return ""
        self.name = self.name or function.name or ""
        self.arguments += function.arguments or ""
        return function.arguments or ""


@dataclass(slots=True)
class _Listener:
    """Who hears an answer while it is written."""

    on_delta: OnDelta | None
    attempt: int

    def text(self, piece: str) -> None:
        if self.on_delta is not None and piece:
            self.on_delta(Delta(piece, attempt=self.attempt))

    def call(self, index: int, call: _Fragments, piece: str) -> None:
        if self.on_delta is not None:
            self.on_delta(Delta(piece, index, call.name, self.attempt))


async def _assemble(stream: AsyncIterable[ChatCompletionChunk], listener: _Listener) -> Answer:
    """Put the fragments of a stream together. Raises `_Broken` if it ends before it is over."""
    text: list[str] = []
    thoughts: list[str] = []
    calls: dict[int, _Fragments] = {}
    finish_reason, tokens_in, tokens_out = None, 0, 0
    async for chunk in stream:
        if chunk.usage is not None:
            tokens_in = chunk.usage.prompt_tokens or 0  # endpoints leave out what they like
            tokens_out = chunk.usage.completion_tokens or 0
        for choice in (chunk.choices or ())[:1]:
            finish_reason = choice.finish_reason or finish_reason
            text.append(choice.delta.content or "")
            thoughts.append(_reasoning(choice.delta) or "")
            listener.text(text[-1])
            for delta in choice.delta.tool_calls or ():
                call = calls.setdefault(delta.index, _Fragments())
                listener.call(delta.index, call, call.add(delta.id, delta.function))
    if finish_reason is None:
        raise _Broken("broke off in the middle of its answer, again and again")
    made = (CallRequest(c.id, c.name, c.arguments) for _, c in sorted(calls.items()))
    return Answer(
        text="".join(text) or None,
        calls=tuple(made),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        finish_reason=finish_reason,
        reasoning="".join(thoughts) or None,
    )
