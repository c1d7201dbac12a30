"""Files and documents: what is asked, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hubbub.cli.chat.lines import Note, Tone
from hubbub.cli.chat.text import one_line
from hubbub.cli.control.words import moment
from hubbub.cli.workplace import works
from hubbub.cli.workplace.carrying import Progress, bring, free_place, local_file, save
from hubbub.cli.workplace.told import Told, done, size_words, table, text_lines
from hubbub.errors import UserError
from hubbub.mods.documents.schemas import Document, DocumentDiff, Documents, DocumentText
from hubbub.mods.files.schemas import File, Files
from hubbub.protocol.operations import SendResult

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker

__all__ = ["Shelves", "diff_notes", "document_notes", "file_notes"]

LISTED = 30
"""Things in a list."""


class Shelves:
    """Brings, lists and fetches files; shows documents and what has changed in them."""

    def __init__(self, asker: Asker, progress: Progress):
        self._asker, self._progress = asker, progress

    async def do(self, work: works.OfShelves) -> Told:
        """Do it. Raises `UserError`, `OperationError`."""
        match work:
            case works.Files():
                return await self._files()
            case works.Attach(path, text):
                return await self._attach(path, text)
            case works.Get(file, path):
                return await self._get(file, path)
            case works.Documents():
                return await self._documents()
            case works.Document():
                return await self._document(work)
            case works.Diff():
                return await self._diff(work)
            case _:
                assert_never(work)

    # Files ------------------------------------------------------------------------------------

    async def _files(self) -> Told:
        thread = self._asker.known.current
        found = await self._asker.ask(Files, "list_files", thread=thread, limit=LISTED)
        self._seen(*found.files)
        return Told(file_notes(found))

    async def _attach(self, path: str, text: str) -> Told:
        """Upload a file, then say it in the thread that was open when this began."""
        asker, thread = self._asker, self._asker.known.current
        place = local_file(path)
        # Its readers get it with the message: a reply thread may not exist before that.
        file = await bring(asker, place, None, self._progress)
        self._seen(file)
        operation, where = asker.known.way_to(thread)
        attachment = {"name": file.name, "uri": f"file:{file.id}"}
        sent = await asker.ask(
            SendResult, operation, text=text or file.name, attachments=[attachment], **where
        )
        return Told([], done=True, spoken=sent)

    async def _get(self, id: str, path: str) -> Told:
        file = await self._asker.ask(File, "file_info", id=id)
        self._seen(file)
        if file.deleted_by is not None:
            raise UserError(f"{id} {one_line(file.name)} was deleted by {file.deleted_by}")
        place = free_place(path, file.name)
        await save(self._asker, file, place, self._progress)
        return done(f"{file.id} is saved: {place} ({size_words(file.size)})")

    def _seen(self, *files: File) -> None:
        self._asker.known.seen.note((file.id, file.name) for file in files)

    # Documents --------------------------------------------------------------------------------

    async def _documents(self) -> Told:
        thread = self._asker.known.current
        found = await self._asker.ask(Documents, "list_documents", thread=thread, limit=LISTED)
        self._documents_seen(*found.documents)
        if not found.documents:
            return Told([Note("this thread has no documents")])
        rows = (
            (each.id, str(each.version), each.created_by, moment(each.created_at), each.title)
            for each in found.documents
        )
        more = [Note("there are earlier ones")] if found.more else []
        return Told([*table(("DOC", "VERSION", "BY", "FROM", ""), rows), *more])

    async def _document(self, work: works.Document) -> Told:
        found = await self._asker.ask(
            DocumentText,
            "read_document",
            id=work.document,
            version=work.version,
            first=work.line,
            numbers=False,
        )
        self._documents_seen(found.document)
        return Told(document_notes(found))

    async def _diff(self, work: works.Diff) -> Told:
        old, new = work.old, work.new
        if old is None:
            old = (new if new is not None else await self._latest(work.document)) - 1
        if old < 1:
            raise UserError(f"{work.document} has nothing to compare with before its first version")
        found = await self._asker.ask(
            DocumentDiff, "diff_document", id=work.document, old=old, new=new
        )
        self._documents_seen(found.document)
        return Told(diff_notes(found))

    async def _latest(self, id: str) -> int:
        found = await self._asker.ask(DocumentText, "read_document", id=id, first=1, last=1)
        return found.document.version

    def _documents_seen(self, *documents: Document) -> None:
        self._asker.known.seen.note((document.id, document.title) for document in documents)


def file_notes(found: Files) -> list[Note]:
    """A table of files."""
    if not found.files:
        return [Note("this thread has no files")]
    rows = (
        (
            file.id,
            file.name,
            "deleted" if file.deleted_by is not None else file.media_type,
            size_words(file.size),
            file.uploaded_by,
            moment(file.at),
        )
        for file in found.files
    )
    more = [Note("there are earlier ones")] if found.more else []
    return [*table(("FILE", "NAME", "TYPE", "SIZE", "BY", "AT"), rows), *more]


def document_notes(found: DocumentText) -> list[Note]:
    """The text below what it is, and how to go on where it is cut."""
    document = found.document
    head = f"── {document.id} {one_line(document.title)}, version {found.version}"
    whole = found.first <= 1 and found.last >= found.lines
    part = "" if whole else f", lines {found.first} to {found.last} of {found.lines}"
    notes = [Note(f"{head}{part} ──"), *text_lines(found.text)]
    if found.last < found.lines:
        which = "" if found.version == document.version else f" v{found.version}"
        notes.append(Note(f"/doc {document.id}{which} :{found.last + 1} goes on"))
    return notes


_TONES: dict[str, Tone] = {"+": "good", "-": "removed", "@": "info"}


def diff_notes(found: DocumentDiff) -> list[Note]:
    """What was added and removed between two versions."""
    document = found.document
    head = f"── {document.id} {one_line(document.title)}, version {found.old} to {found.new} ──"
    changed = [line for line in found.diff.split("\n") if line[:4] not in ("--- ", "+++ ")]
    while changed and not changed[-1]:
        changed.pop()
    shown = (
        line if line[:1] in ("+", "-", "@") else f" {line.removeprefix(' ')}" for line in changed
    )
    lines = [Note(line, _TONES.get(line[:1], "plain")) for line in shown]
    cut = [Note("it is longer than this; the page shows it whole")] if found.cut else []
    return [Note(head), *(lines or [Note("nothing has changed")]), *cut]
