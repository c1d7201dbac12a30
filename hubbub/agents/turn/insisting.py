"""Calls that are made until the hub does them, or refuses for good."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.client import Client
from hubbub.client.backoff import Backoff
from hubbub.errors import OperationError

__all__ = ["insist"]


async def insist(
    client: Client, name: str, args: Mapping[str, JsonValue], backoff: Backoff
) -> JsonValue:
    """The answer; `backoff` has the pauses after what was refused for now. Raises `OperationError`
    for what is refused for good, and `ConnectionLost`.
    """
    attempt = 0
    while True:
        try:
            return await client.post(name, cid=None, **args)
        except OperationError as exc:
            if not exc.temporary:
                raise
            await backoff.sleep(backoff.after(exc.retry_after_s or 0, attempt))
        attempt += 1
