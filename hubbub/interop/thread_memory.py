"""What an agent remembers of its threads, at the hub, under one key of its own memory: wherever it
is started anew, it goes on with what it knows.
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
_MOST = 100
"""Threads that are remembered: the latest ones."""

log = get_logger(__name__)


class ThreadMemory(Generic[Value]):
    """Something of the type `kind` for each thread, as `key` of the agent's memory."""

    def __init__(self, client: Client, key: str, kind: type[Value]):
        self._client, self._key = client, key
        self._adapter: TypeAdapter[dict[str, Value]] = TypeAdapter(dict[str, kind])  # type: ignore[valid-type]
        self._known: dict[str, Value] | None = None

    async def of(self, thread: str) -> Value | None:
        """What is known; None: nothing."""
        return (await self._memory()).get(thread)

    async def keep(self, thread: str, value: Value) -> None:
        """For the next turn, in whichever process. What the hub refuses is forgotten here, too."""
        memory = dict(await self._memory())
        before = memory.pop(thread, None)
        memory[thread] = value
        self._known = dict(list(memory.items())[-_MOST:])
        if before != value:
            with contextlib.suppress(OperationError):
                told = {thread: each.model_dump() for thread, each in self._known.items()}
                await self._client.call("remember", key=self._key, value=told)

    async def _memory(self) -> Mapping[str, Value]:
        if self._known is None:
            self._known = await self._recalled()
        return self._known

    async def _recalled(self) -> dict[str, Value]:
        try:
            value = await self._client.call("recall", key=self._key)
            return self._adapter.validate_python(Recalled.model_validate(value).value)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_KEY:
                log.warning("threads cannot be recalled", key=self._key, reason=str(exc))
        except ValidationError as exc:
            log.warning("threads cannot be recalled", key=self._key, reason=str(exc))
        return {}
