"""Who reads the thread of a document may do everything with it, nobody else anything."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import THREAD, Entry, ask

NEW = [{"first": 1, "last": 1, "text": "new"}]


async def document(client: Client) -> str:
    made = await ask(client, "create_document", title="Plan", text="old", thread=THREAD)
    return str(made["id"])


async def comment(client: Client) -> str:
    id = await document(client)
    made = await ask(client, "comment_on_document", id=id, text="why?")
    return f"{id} {made['id']}"


def _comment(ids: str) -> dict[str, object]:
    id, number = ids.split()
    return {"id": id, "comment": int(number)}


def _about(**more: object) -> Entry:
    return Entry(make=document, args=lambda id: {"id": id, **more}, missing="d999999")


ENTRIES = {
    "create_document": Entry(args=lambda thread: {"title": "Plan", "thread": thread}),
    "list_documents": Entry(
        make=document, found=lambda answer, id: id in [each["id"] for each in answer["documents"]]
    ),
    "read_document": _about(),
    "document_history": _about(),
    "diff_document": _about(old=1),
    "edit_document": _about(base_version=1, edits=NEW),
    "write_document": _about(base_version=1, text="new"),
    "comment_on_document": _about(text="why?"),
    "read_document_comments": _about(),
    "resolve_document_comment": Entry(make=comment, args=_comment, missing="d999999 1"),
}
