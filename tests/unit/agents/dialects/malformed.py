"""Malformed answers: each kind of damage to a valid answer, in each kind of wrapping.

The valid answer calls `note` with `{"text": "…", "times": 1}`, its exact parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product

from pydantic import JsonValue

from hubbub.config.agents import DialectName

__all__ = ["DIALECT_NAMES", "KINDS", "answer_text"]

DIALECT_NAMES: tuple[DialectName, ...] = ("native", "tool_call", "final_output")


def _envelope(dialect: DialectName, name: JsonValue, parameters: JsonValue) -> str:
    if dialect == "final_output":
        return json.dumps({"action": "CallTool", "selected_tool": name, "parameters": parameters})
    return json.dumps({"tool_name": name, "parameters": parameters})


def _marked(dialect: DialectName, body: str) -> str:
    return (
        f"<final_output>\n{body}\n</final_output>"
        if dialect == "final_output"
        else f"TOOL_CALL {body}"
    )


Damage = Callable[[DialectName], str]


def _body(change: Callable[[str], str]) -> Damage:
    """The JSON of the valid answer, changed as text."""
    return lambda d: _marked(d, change(_envelope(d, "note", {"text": "damaged", "times": 1})))


def _call(name: JsonValue, parameters: JsonValue) -> Damage:
    """Valid JSON with a wrong call."""
    return lambda d: _marked(d, _envelope(d, name, parameters))


_DAMAGES: Mapping[str, Damage] = {
    "no closing bracket": _body(lambda b: b[:-1]),
    "cut in the middle": _body(lambda b: b[: len(b) // 2]),
    "cut inside a string": _body(lambda b: b[: b.index("damaged") + 3]),
    "an extra bracket": _body(lambda b: b + "}"),
    "brackets swapped": _body(lambda b: b.replace("}", "]")),
    "two commas": _body(lambda b: b.replace(",", ",,")),
    "no commas": _body(lambda b: b.replace(",", " ")),
    "no colons": _body(lambda b: b.replace(":", " ")),
    "single quotes": _body(lambda b: b.replace('"', "'")),
    "no quotes": _body(lambda b: b.replace('"', "")),
    "a bare word": _body(lambda b: b.replace("1", "one")),
    "python constants": _body(lambda b: b.replace("1", "None")),
    "not a number": _body(lambda b: b.replace("1", "NaN")),
    "a number too large": _body(lambda b: b.replace("1", "1e999")),
    "a number too long": _body(lambda b: b.replace("1", "1" * 6000)),
    "two objects": _body(lambda b: f"{b} {b}"),
    "two objects on two lines": _body(lambda b: f"{b}\n{b}"),
    "duplicate keys": _body(lambda b: b[:-1] + ", " + b[1:]),
    "a comment": _body(lambda b: b.replace("{", "{ // call\n", 1)),
    "an ellipsis": _body(lambda b: b.replace("1", "...")),
    "an empty object": _body(lambda b: "{}"),
    "nothing": _body(lambda b: ""),
    "an empty list": _body(lambda b: "[]"),
    "unknown tool": _call("nota", {"text": "x", "times": 1}),
    "a tool in upper case": _call("NOTE", {"text": "x", "times": 1}),
    "a number as tool": _call(5, {"text": "x", "times": 1}),
    "an object as tool": _call({"name": "note"}, {"text": "x", "times": 1}),
    "no tool": _call("", {"text": "x", "times": 1}),
    "a list as parameters": _call("note", ["x", 1]),
    "a number as parameters": _call("note", 7),
    "text as parameters": _call("note", "text=x, times=1"),
    "broken JSON as parameters": _call("note", '{"text": "x", "times":'),
    "a wrong type": _call("note", {"text": ["x"], "times": 1}),
    "a missing parameter": _call("note", {"text": "x"}),
    "an extra parameter": _call("note", {"text": "x", "times": 1, "loud": True}),
    "nested too deeply": _call("note", {"text": "x", "times": json.loads("[" * 60 + "]" * 60)}),
    "half a character": _call("note", {"text": "\ud800", "times": "\udfff"}),
    "a number in two parts": _body(lambda b: b.replace("1", "1 1")),
    "parameters next to the tool": _body(
        lambda b: '{"tool_name": "note", "text": "x", "times": 1}'
    ),
    "a megabyte": _body(lambda b: "{" * 1_000_000),
}
"""None of these is a valid call of `note`."""

_WRAPPINGS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "in a fence": lambda text: f"```json\n{text}\n```",
    "after text": lambda text: f"I will do it: {text}",
    "between lines of text": lambda text: f"Let me see.\n{text}\nThat is all.",
    "with a broken tag": lambda text: f"<think>{text.replace('</final_output>', '</final')}",
}

KINDS: Mapping[str, tuple[Damage, Callable[[str], str]]] = {
    f"{damage}, {wrapping}": (_DAMAGES[damage], _WRAPPINGS[wrapping])
    for damage, wrapping in product(_DAMAGES, _WRAPPINGS)
}
"""All combinations, by name."""


def answer_text(kind: str, dialect: DialectName) -> str:
    """A malformed answer of this kind."""
    damage, wrap = KINDS[kind]
    return wrap(damage(dialect))
