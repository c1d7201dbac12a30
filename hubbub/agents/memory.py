"""What an agent that is a model remembers, as its prompts show it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import JsonValue

from hubbub.agents.prompt.context import quoted, unshown
from hubbub.agents.tools.hub import Caller
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol.memory import Recalled

__all__ = ["MEMORY_TOOLS", "Memory"]

log = get_logger(__name__)

MEMORY_TOOLS = ("remember", "recall", "forget")
_CHANGING = frozenset({"remember", "forget"})
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Memory:
    """Hands an agent's calls on to the hub, and knows what they make it remember.

    Nobody else changes an agent's memory, so it is asked for once for each connection, and again
    after calls that change it. Use it as the `Caller` of the agent's tools.
    """

    def __init__(self, caller: Caller):
        self._caller = caller
        self._changes = 0
        self._known: tuple[object, int, Mapping[str, str]] | None = None

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        """As the caller's. Raises what that raises."""
        try:
            return await self._caller.call(name, cid=cid, cause=cause, **args)
        finally:
            if name in _CHANGING:  # whatever came of it: a call that was given up may have worked
                self._changes += 1

    async def shown(self, connection: object) -> Mapping[str, str]:
        """What a prompt shows of it, by key; `connection` is what changes with every connection.

        Nothing where the hub does not tell: a turn can do without.
        """
        asked = self._changes
        if self._known is not None and self._known[0] is connection and self._known[1] == asked:
            return self._known[2]
        try:
            found = Recalled.model_validate(await self._caller.call("recall"))
        except OperationError as exc:
            log.warning("memory cannot be read", reason=str(exc))
            return _NOTHING
        state = quoted({entry.key: entry.value for entry in found.entries})
        for entry in found.entries:
            if entry.long:
                state[entry.key] = unshown(entry.key, entry.size)
        self._known = (connection, asked, state)
        return state
