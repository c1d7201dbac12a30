"""A workspace made of mods, and views of the page on it: for audits and screenshots."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import expect
from pydantic import JsonValue

from hubbub.client import Client
from tests.browser.support.desk import Desk
from tests.browser.support.room import Room, call
from tests.browser.support.scene import Scene, View, clicks

__all__ = ["MODS", "WORKSPACE_VIEWS", "set_up_workspace"]

MODS: Sequence[JsonValue] = (
    "documents", "tasks", "polls", "reactions", "edits", "files", "threads", "search", "digest",
)  # fmt: skip
THREAD = "channel.general"

_DRAFT = """# Jupiter, the largest of all

Tonight it stands high in the south, brighter than any star.

**Four of its moons show in binoculars**, as Galileo saw them in January 1610.

## How large is it?

| planet | diameter |
|---|---:|
| Jupiter | 139,822 km |
| Saturn | 116,464 km |
| Earth | 12,742 km |

Eleven Earths side by side would not quite span it.

## What to look for

1. The *Great Red Spot*, a storm wider than the Earth.
2. The moons: Io, Europa, Ganymede and Callisto.
3. A shadow of a moon that crosses the clouds.
"""
_REWORKED = _DRAFT.replace(
    "Eleven Earths side by side would not quite span it.",
    "Eleven Earths side by side span it. It holds more matter than all other planets together.",
).replace("3. A shadow of a moon that crosses the clouds.\n", "")


async def _post(client: Client, text: str, **more: Any) -> str:
    said = await call(client, "post_to_channel", channel="general", text=text, **more)
    return str(said["id"])


async def set_up_workspace(room: Room) -> Scene:
    """Create documents, tasks, polls and messages of people and agents, for ann to view."""
    ann, bob = (await room.join("ann")).client, (await room.join("bob")).client
    editor, researcher = await room.enters("editor"), await room.enters("researcher")
    for each in (ann, bob, editor, researcher):
        await each.call("join_channel", channel="general")
    await call(ann, "list_threads")
    document = await _written(ann, bob, editor)
    task = await _planned(ann, bob, editor, researcher)
    await _talked(ann, bob, editor, researcher)
    return Scene({"document": document, "task": task})


async def _written(ann: Client, bob: Client, editor: Client) -> str:
    made = await call(
        ann, "create_document", title="Jupiter, the largest of all", text=_DRAFT, thread=THREAD
    )
    id = str(made["id"])
    await call(
        editor, "write_document", id=id, base_version=1, text=_REWORKED, note="Checked the figures"
    )
    third = _REWORKED.replace("Tonight", "This month").replace("high in the south", "in the south")
    await call(bob, "write_document", id=id, base_version=2, text=third, note="Not only tonight")
    remark = {"line": 3, "text": "From where? It is low in the north."}
    await call(bob, "comment_on_document", id=id, **remark)
    await call(editor, "comment_on_document", id=id, text="Ready for the front page, I think.")
    return id


async def _planned(ann: Client, bob: Client, editor: Client, researcher: Client) -> str:
    board = await call(ann, "create_board", thread=THREAD, name="Jupiter story")

    async def task(title: str, **more: Any) -> str:
        made = await call(ann, "create_task", board=board["id"], title=title, **more)
        return str(made["id"])

    now = datetime.now(UTC)
    figures = await task(
        "Check all figures against two sources", labels=["facts"], priority="high",
        description="Diameters and masses. *Name the sources* in the result.",
        due=(now + timedelta(days=1)).isoformat(),
    )  # fmt: skip
    picture = await task("A picture of the Great Red Spot", labels=["pictures"])
    await task("Headline and teaser", depends_on=[figures], priority="urgent")
    await task("Publish on the front page", depends_on=[figures, picture])
    await task("Ask the observatory for opening hours", labels=["calls"])
    outline = await task("Outline of the story")
    old = await task("A chart of all moons")
    await call(researcher, "claim_task", task=figures)
    await call(bob, "claim_task", task=picture)
    await call(editor, "claim_task", task=outline)
    await call(editor, "finish_task", task=outline, result="It stands in the document.")
    await call(ann, "cancel_task", task=old, note="Four moons are enough.")
    return figures


async def _talked(ann: Client, bob: Client, editor: Client, researcher: Client) -> None:
    await _post(ann, "Good morning! The draft on **Jupiter** is in the documents.")
    good = await _post(editor, "I have checked the figures and made it shorter: version 2.")
    for who, emoji in ((ann, "👍"), (bob, "👍"), (researcher, "🎉"), (bob, "🪐")):
        await call(who, "toggle_reaction", message_id=good, emoji=emoji)
    wrong = await _post(researcher, "Its diameter is 142,984 km, measured from pole to pole.")
    await call(
        researcher, "edit_message", message_id=wrong,
        text="Its diameter is 142,984 km at the equator, and 133,708 km from pole to pole.",
    )  # fmt: skip
    seen = await _brought(bob, "jupiter.png", _picture())
    made = await call(
        bob, "write_file", name="observations.csv", thread=THREAD,
        text="".join(f"2026-11-{n:02},seeing {n % 5 + 1}\n" for n in range(1, 29)),
    )  # fmt: skip
    said = await _post(
        bob, "My picture of last night, and what I wrote down.",
        attachments=[
            {"name": "jupiter.png", "uri": seen, "media_type": "image/png"},
            {"name": "observations.csv", "uri": f"file:{made['id']}", "media_type": "text/csv"},
        ],
    )  # fmt: skip
    await call(ann, "toggle_reaction", message_id=said, emoji="😍")
    poll = await call(
        ann, "create_poll", thread=THREAD, question="Which headline do we take?",
        options=["The largest of all", "A storm wider than the Earth", "Look south tonight"],
    )  # fmt: skip
    for who, option in ((bob, 1), (editor, 2), (researcher, 1)):
        await call(who, "vote", poll=poll["id"], options=[option])
    await _post(bob, "@ann can you ask the observatory when it is open?")


async def _brought(client: Client, name: str, content: bytes) -> str:
    """A small file of #general; what a message names it by."""
    begun = await call(client, "begin_upload", name=name, size=len(content), thread=THREAD)
    data = b64encode(content).decode()
    await call(client, "upload_chunk", upload=begun["upload"], offset=0, data=data)
    done = await call(client, "finish_upload", upload=begun["upload"])
    return f"file:{done['id']}"


