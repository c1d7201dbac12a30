"""Encodes answers as chat completions and as responses, whole or streamed."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import count

import msgspec
from pydantic import JsonValue

from hubbub.interop.asking.question import Question, QuestionFailed
from hubbub.protocol.external_tools import ExternalCall

__all__ = ["ChatReply", "OpenAIReply", "ResponsesReply", "error_body", "model"]

Body = dict[str, JsonValue]
COST = "cost"
"""Field of `usage`: US dollars, if the price is known."""


def model(name: str, description: str) -> Body:
    """An agent as an entry of the list of models."""
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "hubbub",
        "description": description,
    }


def error_body(failure: QuestionFailed) -> Body:
    """A failure as an error of the OpenAI API."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = "server_error" if failure.status >= 500 else "invalid_request_error"
    code = "invalid_api_key" if failure.status == 401 else failure.code
    error: Body = {
        "message": failure.message,
        "type": kinds.get(failure.status, kind),
        "param": "model" if code == "model_not_found" else None,
        "code": code,
    }
    return {"error": error}


class OpenAIReply(ABC):
    """The answer to one question. Methods that stream yield server-sent events."""

    def __init__(self, question: Question, created: int):
        self._question, self._created = question, created
        self._streamed, self._calls, self._state = "", 0, ""

    @abstractmethod
    def whole(self) -> Body:
        """The complete answer."""

    @abstractmethod
    def begin(self) -> Iterator[bytes]:
        """The first events, before any text."""

    @abstractmethod
    def end(self) -> Iterator[bytes]:
        """The last events of a complete answer."""

    @abstractmethod
    def failed(self, failure: QuestionFailed) -> Iterator[bytes]:
        """The last events if there is no complete answer."""

    @abstractmethod
    def _text(self, text: str) -> Iterator[bytes]: ...

    @abstractmethod
    def _call(self, index: int, call: ExternalCall) -> Iterator[bytes]: ...

    @abstractmethod
    def _waits(self, state: str) -> Iterator[bytes]: ...

    def new_events(self) -> Iterator[bytes]:
        """The events since the last call."""
        question = self._question
        if question.state != self._state:
            self._state = question.state
            if self._state:
                yield b": " + " ".join(self._state.split()).encode() + b"\n\n"
                yield from self._waits(self._state)
        written = question.written
        if len(written) > len(self._streamed):
            added, self._streamed = written[len(self._streamed) :], written
            yield from self._text(added)
        for call in question.calls[self._calls :]:
            yield from self._call(self._calls, call)
            self._calls += 1

    @property
    def _finish(self) -> str:
        if self._question.calls:
            return "tool_calls"
        return "length" if self._question.outcome == "max_steps" else "stop"

    @property
    def _id(self) -> str:
        message = self._question.message
        return message.id if message is not None else self._question.key

    @property
    def _tokens(self) -> tuple[int, int, Body]:
        receipt = self._question.receipt
        if receipt is None:
            return 0, 0, {}
        cost: Body = {} if receipt.cost_usd is None else {COST: receipt.cost_usd}
        return receipt.tokens_in or 0, receipt.tokens_out or 0, cost


class ChatReply(OpenAIReply):
    """As `chat.completion`."""

    @property
    def _head(self) -> Body:
        return {
            "id": f"chatcmpl-{self._id}",
            "object": "chat.completion",
            "created": self._created,
            "model": self._question.request.model,
        }

    @property
    def _usage(self) -> Body:
        read, written, cost = self._tokens
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            **cost,
        }

    def whole(self) -> Body:
        question = self._question
        calls = [_chat_call(call) for call in question.calls]
        message: Body = {"role": "assistant", "content": question.text or None, "refusal": None}
        if calls:
            message["tool_calls"] = list[JsonValue](calls)
        choice: Body = {
            "index": 0,
            "message": message,
            "finish_reason": self._finish,
            "logprobs": None,
        }
        return {**self._head, "choices": [choice], "usage": self._usage}

    def _chunk(self, delta: Body, finish: str | None = None, **more: JsonValue) -> bytes:
        choice: Body = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        head: Body = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return _event({**head, **more})

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def _text(self, text: str) -> Iterator[bytes]:
        yield self._chunk({"content": text})

    def _call(self, index: int, call: ExternalCall) -> Iterator[bytes]:
        yield self._chunk({"tool_calls": [{"index": index, **_chat_call(call)}]})

    def _waits(self, state: str) -> Iterator[bytes]:
        yield self._chunk({}, waits_for=state)

    def end(self) -> Iterator[bytes]:
        yield self._chunk({}, self._finish)
        if self._question.request.include_usage:
            head = {**self._head, "object": "chat.completion.chunk"}
            yield _event({**head, "choices": [], "usage": self._usage})
        yield b"data: [DONE]\n\n"

    def failed(self, failure: QuestionFailed) -> Iterator[bytes]:
        yield _event(error_body(failure))


