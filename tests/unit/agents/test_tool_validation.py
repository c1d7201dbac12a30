"""Errors for arguments that do not fit a tool's schema."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, JsonValue

from hubbub import ToolFailed, tool
from hubbub.agents.tools.schema import without_titles
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.validation import ArgumentCheck
from tests.unit.agents.calling import failed


class Place(BaseModel):
    street: str
    number: int = Field(description="of the house")


class Order(BaseModel):
    """What an order looks like."""

    model_config = {"extra": "forbid"}

    article: str = Field(description="what to order", examples=["screws"])
    pieces: int = Field(ge=1, le=100)
    colour: Literal["red", "green", "blue"] = "red"
    to: Place | None = None
    tags: list[str] = []
    express: bool = False
    price: int | Literal["market"] = 1


CHECK = ArgumentCheck(without_titles(Order.model_json_schema()))
VALID: dict[str, JsonValue] = {"article": "screws", "pieces": 3}


def error_of(**changes: JsonValue) -> str:
    """The error for a valid order with these changes."""
    with pytest.raises(ToolFailed) as caught:
        CHECK.check({**VALID, **changes})
    assert (caught.value.error, caught.value.retry) == ("invalid_arguments", True)
    return caught.value.message


@pytest.mark.behaviour("K-8")
def test_each_mistake_is_named_with_a_suggestion() -> None:
    cases: list[tuple[dict[str, JsonValue], str]] = [
        ({"artikle": "x"}, "there is no argument artikle; did you mean article?"),
        (
            {"zzz": 1},
            "there is no argument zzz; there are: article, pieces, colour, to, tags, express, "
            "price",
        ),
        ({"pieces": "many"}, 'pieces: expected integer, not "many", for example 1'),
        ({"pieces": 1.5}, "pieces: expected integer, not 1.5, for example 1"),
        (
            {"colour": "gren"},
            'colour: "gren" is none of "red", "green", "blue"; did you mean green?',
        ),
        ({"colour": None}, 'colour: null is none of "red", "green", "blue"'),
        ({"pieces": 0}, "pieces: 0 is less than the minimum of 1"),
        ({"tags": ["a", 5]}, 'tags.1: expected string, not 5, for example "text"'),
        ({"tags": "a"}, 'tags: expected array, not "a", for example []'),
        ({"express": "maybe"}, 'express: expected boolean, not "maybe", for example false'),
        ({"to": {"street": "Main"}}, "to.number is missing (of the house), for example 1"),
        ({"to": 7}, "to: expected object or null, not 7"),
        ({"price": "cheap"}, "price"),
    ]
    for changes, reason in cases:
        assert reason in error_of(**changes)
    with pytest.raises(ToolFailed) as caught:
        CHECK.check({"artcle": "x"})
    assert caught.value.message == (
        "there is no argument artcle; did you mean article?; pieces is missing, for example 1"
    )
    with pytest.raises(ToolFailed) as caught:
        CHECK.check({})
    assert caught.value.message == (
        'article is missing (what to order), for example "screws"; pieces is missing, for example 1'
    )
    error = error_of(pieces="x", colour="pink", nonsense=1)
    assert error.count(";") >= 2
    assert all(name in error for name in ("pieces", "pink", "nonsense"))
    assert len(error_of(pieces="x" * 10_000)) < 200
    for extra in [10, 20_000]:
        error = error_of(**{f"extra{n}": n for n in range(extra)})
        assert error.count("there is no argument") == 5


def test_json_in_a_string_is_read_unless_a_string_is_expected() -> None:
    cases: list[tuple[str, JsonValue, JsonValue]] = [
        ("pieces", "3", 3), ("express", "true", True), ("tags", '["a", "b"]', ["a", "b"]),
        ("to", '{"street": "Main", "number": 1}', {"street": "Main", "number": 1}),
        ("price", "5", 5),
    ]  # fmt: skip
    for name, written, read in cases:
        assert CHECK.check({**VALID, name: written})[name] == read
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"n": {"type": "array", "items": {"type": "integer"}}},
    }
    assert ArgumentCheck(schema).check({"n": ["1", 2]}) == {"n": [1, 2]}
    assert CHECK.check({**VALID, "article": "5"})["article"] == "5"
    given: dict[str, JsonValue] = {**VALID, "pieces": "3", "tags": ["a"]}
    CHECK.check(given)
    assert given["pieces"] == "3"


def test_a_schema_that_is_invalid_too_large_or_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON Schema"):
        ArgumentCheck({"type": "objekt"})
    deep: dict[str, JsonValue] = {}
    for _ in range(600):
        deep = {"items": deep}
    with pytest.raises(ValueError, match="too deep"):
        ArgumentCheck(deep)
    wide: dict[str, JsonValue] = {"properties": {f"p{n}": {} for n in range(50_000)}}
    with pytest.raises(ValueError, match="too large"):
        ArgumentCheck(wide)
    with pytest.raises(ValueError, match="JSON Schema"):
        ArgumentCheck({"type": [n if n % 2 else str(n) for n in range(8000)]})
    with pytest.raises(ValueError, match="JSON Schema"):
        ArgumentCheck({"required": [n if n % 2 else str(n) for n in range(8000)]})


def test_references_are_not_fetched_and_patterns_not_matched() -> None:
    schema: dict[str, JsonValue] = {"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}
    with pytest.raises(ToolFailed, match="cannot be followed") as caught:
        ArgumentCheck(schema).check({"a": 1})
    assert caught.value.error == "invalid_schema"
    schema = {"properties": {"a": {"pattern": "(a+)+$"}}}
    given: dict[str, JsonValue] = {"a": "a" * 100 + "b"}
    assert ArgumentCheck(schema).check(given) == given
    for rule in ["additionalProperties", "unevaluatedProperties"]:
        schema = {"patternProperties": {"(a+)+$": True}, rule: False}
        given = {"a" * 100 + "b": 1}
        assert ArgumentCheck(schema).check(given) == given


def test_violations_of_other_rules_are_named_too() -> None:
    cases: list[tuple[dict[str, JsonValue], JsonValue, str]] = [
        ({"const": 5}, 6, "a: must be 5"),
        ({"oneOf": [{"type": "string"}, {}]}, "x", "a: expected string or something else"),
        ({"type": ["integer", "null"]}, [], "a: expected integer or null, not []"),
        ({"type": "array", "items": {"type": "integer"}}, 1, "for example [1]"),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
            1,
            'for example {"b": "text"}',
        ),
        ({"maxLength": 2}, "abc", "a: 'abc' is too long"),
    ]
    for rule, value, reason in cases:
        with pytest.raises(ToolFailed) as caught:
            ArgumentCheck({"properties": {"a": rule}}).check({"a": value})
        assert reason in caught.value.message


def doubling(levels: int) -> dict[str, JsonValue]:
    """A schema in which each level refers to the next twice: 2 ** levels paths to check."""
    levelled: dict[str, JsonValue] = {
        f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)
    }
    return {
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/l0"}},
        "$defs": {**levelled, f"l{levels}": {"type": "integer"}},
    }


class TestWork:
    """Checks that would take forever are abandoned after a while."""

    def refused(self, schema: dict[str, JsonValue], given: JsonValue) -> str:
        with pytest.raises(ToolFailed) as caught:
            ArgumentCheck(schema).check({"v": given})
        assert caught.value.error == "invalid_arguments"
        return caught.value.message

    @pytest.mark.behaviour("K-8")
    def test_a_schema_with_exponential_branches_is_abandoned(self) -> None:
        assert "too much work" in self.refused(doubling(60), "x")

    def test_a_nested_schema_declaration_does_not_lift_the_limits(self) -> None:
        schema: dict[str, JsonValue] = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "v": {
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    **doubling(60),
                    "properties": {"w": {"$ref": "#/$defs/l0"}, "x": {"pattern": "(a+)+$"}},
                }
            },
        }
        text = json.dumps(schema).replace('"#/$defs/', '"#/properties/v/$defs/')
        assert "too much work" in self.refused(json.loads(text), {"v": "x", "w": "x"})
        given: dict[str, JsonValue] = {"v": {"v": 1, "x": "a" * 100 + "b"}}
        assert ArgumentCheck(json.loads(text)).check(given) == given

    def test_large_but_plain_arguments_pass(self) -> None:
        item: JsonValue = {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in "abcde"},
            "required": ["a"],
            "additionalProperties": False,
        }
        schema: dict[str, JsonValue] = {"properties": {"v": {"type": "array", "items": item}}}
        given: dict[str, JsonValue] = {"v": [dict.fromkeys("abcde", n) for n in range(2000)]}
        assert ArgumentCheck(schema).check(given) == given

    def test_many_different_items_are_compared_quickly(self) -> None:
        for step in [1, 2**61 - 1]:
            schema: dict[str, JsonValue] = {"properties": {"v": {"uniqueItems": True}}}
            items: list[JsonValue] = [n * step if n % 2 else str(n) for n in range(20_000)]
            check = ArgumentCheck(schema)
            assert check.check({"v": items})
            assert "non-unique" in self.refused(schema, [*items, items[-1]])

    def test_items_are_equal_by_the_rules_of_json(self) -> None:
        cases: list[tuple[JsonValue, JsonValue, bool]] = [
            (1, 1.0, True), (1, True, False), (0, False, False), (1, "1", False),
            ([1, {"a": 2}], [1.0, {"a": 2}], True),
            ({"a": 1, "b": [True]}, {"b": [True], "a": 1}, True), ({"a": 1}, {"a": 2}, False),
            ([], {}, False), (None, "null", False), (["a", "b"], ["a,b"], False),
            (10**400, 10**400 + 1, False), (1e300, 1e301, False),
        ]  # fmt: skip
        for one, other, same in cases:
            schema: dict[str, JsonValue] = {"properties": {"v": {"uniqueItems": True}}}
            if same:
                assert "non-unique" in self.refused(schema, [one, other])
            else:
                assert ArgumentCheck(schema).check({"v": [one, other]})

    @given(
        st.lists(
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers(0, 2)
                | st.sampled_from([0.0, 1.0, 1.5, "", "1"]),
                lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("k"), inner),
                max_leaves=3,
            ),
            max_size=4,
        )
    )
    def test_the_uniqueness_of_any_items_agrees_with_jsonschema(
        self, items: list[JsonValue]
    ) -> None:
        schema: dict[str, JsonValue] = {"properties": {"v": {"uniqueItems": True}}}
        try:
            ArgumentCheck(schema).check({"v": items})
        except ToolFailed:
            assert not Draft202012Validator(schema).is_valid({"v": items})
        else:
            assert Draft202012Validator(schema).is_valid({"v": items})

    def test_arguments_of_any_depth_are_refused_without_a_crash(self) -> None:
        deep: JsonValue = "3"
        for _ in range(700):
            deep = [deep]
        schema: dict[str, JsonValue] = {
            "$defs": {"n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}]}},
            "properties": {"v": {"$ref": "#/$defs/n"}, "w": {"type": "integer"}},
        }
        with pytest.raises(ToolFailed):
            ArgumentCheck(schema).check({"v": deep, "w": "3"})


ORACLE = Draft202012Validator(without_titles(Order.model_json_schema()))
anything: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
orders = st.dictionaries(
    st.sampled_from([*Order.model_fields, "else"]),
    anything | st.sampled_from(["screws", 3, "3", "blue", True, {"street": "M", "number": 2}]),
)


@given(orders)
def test_arguments_pass_exactly_if_they_are_valid_by_jsonschema(
    arguments: dict[str, JsonValue],
) -> None:
    try:
        passed = CHECK.check(arguments)
    except ToolFailed:
        assert not ORACLE.is_valid(arguments)
    else:
        assert ORACLE.is_valid(passed)
        assert not ORACLE.is_valid(arguments) or passed == arguments


class Even(BaseModel):
    n: int

    def model_post_init(self, context: object) -> None:
        if self.n % 2:
            raise ValueError("must be even")


async def test_errors_of_the_functions_own_validators_are_reported() -> None:
    @tool
    def halve(value: Even) -> int:
        """Halve it."""
        return value.n // 2

    error = await failed(Toolbox([halve]), "halve", value={"n": 3})
    assert "must be even" in str(error["message"])
