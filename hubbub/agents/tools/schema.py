"""The JSON Schema of a function's arguments, and their validation, through pydantic."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.runtime_arguments import CancelToken, IdempotencyKey, runtime_kind
from hubbub.field_docs import Documented

__all__ = [
    "LONGEST_NAME",
    "FunctionArguments",
    "ToolArguments",
    "argument_errors",
    "legal_name",
    "without_titles",
]

LONGEST_NAME = 64
"""Maximum characters of a tool's name at endpoints."""
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_UNSUPPORTED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def legal_name(name: str) -> str:
    """The name, if endpoints accept it: a wrong one fails the request. Raises TypeError."""
    if len(name) <= LONGEST_NAME and _LEGAL_NAME.fullmatch(name):
        return name
    raise TypeError(
        f"{name[:LONGEST_NAME]!r} is no name for a tool: it has 1 to {LONGEST_NAME} letters "
        "(a-z, A-Z), digits, - and _"
    )


class ToolArguments(Documented):
    """The arguments of a tool of the runtime, or a part of them. Unknown keys are refused: a
    misspelled one would be ignored.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def spec_of(cls, name: str, description: str) -> ToolSpec:
        """The tool that takes these arguments."""
        return ToolSpec(name, description, without_titles(cls.model_json_schema()))

    @classmethod
    def read(cls, arguments: Mapping[str, JsonValue]) -> Self:
        """Parse the arguments of a call. Raises `ToolFailed` with every error."""
        try:
            return cls.model_validate(arguments)
        except ValidationError as exc:
            raise ToolFailed(argument_errors(exc), error="invalid_arguments", retry=True) from exc


class FunctionArguments:
    """The arguments of `function`: `schema` for models, `validate` for their calls.

    Parameters that the runtime fills in (`tools.runtime_arguments`) are not in the schema; `given`
    lists them. Raises TypeError when a parameter has no annotation, has no JSON Schema, or
    is `*args` or `**kwargs`.
    """

    def __init__(self, function: Callable[..., object], descriptions: Mapping[str, str]):
        name = function.__name__
        self._names: list[str] = []
        self.given: dict[str, type[IdempotencyKey] | type[CancelToken]] = {}
        fields: dict[str, tuple[object, object]] = {}
        for parameter, hints in _parameters(function):
            _check(parameter, name, hints)
            kind = runtime_kind(hints[parameter.name])
            if kind is not None:
                self.given[parameter.name] = kind
                continue
            # The alias carries the name, so that a parameter may be called `json` or `_x`.
            annotation, description = _described(
                hints[parameter.name], descriptions.get(parameter.name)
            )
            default = ... if parameter.default is parameter.empty else parameter.default
            field = Field(default, alias=parameter.name, description=description)
            fields[f"p{len(self._names)}"] = (annotation, field)
            self._names.append(parameter.name)
        try:
            self._model = _model(name, fields)
            self.schema = without_titles(self._model.model_json_schema())
        except Exception as exc:  # pydantic and constraints of annotations raise errors of any type
            raise TypeError(f"{name}: its parameters have no JSON Schema: {_short(exc)}") from exc

    def validate(self, arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        """The arguments as the function takes them. Raises `ToolFailed` with what is wrong."""
        try:
            model = self._model.model_validate(arguments)
        except ValidationError as exc:
            raise ToolFailed(argument_errors(exc), error="invalid_arguments", retry=True) from exc
        return {name: getattr(model, f"p{i}") for i, name in enumerate(self._names)}


def _parameters(
    function: Callable[..., object],
) -> Iterator[tuple[inspect.Parameter, dict[str, object]]]:
    """The parameters with all annotations, including those in quotes. Raises TypeError if they
    cannot be read.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as exc:  # an annotation is code: it can raise anything
        problem = f"an annotation cannot be read: {_short(exc)}"
        raise TypeError(f"{function.__name__}: {problem}") from exc
    try:
        parameters = inspect.signature(function).parameters
    except ValueError as exc:
        raise TypeError(
            f"{function.__name__}: its parameters are unknown: write a function that calls it"
        ) from exc
    return ((parameter, hints) for parameter in parameters.values())


def _short(exc: Exception) -> str:
    return " ".join(str(exc).split())[:300] or type(exc).__name__


def _model(name: str, fields: Mapping[str, tuple[object, object]]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    definitions: dict[str, Any] = dict(fields)  # create_model's own signature
    return create_model(name, __config__=config, **definitions)


def _check(parameter: inspect.Parameter, function: str, hints: Mapping[str, object]) -> None:
    if parameter.kind in _UNSUPPORTED:
        raise TypeError(f"{function}: a tool cannot take *{parameter.name}; name its parameters")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise TypeError(f"{function}: parameter {parameter.name!r} must not be positional-only")
    if parameter.name not in hints:
        raise TypeError(f"{function}: parameter {parameter.name!r} needs a type annotation")


def _described(annotation: object, docstring: str | None) -> tuple[object, str | None]:
    """The annotation and its description: text in `Annotated` overrides the docstring."""
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, str):
                return annotation, extra
            if isinstance(extra, FieldInfo) and extra.description:
                return annotation, extra.description
    return annotation, docstring


def argument_errors(exc: ValidationError) -> str:
    """The errors in a call's arguments, in words that a model can act on."""
    all_errors = exc.errors(include_url=False, include_input=False, include_context=False)
    # A list with invalid items is reported as too short as well: leave that out.
    within = {error["loc"][:n] for error in all_errors for n in range(len(error["loc"]))}
    errors = [e for e in all_errors if e["type"] != "too_short" or e["loc"] not in within]
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc']) or 'arguments'}: {error['msg']}"
        for error in errors[:5]
    )


def without_titles(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The schema without the titles that pydantic derives from names: they only cost tokens."""
    slim: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            slim[key] = {name: _slim(entry) for name, entry in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            slim[key] = value
        else:
            slim[key] = _slim(value)
    return slim


def _slim(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return without_titles(value)
    if isinstance(value, list):
        return [_slim(item) for item in value]
    return value
