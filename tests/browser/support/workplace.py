"""A workplace made of mods, and views of the page on it: for audits and screenshots."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import expect
from pydantic import JsonValue

from hubbub.client import Client
from tests.browser.support.desk import Desk
from tests.browser.support.network import Room
from tests.browser.support.png import drawn

__all__ = ["MODS", "WORKPLACE_VIEWS", "Workplace", "WorkplaceView", "a_workday"]

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


@dataclass(frozen=True)
class Workplace:
    """What was made on the day."""

    document: str
    """Its id; ann's draft, changed by bob and the editor, with a comment."""
    task: str
    """Its id; in the researcher's hands."""


async def _ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def _post(client: Client, text: str, **more: Any) -> str:
    said = await _ask(client, "post_to_channel", channel="general", text=text, **more)
    return str(said["id"])


async def a_workday(room: Room) -> Workplace:
    """People and agents work together; ann is the one who looks at it afterwards."""
    ann, bob = (await room.join("ann")).client, (await room.join("bob")).client
    editor, researcher = await room.enters("editor"), await room.enters("researcher")
    for each in (ann, bob, editor, researcher):
        await each.call("join_channel", channel="general")
    await _ask(ann, "list_threads")
    document = await _written(ann, bob, editor)
    task = await _planned(ann, bob, editor, researcher)
    await _talked(ann, bob, editor, researcher)
    return Workplace(document, task)


async def _written(ann: Client, bob: Client, editor: Client) -> str:
    made = await _ask(
        ann, "create_document", title="Jupiter, the largest of all", text=_DRAFT, thread=THREAD
    )
    id = str(made["id"])
    await _ask(
        editor, "write_document", id=id, base_version=1, text=_REWORKED, note="Checked the figures"
    )
    third = _REWORKED.replace("Tonight", "This month").replace("high in the south", "in the south")
    await _ask(bob, "write_document", id=id, base_version=2, text=third, note="Not only tonight")
    await _ask(
        bob,
        "comment_on_document",
        id=id,
        line=3,
        text="From where? It is low in the north.",
    )
    await _ask(editor, "comment_on_document", id=id, text="Ready for the front page, I think.")
    return id


async def _planned(ann: Client, bob: Client, editor: Client, researcher: Client) -> str:
    board = await _ask(ann, "create_board", thread=THREAD, name="Jupiter story")

    async def task(title: str, **more: Any) -> str:
        made = await _ask(ann, "create_task", board=board["id"], title=title, **more)
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
    await _ask(researcher, "claim_task", task=figures)
    await _ask(bob, "claim_task", task=picture)
    await _ask(editor, "claim_task", task=outline)
    await _ask(editor, "finish_task", task=outline, result="It stands in the document.")
    await _ask(ann, "cancel_task", task=old, note="Four moons are enough.")
    return figures


