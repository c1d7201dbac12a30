"""Who reads a thread reads its files, and who has brought one keeps it; uploads are one's own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable

from hubbub.client import Client
from tests.interaction.mods.permissions import THREAD, Entry, Who, ask

DATA = b64encode(b"text").decode()


def reading(who: Who) -> bool:
    return who.member or who.own


def deleting(who: Who) -> bool:
    """Who has brought it, and owners."""
    return who.own or (who.member and who.role == "owner")


def sharing(who: Who) -> bool:
    """It is shared with this very thread."""
    return who.member


def own(who: Who) -> bool:
    return who.own


async def file(client: Client) -> str:
    made = await ask(client, "write_file", name="x.md", text="text", thread=THREAD)
    return str(made["id"])


async def upload(client: Client) -> str:
    begun = await ask(client, "begin_upload", name="x.md", size=4, thread=THREAD)
    return str(begun["upload"])


async def whole(client: Client) -> str:
    id = await upload(client)
    await ask(client, "upload_chunk", upload=id, offset=0, data=DATA)
    return id


def _of_upload(make: Callable[[Client], Awaitable[str]], **more: object) -> Entry:
    return Entry(
        make=make,
        args=lambda id: {"upload": id, **more},
        allowed=own,
        missing=f"u{'0' * 16}",
        refused=("not_found",),
    )


SETTINGS = {"max_uploads": 100}
ENTRIES = {
    "begin_upload": Entry(args=lambda thread: {"name": "x.md", "size": 4, "thread": thread}),
    "write_file": Entry(args=lambda thread: {"name": "x.md", "text": "text", "thread": thread}),
    "upload_chunk": _of_upload(upload, offset=0, data=DATA),
    "upload_state": _of_upload(upload),
    "cancel_upload": _of_upload(upload),
    "finish_upload": _of_upload(whole),
    "list_files": Entry(
        make=file,
        found=lambda answer, id: id in [each["id"] for each in answer["files"]],
        allowed=reading,
    ),
    "file_info": Entry(make=file, args=lambda id: {"id": id}, allowed=reading, missing="f9999"),
    "read_file": Entry(make=file, args=lambda id: {"id": id}, allowed=reading, missing="f9999"),
    "download_chunk": Entry(
        make=file, args=lambda id: {"id": id}, allowed=reading, missing="f9999"
    ),
    "share_file": Entry(
        make=file,
        args=lambda id: {"id": id, "thread": THREAD},
        allowed=sharing,
    ),
    "delete_file": Entry(make=file, args=lambda id: {"id": id}, allowed=deleting, missing="f9999"),
}
