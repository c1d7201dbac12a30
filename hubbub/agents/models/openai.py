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
from hubbub.agents.models.endpoint_client import Errors, http_errors, open_client
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
    from openai import APIError, APIStatusError


__all__ = [
    "MAX_ANSWER",
    "STREAM_BACKOFF",
    "OpenAIModel",
    "Redaction",
    "error_message",
    "refuses_tools",
]

# Detects that an endpoint does not support tools, so that a text dialect is used instead. Pure. The
# error must reject tools in general, and before it mentions messages: an error about messages
# concerns a single request, and can quote what people wrote.


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
_MENTIONS_MESSAGES = re.compile(r"\bmessages\b|\brole\b|tool_call_id|\btool_calls\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"\bcontext (?:length|size|window)\b|\bprompt is too long\b", re.IGNORECASE)
_MAX_SEARCHED = 2000


def error_message(body: object, otherwise: str) -> str:
    """The error message in the body of an endpoint's error, or `otherwise`."""
    if isinstance(body, dict):
        fields: dict[str, JsonValue] = body
        message = next((fields[key] for key in ("message", "detail") if fields.get(key)), None)
        return otherwise if message is None else str(message)
    return body if isinstance(body, str) else otherwise


def refuses_tools(message: str) -> bool:
    """Whether the error message rejects tools, or a required tool call."""
    message = message[:_MAX_SEARCHED]
    match = _REFUSED.search(message)
    return match is not None and _MENTIONS_MESSAGES.search(message, 0, match.start()) is None


_FORM = re.compile(
    r"response_?format|json_?schema|structured[ _-]?output|text\.format", re.IGNORECASE
)


def refuses_form(message: str) -> bool:
    """Whether the error message rejects the response format."""
    return _FORM.search(message[:_MAX_SEARCHED]) is not None


# Hides an endpoint's secrets in messages. Pure.


_HIDDEN = "***"
_SHORT = 8
"""Characters. A shorter secret could be part of a word, so it is hidden only as a whole word."""


class Redaction:
    """Hides the API key, and any credentials in the address, in texts."""

    def __init__(self, base_url: str, api_key: str | None, headers: Iterable[str] = ()):
        parts = urlsplit(base_url)
        user, _, host = parts.netloc.rpartition("@")
        query = "?***" if parts.query else ""
        self.address = f"{parts.scheme}://{_HIDDEN + '@' if user else ''}{host}{parts.path}{query}"
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
    """The credentials as in the Authorization header."""
    return b64encode(unquote(user).encode()).decode()


def _pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"


_RAW = {"X-Stainless-Raw-Response": "true"}
"""With this header the `openai` client returns a response as it is."""
STREAM_BACKOFF = Backoff(first_s=0.5, most_s=8.0)
"""Pauses before an interrupted answer is requested again, equal to the `openai` client's pauses
between failed requests."""
MAX_ANSWER = 128 * 1024 * 1024
"""Bytes of an answer. The longest of today's have 128k tokens, each up to 400 bytes of a stream."""
_MAX_RETRY_AFTER_S = 120.0
"""The longest pause honored from a Retry-After header."""


class OpenAIModel:
    """A model at one endpoint. The `openai` client handles retries and timeouts.

    `label` is its name in the config's `models` section, used in error messages. `backoff` applies
    to interrupted answers, which the `openai` client does not retry. Answers of more than
    `max_answer` bytes are refused.
    """

    def __init__(
        self,
        config: ModelConfig,
        label: str = "default",
        backoff: Backoff = STREAM_BACKOFF,
        max_answer: int = MAX_ANSWER,
    ):
        import openai  # slow to import: only for agents that have a model

        self._openai = openai
        self._config, self._label, self._backoff = config, label, backoff
        self._max_answer = max_answer
        self._client = open_client(config)
        self._lost: Errors = (openai.APIConnectionError, *http_errors("HTTPError"))
        self._late: Errors = (openai.APITimeoutError, *http_errors("TimeoutException"))
        self._failed: Errors = (openai.OpenAIError, *self._lost)
        self._retried: Errors = (*self._lost, _IncompleteAnswer, ValueError)
        self._uses_responses_api = config.api == "responses"
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
        """Request an answer. An interrupted one is requested again, up to `retries` times."""
        try:
            answer = await self._requested(question, on_delta)
            return self._without_nulls(self._counted(answer, question), question)
        except self._failed as exc:
            if question.form is not None and self._refuses(exc, refuses_form):
                raise FormRefused(self._describe(exc)) from exc
            if question.tools and self._refuses(exc, refuses_tools):
                raise ToolsRefused(self._describe(exc)) from exc
            raise ModelError(self._describe(exc)) from exc
        except (_IncompleteAnswer, UnreadableResponse) as exc:
            raise ModelError(self._redacted(f"{self._endpoint} {exc}")) from exc
        except (ValueError, RecursionError) as exc:
            problem = "answered with something other than JSON; is base_url right?"
            raise ModelError(f"{self._endpoint} {problem}") from exc

    def _without_nulls(self, answer: Completion, question: CompletionRequest) -> Completion:
        """The answer without the nulls that strict schemas require for omitted arguments."""
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
        """The answer with its cost; with estimated tokens if the endpoint does not count them."""
        tokens_in, tokens_out = answer.tokens_in, answer.tokens_out
        if not (tokens_in and (tokens_out or not _written(answer))):
            tokens_in = tokens_in or question_tokens(self._counter, question)
            tokens_out = tokens_out or self._counter.count(_written(answer))
            note = f"the endpoint does not count tokens; estimated {tokens_in} in, {tokens_out} out"
            notes = (*answer.notes, note)
            answer = replace(answer, tokens_in=tokens_in, tokens_out=tokens_out, notes=notes)
        price = self._config.price
        return answer if price is None else replace(answer, cost_usd=price.of(*_used(answer)))

    async def _requested(self, question: CompletionRequest, on_delta: OnDelta | None) -> Completion:
        request = self._request(question)
        if self._config.stream:
            request["stream"] = True
            if not self._uses_responses_api:
                request["stream_options"] = {"include_usage": True}
        attempt, failed = 0, 0
        while True:
            response = await self._send(request)
            attempt, failed = attempt + 1, failed + response.retries_taken
            try:
                answer = await self._receive(response, attempt, on_delta)
                return _with_retry_notes(answer, failed, attempt - 1)
            except self._retried:
                if attempt > self._config.retries:
                    raise
            except self._openai.APIError as exc:  # within the stream
                if attempt > self._config.retries or not _is_temporary(exc):
                    raise
            finally:
                await response.http_response.aclose()
            least_s = _retry_after_s(response.headers.get("retry-after"))
            await self._backoff.sleep(self._backoff.after(least_s, attempt - 1))

    async def _receive(
        self,
        response: Any,  # a response of the `openai` package
        attempt: int,
        on_delta: OnDelta | None,
    ) -> Completion:
        """Read the answer, streamed or not. Raises `_IncompleteAnswer` if it ends early."""
        http = response.http_response
        kind = response.headers.get("content-type", "")
        if not self._config.stream or any(whole in kind for whole in _NOT_STREAMED):
            body = bytearray()
            async for part in http.aiter_bytes():
                body += part
                self._check_size(http)
            read = read_response if self._uses_responses_api else read_answer
            return read(json.loads(body))
        notify = on_delta or _ignore
        assembly = (ResponseAssembly if self._uses_responses_api else Assembly)(attempt)
        async with response.parse(to=self._openai.AsyncStream[JsonValue]) as stream:
            async for chunk in stream:
                for delta in assembly.add(chunk):
                    notify(delta)
                self._check_size(http)
        if not assembly.is_complete:
            raise _IncompleteAnswer("interrupted its answer in every attempt")
        return assembly.answer()

    def _check_size(self, http: Any) -> None:  # a response of httpx or httpx2
        if http.num_bytes_downloaded > self._max_answer:
            raise UnreadableResponse(f"sent more than {self._max_answer:,} bytes for one answer")

    async def _send(self, request: Request) -> Any:  # a response of the `openai` package
        """Post the request as it is: the client's `create` functions convert it by type first, and
        search it for files, which takes as long as the rest of the processing.
        """
        body = {**request, **request.get("extra_body", {})}
        headers = body.pop("extra_headers", {}) | _RAW
        body.pop("extra_body", None)
        return await self._client.post(
            "/responses" if self._uses_responses_api else "/chat/completions",
            cast_to=object,
            body=body,
            options={"headers": headers},
            stream=True,  # read here, up to a size
            stream_cls=self._openai.AsyncStream[JsonValue],
        )

    def _request(self, question: CompletionRequest) -> Request:
        config = self._config
        if question.settings is not None:
            config = config.with_settings(question.settings)
        build = responses_request if config.api == "responses" else chat_request
        return build(config, question, self._tool_list(question.tools))

    def _tool_list(self, tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
        if self._tools[0] != tools:  # fast for identical objects
            self._tools = (tools, [tool_of(tool, self._config) for tool in tools])
        return self._tools[1]

    # Errors -------------------------------------------------------------------------------------

    @property
    def _endpoint(self) -> str:
        return f"the model endpoint {self.address}"

    @property
    def _tries(self) -> str:
        count = self._config.retries + 1
        return "1 attempt" if count == 1 else f"{count} attempts"

    def _describe(self, exc: Exception) -> str:
        """One sentence without secrets: the endpoint, the failure, and what to do about it."""
        key, tries = f"models.{self._label}", self._tries
        if isinstance(exc, self._late):
            what = f"did not answer within {self._config.timeout:g} s ({tries})"
            advice = f"raise {key}.timeout, lower {key}.max_output_tokens or use a faster model"
            return f"{self._endpoint} {what}; {advice}"
        if isinstance(exc, self._lost):
            cause = self._short_message(exc.__cause__ or exc)
            what = f"cannot be reached or closed the connection ({tries}: {cause})"
            return f"{self._endpoint} {what}; is the server running and {key}.base_url right?"
        if isinstance(exc, self._openai.APIStatusError):
            return f"{self._endpoint} {self._describe_status(exc, key)}"
        return f"{self._endpoint} failed: {self._short_message(exc)}"

    def _refuses(self, exc: Exception, detects: Callable[[str], bool]) -> bool:
        """Whether the endpoint rejects a feature, which `detects` recognizes by the message."""
        if not isinstance(exc, self._openai.APIStatusError):
            return False
        if exc.status_code not in _REFUSALS:
            return False
        return detects(error_message(exc.body, exc.message))

    def _short_message(self, exc: BaseException) -> str:
        """The beginning of the error message, on one line."""
        message = str(exc) or type(exc).__name__
        if isinstance(exc, self._openai.APIStatusError):
            message = error_message(exc.body, exc.message) or "no reason given"
        return " ".join(reveal(self._redacted(message)).split())[:300]

    def _describe_status(self, exc: APIStatusError, key: str) -> str:
        status = exc.status_code
        if status == 401:
            return f"refused the API key (401); set {key}.api_key"
        if status == 403:
            message = self._short_message(exc)
            return f"refused the API key or the request (403): {message}; check {key}.api_key"
        if status == 404:
            return f"has no model {self._config.model!r} (404); check {key}.model and .base_url"
        if status == 402 or exc.code == _QUOTA_USED_UP:
            what = f"refused the request: no credit left ({status}): {self._short_message(exc)}"
            return f"{what}; add credit, or check {key}.api_key"
        if status == 429:
            message = self._short_message(exc)
            return f"refused the request: rate limit or quota exceeded (429): {message}; try later"
        if status >= 500:
            return f"failed ({status}) after {self._tries}: {self._short_message(exc)}"
        hint = ""
        if "tool_choice" in exc.message and self._config.tool_choice == "required":
            hint = f"; set {key}.tool_choice to auto"
        elif _TOO_LONG.search(exc.message[:_MAX_SEARCHED]):
            hint = f"; set {key}.context_window to the model's window, and prompts are cut to fit"
        elif self._refuses(exc, refuses_tools):
            hint = f"; set {key}.dialect to tool_call"
        return f"refused the request ({status}): {self._short_message(exc)}{hint}"


_REFUSALS = frozenset({400, 404, 405, 422, 500, 501})
"""Status codes that servers return for unsupported features; llama.cpp returns 500."""

_QUOTA_USED_UP = "insufficient_quota"
"""OpenAI's code for an account without credit, with status 429."""

_NOT_STREAMED = ("application/json", "text/html")
"""Content types of a response that is not streamed although that was requested: an answer, or the
page of a server that is not the endpoint."""


class _IncompleteAnswer(Exception):
    """The endpoint's answer is incomplete."""


def _is_temporary(error: APIError) -> bool:
    """Whether an error within a stream has the code or type of a failure that is retried."""
    code = str(error.code or "")
    if code.isdecimal():
        return int(code) >= 500 or int(code) in (408, 429)
    return bool({code, error.type} & _TEMPORARY)


_TEMPORARY = {"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error"}
"""Names of OpenAI and Anthropic."""


def _retry_after_s(header: str | None) -> float:
    """The seconds in a Retry-After header; 0 if absent, too long, or a date, which is rare."""
    try:
        seconds = float(header or 0)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds <= _MAX_RETRY_AFTER_S else 0.0


def _drop_nulls(tool: ToolSpec, arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments  # validation of the call reports it
    return json.dumps(without_nulls(tool.offered, given), ensure_ascii=False)


def _written(answer: Completion) -> str:
    """All text in an answer."""
    calls = (part for call in answer.calls for part in (call.name, call.arguments))
    return "\n".join(filter(None, (answer.reasoning, answer.text, *calls)))


def _used(answer: Completion) -> tuple[int, int, int]:
    return answer.tokens_in, answer.tokens_out, answer.tokens_cached


def _with_retry_notes(answer: Completion, failed: int, interrupted: int = 0) -> Completion:
    """The answer with notes on how often it was requested again."""
    notes = list(answer.notes)
    if failed:
        notes.append(f"the request failed temporarily and was retried ({failed} times)")
    if interrupted:
        notes.append(f"the answer was interrupted and requested again ({interrupted} times)")
    return replace(answer, notes=tuple(notes))


def _ignore(delta: Delta) -> None:
    pass