async def _talked(ann: Client, bob: Client, editor: Client, researcher: Client) -> None:
    await _post(ann, "Good morning! The draft on **Jupiter** is in the documents.")
    good = await _post(editor, "I have checked the figures and made it shorter: version 2.")
    for who, emoji in ((ann, "👍"), (bob, "👍"), (researcher, "🎉"), (bob, "🪐")):
        await _ask(who, "toggle_reaction", message_id=good, emoji=emoji)
    wrong = await _post(researcher, "Its diameter is 142,984 km, measured from pole to pole.")
    await _ask(
        researcher, "edit_message", message_id=wrong,
        text="Its diameter is 142,984 km at the equator, and 133,708 km from pole to pole.",
    )  # fmt: skip
    seen = await _brought(bob, "jupiter.png", _picture())
    made = await _ask(
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
    await _ask(ann, "toggle_reaction", message_id=said, emoji="😍")
    poll = await _ask(
        ann, "create_poll", thread=THREAD, question="Which headline do we take?",
        options=["The largest of all", "A storm wider than the Earth", "Look south tonight"],
    )  # fmt: skip
    for who, option in ((bob, 1), (editor, 2), (researcher, 1)):
        await _ask(who, "vote", poll=poll["id"], options=[option])
    await _post(bob, "@ann can you ask the observatory when it is open?")


async def _brought(client: Client, name: str, content: bytes) -> str:
    """A small file of #general; what a message names it by."""
    begun = await _ask(client, "begin_upload", name=name, size=len(content), thread=THREAD)
    data = b64encode(content).decode()
    await _ask(client, "upload_chunk", upload=begun["upload"], offset=0, data=data)
    done = await _ask(client, "finish_upload", upload=begun["upload"])
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

    return drawn(width, height, color)


@dataclass(frozen=True)
class WorkplaceView:
    """One thing that people look at."""

    name: str
    """Of the file of its screenshot."""
    arrange: Callable[[Desk, Workplace], Awaitable[None]]
    """Brings a desk of ann's to it, from wherever it is."""
    shot: bool = True
    """Whether a screenshot of it is kept."""


async def _document(desk: Desk, day: Workplace) -> None:
    await desk.visit("document", day.document)
    await expect(desk.main.get_by_role("article")).to_contain_text("Great Red Spot")


async def _editor(desk: Desk, day: Workplace) -> None:
    await desk.visit("document", day.document, "edit")
    await expect(desk.main.get_by_label("Text of Jupiter")).to_be_visible()


async def _changes(desk: Desk, day: Workplace) -> None:
    await desk.visit("document", day.document, "changes", "1", "3")
    await expect(desk.main).to_contain_text("Eleven Earths")


async def _history(desk: Desk, day: Workplace) -> None:
    await desk.visit("document", day.document, "history")
    await expect(desk.main).to_contain_text("Checked the figures")


async def _documents(desk: Desk, day: Workplace) -> None:
    await desk.visit("documents")
    await expect(desk.main).to_contain_text("Jupiter")


async def _board(desk: Desk, day: Workplace) -> None:
    await desk.visit("tasks", THREAD)
    await expect(desk.main.get_by_role("article").first).to_be_visible()


async def _task(desk: Desk, day: Workplace) -> None:
    await desk.visit("tasks", THREAD, opened=("task", day.task))
    await expect(desk.details).to_contain_text("Diameters and masses")


async def _boards(desk: Desk, day: Workplace) -> None:
    await desk.visit("tasks")
    await expect(desk.main).to_contain_text("Jupiter story")


async def _talk(desk: Desk, day: Workplace) -> None:
    await desk.visit("thread", THREAD)
    await desk.sees("can you ask the observatory")
    picture = desk.message("My picture").locator("canvas")
    await expect(picture).to_have_attribute("data-state", "there")


async def _talk_before(desk: Desk, day: Workplace) -> None:
    await _talk(desk, day)
    await desk.message("I have checked the figures").first.scroll_into_view_if_needed()


async def _polls(desk: Desk, day: Workplace) -> None:
    await desk.visit("polls")
    await expect(desk.main).to_contain_text("Which headline")


async def _files(desk: Desk, day: Workplace) -> None:
    await desk.visit("files")
    await expect(desk.main).to_contain_text("observations.csv")


async def _search(desk: Desk, day: Workplace) -> None:
    await desk.visit("search", "jupiter")
    await expect(desk.main.get_by_role("list", name="What was found")).to_be_visible()


async def _digest(desk: Desk, day: Workplace) -> None:
    await desk.visit("digest")
    await expect(desk.main).to_contain_text("#general")


WORKPLACE_VIEWS = (
    WorkplaceView("digest", _digest),
    WorkplaceView("document", _document),
    WorkplaceView("document-edit", _editor, shot=False),
    WorkplaceView("document-changes", _changes, shot=False),
    WorkplaceView("document-history", _history, shot=False),
    WorkplaceView("documents", _documents, shot=False),
    WorkplaceView("tasks", _board),
    WorkplaceView("task", _task, shot=False),
    WorkplaceView("boards", _boards, shot=False),
    WorkplaceView("workplace", _talk),
    WorkplaceView("workplace-before", _talk_before, shot=False),
    WorkplaceView("polls", _polls, shot=False),
    WorkplaceView("files", _files, shot=False),
    WorkplaceView("search", _search),
)
"""In an order in which each can follow the one before it."""
