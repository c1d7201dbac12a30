"""Shared documents and what has changed in them."""

from __future__ import annotations

from typing import Any

from hubbub.errors import UserError
from hubbub.mods.documents.schemas import DocumentDiff, DocumentText
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.shown import CommandResult, NoteLine, Tone, text_notes
from hubbub.people.text import one_line

__all__ = ["COMMANDS"]


def text(found: DocumentText, person: PersonClient) -> list[NoteLine]:
    """The text below what it is, and how to go on where it is cut."""
    document = found.document
    head = f"── {document.id} {one_line(document.title)}, version {found.version}"
    whole = found.first <= 1 and found.last >= found.lines
    part = "" if whole else f", lines {found.first} to {found.last} of {found.lines}"
    notes = [NoteLine(f"{head}{part} ──"), *text_notes(found.text)]
    if found.last < found.lines:
        which = "" if found.version == document.version else f"--version {found.version} "
        more = f"documents show {which}--first {found.last + 1} {document.id}"
        notes.append(NoteLine(f"{person.typed(more)} goes on"))
    return notes


_TONES: dict[str, Tone] = {"+": "good", "-": "removed", "@": "info"}


def difference(found: DocumentDiff) -> list[NoteLine]:
    """What was added and removed between two versions."""
    document = found.document
    head = f"── {document.id} {one_line(document.title)}, version {found.old} to {found.new} ──"
    changed = [line for line in found.diff.split("\n") if line[:4] not in ("--- ", "+++ ")]
    while changed and not changed[-1]:
        changed.pop()
    shown = (
        line if line[:1] in ("+", "-", "@") else f" {line.removeprefix(' ')}" for line in changed
    )
    lines = [NoteLine(line, _TONES.get(line[:1], "plain")) for line in shown]
    cut = [NoteLine("it is longer than this; the page shows it whole")] if found.cut else []
    return [NoteLine(head), *(lines or [NoteLine("nothing has changed")]), *cut]


async def diff(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Between two versions; left out: the last two."""
    id, old, new = given["id"], given.get("old"), given.get("new")
    if old is None:
        latest = await person.ask(DocumentText, "read_document", id=id, first=1, last=1)
        old = (new or latest.document.version) - 1
    if old < 1:
        raise UserError(f"{id} has nothing to compare with before its first version")
    value = await person.call("diff_document", id=id, old=old, new=new)
    remember(person, value)
    return CommandResult(value, difference(DocumentDiff.model_validate(value)))


COMMANDS = (
    Command("documents list", "list_documents", here=True,
            columns=("document=id", "version", "by=created_by", "from=created_at", "title")),
    Command("documents show", "read_document", text, fixed={"numbers": False}),
    Command("documents comment", "comment_on_document"),
    Command("documents comments", "read_document_comments"),
    Command("documents diff", "diff_document", do=diff, order=("id", "old?", "new?"),
            about="Show what has changed between two versions; without any, at last."),
)  # fmt: skip
