"""`@tool`: the spec from a function's signature and docstring, and its calls."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue

from hubbub import tool
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.function import as_tools, describe

SITE = CallSite("bot-m1", 1, 0)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


@dataclass
class Painting:
    where: Point
    colours: list[Colour]


@tool
def word_count(text: Annotated[str, "what to count in"], ignore_case: bool = True) -> int:
    """Count the different words of a text.

    Args:
        text: overruled by the annotation
        ignore_case: whether A and a
            are the same
    """
    return len(set((text.lower() if ignore_case else text).split()))


@tool(permission="write", confirm=True, idempotent=True, timeout=5, name="paint")
async def paint_it(
    place: Point,
    colour: Colour = Colour.RED,
    mode: Literal["fast", "slow"] = "fast",
    label: str | int | None = None,
    weight: Annotated[float, Field(gt=0, description="in kg")] = 1.0,
) -> Painting:
    """Paint a place."""
    assert mode in ("fast", "slow")
    assert weight > 0
    return Painting(place, [colour] if label is None else [])


@pytest.mark.behaviour("A-8")
def test_the_schema_has_types_defaults_and_descriptions() -> None:
    assert word_count.spec.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to count in"},
            "ignore_case": {
                "type": "boolean",
                "default": True,
                "description": "whether A and a are the same",
            },
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert word_count.spec.description == "Count the different words of a text."

    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert now.spec.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }

    @tool
    def odd(json: str, schema: int, title: str, model_config: str, _x: int = 1) -> str:
        """Odd names."""
        return f"{json}{schema}{title}{model_config}{_x}"

    properties = odd.spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["json", "schema", "title", "model_config", "_x"]


@pytest.mark.behaviour("A-8")
def test_the_schema_has_nested_models_enums_unions_and_literals() -> None:
    parameters = paint_it.spec.parameters
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["mode"] == {"enum": ["fast", "slow"], "type": "string", "default": "fast"}
    assert properties["label"] == {
        "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
        "default": None,
    }
    assert properties["weight"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.0,
        "description": "in kg",
    }
    definitions = parameters["$defs"]
    assert isinstance(definitions, dict)
    assert definitions["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert definitions["Point"] == {
        "type": "object",
        "description": "A place.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert parameters["required"] == ["place"]


def test_the_tool_has_the_settings_of_the_decorator() -> None:
    assert paint_it.name == "paint"
    assert (paint_it.permission, paint_it.confirm) == ("write", True)
    assert (paint_it.idempotent, paint_it.timeout) == (True, 5)
    assert (word_count.permission, word_count.confirm) == ("read", False)
    assert (word_count.idempotent, word_count.timeout) == (False, None)

    @tool(confirm="untrusted", untrusted=False)
    def publish(text: str) -> str:
        """Publish."""
        return text

    assert (publish.confirm, publish.overrides.untrusted) == ("untrusted", False)
    assert word_count.overrides.untrusted is True

    def odd() -> None:
        """Odd."""

    options: list[tuple[str, object, str]] = [
        ("confirm", "always", "odd: confirm is True, False or 'untrusted', not 'always'"),
        ("permission", "wirte", "odd: permission is read, write or admin, not 'wirte'"),
        ("timeout", -1, "odd: timeout is a number of seconds over 0, not -1"),
        ("timeout", "5s", "odd: timeout is a number of seconds over 0, not '5s'"),
        ("retry", 0, "odd: retry is a number of attempts over 0"),
        ("result_budget", 0, "odd: result_budget is a number of tokens over 0"),
        ("sandbox", "proces", "odd: sandbox is 'process' or SandboxLimits"),
    ]
    for option, value, message in options:
        with pytest.raises(TypeError, match=message):
            tool(**{option: value, "idempotent": True})(odd)  # type: ignore[call-overload]  # invalid on purpose


async def test_items_of_an_async_generator_are_the_result_like_those_of_a_generator() -> None:
    @tool
    async def count(to: int) -> AsyncIterator[int]:
        """Count."""
        for n in range(to):
            yield n

    assert await count.run({"to": 3}, SITE) == "[0,1,2]"
    endless = json.loads(await count.run({"to": 10**9}, SITE))
    assert (len(endless["items"]), endless["more"]) == (10_000, True)


def test_a_method_outside_an_object_is_refused_as_a_tool() -> None:
    @tool
    def add(self: int, other: int) -> int:
        """Add."""
        return self + other

    with pytest.raises(TypeError, match="its first parameter is `self`"):
        as_tools(add)


def test_python_code_can_still_call_the_function() -> None:
    assert word_count("a A b") == 2
    assert word_count("a A b", ignore_case=False) == 3
    assert (word_count.__doc__ or "").startswith("Count the different words of a text.\n\n")


def test_a_function_that_cannot_be_a_tool_is_refused_at_import() -> None:
    def silent(x: int) -> int:
        return x

    def untyped(x) -> int:  # type: ignore[no-untyped-def]
        """No type."""
        return int(x)

    def many(*x: int) -> int:
        """Any number."""
        return sum(x)

    def positional(x: int, /) -> int:
        """By position."""
        return x

    def odd(x: threading.Thread) -> str:
        """No JSON."""
        return str(x)

    def misspelled(x: threading.Treat) -> str:  # type: ignore[name-defined]  # invalid on purpose
        """An annotation that does not exist."""
        return str(x)

    def unfinished(x: "list[") -> str:  # type: ignore[valid-type]  # noqa: F722  # invalid on purpose
        """An annotation that is no Python."""
        return str(x)

    def unequal(x: Annotated[int, Field(gt="a")]) -> str:
        """A constraint of another type."""
        return str(x)

    for function, reason in [
        (silent, "docstring"), (untyped, "type annotation"), (many, "name its parameters"),
        (positional, "positional-only"), (odd, "have no JSON Schema"),
        (misspelled, "misspelled: an annotation cannot be read: module 'threading' has no"),
        (unfinished, "unfinished: an annotation cannot be read"),
        (unequal, "unequal: its parameters have no JSON Schema"),
        (functools.partial(word_count), "has no name: write a function"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=reason):
            tool(function)  # type: ignore[call-overload]  # invalid on purpose


def test_a_name_that_endpoints_would_refuse_is_refused() -> None:
    def größe() -> None:
        """Tell the size."""

    for name in ("a", "x" * 64, "Read-all_2"):
        assert tool(name=name)(größe).name == name
    for name in ("bad name!", "", "x" * 65, "größe", "a.b", "a\n"):
        with pytest.raises(TypeError, match="is no name for a tool: it has 1 to 64 letters"):
            tool(name=name)(größe)
    with pytest.raises(TypeError, match="'größe' is no name for a tool"):
        tool(größe)


def google() -> None:
    """First line
    goes on.

    Second paragraph.

    Args:
        one (int): the first
        two: the second,
            which goes on
    Returns:
        three: not a parameter
    """


def numpy() -> None:
    """Sum.

    Parameters
    ----------
    one : int
        the first
    two
        the second

    Returns
    -------
    three
    """


def sphinx() -> None:
    """Sum.

    :param one: the first
    :param int two: the second,
        which goes on
    :return: three
    """


def test_the_common_docstring_styles_are_parsed() -> None:
    both = {"one": "the first", "two": "the second, which goes on"}
    google_doc = google.__doc__ or ""
    for heading in ("Args:", "Arguments:", "Parameters:"):
        google.__doc__ = google_doc.replace("Args:", heading)
        assert describe(google) == ("First line goes on.\n\nSecond paragraph.", both), heading
    assert describe(numpy) == ("Sum.", {"one": "the first", "two": "the second"})
    assert describe(sphinx) == ("Sum.", both)


def returning(value: object) -> Tool:
    @tool
    def give() -> object:
        """Return it, or raise it."""
        if isinstance(value, Exception):
            raise value
        return value

    return give


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("here")

    @tool
    def where() -> str:
        """Which thread."""
        return f"{variable.get()} {threading.current_thread() is threading.main_thread()}"

    assert await where.run({}, SITE) == "here False"
    result = await paint_it.run({"place": {"x": 1}, "colour": "blue"}, SITE)
    assert result == '{"where":{"x":1,"y":0},"colours":["blue"]}'


async def test_invalid_arguments_are_refused_by_name() -> None:
    cases: list[tuple[dict[str, JsonValue], str]] = [
        ({}, "place: Field required"),
        ({"place": {"x": "one"}}, "place.x: Input should be a valid integer"),
        ({"place": {"x": 1}, "colour": "green"}, "colour: Input should be 'red' or 'blue'"),
        ({"place": {"x": 1}, "size": 3}, "size: Extra inputs are not permitted"),
    ]
    for arguments, reason in cases:
        with pytest.raises(ToolFailed, match=reason) as caught:
            await paint_it.run(arguments, SITE)
        assert (caught.value.error, caught.value.retry) == ("invalid_arguments", True)


async def test_results_become_text_and_exceptions_propagate() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    cases = [("as it is", "as it is"), (None, "done"), ([1, None], "[1,null]"), (1.5, "1.5")]
    for value, text in (*cases, (Odd(), "odd")):
        assert await returning(value).run({}, SITE) == text
    for raised in (ValueError("no"), StopIteration("over"), KeyError("k")):
        with pytest.raises((type(raised), RuntimeError)):
            await returning(raised).run({}, SITE)


async def test_cancelling_a_call_does_not_wait_for_its_thread() -> None:
    inside, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool
    def block() -> str:
        """Block."""
        loop.call_soon_threadsafe(inside.set)
        go.wait(10)
        return "late"

    task = asyncio.create_task(block.run({}, SITE))
    await asyncio.wait_for(inside.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
