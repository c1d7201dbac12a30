"""What a participant wants to know next time: kept under keys, for it alone."""

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

MOST_KEYS = 256
"""Keys of one participant."""
MOST_BYTES = 16 * 1024
"""Bytes of a value as JSON."""
SHORT_BYTES = 256
"""Bytes of a value that is told with its key."""


class MemoryService(Service):
    """What participants remember, each for itself."""

    @operation(permission="write", output=Done)
    def remember(self, call: Caller, args: Remember) -> Commit[Record]:
        """Remember something beyond this conversation, under a key: facts, preferences, where you
        stand. It replaces what the key held. Nobody else sees it."""
        value = to_json(args.value)
        if len(value) > MOST_BYTES:
            raise too_large(
                f"value: {len(value)} bytes of JSON, and at most {MOST_BYTES} are kept under a key"
            )
        keys = self.state.memories.of(call.participant)
        if args.key not in keys and len(keys) >= MOST_KEYS:
            raise over_limit(f"you remember {MOST_KEYS} keys, which is the most: forget one first")
        return self._change(MemoryWritten(call.participant, args.key, value.decode()))

    @operation(permission="write", output=Done)
    def forget(self, call: Caller, args: Forget) -> Commit[Record]:
        """Forget what you have remembered under a key."""
        if args.key not in self.state.memories.of(call.participant):
            raise self._unknown(call, args.key)
        return self._change(MemoryDeleted(call.participant, args.key))

    @operation()
    async def recall(self, call: Caller, args: Recall) -> Recalled:
        """Recall what you have remembered under a key. Without a key: all your keys, with the
        values that are short."""
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
        found = list(near(key, self.state.memories.of(call.participant), 3, 0.4))
        hint = f"; did you mean {found[0]}?" if found else ""
        text, details = (
            f"you remember nothing under {key!r}{hint}",
            {"near": found} if found else None,
        )
        return OperationError(ErrorCode.UNKNOWN_KEY, text, details=details)
