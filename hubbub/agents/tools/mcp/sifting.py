"""A server's list of tools without those that nobody could call.

The library takes a list as a whole or not at all, so what is wrong with one tool is found before it
reads the list: where messages come from the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue, ValidationError

from hubbub.agents.tools.schema import wrong_arguments

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["sift"]

_MOST_LEVELS = 100
"""Objects and lists inside each other in a tool; no endpoint takes more."""


def sift(
    said: SessionMessage | Exception, version: str | None, left_out: Callable[[str, str], None]
) -> None:
    """Take the tools out of a message that do not conform to `version` of the protocol; `left_out`
    is told the name and the reason. A message that is no list of tools stays as it is.
    """
    from mcp.types import JSONRPCResponse

    if isinstance(said, Exception) or not isinstance(said.message, JSONRPCResponse):
        return
    result: dict[str, JsonValue] = said.message.result
    tools = result.get("tools")
    if not isinstance(tools, list) or _wrong({**result, "tools": []}, version) is not None:
        return
    kept: list[JsonValue] = []
    for tool in tools:
        why = _TOO_DEEP if _deeper(tool) else _wrong({**result, "tools": [tool]}, version)
        if why is None:
            kept.append(tool)
        else:
            left_out(_name(tool), why)
    said.message.result = {**result, "tools": kept}


_TOO_DEEP = f"it is nested too deep (more than {_MOST_LEVELS} levels)"


def _wrong(result: Mapping[str, JsonValue], version: str | None) -> str | None:
    """What is wrong with a list of tools; None: nothing."""
    from mcp.types.methods import validate_server_result

    try:
        validate_server_result("tools/list", version or "2025-11-25", result)
    except ValidationError as exc:
        return wrong_arguments(exc).removeprefix("tools.0.")
    return None


def _deeper(tool: JsonValue) -> bool:
    level = [tool]
    for _ in range(_MOST_LEVELS):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _name(tool: JsonValue) -> str:
    return str(tool.get("name", "?"))[:100] if isinstance(tool, dict) else "?"
