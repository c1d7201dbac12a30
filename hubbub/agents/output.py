"""Typed answers: `finish` takes a value of the type in place of a text.

    output = Output(list[Refund])
    output.read('[{"order": 7, "cents": 1900}]')        -> [Refund(order=7, cents=1900)]

The model is offered the type's JSON Schema as the argument `message` of `finish`. A value that does
not fit goes back to it with the errors, as with any tool.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Generic, TypeVar, get_args

from pydantic import (
    Field,
    JsonValue,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticInvalidForJsonSchema

from hubbub.agents.tools.hub import HubCaller
from hubbub.agents.tools.schema import ToolArguments, without_titles
from hubbub.agents.tools.standard_tools import FINISH, MessageTool
from hubbub.errors import UserError

__all__ = ["Output"]

T = TypeVar("T")


class Output(Generic[T]):
    """A type of answers: a pydantic model, a list, a union, `bool` or any other type that pydantic
    can describe by a JSON Schema. Raises `UserError` for other types.
    """

    def __init__(self, kind: type[T]):
        self.kind = kind
        plain = isinstance(kind, type) and not get_args(kind)
        self.name = kind.__name__ if plain else re.sub(r"(\w+\.)+", "", str(kind))
        """As people write it: `list[Refund]`."""
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(kind)
            self.schema: dict[str, JsonValue] = without_titles(self._adapter.json_schema())
            self._model = _arguments(kind)
            self.spec = self._model.spec_of(FINISH, "End this turn with your answer.")
        except (
            PydanticSchemaGenerationError,
            PydanticInvalidForJsonSchema,
            PydanticUserError,
            TypeError,
        ) as exc:
            raise UserError(
                f"output: {self.name} cannot be represented in JSON; use a pydantic model, a "
                "dataclass, bool, int, float or str, or a list or union of those"
            ) from exc

    @property
    def form(self) -> dict[str, JsonValue]:
        """The JSON Schema for an answer without tools: `finish` without the reason."""
        properties = self.spec.offered["properties"]
        assert isinstance(properties, dict)
        return {**self.spec.offered, "properties": {"message": properties["message"]}}

    @property
    def schema_text(self) -> str:
        """The JSON Schema as a prompt shows it."""
        return json.dumps(self.schema, ensure_ascii=False)

    def read(self, text: str) -> T:
        """Parse an answer: JSON, or the text itself where the type can be one, as agents without a
        model answer. Raises `pydantic.ValidationError`."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError:
            with contextlib.suppress(ValidationError):
                return self._adapter.validate_python(text)
            raise

    def finishing(self, caller: HubCaller) -> MessageTool[ToolArguments]:
        """A `finish` that takes a value of this type and sends it as JSON."""
        return MessageTool(self.spec, self._model, self._text, "finished", caller)

    def _text(self, end: ToolArguments) -> str:
        value: T = getattr(end, "message")  # noqa: B009  the model is created here
        return self._adapter.dump_json(value).decode()


def _arguments(kind: object) -> type[ToolArguments]:
    fields: dict[str, Any] = {  # create_model's own signature
        "message": (kind, Field(description="Your answer.")),
        "reason": (str, Field("", description="Why you are done, for the record.")),
    }
    return create_model("Finish", __base__=ToolArguments, **fields)
