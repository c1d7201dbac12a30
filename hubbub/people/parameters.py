"""The parameters of operations as commands for people see them, read from their JSON Schemas.

Built-in operations are in `operations.json`, which `make docs` generates from their declarations: a
command starts without importing a mod. The hub describes those of third-party mods.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from hubbub.config.problems import nearest
from hubbub.errors import UserError
from hubbub.people.text import one_line

if TYPE_CHECKING:
    from hubbub.protocol.messages import OperationInfo

__all__ = [
    "OperationSpec",
    "Parameter",
    "described_operations",
    "known_operations",
    "spec_of",
    "value_of",
]

Kind = Literal["text", "whole", "number", "flag", "object"]
Schema = Mapping[str, Any]  # Any: a JSON Schema
PROSE = frozenset({
    "text", "title", "reason", "result", "note", "question", "description", "instruction", "need",
    "query", "name",
})  # fmt: skip
"""Arguments that people write in several words."""
HIDDEN = frozenset({"cause", "untrusted", "awaits", "attachments", "quote", "hash"})
"""Arguments that only programs set."""
SHORTS = {
    "thread": "t", "threads": "t", "limit": "n", "board": "b", "owner": "o", "description": "d",
    "kinds": "k", "reason": "r", "wakes": "w",
}  # fmt: skip
_ID = re.compile(r"\^([a-z])\[1-9\]")
_KINDS: Mapping[str, Kind] = {
    "string": "text", "integer": "whole", "number": "number", "boolean": "flag", "object": "object",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command."""

    name: str
    help: str = ""
    kind: Kind = "text"
    many: bool = False
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    """The pattern of an id."""
    default: JsonValue = None
    """The operation's default; None: none worth showing."""

    @property
    def option(self) -> str:
        """`--depends-on`; for a list the singular, since it can be repeated: `--label`."""
        name = self.name.removesuffix("s") if self.many else self.name
        return f"--{name.replace('_', '-')}"

    @property
    def letter(self) -> str:
        """The first letter of its ids: `t` for tasks; empty if it is not an id."""
        match = _ID.match(self.pattern)
        return match[1] if match is not None else ""

    @property
    def short(self) -> str:
        return SHORTS.get(self.name, "")

    @property
    def prose(self) -> bool:
        """Whether it is text of several words."""
        return self.kind == "text" and not self.many and self.name in PROSE


@dataclass(frozen=True)
class OperationSpec:
    """An operation: its description, its mod (empty: none) and its parameters."""

    name: str
    about: str
    mod: str = ""
    permission: str = ""
    parameters: tuple[Parameter, ...] = ()
    complete: bool = True
    """Whether all required parameters can be typed."""

    @property
    def sentence(self) -> str:
        """The first sentence of the description."""
        head, _, _ = self.about.partition(". ")
        return head.removesuffix(".") + "."


def spec_of(
    name: str, about: str, schema: Schema, mod: str = "", permission: str = ""
) -> OperationSpec:
    """The spec of an operation from the JSON Schema of its input."""
    required = frozenset(schema.get("required", ()))
    parameters, complete = [], True
    for key, property in schema.get("properties", {}).items():
        parameter = _parameter(key, property)
        if parameter is None or key in HIDDEN or property.get("x-runtime"):
            complete = complete and key not in required
        else:
            parameters.append(replace(parameter, required=key in required))
    return OperationSpec(name, about, mod, permission, tuple(parameters), complete)


def _parameter(name: str, property: Schema) -> Parameter | None:
    """A property as a parameter; None if it cannot be typed, as structured objects."""
    default, about = property.get("default"), " ".join(property.get("description", "").split())
    alternatives = [each for each in property.get("anyOf", ()) if each.get("type") != "null"]
    if "anyOf" in property:
        plain = [each for each in alternatives if each.get("type") == "string"]
        if len(alternatives) != 1 and not plain:
            return None
        property = (plain or alternatives)[0]
    many = property.get("type") == "array"
    inner = property.get("items", {}) if many else property
    kind = _KINDS.get(inner.get("type", "string" if "enum" in inner else ""))
    if kind is None or (many and kind == "object"):
        return None
    return Parameter(
        name,
        about,
        kind,
        many,
        choices=tuple(inner.get("enum", ())),
        least=inner.get("minimum"),
        most=inner.get("maximum"),
        pattern=inner.get("pattern", ""),
        default=default if isinstance(default, int | float | str) and default else None,
    )


@cache
def known_operations() -> Mapping[str, OperationSpec]:
    """The built-in operations by name."""
    stored = json.loads(files("hubbub.people").joinpath("operations.json").read_text("utf-8"))
    return {
        name: spec_of(name, each["about"], each["input"], each["mod"], each["permission"])
        for name, each in stored.items()
    }


def described_operations(operations: Iterable[OperationInfo], mod: str) -> list[OperationSpec]:
    """The operations of a third-party mod, as the hub describes them."""
    return [
        spec_of(each.name, each.description, each.input_schema, mod, each.permission)
        for each in operations
    ]


def value_of(parameter: Parameter, text: str) -> JsonValue:
    """The typed text as the operation's value. Raises `UserError`."""
    if parameter.kind == "object":
        return _object(text)
    if parameter.choices and text not in parameter.choices:
        raise UserError(f"there is no {parameter.name} {text!r}{nearest(text, parameter.choices)}")
    if parameter.kind in ("whole", "number"):
        return _number(parameter, text)
    if parameter.letter and not re.search(parameter.pattern, text):
        name = parameter.name.replace("_", " ")
        raise UserError(f"{name} must be an id such as {parameter.letter}3, not {one_line(text)!r}")
    return text


def _number(parameter: Parameter, text: str) -> int | float:
    try:
        value = int(text) if parameter.kind == "whole" else float(text)
    except ValueError:
        raise UserError(f"{parameter.name} must be a number, not {text!r}") from None
    least, most = parameter.least, parameter.most
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = f"{least:g} to {most:g}" if most is not None else f"at least {least:g}"
        raise UserError(f"{parameter.name} must be {bounds}, not {text}")
    return value


def _object(text: str) -> dict[str, JsonValue]:
    try:
        value: JsonValue = json.loads(text)
    except ValueError as exc:
        raise UserError(f"the arguments are not valid JSON: {exc}") from None
    if not isinstance(value, dict):
        raise UserError('the arguments must be a JSON object, for example {"path": "a.txt"}')
    return value