def _picture() -> bytes:
    """A planet with bands before a dark sky."""
    width, height, radius = 360, 200, 78
    bands = ((222, 200, 168), (196, 150, 112), (236, 222, 200), (170, 122, 92))

    def color(x: int, y: int) -> tuple[int, int, int]:
        dx, dy = x - width // 2, y - height // 2
        if dx * dx + dy * dy > radius * radius:
            return (226, 226, 240) if (x * 7919 + y * 104729) % 1777 == 0 else (14, 16, 30)
        if (dx - 26) ** 2 / 3 + (dy - 24) ** 2 < 60:
            return (186, 92, 62)
        shade = 1 - max(0, dx + dy) / 200
        red, green, blue = bands[(dy + radius) // 13 % len(bands)]
        return (int(red * shade), int(green * shade), int(blue * shade))

    lines = (b"".join(bytes(color(x, y)) for x in range(width)) for y in range(height))
    packed = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


async def _sees_picture(desk: Desk, scene: Scene) -> None:
    picture = desk.message("My picture").locator("canvas")
    await expect(picture).to_have_attribute("data-state", "there")


async def _scrolls_up(desk: Desk, scene: Scene) -> None:
    await desk.message("I have checked the figures").first.scroll_into_view_if_needed()


_DOCUMENT = ("document", "{document}")

WORKSPACE_VIEWS = (
    View("digest", ("digest",), "#general"),
    View("document", _DOCUMENT, "Great Red Spot"),
    View("document-edit", (*_DOCUMENT, "edit"), "Jupiter", shot=False),
    View("document-changes", (*_DOCUMENT, "changes", "1", "3"), "Eleven Earths", shot=False),
    View("document-history", (*_DOCUMENT, "history"), "Checked the figures", shot=False),
    View("documents", ("documents",), "Jupiter", shot=False),
    View("new-document", None, "Title", then=clicks("New document"), where="dialog", shot=False),
    View("tasks", ("tasks", THREAD), "Check all figures"),
    View("task", ("tasks", THREAD), "Diameters and masses", ("task", "{task}"), shot=False),
    View("boards", ("tasks",), "Jupiter story", shot=False),
    View("workspace", ("thread", THREAD), "can you ask the observatory", then=_sees_picture),
    View("workspace-before", None, "I have checked", then=_scrolls_up, shot=False),
    View("polls", ("polls",), "Which headline", shot=False),
    View("files", ("files",), "observations.csv", shot=False),
    View("search", ("search", "jupiter"), "Jupiter"),
)
"""In an order in which each can follow the one before it."""
