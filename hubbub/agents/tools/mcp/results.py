"""What an MCP server answers, as a model reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.schema import LONGEST_NAME, without_titles

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock, Tool

__all__ = ["spec_of", "text_of", "tool_name", "tool_names"]

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`<server>_<tool>` in letters that endpoints take; what is too long ends in a hash."""
    name = _ILLEGAL.sub("_", f"{server}_{tool}")
    return name if len(name) <= LONGEST_NAME else _hashed(name, name)


def tool_names(server: str, tools: Sequence[str]) -> list[str]:
    """The names of a server's tools. Of several that would become the same, one that is so called
    keeps it; the others end in a hash.
    """
    plain = [tool_name(server, tool) for tool in tools]
    called: dict[str, set[str]] = {}
    for name, tool in zip(plain, tools, strict=True):
        called.setdefault(name, set()).add(tool)
    return [
        name if len(called[name]) == 1 or name == f"{server}_{tool}" else _hashed(name, tool)
        for name, tool in zip(plain, tools, strict=True)
    ]


def _hashed(name: str, of: str) -> str:
    digest = sha256(of.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"


def spec_of(name: str, tool: Tool) -> ToolSpec:
    """A server's tool as a model is told of it, by this name."""
    schema: dict[str, JsonValue] = without_titles(tool.input_schema)
    parameters = {"type": "object", "properties": {}, **schema}
    description = tool.description or tool.title or tool.name
    return ToolSpec(name, description, parameters)


def text_of(result: CallToolResult) -> str:
    """The text of a result. What is no text is named, not shown."""
    parts = [_part(block) for block in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts) or "done"


def _part(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            size = len(block.data) * 3 // 4
            return f"[{block.type}, {block.mime_type}, {size} bytes: cannot be shown here]"
        case "resource_link":
            return f"[resource {block.name}: {block.uri}]"
        case "resource":
            held = block.resource
            text = getattr(held, "text", None)  # else it is binary
            return text if isinstance(text, str) else f"[resource {held.uri}: cannot be shown here]"
