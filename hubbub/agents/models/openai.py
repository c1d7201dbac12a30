"""Models at OpenAI-compatible endpoints, with tools, through the package `openai`."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from hubbub.agents.models.base import Completion, CompletionRequest, Delta, OnDelta, ToolSpec
from hubbub.agents.models.portable_schema import without_nulls
from hubbub.agents.models.requests import (
    Request,
    chat_request,
    is_strict,
    responses_request,
    tool_of,
)
from hubbub.agents.models.responses import (
    Assembly,
    ResponseAssembly,
    UnreadableResponse,
    read_answer,
    read_response,
)
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.prompt.tokens import TokenCounter, TokenEstimate, question_tokens
from hubbub.client.calls import Backoff
from hubbub.config.models import ModelConfig
from hubbub.errors import FormRefused, ModelError, ToolsRefused

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncStream


__all__ = ["BETWEEN_STREAMS", "OpenAIModel", "Redaction", "error_message", "refuses_tools"]

# Detecting that an endpoint does not support tools, so that a text dialect is used. Pure. Its error
# must refuse tools in general, and before it mentions messages: an error about messages concerns
# one request only, and may quote what people wrote.


_TOOLS = (
    r"\b(?:tools(?!\[|\.\d)|tool_choice|tool[ -](?:use|calls?|calling|choices?)"
    r"|function[ -]?call(?:s|ing)?)\b"
)
_NOT = (
    r"(?:\bnot |n't |\bno |\bun)(?:\w{1,12} )?"
    r"(?:support|recogni[sz]e|permitted|allow|available|enable|implement|expected|known)\w{0,8}"
)
_BETWEEN = (
    r"(?:\W{1,3}(?:the|any|use|of|for|in|native|request|arguments?|param(?:eter)?s?|supplied"
    r"|fields?|inputs?|keys?|s|object|names?|property)\b){0,5}\W{1,4}"
)
_REFUSED = re.compile(
    rf"{_NOT}{_BETWEEN}{_TOOLS}"
    rf"|{_TOOLS}[^.;\n]{{0,40}}?(?:{_NOT}|\b(?:is|are) disabled|\brequires\b|\bextra fields)"
    rf"|\bno endpoints\b[^.;\n]{{0,30}}{_TOOLS}"
    rf"|\binvalid (?:param|value|argument)[^.;\n]{{0,30}}{_TOOLS}"
    r"|'(?:tools|tool_choice)'\W{1,6}msg\W{1,6}extra (?:input|field|param)",
    re.IGNORECASE,
)
_OF_MESSAGES = re.compile(r"\bmessages\b|\brole\b|tool_call_id|\btool_calls\b", re.IGNORECASE)
_MOST = 2000


def error_message(body: object, otherwise: str) -> str:
    """The endpoint's error message: a text in the body of the error, if there is one."""
    if isinstance(body, dict):
        fields: dict[str, JsonValue] = body
        message = next((fields[key] for key in ("message", "detail") if fields.get(key)), None)
        return otherwise if message is None else str(message)
    return body if isinstance(body, str) else otherwise


def refuses_tools(message: str) -> bool:
    """Whether the error message refuses tools, or requiring them."""
    message = message[:_MOST]
    found = _REFUSED.search(message)
    return found is not None and _OF_MESSAGES.search(message, 0, found.start()) is None


_FORM = re.compile(
    r"response_?format|json_?schema|structured[ _-]?output|text\.format", re.IGNORECASE
)


def refuses_form(message: str) -> bool:
    """Whether the error message refuses the response format."""
    return _FORM.search(message[:_MOST]) is not None


# Hiding an endpoint's secrets in messages. Pure.


_HIDDEN = "***"
_SHORT = 8
"""Characters: a shorter secret may be part of a word and is hidden only where it stands alone."""


class Redaction:
    """Hides the key, and credentials in the address, wherever a text repeats them."""

    def __init__(self, base_url: str, api_key: str | None, headers: Iterable[str] = ()):
        parts = urlsplit(base_url)
        user, _, host = parts.netloc.rpartition("@")
        asked = "?***" if parts.query else ""
        self.address = f"{parts.scheme}://{_HIDDEN + '@' if user else ''}{host}{parts.path}{asked}"
        """The address without secrets."""
        secrets = {api_key or "", *headers, parts.query, *re.split("[&=]", parts.query)}
        if user:
            _, _, password = user.partition(":")
            secrets |= {user, unquote(user), password, unquote(password), _basic(user)}
        by_length = sorted(filter(None, secrets), key=len, reverse=True)
        self._secret = re.compile("|".join(map(_pattern, by_length)) or r"(?!)")

    def __call__(self, text: str) -> str:
        return self._secret.sub(_HIDDEN, text)


def _basic(user: str) -> str:
    """As in the Authorization header."""
    return b64encode(unquote(user).encode()).decode()


def _pattern(secret: str) -> str:
    found = re.escape(secret)
    return found if len(secret) >= _SHORT else rf"(?<!\w){found}(?!\w)"


