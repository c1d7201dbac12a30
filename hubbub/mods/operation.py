"""Operations that participants can call on the hub, each declared once.

    @operation(permission="write")
    def post_to_channel(call: Calling, args: PostToChannel) -> Draft:
        '''Post a text message to a channel you are a member of.'''

The wire call, the agents' tool, the CLI's help and the reference page are derived from the
declaration. The first paragraph of the docstring is the description that models read. The core and
mods declare operations in the same way. This module also has what handlers return (`Statement`)
and raise (`bad_request`).
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
"""The arguments are not valid."""
conflict = _refusal(ErrorCode.CONFLICT)
"""The item changed concurrently, or its state does not allow the call."""
forbidden = _refusal(ErrorCode.FORBIDDEN)
"""The caller does not have the permission."""
not_found = _refusal(ErrorCode.NOT_FOUND)
"""The item does not exist, or the caller cannot see it."""
over_limit = _refusal(ErrorCode.LIMIT)
"""A limit on the number of items is reached."""
too_large = _refusal(ErrorCode.TOO_LARGE)
"""The content has too many bytes, characters or lines."""


Value = str | bytes | int | float | None
"""Types that SQLite can store."""


class Statement(NamedTuple):
    """An SQL statement on tables of the mod."""

    sql: str
    values: Sequence[Value] = ()
    rows: int | None = None
    """Number of rows it must change. Any other number is a conflict, and nothing of the commit is
    written. None allows any number."""


R = TypeVar("R", default=Statement)


class Calling(Protocol):
    """The caller: the first parameter of every handler."""

    @property
    def participant(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def owner(self) -> bool:
        """Whether the participant is an owner of the network."""
        ...


@dataclass(slots=True)
class Commit(Generic[R]):
    """Returned by a handler to write records, all or none of them, and then answer.

    It is passed to the log before the next frame of the same socket is read, so writes keep the
    order of the calls. It takes effect only when it is durable, so a failed write leaves nothing to
    undo.
    """

    records: Sequence[R] | Callable[[int], Sequence[R]]
    """Statements on tables of the mod, or records of the hub. A function is called when the batch
    is formed, with the last position of the log before it."""
    answer: BaseModel | Callable[[], Coroutine[Any, Any, BaseModel]]
    """The output, or a function that creates it after the commit."""
    applied: Callable[[], None] | None = None
    """Called when the commit is durable, to update state in memory."""
    released: Callable[[], None] | None = None
    """Called at the end, durable or not, to release what was held."""
    messages: Sequence[Draft] = ()
    """Posted when the commit is durable. If one is refused, the commit stands."""
    conflict: OperationError | None = None
    """The error if a statement changed a different number of rows than `rows`. Default: `conflict`
    with the advice to read again."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A declared operation.

    `handler(call, args)` returns the output, a `Commit`, a `Draft` (which is posted, and answered
    with its position in the log), or a coroutine of one of them. It raises `OperationError` to
    refuse the call.

    `idempotent` means that repeating the call changes nothing, so its `cid` need not be stored.
    `cost` is how much a call uses of the caller's rate limit.
    """

    name: str
    description: str
    permission: Permission
    tool: bool
    idempotent: bool
    cost: float
    input: type[Input]
    output: type[BaseModel]
    # Sync or async, with any subtype of Calling, checked at declaration. Not compared, because each
    # hub of a process binds its own, and descriptions of operations are cached.
    handler: Callable[..., Any] = field(compare=False)
    is_async: bool
    mod: str = ""
    """The mod that adds it. Empty for operations of the hub itself."""

    def info(self) -> OperationInfo:
        """The description that the hub sends to clients."""
        input_schema = _input_schema(self.input)
        output_schema = _output_schema(self.output)
        return OperationInfo(
            name=self.name,
            description=self.description,
            permission=self.permission,
            tool=self.tool,
            schemas=sha256(to_json([input_schema, output_schema])).hexdigest()[:16],
            input_schema=input_schema,
            output_schema=output_schema,
        )


@lru_cache(maxsize=256)
def _input_schema(model: type[Input]) -> dict[str, Any]:  # Any: a JSON Schema from pydantic
    return _shipped().get(model_key(model)) or model.model_json_schema()


@lru_cache(maxsize=256)
def _output_schema(model: type[BaseModel]) -> dict[str, Any]:
    return _shipped().get(model_key(model)) or answer_schema(model)


@cache
def _shipped() -> Mapping[str, dict[str, Any]]:
    """The schemas of the built-in operations, by model, from `schemas.json`. `make docs` generates
    that file, because creating the schemas takes longer than the rest of a hub's start."""
    schemas: dict[str, dict[str, Any]] = from_json(
        files("hubbub.mods").joinpath("schemas.json").read_bytes()
    )
    return schemas


def model_key(model: type[BaseModel]) -> str:
    """The key of a model in `schemas.json`."""
    return f"{model.__module__}:{model.__qualname__}"


def answer_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of an answer. Fields without a value are omitted from answers."""
    schema = model.model_json_schema(mode="serialization")
    for each in (schema, *schema.get("$defs", {}).values()):
        fields = each.get("properties", {})
        required = each.get("required", ())
        each["required"] = [name for name in required if not _is_nullable(fields[name])]
    return schema


def _is_nullable(schema: dict[str, Any]) -> bool:
    """Whether a field can be null."""
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

    `output` is required if the handler returns a `Commit` or a `Draft`. Raises TypeError at import
    if the docstring or an annotation is missing.
    """

    def declare(handler: Callable[..., Any]) -> Operation:
        hints = get_type_hints(handler)
        returned = hints.pop("return", None)
        models = [h for h in hints.values() if isinstance(h, type) and issubclass(h, Input)]
        result = output or returned
        if len(models) != 1 or not (isinstance(result, type) and issubclass(result, BaseModel)):
            raise TypeError(f"{handler.__name__}: needs one Input parameter and an output model")
        description = " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())
        if not description:
            raise TypeError(
                f"{handler.__name__}: needs a docstring, which is the description for models"
            )
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
