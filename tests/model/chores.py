"""Tools for a model to try, which record their calls."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import JsonValue

from hubbub import tool

DONE: list[tuple[str, dict[str, JsonValue]]] = []
"""The executed calls: tool and arguments."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    DONE.append(("add", {"a": a, "b": b}))
    return a + b


@tool
def weather(city: Annotated[str, "the city's name"]) -> str:
    """Tell the weather in a city."""
    DONE.append(("weather", {"city": city}))
    return f"It is sunny in {city}, 21 degrees."


@tool(permission="write")
def switch_light(room: Literal["kitchen", "hall"], on: bool) -> str:
    """Switch the light of a room on or off."""
    DONE.append(("switch_light", {"room": room, "on": on}))
    return f"The light in the {room} is {'on' if on else 'off'}."