class ResponsesReply(OpenAIReply):
    """As `response`."""

    def __init__(self, question: Question, created: int):
        super().__init__(question, created)
        self._number = count()
        self._items = 0
        self._open = False

    def _response(self, status: str, **more: JsonValue) -> Body:
        request, done = self._question.request, status == "completed"
        read, written, cost = self._tokens
        usage: Body = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
            **cost,
        }
        return {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": request.model,
            "output": list(self._output) if done else [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "previous_response_id": f"resp_{request.previous}" if request.previous else None,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "usage": usage if done else None,
            **more,
        }

    @property
    def _output(self) -> Iterator[Body]:
        question = self._question
        if question.text:
            yield self._message(question.text, "completed")
        for call in question.calls:
            yield _item(call, "completed")

    def _message(self, text: str | None, status: str) -> Body:
        content: list[JsonValue] = [] if text is None else [_part(text)]
        return {
            "id": f"msg_{self._id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def whole(self) -> Body:
        return self._response("completed")

    def _event(self, type: str, **data: JsonValue) -> bytes:
        event = {"type": type, "sequence_number": next(self._number), **data}
        return f"event: {type}\n".encode() + _event(event)

    def begin(self) -> Iterator[bytes]:
        yield self._event("response.created", response=self._response("in_progress"))

    def _waits(self, state: str) -> Iterator[bytes]:
        response = self._response("in_progress", metadata={"waits_for": state[:512]})
        yield self._event("response.in_progress", response=response)

    @property
    def _location(self) -> dict[str, JsonValue]:
        return {"item_id": f"msg_{self._id}", "output_index": 0, "content_index": 0}

    def _text(self, text: str) -> Iterator[bytes]:
        if not self._open:
            self._open, self._items = True, self._items + 1
            item = self._message(None, "in_progress")
            yield self._event("response.output_item.added", output_index=0, item=item)
            yield self._event("response.content_part.added", **self._location, part=_part(""))
        delta: Body = {"delta": text, "logprobs": []}
        yield self._event("response.output_text.delta", **self._location, **delta)

    def _close(self) -> Iterator[bytes]:
        if self._open:
            text, self._open = self._streamed, False
            done: Body = {"text": text, "logprobs": []}
            yield self._event("response.output_text.done", **self._location, **done)
            yield self._event("response.content_part.done", **self._location, part=_part(text))
            item = self._message(text, "completed")
            yield self._event("response.output_item.done", output_index=0, item=item)

    def _call(self, index: int, call: ExternalCall) -> Iterator[bytes]:
        yield from self._close()
        output_index, self._items = self._items, self._items + 1
        location: Body = {"item_id": _item(call, "")["id"], "output_index": output_index}
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        item: Body = {**_item(call, "in_progress"), "arguments": ""}
        name = "response.function_call_arguments"
        yield self._event("response.output_item.added", output_index=output_index, item=item)
        yield self._event(f"{name}.delta", **location, delta=arguments)
        yield self._event(f"{name}.done", **location, name=call.name, arguments=arguments)
        item = _item(call, "completed")
        yield self._event("response.output_item.done", output_index=output_index, item=item)

    def end(self) -> Iterator[bytes]:
        yield from self._close()
        yield self._event("response.completed", response=self._response("completed"))

    def failed(self, failure: QuestionFailed) -> Iterator[bytes]:
        error: Body = {"code": "server_error", "message": f"{failure.code}: {failure.message}"}
        yield self._event("response.failed", response=self._response("failed", error=error))


def _chat_call(call: ExternalCall) -> Body:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    function: Body = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _item(call: ExternalCall, status: str) -> Body:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": json.dumps(call.arguments, ensure_ascii=False),
        "status": status,
    }


def _part(text: str) -> Body:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _event(data: Mapping[str, JsonValue]) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"
