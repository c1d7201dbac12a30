"""Loaded into the kit by pytest: adds a token to its requests, and the scenario to its messages.

The kit names each scenario in the prefix of a message's id, which a hub does not pass on. This
plugin adds the id as a link, too, which the agent reads as an attachment. The kit also gives many
messages the same id, which for a hub would be one message and one task.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import httpx

SCENARIO = "https://kit.example.org/"
_NUMBERS = count()


def pytest_configure() -> None:
    httpx.Client.build_request = _with_scenario(httpx.Client.build_request)  # type: ignore[method-assign]


def _with_scenario(build: Callable[..., httpx.Request]) -> Callable[..., httpx.Request]:
    def build_request(self: httpx.Client, *args: Any, **more: Any) -> httpx.Request:
        body = more.get("json")
        if isinstance(body, dict):
            params = body.get("params", body)
            message = params.get("message") if isinstance(params, dict) else None
            if isinstance(message, dict) and message.get("messageId") and message.get("parts"):
                id = f"{message['messageId']}-{next(_NUMBERS)}"
                parts = [*message["parts"], {"url": f"{SCENARIO}{id}"}]
                params["message"] = {**message, "messageId": id, "parts": parts}
        request = build(self, *args, **more)
        request.headers.setdefault("authorization", "Bearer ann")
        return request

    return build_request
