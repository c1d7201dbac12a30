"""Assembles answers that arrive in chunks. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion, Delta
from hubbub.agents.models.responses import (
    NO_FUNCTION,
    Object,
    UnreadableResponse,
    arguments_of,
    calls_of,
    choice_of,
    function_of,
    read_response,
    reason_of,
    reasoning_of,
    string_of,
    text_of,
    token_usage,
)

__all__ = ["Assembly", "ResponseAssembly"]


@dataclass(slots=True)
class _PartialCall:
    """A call that arrives piece by piece: the `n`th of the answer."""

    n: int
    index: JsonValue
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, piece: _CallDelta) -> None:
        self.id = self.id or piece.id
        self.name = self.name or piece.name
        self.arguments.append(piece.arguments)

    def is_over(self, piece: _CallDelta) -> bool:
        """Whether the piece, which has the index of this call, starts another one.

        Some endpoints give all calls the same index, or none; some repeat the name with every
        piece, some invent an id for every piece.
        """
        if piece.id and self.id:
            return piece.id != self.id and bool(piece.name or not piece.arguments)
        return bool(self.name and piece.name and piece.arguments) and self._whole()

    def _whole(self) -> bool:
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False

    def made(self) -> CallRequest:
        return CallRequest(self.id, self.name, "".join(self.arguments))


@dataclass(frozen=True, slots=True)
class _CallDelta:
    """A piece of a call."""

    index: int | None
    """Its index, if the endpoint gives one."""
    id: str
    name: str
    arguments: str

    @classmethod
    def read(cls, given: JsonValue) -> _CallDelta:
        if not isinstance(given, dict):
            raise UnreadableResponse(NO_FUNCTION)
        function = function_of(given) or {}
        index = given.get("index")
        return cls(
            index=index if isinstance(index, int) else None,
            id=string_of(given.get("id")),
            name=string_of(function.get("name")),
            arguments=arguments_of(function),
        )


class Assembly:
    """One answer. `attempt` counts the requests for it."""

    def __init__(self, attempt: int = 1):
        self.over = False
        """Whether the endpoint has sent a finish reason: otherwise the answer was interrupted."""
        self._attempt = attempt
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_PartialCall] = []
        self._used = 0, 0
        self._reason: str | None = None

    def add(self, chunk: JsonValue) -> list[Delta]:
        """Take in a chunk; an empty one does no harm. Raises `UnreadableResponse`."""
        if not isinstance(chunk, dict):
            return []
        self._count(chunk)
        choice = choice_of(chunk)
        if choice is None:
            return []
        self.over = self.over or choice.get("finish_reason") is not None
        self._reason = reason_of(choice) or self._reason
        delta = choice.get("delta")
        return self._add_delta(delta) if isinstance(delta, dict) else []

    def answer(self) -> Completion:
        """The complete answer; tokens that are not counted are 0."""
        tokens_in, tokens_out = self._used
        return Completion(
            text="".join(self._text) or None,
            calls=tuple(call.made() for call in self._calls),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            finish_reason=self._reason,
            reasoning="".join(self._thoughts) or None,
        )

    def _count(self, chunk: Object) -> None:
        """The last count is used: some endpoints count as they go."""
        before, now = self._used, token_usage(chunk)
        self._used = now[0] or before[0], now[1] or before[1]

    def _add_delta(self, delta: Object) -> list[Delta]:
        text = text_of(delta)
        self._text.append(text)
        self._thoughts.append(reasoning_of(delta))
        deltas = [Delta(text, attempt=self._attempt)] if text else []
        for given in calls_of(delta):
            piece = _CallDelta.read(given)
            call = self._call(piece)
            call.add(piece)
            deltas.append(Delta(piece.arguments, call.n, call.name, self._attempt))
        return deltas

    def _call(self, piece: _CallDelta) -> _PartialCall:
        """The call that the piece belongs to, or starts."""
        call = self._at(piece)
        if call is None or call.is_over(piece):
            call = _PartialCall(len(self._calls), piece.index, piece.id)
            self._calls.append(call)
        return call

    def _at(self, piece: _CallDelta) -> _PartialCall | None:
        """The last call with the piece's index, else with its id, else the last one."""
        if piece.index is not None:
            return next((c for c in reversed(self._calls) if c.index == piece.index), None)
        same = (c for c in reversed(self._calls) if piece.id and c.id == piece.id)
        return next(same, self._calls[-1] if self._calls else None)


class ResponseAssembly:
    """One answer of the Responses API, which sends the complete response at the end."""

    def __init__(self, attempt: int = 1):
        self.over = False
        """Whether the complete response has arrived: otherwise the answer was interrupted."""
        self._attempt = attempt
        self._calls: dict[str, tuple[int, str]] = {}
        """By their index in the output: number among the calls, and tool."""
        self._answer = Completion()

    def add(self, event: JsonValue) -> list[Delta]:
        """Take in an event. Raises `UnreadableResponse`."""
        match event:
            case {"type": "response.output_item.added", "output_index": place, "item": dict(item)}:
                if item.get("type") == "function_call":
                    self._calls[str(place)] = len(self._calls), string_of(item.get("name"))
            case {"type": "response.output_text.delta", "delta": str(text)}:
                return [Delta(text, attempt=self._attempt)]
            case {
                "type": "response.function_call_arguments.delta",
                "output_index": place,
                "delta": str(text),
            } if str(place) in self._calls:
                n, name = self._calls[str(place)]
                return [Delta(text, n, name, self._attempt)]
            case {
                "type": "response.completed" | "response.incomplete" | "response.failed",
                "response": response,
            }:
                self._answer, self.over = read_response(response), True
            case {"type": "error"}:
                read_response({"error": event})
        return []

    def answer(self) -> Completion:
        """The complete answer; tokens that are not counted are 0."""
        return self._answer
