"""Memories: values that a participant stores under keys for later, private to it."""

from __future__ import annotations

from functools import partial

from pydantic_core import to_json

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit, operation, over_limit, too_large
from hubbub.network.caller import Caller
from hubbub.network.queries import MemoriesOf, MemoryValue
from hubbub.network.records import MemoryDeleted, MemoryWritten, Record
from hubbub.network.service import Service
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.memory import Forget, MemoryEntry, Recall, Recalled, Remember
from hubbub.protocol.operations import Done
from hubbub.wording import near

__all__ = ["MemoryService"]

MAX_KEYS = 256
"""Keys per participant."""
MAX_BYTES = 16 * 1024
"""Bytes of a value as JSON."""
SHORT_BYTES = 256
"""Bytes of a value that is listed with its key."""


class MemoryService(Service):
    """Stores each participant's own memories."""

    @operation(permission="write", output=Done)
    def remember(self, call: Caller, args: Remember) -> Commit[Record]:
        """Remember something beyond this conversation, under a key: facts, preferences, progress.
        It replaces the key's old value. No one else sees it."""
        value = to_json(args.value)
        if len(value) > MAX_BYTES:
            raise too_large(
                f"value: at most {MAX_BYTES} bytes of JSON per key, this has {len(value)}"
            )
        keys = self.state.memories.of(call.participant)
        if args.key not in keys and len(keys) >= MAX_KEYS:
            raise over_limit(f"you have {MAX_KEYS} keys, the maximum: forget one first")
        return self._change(MemoryWritten(call.participant, args.key, value.decode()))

    @operation(permission="write", output=Done)
    def forget(self, call: Caller, args: Forget) -> Commit[Record]:
        """Forget what you remembered under a key."""
        if args.key not in self.state.memories.of(call.participant):
            raise self._unknown(call, args.key)
        return self._change(MemoryDeleted(call.participant, args.key))

    @operation()
    async def recall(self, call: Caller, args: Recall) -> Recalled:
        """Recall what you remembered under a key. Without a key: all your keys, with their values
        if short."""
        store, me = self.store, call.participant
        if args.key is None:
            rows = await store.read(MemoriesOf(me, SHORT_BYTES))
            return Recalled(entries=tuple(MemoryEntry.of(*row) for row in rows))
        value = await store.read(MemoryValue(me, args.key))
        if value is None:
            raise self._unknown(call, args.key)
        return Recalled.of(args.key, value)

    def _change(self, record: MemoryWritten | MemoryDeleted) -> Commit[Record]:
        keys = self.state.memories
        change = record.participant, record.key, isinstance(record, MemoryWritten)
        keys.announce(*change)
        return Commit([record], Done(), partial(keys.put, *change), partial(keys.withdraw, *change))

    def _unknown(self, call: Caller, key: str) -> OperationError:
        similar = list(near(key, self.state.memories.of(call.participant), 3, 0.4))
        hint = f"; did you mean {similar[0]}?" if similar else ""
        text = f"you remember nothing under {key!r}{hint}"
        details = {"near": similar} if similar else None
        return OperationError(ErrorCode.UNKNOWN_KEY, text, details=details)
