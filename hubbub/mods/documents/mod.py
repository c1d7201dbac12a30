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
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.documents import repository
from hubbub.mods.documents.repository import DocumentRepository
from hubbub.mods.documents.schemas import (
    ChangeDocument,
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
from hubbub.mods.fields import number_before, time_of
from hubbub.mods.operation import Calling, Commit, operation
from hubbub.mods.queues import KeyedQueues
from hubbub.mods.refusals import bad_request, not_found, too_large
from hubbub.mods.text_search import Findable, SearchHit, SearchQuery
from hubbub.wording import shortened

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


def conflict_answer(document: Document, conflicts: Sequence[Conflict]) -> DocumentEdited:
    more = len(conflicts) - MOST_CONFLICTS
    return DocumentEdited(
        status="conflict",
        document=document,
        version=document.version,
        conflicts=tuple(
            Conflicting(
                first=c.first,
                last=c.first + len(c.ours) - 1,
                was=shortened("\n".join(c.base), SHORT),
                now=shortened("\n".join(c.ours), SHORT),
                yours=shortened("\n".join(c.theirs), SHORT),
            )
            for c in conflicts[:MOST_CONFLICTS]
        ),
        advice=(
            "nothing was saved. For each of `conflicts`, decide what lines `first` to `last` of "
            f"version {document.version} should be; then send your whole change again with "
            f"base_version {document.version} and the line numbers of that version (read_document)"
            + (f". {more} more conflicts are not shown" if more > 0 else "")
        ),
    )


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

    async def _find(self, call: Calling, id: str) -> Document:
        """The document, if the caller reads its thread. Raises `OperationError`."""
        found = await self._store.document(id)
        return self.host.visible(call, found, f"document {id}", "list_documents")

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_documents(self, call: Calling, args: ListDocuments) -> Documents:
        """List the shared documents that you may read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        documents, more = await self._store.of_threads(threads, before, args.limit)
        return Documents(documents=documents, more=more)

    @operation()
    async def read_document(self, call: Calling, args: ReadDocument) -> DocumentText:
        """Read a shared document, or some of its lines, with line numbers for edits."""
        document = await self._find(call, args.id)
        version = args.version or document.version
        lines = (await self._store.text(document, version)).split("\n")
        first = min(args.first or 1, len(lines))
        part = fitting(lines[first - 1 : args.last or len(lines)])
        return DocumentText(
            document=document,
            version=version,
            text="\n".join(numbered(part, first) if args.numbers else part),
            first=first,
            last=first + len(part) - 1,
            lines=len(lines),
        )

    @operation()
    async def document_history(self, call: Calling, args: ReadHistory) -> DocumentHistory:
        """List the versions of a shared document: who wrote them, when and why."""
        document = await self._find(call, args.id)
        before = args.before or document.version + 1
        versions, more = await self._store.versions(document.id, before, args.limit)
        return DocumentHistory(document=document, versions=versions, more=more)

    @operation()
    async def diff_document(self, call: Calling, args: DiffDocument) -> DocumentDiff:
        """Show what changed in a shared document between two versions."""
        document = await self._find(call, args.id)
        versions = args.old, args.new or document.version
        old, new = [(await self._store.text(document, each)).split("\n") for each in versions]
        names = [f"{document.title} (version {version})" for version in versions]
        diff = await asyncio.to_thread(list, differences(old, new, *names))
        part = fitting(diff)
        return DocumentDiff(
            document=document,
            old=versions[0],
            new=versions[1],
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
        made = Document(
            id=f"d{self._last}",
            title=args.title,
            thread_id=thread,
            version=1,
            created_by=call.participant,
            created_at=time_of(self.host.now()),
        )
        tell = partial(self._changed, made, "created", call.participant)
        return Commit(repository.created(made, args.text), made, applied=tell)

    @operation(permission="write", output=DocumentEdited)
    async def edit_document(self, call: Calling, args: EditDocument) -> Commit:
        """Replace lines of a shared document, by the line numbers of the version that you have
        read. What others changed elsewhere meanwhile is merged; where they changed the same lines,
        nothing is saved and you are told what stands there."""
        base = await self._store.text(await self._find(call, args.id), args.base_version)
        return await self._save(call, args, base, "\n".join(applied(base.split("\n"), args.edits)))

    @operation(permission="write", output=DocumentEdited)
    async def write_document(self, call: Calling, args: WriteDocument) -> Commit:
        """Replace the whole text of a shared document; what others changed since the version that
        you have read is merged as in edit_document."""
        base = await self._store.text(await self._find(call, args.id), args.base_version)
        return await self._save(call, args, base, args.text)

    async def _save(self, call: Calling, args: ChangeDocument, base: str, text: str) -> Commit:
        """A new version with the text in it, unless it conflicts with what stands by now."""
        self._check_size(text)
        async with self._queues.turn(args.id) as until:
            document = await self._find(call, args.id)
            now = await self._store.text(document, document.version)
            both = await asyncio.to_thread(merged, *(t.split("\n") for t in (base, now, text)))
            if both.conflicts:
                return until(Commit((), conflict_answer(document, both.conflicts)))
            result, before = "\n".join(both.lines), document.version
            if result == now:
                same = DocumentEdited(status="unchanged", document=document, version=before)
                return until(Commit((), same))
            self._check_size(result)
            status = "saved" if before == args.base_version else "merged"
            document = document.model_copy(update={"version": before + 1})
            author, at = call.participant, self.host.now()
            return until(
                Commit(
                    repository.saved(document, args.base_version, author, at, args.note, result),
                    DocumentEdited(status=status, document=document, version=document.version),
                    applied=partial(self._changed, document, "edited", author),
                )
            )

    def _check_size(self, text: str) -> None:
        size, limit = len(text.encode()), self.config.max_size
        if size > limit:
            raise too_large(f"text: at most {limit} bytes, this has {size}")
        lines, most = text.count("\n") + 1, self.config.max_lines
        if lines > most:
            raise too_large(f"text: at most {most} lines, this has {lines}")

    def _changed(self, document: Document, what: str, by: str) -> None:
        """Those who have it open are told."""
        data: JsonValue = {"by": by, **document.model_dump(include={"id", "title", "version"})}
        self.host.signal(document.thread_id, what, data)

    # Comments ---------------------------------------------------------------------------------

    @operation(permission="write", output=Comment)
    async def comment_on_document(self, call: Calling, args: CommentOn) -> Commit:
        """Comment on a shared document, or on one line of it."""
        document = await self._find(call, args.id)
        if args.line is not None:
            lines = (await self._store.text(document, document.version)).count("\n") + 1
            if args.line > lines:
                raise bad_request(f"line: {args.id} has {lines} lines, not {args.line}")
        self._last_comment += 1
        comment = Comment(
            id=self._last_comment,
            version=document.version,
            line=args.line,
            author=call.participant,
            at=time_of(self.host.now()),
            text=args.text,
        )
        tell = partial(self._changed, document, "commented", call.participant)
        return Commit(repository.commented(document.id, comment), comment, applied=tell)

    @operation()
    async def read_document_comments(self, call: Calling, args: ReadComments) -> Comments:
        """Read the comments on a shared document."""
        document, all_ = await self._find(call, args.id), args.resolved
        comments, more = await self._store.comments(args.id, args.after, args.limit, resolved=all_)
        return Comments(document=document, comments=comments, more=more)

    @operation(permission="write", output=Comment)
    async def resolve_document_comment(self, call: Calling, args: ResolveComment) -> Commit:
        """Mark a comment on a shared document as done with."""
        async with self._queues.turn(args.id) as until:
            document, by = await self._find(call, args.id), call.participant
            comment = await self._store.comment(args.id, args.comment)
            if comment is None:
                raise not_found(f"{args.id} has no comment {args.comment}")
            if comment.resolved_by is not None:
                return until(Commit((), comment))
            done = comment.model_copy(update={"resolved_by": by})
            tell = partial(self._changed, document, "commented", by)
            return until(Commit(repository.resolved(comment.id, by), done, applied=tell))
