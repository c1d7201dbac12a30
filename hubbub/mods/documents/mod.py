"""The mod `documents`: shared Markdown that several people and agents write at the same time.

mods:
  - documents: {max_size: 1MB}
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from hubbub.config.units import Size
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.documents import repository
from hubbub.mods.documents.repository import (
    DocumentRepository,
    DocumentRow,
    comment_findable,
    findable,
)
from hubbub.mods.documents.schemas import (
    Comment,
    CommentOn,
    Comments,
    Conflicting,
    CreateDocument,
    DiffDocument,
    Document,
    DocumentDiff,
    DocumentEdited,
    DocumentHistory,
    Documents,
    DocumentText,
    EditDocument,
    ListDocuments,
    ReadComments,
    ReadDocument,
    ReadHistory,
    ResolveComment,
    WriteDocument,
)
from hubbub.mods.documents.text import Conflict, applied, differences, merged, numbered
from hubbub.mods.fields import number_before, number_of, time_of
from hubbub.mods.operation import Calling, Commit, operation
from hubbub.mods.queues import KeyedQueues
from hubbub.mods.repository import page_of
from hubbub.mods.text_search import Findable, SearchHit, SearchQuery
from hubbub.protocol.codes import ErrorCode

__all__ = ["DocumentsConfig", "DocumentsMod"]


class DocumentsConfig(ModConfig):
    max_size: Size = 1_000_000
    """Bytes of one text."""
    max_lines: Annotated[int, Field(ge=1)] = 20_000
    """Lines of one text."""


PART = 60_000
"""Characters of a text or a difference that one answer has; at least one line."""
MOST_CONFLICTS = 20
SHORT = 2_000
"""Characters of each text of a conflict."""


def fitting(lines: Sequence[str]) -> Sequence[str]:
    """As many of the first lines as one answer has room for."""
    ends = accumulate(len(line) + 1 for line in lines)
    return lines[: max(1, len(list(takewhile(lambda end: end <= PART, ends))))]


def conflict_answer(row: DocumentRow, conflicts: Sequence[Conflict]) -> DocumentEdited:
    more = len(conflicts) - MOST_CONFLICTS
    return DocumentEdited(
        status="conflict",
        document=row.to_schema(),
        version=row.version,
        conflicts=tuple(
            Conflicting(
                first=c.first,
                last=c.first + len(c.ours) - 1,
                was=_short(c.base),
                now=_short(c.ours),
                yours=_short(c.theirs),
            )
            for c in conflicts[:MOST_CONFLICTS]
        ),
        advice=(
            "nothing was saved. For each of `conflicts`, decide what lines `first` to `last` of "
            f"version {row.version} should be; then send your whole change again with "
            f"base_version {row.version} and the line numbers of that version (read_document)"
            + (f". {more} more conflicts are not shown" if more > 0 else "")
        ),
    )


def _short(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= SHORT else f"{text[: SHORT - 3]}..."


class DocumentsMod(Mod):
    """Shared Markdown documents with versions: edits by line, joined where they touch different
    places, comments, history and differences.

    A document belongs to a thread: who reads the thread may read and change it. Every accepted
    edit is a version of its own and stays readable. Edits name the version that their author has
    read; what was changed elsewhere since is merged, and what was changed in the same place is
    told as a conflict, with nothing saved.
    """

    name = "documents"
    Config = DocumentsConfig
    config: DocumentsConfig
    migrations = "tables"
    finds: ClassVar[Findable] = "documents"

    def __init__(self, config: DocumentsConfig):
        super().__init__(config)
        self._queues = KeyedQueues()
        self._store: DocumentRepository
        self._last = self._last_comment = 0

    async def start(self) -> None:
        self._store = DocumentRepository(self.host)
        self._last, self._last_comment = await self._store.last()
        self.host.spawn(self._store.catch_up())

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """What the mod `search` asks."""
        return await self._store.found(search)

    async def _find(self, call: Calling, id: str) -> DocumentRow:
        """The document, if the caller reads its thread. Raises `OperationError`."""
        row = await self._store.document(number_of(id))
        return self.host.visible(call, row, f"document {id}", "list_documents")

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_documents(self, call: Calling, args: ListDocuments) -> Documents:
        """List the shared documents that you may read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        rows = await self._store.of_threads(threads, before, args.limit + 1)
        page, more = page_of(rows, args.limit)
        return Documents(documents=tuple(row.to_schema() for row in page), more=more)

    @operation()
    async def read_document(self, call: Calling, args: ReadDocument) -> DocumentText:
        """Read a shared document, or some of its lines, with line numbers for edits."""
        row = await self._find(call, args.id)
        version = args.version or row.version
        lines = (await self._store.text(row, version)).split("\n")
        first = min(args.first or 1, len(lines))
        part = fitting(lines[first - 1 : args.last or len(lines)])
        return DocumentText(
            document=row.to_schema(),
            version=version,
            text="\n".join(numbered(part, first) if args.numbers else part),
            first=first,
            last=first + len(part) - 1,
            lines=len(lines),
        )

    @operation()
    async def document_history(self, call: Calling, args: ReadHistory) -> DocumentHistory:
        """List the versions of a shared document: who wrote them, when and why."""
        row = await self._find(call, args.id)
        before = args.before or row.version + 1
        found = await self._store.versions(row, before, args.limit + 1)
        versions, more = page_of(found, args.limit)
        return DocumentHistory(document=row.to_schema(), versions=tuple(versions), more=more)

    @operation()
    async def diff_document(self, call: Calling, args: DiffDocument) -> DocumentDiff:
        """Show what changed in a shared document between two versions."""
        row = await self._find(call, args.id)
        new = args.new or row.version
        old_lines = (await self._store.text(row, args.old)).split("\n")
        new_lines = (await self._store.text(row, new)).split("\n")
        names = f"{row.title} (version {args.old})", f"{row.title} (version {new})"
        found = differences(old_lines, new_lines, *names)
        diff = await asyncio.to_thread(list, found)
        part = fitting(diff)
        return DocumentDiff(
            document=row.to_schema(),
            old=args.old,
            new=new,
            diff="\n".join(part),
            cut=len(part) < len(diff),
        )

    # Writing ----------------------------------------------------------------------------------

    @operation(permission="write", output=Document)
    def create_document(self, call: Calling, args: CreateDocument) -> Commit:
        """Create a shared Markdown document for those who read a thread."""
        thread = self.host.thread(call, args.thread)
        self._check_size(args.text)
        self._last += 1
        row = DocumentRow(self._last, thread, args.title, 1, call.participant, self.host.now())
        kept = partial(self._changed, row, "created", call.participant)
        made = [*repository.created(row, args.text), findable(row, args.text)]
        return Commit(made, row.to_schema(), applied=kept)

    @operation(permission="write", output=DocumentEdited)
    async def edit_document(self, call: Calling, args: EditDocument) -> Commit:
        """Replace lines of a shared document, by the line numbers of the version that you have
        read. What others changed elsewhere meanwhile is merged; where they changed the same lines,
        nothing is saved and you are told what stands there."""
        row = await self._find(call, args.id)
        base = await self._store.text(row, args.base_version)
        text = "\n".join(applied(base.split("\n"), args.edits))
        return await self._save(call, args, base, text)

    @operation(permission="write", output=DocumentEdited)
    async def write_document(self, call: Calling, args: WriteDocument) -> Commit:
        """Replace the whole text of a shared document; what others changed since the version that
        you have read is merged as in edit_document."""
        row = await self._find(call, args.id)
        base = await self._store.text(row, args.base_version)
        return await self._save(call, args, base, args.text)

    async def _save(
        self, call: Calling, args: EditDocument | WriteDocument, base: str, text: str
    ) -> Commit:
        self._check_size(text)
        return await self._queues.in_turn(args.id, lambda: self._joined(call, args, base, text))

    async def _joined(
        self, call: Calling, args: EditDocument | WriteDocument, base: str, text: str
    ) -> Commit:
        """A new version with the text in it, unless it conflicts with what stands by now."""
        row = await self._find(call, args.id)
        now = await self._store.text(row, row.version)
        both = await asyncio.to_thread(merged, *(t.split("\n") for t in (base, now, text)))
        if both.conflicts:
            return Commit((), conflict_answer(row, both.conflicts))
        result = "\n".join(both.lines)
        if result == now:
            same = DocumentEdited(status="unchanged", document=row.to_schema(), version=row.version)
            return Commit((), same)
        self._check_size(result)
        status = "saved" if row.version == args.base_version else "merged"
        row = row._replace(version=row.version + 1)
        author, at = call.participant, self.host.now()
        return Commit(
            [
                *repository.saved(row, args.base_version, author, at, args.note, result),
                findable(row, result),
            ],
            DocumentEdited(status=status, document=row.to_schema(), version=row.version),
            applied=partial(self._changed, row, "edited", author),
        )

    def _check_size(self, text: str) -> None:
        size, limit = len(text.encode()), self.config.max_size
        if size > limit:
            raise OperationError(
                ErrorCode.TOO_LARGE, f"text: at most {limit} bytes, this has {size}"
            )
        lines, most = text.count("\n") + 1, self.config.max_lines
        if lines > most:
            raise OperationError(
                ErrorCode.TOO_LARGE, f"text: at most {most} lines, this has {lines}"
            )

    def _changed(self, row: DocumentRow, what: str, by: str) -> None:
        """Those who have it open are told."""
        data: JsonValue = {"id": f"d{row.id}", "title": row.title, "version": row.version, "by": by}
        self.host.signal(row.thread, what, data)

    # Comments ---------------------------------------------------------------------------------

    @operation(permission="write", output=Comment)
    async def comment_on_document(self, call: Calling, args: CommentOn) -> Commit:
        """Comment on a shared document, or on one line of it."""
        row = await self._find(call, args.id)
        if args.line is not None:
            lines = (await self._store.text(row, row.version)).count("\n") + 1
            if args.line > lines:
                raise OperationError(
                    ErrorCode.BAD_REQUEST, f"line: {args.id} has {lines} lines, not {args.line}"
                )
        self._last_comment += 1
        at = self.host.now()
        comment = Comment(
            id=self._last_comment,
            version=row.version,
            line=args.line,
            author=call.participant,
            at=time_of(at),
            text=args.text,
        )
        kept = partial(self._changed, row, "commented", call.participant)
        made = [*repository.commented(row, comment, at), comment_findable(comment.id, args.text)]
        return Commit(made, comment, applied=kept)

    @operation()
    async def read_document_comments(self, call: Calling, args: ReadComments) -> Comments:
        """Read the comments on a shared document."""
        row = await self._find(call, args.id)
        found = await self._store.comments(row, args.after, args.limit + 1, resolved=args.resolved)
        comments, more = page_of(found, args.limit)
        return Comments(document=row.to_schema(), comments=tuple(comments), more=more)

    @operation(permission="write", output=Comment)
    async def resolve_document_comment(self, call: Calling, args: ResolveComment) -> Commit:
        """Mark a comment on a shared document as done with."""
        return await self._queues.in_turn(args.id, lambda: self._resolved(call, args))

    async def _resolved(self, call: Calling, args: ResolveComment) -> Commit:
        row = await self._find(call, args.id)
        comment = await self._store.comment(row, args.comment)
        if comment is None:
            raise OperationError(ErrorCode.NOT_FOUND, f"{args.id} has no comment {args.comment}")
        if comment.resolved_by is not None:
            return Commit((), comment)
        by = call.participant
        return Commit(
            repository.resolved(comment.id, by),
            comment.model_copy(update={"resolved_by": by}),
            applied=partial(self._changed, row, "commented", by),
        )
