"""Per-thread values of an agent, stored at the hub under one key of its memory, so that they
survive a restart on any machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.memory import Recalled

__all__ = ["ThreadMemory"]

Value = TypeVar("Value", bound=BaseModel)
_MAX = 100
"""Threads to remember: the latest ones."""

log = get_logger(__name__)


class ThreadMemory(Generic[Value]):
    """A value of type `kind` for each thread, stored under `key` of the agent's memory."""

    def __init__(self, client: Client, key: str, kind: type[Value]):
        self._client, self._key = client, key
        self._adapter: TypeAdapter[dict[str, Value]] = TypeAdapter(dict[str, kind])  # type: ignore[valid-type]
        self._values: dict[str, Value] | None = None

    async def get(self, thread: str) -> Value | None:
        return (await self._load()).get(thread)

    async def set(self, thread: str, value: Value) -> None:
        """Store the value for later turns, in any process. If the hub refuses the write, the value
        lasts only as long as this process."""
        values = dict(await self._load())
        before = values.pop(thread, None)
        values[thread] = value
        self._values = dict(list(values.items())[-_MAX:])
        if before != value:
            with contextlib.suppress(OperationError):
                stored = {thread: each.model_dump() for thread, each in self._values.items()}
                await self._client.call("remember", key=self._key, value=stored)

    async def _load(self) -> Mapping[str, Value]:
        if self._values is None:
            self._values = await self._recall()
        return self._values

    async def _recall(self) -> dict[str, Value]:
        try:
            value = await self._client.call("recall", key=self._key)
            return self._adapter.validate_python(Recalled.model_validate(value).value)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_KEY:
                log.warning("threads cannot be recalled", key=self._key, reason=str(exc))
        except ValidationError as exc:
            log.warning("threads cannot be recalled", key=self._key, reason=str(exc))
        return {}
