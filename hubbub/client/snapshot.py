"""The introduction of a client: its token, and the data that `ready` leaves out, schemas and long
lists.

Schemas are cached by their hash for the life of the process. The models of operations are imported
only when needed, as `ready` is enough for most clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from hubbub.client.transport import Wire
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frame_errors import flaw_of
from hubbub.protocol.frames import (
    LONGEST_TOKEN,
    ErrorFrame,
    HubFrame,
    Ready,
    Result,
    hub_frames,
)
from hubbub.protocol.messages import OperationInfo, Participant

__all__ = ["checked_token", "complete", "decode", "forget", "refused"]

_REF = "ready"
"""The ref of these calls; others have numbers."""
_known: dict[str, OperationInfo] = {}
"""Operations with their schemas, by the schemas' hash."""


async def complete(wire: Wire, ready: Ready, *, schemas: bool) -> tuple[Ready, list[HubFrame]]:
    """`ready` with the data it left out, and the frames that arrived meanwhile.

    Raises `OperationError` and `ConnectionLost`.
    """
    asking = _UnsharedCalls(wire)
    more: dict[str, object] = {"left_out": ()}
    if "participants" in ready.left_out:
        more["participants"] = await _everybody(asking)
    if "channels" in ready.left_out:
        from hubbub.protocol.operations import Channels

        more["channels"] = Channels.model_validate(await asking.ask("list_channels")).channels
    if schemas:
        await _learn(asking, ready.operations)
        more["operations"] = tuple(map(_described, ready.operations))
    return ready.model_copy(update=more), asking.early


def forget() -> None:
    """Clear the cache of schemas."""
    _known.clear()


class _UnsharedCalls:
    """Sequential calls on a connection that is not shared yet."""

    def __init__(self, wire: Wire):
        self._wire = wire
        self.early: list[HubFrame] = []

    async def ask(self, name: str, **args: JsonValue) -> JsonValue:
        call = {"op": "call", "ref": _REF, "name": name, "args": args}
        await self._wire.send(to_json(call))
        while True:
            frame = decode(await self._wire.recv())
            if isinstance(frame, Result) and frame.ref == _REF:
                return frame.value
            if isinstance(frame, ErrorFrame) and frame.ref == _REF:
                raise refused(frame)
            if frame is not None:
                self.early.append(frame)


async def _everybody(asking: _UnsharedCalls) -> tuple[Participant, ...]:
    from hubbub.protocol.operations import Participants

    participants: list[Participant] = []
    more = True
    while more:
        after = {"after": participants[-1].id} if participants else {}
        page = Participants.model_validate(await asking.ask("list_participants", **after))
        participants += page.participants
        more = page.more
    return tuple(participants)


async def _learn(asking: _UnsharedCalls, operations: Sequence[OperationInfo]) -> None:
    """Fetch the schemas that no connection of this process has seen."""
    unknown: list[JsonValue] = [
        operation.name
        for operation in operations
        if operation.schemas not in _known and operation.schemas and not operation.input_schema
    ]
    if unknown:
        from hubbub.protocol.operations import OperationSchemas

        value = await asking.ask("describe_operations", names=unknown)
        for operation in OperationSchemas.model_validate(value).operations:
            _known[operation.schemas] = operation


def _described(operation: OperationInfo) -> OperationInfo:
    cached = _known.get(operation.schemas)
    if cached is None:
        return operation
    schemas = {"input_schema": cached.input_schema, "output_schema": cached.output_schema}
    return operation.model_copy(update=schemas)


def decode(data: bytes) -> HubFrame | None:
    """A frame of the hub, or None for an unknown `op`."""
    try:
        return hub_frames.validate_json(data)
    except ValidationError as exc:
        if exc.errors(include_input=False)[0]["type"] == "union_tag_invalid":
            return None
        # The hub would repeat it after every resume, so this client and hub are incompatible.
        raise ConnectionLost(CloseCode.BAD_FRAME, f"unreadable frame from the hub: {exc}") from exc


def refused(error: ErrorFrame) -> OperationError:
    return OperationError(
        error.code,
        error.message,
        temporary=error.temporary,
        retry_after_s=error.retry_after_s,
        details=error.details,
    )


def checked_token(token: str | None) -> str | None:
    """The token. Raises `OperationError` for a text that is none."""
    if token is not None and (len(token) > LONGEST_TOKEN or flaw_of(token)):
        text = f"this is no token: a token is text of at most {LONGEST_TOKEN} characters"
        raise OperationError(ErrorCode.AUTH_FAILED, text)
    return token
