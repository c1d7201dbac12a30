"""A2A's two HTTP bindings: parses requests and encodes responses.

JSON-RPC names the method in the body, REST by verb and path. Parameters and results are the same in
both, and are read and written by the SDK's types.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast
from urllib.parse import parse_qsl, unquote

import msgspec
from a2a.types import (
    CancelTaskRequest,
    ContentTypeNotSupportedError,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    InvalidParamsError,
    InvalidRequestError,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    ListTasksResponse,
    MethodNotFoundError,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.error_handlers import build_error_details, build_rest_error_payload
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, A2AError, JSONParseError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from pydantic import JsonValue

__all__ = ["STREAMING_METHODS", "Binding", "JsonRpc", "Rest"]

Body: TypeAlias = dict[str, JsonValue]
METHODS: Mapping[str, Callable[[], Message]] = {
    "SendMessage": SendMessageRequest,
    "SendStreamingMessage": SendMessageRequest,
    "GetTask": GetTaskRequest,
    "ListTasks": ListTasksRequest,
    "CancelTask": CancelTaskRequest,
    "SubscribeToTask": SubscribeToTaskRequest,
    "CreateTaskPushNotificationConfig": TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": GetTaskPushNotificationConfigRequest,
    "ListTaskPushNotificationConfigs": ListTaskPushNotificationConfigsRequest,
    "DeleteTaskPushNotificationConfig": DeleteTaskPushNotificationConfigRequest,
    "GetExtendedAgentCard": GetExtendedAgentCardRequest,
}
_BOOLEANS: Mapping[str, JsonValue] = {"true": True, "false": False}
STREAMING_METHODS = frozenset({"SendStreamingMessage", "SubscribeToTask"})
"""Methods whose response is a stream."""
_TASK, _CONFIGS = r"/tasks/(?P<id>[^/:]+)", r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_ROUTES = tuple(
    (verb, re.compile(path), method)
    for verb, path, method in (
        ("POST", r"/message:send", "SendMessage"),
        ("POST", r"/message:stream", "SendStreamingMessage"),
        ("GET", r"/tasks", "ListTasks"),
        ("GET", _TASK, "GetTask"),
        ("POST", _TASK + ":cancel", "CancelTask"),
        ("GET", _TASK + ":subscribe", "SubscribeToTask"),
        ("POST", _TASK + ":subscribe", "SubscribeToTask"),
        ("POST", _CONFIGS, "CreateTaskPushNotificationConfig"),
        ("GET", _CONFIGS, "ListTaskPushNotificationConfigs"),
        ("GET", _CONFIGS + r"/(?P<id>[^/]+)", "GetTaskPushNotificationConfig"),
        ("DELETE", _CONFIGS + r"/(?P<id>[^/]+)", "DeleteTaskPushNotificationConfig"),
        ("GET", r"/extendedAgentCard", "GetExtendedAgentCard"),
    )
)


class Binding(ABC):
    """One request in one of the bindings. `read` sets `method` and `params`."""

    method = ""
    params: Message

    @abstractmethod
    def read(self, body: bytes) -> None:
        """Parse the request. Raises `A2AError`."""

    @abstractmethod
    def answer(self, value: Message | None) -> Body:
        """The body of a response, or of one event of a stream."""

    @abstractmethod
    def error(self, error: A2AError) -> tuple[int, Body]:
        """The status and body of an error response."""

    def _set(self, method: str, value: JsonValue) -> None:
        params = METHODS[method]()
        try:
            ParseDict(value, params, ignore_unknown_fields=True)
        except (
            ParseError,
            AttributeError,
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
        ) as error:
            raise InvalidParamsError(f"params: {str(error)[:300]}") from None
        validate_proto_required_fields(params)
        if getattr(getattr(params, "configuration", params), "history_length", 0) < 0:
            raise InvalidParamsError("historyLength: 0 or more")
        self.method, self.params = method, params


class JsonRpc(Binding):
    """The method is in the body."""

    _id: str | int | None = None

    def read(self, body: bytes) -> None:
        request = _json(body)
        if not isinstance(request, dict):
            raise InvalidRequestError("a request is an object; batches are not supported")
        id, method = request.get("id"), request.get("method")
        if isinstance(id, str | int) and not isinstance(id, bool):
            self._id = id
        elif id is not None:
            raise InvalidRequestError("id: must be a string or an integer")
        if request.get("jsonrpc") != "2.0":
            raise InvalidRequestError('jsonrpc: must be "2.0"')
        if not isinstance(method, str) or not method:
            raise InvalidRequestError("method: must be a string")
        if method not in METHODS:
            raise MethodNotFoundError(f"there is no method {method[:64]!r}")
        self._set(method, request.get("params", {}))

    def answer(self, value: Message | None) -> Body:
        return {"jsonrpc": "2.0", "id": self._id, "result": _plain(value)}

    def error(self, error: A2AError) -> tuple[int, Body]:
        failure = {
            "code": JSON_RPC_ERROR_CODE_MAP.get(type(error), -32603),
            "message": str(error),
            "data": build_error_details(error),
        }
        return 200, cast(Body, {"jsonrpc": "2.0", "id": self._id, "error": failure})


class Rest(Binding):
    """The method is verb and path."""

    def __init__(self, verb: str, path: str, query: str):
        self._verb, self._path, self._query = verb, path, query

    def read(self, body: bytes) -> None:
        for verb, path, method in _ROUTES:
            match = path.fullmatch(self._path)
            if verb == self._verb and match is not None:
                named = {key: unquote(value) for key, value in match.groupdict().items()}
                params: JsonValue = (
                    dict(parse_qsl(self._query)) if verb == "GET" else _json(body or b"{}")
                )
                if not isinstance(params, dict):
                    raise InvalidRequestError("a request is an object")
                if verb == "GET":  # all strings: the types parse numbers in them, but no booleans
                    params = {k: _BOOLEANS.get(str(v), v) for k, v in params.items()}
                self._set(method, {**params, **named})
                return
        raise MethodNotFoundError(f"there is no {self._verb} {self._path[:100]}")

    def answer(self, value: Message | None) -> Body:
        return _plain(value) or {}

    def error(self, error: A2AError) -> tuple[int, Body]:
        if isinstance(error, JSONParseError):
            error = InvalidRequestError(error.message)
        payload = build_rest_error_payload(error)
        if isinstance(error, ContentTypeNotSupportedError):
            payload["error"]["code"] = 415  # as in the specification; the SDK has 400
        return int(payload["error"]["code"]), cast(Body, payload)


def _json(body: bytes) -> JsonValue:
    try:
        return cast(JsonValue, msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise JSONParseError("the body is not JSON") from None


def _plain(value: Message | None) -> Body | None:
    if value is None:
        return None
    is_list = isinstance(value, ListTasksResponse)  # which includes empty fields
    plain = MessageToDict(value, always_print_fields_with_no_presence=is_list)
    if isinstance(value, ListTasksResponse):
        plain["tasks"] = [MessageToDict(task) for task in value.tasks]
    return cast(Body, plain)
