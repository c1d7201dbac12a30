"""Shared documents and their changes."""

from __future__ import annotations

from typing import Any

from hubbub.errors import UserError
from hubbub.mods.documents.schemas import DocumentDiff, DocumentText
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.shown import CommandResult, NoteLine, Tone, text_notes
from hubbub.people.text import one_line

__all__ = ["COMMANDS"]


def text(answer: DocumentText, person: PersonClient) -> list[NoteLine]:
    """A heading, the text, and the command for the next part if it is cut."""
    document = answer.document
    head = f"── {document.id} {one_line(document.title)}, version {answer.version}"
    whole = answer.first <= 1 and answer.last >= answer.lines
    part = "" if whole else f", lines {answer.first} to {answer.last} of {answer.lines}"
    notes = [NoteLine(f"{head}{part} ──"), *text_notes(answer.text)]
    if answer.last < answer.lines:
        which = "" if answer.version == document.version else f"--version {answer.version} "
        more = f"documents show {which}--first {answer.last + 1} {document.id}"
        notes.append(NoteLine(f"`{person.typed(more)}` shows more"))
    return notes


_TONES: dict[str, Tone] = {"+": "good", "-": "removed", "@": "info"}


def difference(answer: DocumentDiff) -> list[NoteLine]:
    """The lines added and removed between two versions."""
    document = answer.document
    head = f"── {document.id} {one_line(document.title)}, version {answer.old} to {answer.new} ──"
    changed = [line for line in answer.diff.split("\n") if line[:4] not in ("--- ", "+++ ")]
    while changed and not changed[-1]:
        changed.pop()
    shown = (
        line if line[:1] in ("+", "-", "@") else f" {line.removeprefix(' ')}" for line in changed
    )
    lines = [NoteLine(line, _TONES.get(line[:1], "plain")) for line in shown]
    cut = [NoteLine("the page shows the whole diff")] if answer.cut else []
    return [NoteLine(head), *(lines or [NoteLine("no changes")]), *cut]


async def diff(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """The difference between two versions, by default the last two."""
    id, old, new = given["id"], given.get("old"), given.get("new")
    if old is None:
        latest = await person.ask(DocumentText, "read_document", id=id, first=1, last=1)
        old = (new or latest.document.version) - 1
    if old < 1:
        raise UserError(f"{id} has no version before its first")
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
            about="Show the changes between two versions. Default: the last two."),
)  # fmt: skip