_AS_THEY_ARE = ("messages", "input", "tools")
BETWEEN_STREAMS = Backoff(first_s=0.5, most_s=8.0)
"""Pauses before an interrupted stream is requested again: the same as the `openai` client's between
failed requests."""
_LONGEST_NAMED_S = 120.0
"""Maximum pause that a server may ask for with Retry-After."""


class OpenAIModel:
    """A model at one endpoint. Retries and timeouts are the `openai` client's.

    `label` is its name in the config's `models` section, for error messages. `backoff` is for
    interrupted streams, which the `openai` client does not retry.
    """

    def __init__(
        self, config: ModelConfig, label: str = "default", backoff: Backoff = BETWEEN_STREAMS
    ):
        import openai  # slow to import: only for agents that have a model

        self._openai = openai
        self._config, self._label, self._backoff = config, label, backoff
        self._client = openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=config.api_key or "none",  # local servers need no key
            timeout=config.timeout,
            max_retries=config.retries,
        )
        self._by_responses = config.api == "responses"
        api = self._client.responses if self._by_responses else self._client.chat.completions
        self._create: Any = api.with_raw_response.create  # keywords of a function with very many
        self._tools: tuple[Sequence[ToolSpec], list[dict[str, object]]] = ((), [])
        self._redacted = Redaction(config.base_url, config.api_key, config.extra_headers.values())
        self._counter: TokenCounter = TokenEstimate()

    @property
    def name(self) -> str:
        return self._config.model

    @property
    def address(self) -> str:
        """The endpoint's address, without secrets."""
        return self._redacted.address

    async def close(self) -> None:
        await self._client.close()

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        """Ask once. An interrupted stream is requested again, up to `retries` times."""
        try:
            if self._config.stream:
                answer = await self._streamed(question, on_delta)
            else:
                answer = await self._whole(question)
            return self._without_nulls(self._counted(answer, question), question)
        except self._openai.OpenAIError as exc:
            if question.form is not None and self._refuses(exc, refuses_form):
                raise FormRefused(self._advice(exc)) from exc
            if question.tools and self._refuses(exc, refuses_tools):
                raise ToolsRefused(self._advice(exc)) from exc
            raise ModelError(self._advice(exc)) from exc
        except (_IncompleteAnswer, UnreadableResponse) as exc:
            raise ModelError(self._redacted(f"{self._place} {exc}")) from exc
        except (ValueError, RecursionError) as exc:
            problem = "answers with something that is no JSON; is base_url right?"
            raise ModelError(f"{self._place} {problem}") from exc

    def _without_nulls(self, answer: Completion, question: CompletionRequest) -> Completion:
        """The answer without the nulls that stand for arguments in strict schemas."""
        strict = {tool.name: tool for tool in question.tools if tool.strict is not None}
        if not answer.calls or not is_strict(self._config):
            return answer
        calls = [
            replace(c, arguments=_drop_nulls(strict[c.name], c.arguments))
            if c.name in strict
            else c
            for c in answer.calls
        ]
        return replace(answer, calls=tuple(calls))

    def _counted(self, answer: Completion, question: CompletionRequest) -> Completion:
        """The answer with its tokens, estimated if the endpoint does not count them, and with its
        cost, if they are counted.
        """
        tokens_in, tokens_out = answer.tokens_in, answer.tokens_out
        if tokens_in and (tokens_out or not _written(answer)):
            price = self._config.price
            return answer if price is None else replace(answer, cost_usd=price.of(*_used(answer)))
        tokens_in = tokens_in or question_tokens(self._counter, question)
        tokens_out = tokens_out or self._counter.count(_written(answer))
        note = f"the endpoint counts no tokens: {tokens_in} in, {tokens_out} out are estimates"
        notes = (*answer.notes, note)
        return replace(answer, tokens_in=tokens_in, tokens_out=tokens_out, notes=notes)

    async def _whole(self, question: CompletionRequest) -> Completion:
        response = await self._send(self._request(question))
        read = read_response if self._by_responses else read_answer
        return _with_retry_notes(read(response.http_response.json()), response.retries_taken)

    async def _streamed(self, question: CompletionRequest, on_delta: OnDelta | None) -> Completion:
        request = self._request(question)
        request["stream"] = True
        if not self._by_responses:
            request["stream_options"] = {"include_usage": True}
        attempt, refused = 0, 0
        while True:
            response = await self._send(request)
            attempt, refused = attempt + 1, refused + response.retries_taken
            try:
                assembly = (ResponseAssembly if self._by_responses else Assembly)(attempt)
                async with response.parse(to=self._openai.AsyncStream[JsonValue]) as stream:
                    answer = await _assemble(stream, assembly, on_delta)
                return _with_retry_notes(answer, refused, attempt - 1)
            except (self._openai.APIConnectionError, _IncompleteAnswer, ValueError):
                if attempt > self._config.retries:
                    raise
            named_s = _seconds(response.headers.get("retry-after"))
            await self._backoff.sleep(self._backoff.after(named_s, attempt - 1))

    async def _send(self, request: Request) -> Any:  # a response of the `openai` package
        """Send messages and tools through `extra_body`: the client would search them for files,
        which takes longer than everything else that is done for a request.
        """
        plain = {name: value for name, value in request.items() if name not in _AS_THEY_ARE}
        body = {name: request[name] for name in _AS_THEY_ARE if name in request}
        plain["extra_body"] = body | request.get("extra_body", {})
        if not self._by_responses:
            plain["messages"] = ()  # required; replaced by those in the body
        return await self._create(**plain)

    def _request(self, question: CompletionRequest) -> Request:
        config = self._config
        if question.settings is not None:
            config = config.with_settings(question.settings)
        tools = self._tool_list(question.tools)
        if config.api == "responses":
            return _untyped(responses_request(config, question, tools))
        return _untyped(chat_request(config, question, tools), messages=())

    def _tool_list(self, tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
        if self._tools[0] != tools:  # a fast check if they are the same objects
            self._tools = (tools, [tool_of(tool, self._config) for tool in tools])
        return self._tools[1]

    # Errors -------------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f"the model endpoint {self.address}"

    def _advice(self, exc: Exception) -> str:
        """One sentence without secrets: which endpoint, what happened, what to do."""
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
                return f"{self._place} failed: {self._short_message(exc)}"

    def _refuses(self, exc: Exception, says: Callable[[str], bool]) -> bool:
        """Whether the endpoint refuses a feature, as `says` detects in its message."""
        if not isinstance(exc, self._openai.APIStatusError):
            return False
        if exc.status_code not in _REFUSALS:
            return False
        return says(error_message(exc.body, exc.message))

    def _short_message(self, exc: Exception) -> str:
        """The beginning of the error message, on one line."""
        words = str(exc)
        if isinstance(exc, self._openai.APIStatusError):
            words = error_message(exc.body, exc.message)
        return " ".join(reveal(self._redacted(words)).split())[:300]

    def _status_advice(self, exc: APIStatusError, key: str) -> str:
        status = exc.status_code
        if status in (401, 403):
            return f"refused the API key ({status}); set {key}.api_key"
        if status == 404:
            return f"has no model {self._config.model!r} (404); check {key}.model and .base_url"
        if status == 429:
            return "refused because of too many requests or a used-up quota (429); try later"
        if status >= 500:
            tries = self._config.retries + 1
            return f"failed ({status}) in every one of {tries} attempts: {self._short_message(exc)}"
        hint = ""
        if "tool_choice" in exc.message and self._config.tool_choice == "required":
            hint = f"; set {key}.tool_choice to auto"
        elif self._refuses(exc, refuses_tools):
            hint = f"; set {key}.dialect to tool_call"
        return f"refused the request ({status}): {self._short_message(exc)}{hint}"


_REFUSALS = frozenset({400, 404, 405, 422, 500, 501})
"""Status codes with which servers refuse unsupported features: llama.cpp uses 500."""


class _IncompleteAnswer(Exception):
    """The endpoint's answer is incomplete."""


def _seconds(named: str | None) -> float:
    """The pause in a header; 0: none, or a date, which few servers send."""
    try:
        seconds = float(named or 0)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds <= _LONGEST_NAMED_S else 0.0


def _drop_nulls(tool: ToolSpec, arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments  # it is reported elsewhere
    return json.dumps(without_nulls(tool.offered, given), ensure_ascii=False)


def _untyped(request: Request, **required: object) -> Request:
    """The same request with everything in `extra_body`, which the `openai` package sends unchanged.
    It would process other arguments by their types, which takes as long as the rest of a request.
    `required` are keywords that it insists on.
    """
    names = [name for name in ("model", "extra_headers") if name in request]
    own: Request = {name: request.pop(name) for name in names}
    extra = request.pop("extra_body", {})
    return {**required, **own, "extra_body": {**request, **extra}}


def _written(answer: Completion) -> str:
    """All text that a model has written."""
    calls = (part for call in answer.calls for part in (call.name, call.arguments))
    return "\n".join(filter(None, (answer.reasoning, answer.text, *calls)))


def _used(answer: Completion) -> tuple[int, int]:
    return answer.tokens_in, answer.tokens_out


def _with_retry_notes(answer: Completion, refused: int, broken: int = 0) -> Completion:
    """The answer with notes on how often it had to be requested again."""
    notes = list(answer.notes)
    if refused:
        notes.append(f"the request failed for now and was repeated ({refused} times)")
    if broken:
        notes.append(f"the answer broke off and was asked for again ({broken} times)")
    return replace(answer, notes=tuple(notes))


async def _assemble(
    stream: AsyncStream[JsonValue],
    assembly: Assembly | ResponseAssembly,
    on_delta: OnDelta | None,
) -> Completion:
    """Join the chunks of a stream. Raises `_IncompleteAnswer` if it ends early."""
    hear = on_delta or _ignore
    async for chunk in stream:
        for delta in assembly.add(chunk):
            hear(delta)
    if not assembly.over:
        raise _IncompleteAnswer("broke off in the middle of its answer, again and again")
    return assembly.answer()


def _ignore(delta: Delta) -> None:
    """Ignores the delta."""
