"""An MCP server for tests, over stdio when run as a program.

python mcp_server.py [--refuse FILE] [--mute] [--pid FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import EmbeddedResource, ResourceLink, TextResourceContents, ToolAnnotations
from pydantic import Field

__all__ = ["made"]


def made() -> MCPServer:
    """The server with its tools."""
    server = MCPServer("tests", log_level="CRITICAL")
    server.tool(annotations=ToolAnnotations(read_only_hint=True))(add)
    server.tool(annotations=ToolAnnotations(idempotent_hint=True))(paint)
    for function in (fail, die, hang, many, picture, linked, nothing):
        server.tool()(function)

    @server.tool()
    async def grow(ctx: Context) -> None:
        """Add the tool `extra`."""
        server.tool(name="extra")(nothing)
        await ctx.notify_tools_changed()

    return server


def add(a: int, b: Annotated[int, Field(description="what to add")] = 2) -> int:
    """Add two numbers."""
    return a + b


def paint(colour: Literal["red", "green"]) -> str:
    """Paint it."""
    return f"painted {colour}"


def fail() -> str:
    """Fail."""
    raise ValueError("no such thing")


def die() -> str:
    """End the process."""
    os._exit(3)


async def hang() -> str:
    """Never answer, and block the server."""
    time.sleep(3600)  # noqa: ASYNC251 - blocking is its fault
    return "never"


def many(n: int) -> list[str]:
    """Many records."""
    return [f"record {i}" for i in range(n)]


def picture() -> Image:
    """A picture."""
    return Image(data=b"123", format="png")


def linked() -> list[ResourceLink | EmbeddedResource]:
    """A link, and a text."""
    held = TextResourceContents(uri="file:///b", text="the text")
    return [
        ResourceLink(type="resource_link", name="a", uri="file:///a"),
        EmbeddedResource(type="resource", resource=held),
    ]


def nothing() -> None:
    """Nothing."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--refuse", type=Path, help="exit at once while this file exists")
    parser.add_argument("--mute", action="store_true", help="never write anything")
    parser.add_argument("--pid", type=Path, help="write the process's id to this file")
    options = parser.parse_args()
    logging.disable()
    if options.pid:
        options.pid.write_text(
            f"{os.getpid()}\n{os.environ.get('SECRET')} {os.environ.get('SAID')}"
        )
    if options.refuse and options.refuse.exists():
        sys.exit("refused")
    if options.mute:
        asyncio.run(asyncio.Event().wait())
    made().run()


if __name__ == "__main__":
    main()
