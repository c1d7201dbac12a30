"""Operations: what a participant may ask of the hub, each declared once.

    @operation(permission="write")
    def post_to_channel(call: Calling, args: PostToChannel) -> Draft:
        '''Post a text message to a channel you are a member of.'''

From the declaration come the wire call, the agents' tool, the CLI's help and the reference page.
The docstring's first paragraph is the description that models read. Core and mods declare theirs
the same way. What a handler writes (`Statement`) and raises (`bad_request`) is here, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Generic, NamedTuple, Protocol, get_type_hints

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from typing_extensions import TypeVar

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Kind, OperationInfo, Permission
from hubbub.protocol.operations import Input

__all__ = [
    "Calling",
    "Commit",
    "Operation",
    "Statement",
    "Value",
    "answer_schema",
    "bad_request",
    "conflict",
    "forbidden",
    "model_key",
    "not_found",
    "operation",
    "over_limit",
    "too_large",
]


def _refusal(code: ErrorCode) -> Callable[..., OperationError]:
    def refusal(text: str, **details: object) -> OperationError:
        return OperationError(code, text, details=details)

    return refusal


bad_request = _refusal(ErrorCode.BAD_REQUEST)
"""The arguments are wrong."""
conflict = _refusal(ErrorCode.CONFLICT)
"""It was changed meanwhile, or is not in a state for that."""
forbidden = _refusal(ErrorCode.FORBIDDEN)
"""The caller may not do that."""
not_found = _refusal(ErrorCode.NOT_FOUND)
"""There is none, for the caller."""
over_limit = _refusal(ErrorCode.LIMIT)
"""There are as many as there may be."""
too_large = _refusal(ErrorCode.TOO_LARGE)
"""It has more bytes, characters or lines than it may."""


Value = str | bytes | int | float | None
"""What SQLite keeps."""


class Statement(NamedTuple):
    """One statement on tables of the mod."""

    sql: str
    values: Sequence[Value] = ()
    rows: int | None = None
    """How many rows it must change; another number is a conflict, and nothing of what belongs
    together is written. None: any."""


R = TypeVar("R", default=Statement)


class Calling(Protocol):
    """Who calls, and with what: the first parameter of every handler."""

    @property
    def participant(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def owner(self) -> bool:
        """Whether it is an owner of the network."""
        ...


@dataclass(slots=True)
class Commit(Generic[R]):
    """A handler's answer that says: write these records, all or none of them, then answer this.

    It is handed to the log before the next frame of the same socket is read, so writes keep the
    order in which they were asked for. Nothing of it holds before it is durable: where it cannot be
    written there is nothing to undo.
    """

    records: Sequence[R] | Callable[[int], Sequence[R]]
    """Statements on tables of the mod, or what the hub itself keeps. A function is called when the
    batch is formed, with the last position of the log before it."""
    answer: BaseModel | Callable[[], Coroutine[Any, Any, BaseModel]]
    """The output, or what makes it after the commit."""
    applied: Callable[[], None] | None = None
    """Called when it is durable: takes it over into memory."""
    released: Callable[[], None] | None = None
    """Called in the end, durable or not: gives back what was held meanwhile."""
    messages: Sequence[Draft] = ()
    """Said when it is durable. One that is refused undoes nothing."""
    conflict: OperationError | None = None
    """What is answered when a statement changed other than its `rows`; left out: the error
    `conflict`, which says to read again."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A declared operation.

    `handler(call, args)` returns the output, a `Commit`, a `Draft` (to be said, and answered with
    its place in the log), or a coroutine of one of them. It raises `OperationError` to refuse.

    `idempotent` says that repeating the call changes nothing, so that its `cid` need not be stored.
    `cost` is what a call takes of the caller's rate limit.
    """

    name: str
    description: str
    permission: Permission
    tool: bool
    idempotent: bool
    cost: float
    input: type[Input]
    output: type[BaseModel]
    # Sync or async, of any subtype of Calling: checked at declaration. It is not compared, since
    # every hub of a process binds its own, and what is told of an operation is made once.
    handler: Callable[..., Any] = field(compare=False)
    is_async: bool
    mod: str = ""
    """The mod that adds it; empty: it is the hub's own."""

    def info(self) -> OperationInfo:
        """What the hub tells of it."""
        taken, answered = _taken(self.input), _answered(self.output)
        return OperationInfo(
            name=self.name,
            description=self.description,
            permission=self.permission,
            tool=self.tool,
            schemas=sha256(to_json([taken, answered])).hexdigest()[:16],
            input_schema=taken,
            output_schema=answered,
        )


@lru_cache(maxsize=256)
def _taken(model: type[Input]) -> dict[str, Any]:  # Any: a JSON Schema, as pydantic gives it
    return _shipped().get(model_key(model)) or model.model_json_schema()


@lru_cache(maxsize=256)
def _answered(model: type[BaseModel]) -> dict[str, Any]:
    return _shipped().get(model_key(model)) or answer_schema(model)


@cache
def _shipped() -> Mapping[str, dict[str, Any]]:
    """The schemas of the operations that come with Hubbub, by model. They stand in `schemas.json`,
    which `make docs` writes from the models: making them takes longer than all else that a hub does
    until its first message."""
    found: dict[str, dict[str, Any]] = from_json(
        files("hubbub.mods").joinpath("schemas.json").read_bytes()
    )
    return found


def model_key(model: type[BaseModel]) -> str:
    """What a model is called in `schemas.json`."""
    return f"{model.__module__}:{model.__qualname__}"


def answer_schema(model: type[BaseModel]) -> dict[str, Any]:
    """What an answer looks like: fields without a value are left out of it."""
    schema = model.model_json_schema(mode="serialization")
    for each in (schema, *schema.get("$defs", {}).values()):
        fields = each.get("properties", {})
        each["required"] = [name for name in each.get("required", ()) if not _empty(fields[name])]
    return schema


def _empty(schema: dict[str, Any]) -> bool:
    """Whether a field may be without a value."""
    return any(each.get("type") == "null" for each in schema.get("anyOf", ()))


def operation(
    *,
    permission: Permission = "read",
    tool: bool = True,
    idempotent: bool = False,
    cost: float = 1.0,
    output: type[BaseModel] | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare a handler as an operation; input and output come from its annotations.

    `output` is named explicitly where the handler returns a `Commit` or a `Draft`. Raises TypeError
    at import when the docstring or an annotation is missing.
    """

    def declare(handler: Callable[..., Any]) -> Operation:
        hints = get_type_hints(handler)
        returned = hints.pop("return", None)
        models = [h for h in hints.values() if isinstance(h, type) and issubclass(h, Input)]
        result = output or returned
        if len(models) != 1 or not (isinstance(result, type) and issubclass(result, BaseModel)):
            raise TypeError(f"{handler.__name__}: needs one Input parameter and a model as output")
        description = " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())
        if not description:
            raise TypeError(f"{handler.__name__}: needs a docstring, it is what models read")
        return Operation(
            name=name or handler.__name__,
            description=description,
            permission=permission,
            tool=tool,
            idempotent=idempotent,
            cost=cost,
            input=models[0],
            output=result,
            handler=handler,
            is_async=inspect.iscoroutinefunction(handler),
        )

    return declare
