"""The hub's operations as tools: made from what `ready` tells of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.agents.tools.compact import compact
from hubbub.agents.tools.schema import without_titles
from hubbub.errors import OperationError
from hubbub.protocol.messages import OperationInfo, Permission

__all__ = ["Caller", "HubTool", "refused", "speaks"]


class Caller(Protocol):
    """What a hub tool needs: `hubbub.agents.turn.voice.Voice`."""

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue: ...


class HubTool:
    """One operation of the hub or of a mod.

    Who caused a message and its `cid` are not the model's business: they are filled in here.
    """

    confirm = False
    timeout = None

    def __init__(self, operation: OperationInfo, caller: Caller, me: str):
        self._caller, self._me = caller, me
        self.speaks = speaks(operation)
        self.permission: Permission = operation.permission
        self.ordered = operation.permission != "read"
        self.idempotent = True  # a read, or a write with a cid
        schema = _without_cause(operation.input_schema)
        self.spec = ToolSpec(operation.name, operation.description, schema)

    @property
    def name(self) -> str:
        return self.spec.name

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Call the operation. A write of a repeated turn that was made already counts as made."""
        args = dict(arguments)
        args.pop("cause", None)
        if "cid" in args:
            raise ToolFailed("there is no argument cid", error="invalid_arguments", retry=True)
        cid, cause = site.cid if self.ordered else None, site.turn if self.speaks else None
        try:
            value = await self._caller.call(self.name, cid=cid, cause=cause, **args)
        except OperationError as exc:
            raise refused(exc) from exc
        return json.dumps(compact(value, self._me), ensure_ascii=False)


def speaks(operation: OperationInfo) -> bool:
    """Whether a call of the operation sends a message: only those have a cause."""
    properties = operation.input_schema.get("properties")
    return isinstance(properties, dict) and "cause" in properties


def refused(exc: OperationError) -> ToolFailed:
    """What a model is told when the hub refuses what its call wants."""
    near = exc.details.get("near")
    return ToolFailed(
        exc.message,
        error=exc.code,
        retry=exc.temporary,
        near=[str(name) for name in near] if isinstance(near, list) else (),
    )


def _without_cause(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    slim = without_titles(schema)
    properties = slim.get("properties")
    if isinstance(properties, dict):
        slim["properties"] = {k: v for k, v in properties.items() if k != "cause"}
    return slim
