"""The mod `documents`: shared Markdown that people and agents edit concurrently.

mods:
  - documents: {max_size: 1MB}
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from hubbub.config.units import Size
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.documents.schemas import (
    ChangeDocument,
    Comment,
    CommentOn,
    Comments,
    CreateDocument,
    DiffDocument,
    Document,
    DocumentDiff,
    DocumentEdited,
    DocumentHistory,
    Documents,
    DocumentText,
    DocumentVersion,
    EditConflict,
    EditDocument,
    ListDocuments,
    ReadComments,
    ReadDocument,
    ReadHistory,
    ResolveComment,
    WriteDocument,
)
from hubbub.mods.documents.text import Conflict, apply_edits, merge, number_lines, unified_diff
from hubbub.mods.fields import number_before, number_of, time_of
from hubbub.mods.operation import (
    Calling,
    Commit,
    Statement,
    bad_request,
    not_found,
    operation,
    too_large,
)
from hubbub.mods.repository import (
    AMONG,
    KeyedQueues,
    Repository,
    columns,
    from_row,
    insert,
    listed,
    update,
)
from hubbub.mods.text_search import Findable, SearchHit, SearchQuery, indexable, snippet_of
from hubbub.wording import shortened

__all__ = ["DocumentsConfig", "DocumentsMod"]


_DOCUMENTS = "SELECT {} FROM documents_document WHERE".format(
    columns(Document, id="'d' || id", thread_id="thread")
)
_COMMENTS = f"SELECT {columns(Comment)} FROM documents_comment WHERE document = ?"
_document, _version_of, _comment = from_row(Document), from_row(DocumentVersion), from_row(Comment)


class DocumentRepository(Repository):
    async def document(self, id: str) -> Document | None:
        return await self.one(_document, f"{_DOCUMENTS} id = ?", number_of(id))

    async def of_threads(
        self, threads: Collection[str], before: int, limit: int
    ) -> tuple[tuple[Document, ...], bool]:
        """Documents of these threads with numbers below `before`, latest first."""
        sql = f"{_DOCUMENTS} thread {AMONG} AND id < ? ORDER BY id DESC LIMIT ?"
        return await self.page(_document, sql, listed(threads), before, limit=limit)

    async def text(self, document: Document, version: int) -> str:
        """The text of a version. Raises `OperationError` if it does not exist."""
        sql = "SELECT text FROM documents_version WHERE document = ? AND version = ?"
        rows = await self._host.rows(sql, number_of(document.id), version)
        if not rows:
            latest = document.version
            raise not_found(f"{document.id} has no version {version}; the latest is {latest}")
        return zlib.decompress(rows[0][0]).decode()

    async def versions(
        self, id: str, before: int, limit: int
    ) -> tuple[tuple[DocumentVersion, ...], bool]:
        """Versions before this one, latest first."""
        sql = (
            f"SELECT {columns(DocumentVersion)} FROM documents_version "
            "WHERE document = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return await self.page(_version_of, sql, number_of(id), before, limit=limit)

    async def comment(self, document: str, id: int) -> Comment | None:
        return await self.one(_comment, f"{_COMMENTS} AND id = ?", number_of(document), id)

    async def comments(
        self, document: str, after: int, limit: int, *, resolved: bool
    ) -> tuple[tuple[Comment, ...], bool]:
        """Comments after this one, oldest first. `resolved` includes resolved ones."""
        sql = f"{_COMMENTS} AND id > ? AND (resolved_by IS NULL OR ?) ORDER BY id LIMIT ?"
        values = number_of(document), after, int(resolved)
        return await self.page(_comment, sql, *values, limit=limit)

    # Full text ---------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Index documents written before there was an index, one at a time because texts can be
        large. Raises `StoreUnavailable`; the next start continues."""
        last = 0
        while (document := await self.one(_document, _NOT_INDEXED, last)) is not None:
            text, last = await self.text(document, document.version), number_of(document.id)
            values = (last, indexable(document.title), indexable(text))
            await self._host.write([Statement(_INDEX_ONCE, values)])

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`. Author and time are those of the latest version."""
        more, values = search.conditions("v.author", "v.at")
        sql = _FOUND.format(among=AMONG, more=more)
        where = search.words.match, listed(search.threads), *values
        hits: list[SearchHit] = []
        for score, place, by, at, *row in await self._host.rows(
            sql, *where, search.limit, search.skip
        ):
            document = _document(*row)
            hits.append(
                SearchHit(
                    kind="documents",
                    id=document.id,
                    thread=document.thread_id,
                    by=by,
                    at=at,
                    snippet=await snippet_of(search.words, await self._text(document, place)),
                    title=document.title,
                    score=-score,
                    untrusted=document.untrusted,
                )
            )
        return hits

    async def _text(self, document: Document, place: int) -> str:
        """The text that matched: the document's or a comment's."""
        if place > 0:
            return await self.text(document, document.version)
        comment = await self.comment(document.id, -place)
        return "" if comment is None else comment.text


def insert_document(document: Document, text: str) -> Sequence[Statement]:
    at = document.created_at.timestamp()
    row = insert(
        "documents_document",
        id=number_of(document.id),
        thread=document.thread_id,
        created_at=at,
        untrusted=int(document.untrusted),
        **document.model_dump(include={"title", "version", "created_by"}),
    )
    return [row, *_insert_version(document, 0, document.created_by, at, "created", text)]


def save_version(
    document: Document, base: int, author: str, at: float, note: str, text: str
) -> Sequence[Statement]:
    """Store the next version, if the previous one is still the latest."""
    number, version = number_of(document.id), document.version
    changes = {"version": version} | ({"untrusted": 1} if document.untrusted else {})
    bump = update("documents_document", changes, id=number, version=version - 1)
    return [bump, *_insert_version(document, base, author, at, note, text)]


def _insert_version(
    document: Document, base: int, author: str, at: float, note: str, text: str
) -> Sequence[Statement]:
    """Store a version and index it in place of the previous one."""
    number, packed = number_of(document.id), zlib.compress(text.encode())
    lines = text.count("\n") + 1
    values = (number, document.version, base, author, at, note, lines, packed)
    return [
        Statement("INSERT INTO documents_version VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values),
        _index(number, document.title, text),
    ]


def _index(row: int, title: str, text: str) -> Statement:
    sql = "INSERT OR REPLACE INTO documents_found (rowid, title, text) VALUES (?, ?, ?)"
    return Statement(sql, (row, indexable(title), indexable(text)))


def insert_comment(document: str, comment: Comment, *, untrusted: bool) -> Sequence[Statement]:
    number = number_of(document)
    values = comment.model_dump(exclude={"at", "resolved_by"})
    values |= {"document": number, "at": comment.at.timestamp()}
    mark = [update("documents_document", {"untrusted": 1}, id=number)] if untrusted else []
    return [insert("documents_comment", **values), _index(-comment.id, "", comment.text), *mark]


def resolve_comment(comment: int, by: str) -> Sequence[Statement]:
    return [update("documents_comment", {"resolved_by": by}, id=comment, resolved_by=None)]


_INDEX_ONCE = """
INSERT INTO documents_found (rowid, title, text)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM documents_found WHERE rowid = ?1)
"""
_NOT_INDEXED = f"""
{_DOCUMENTS}
id > ? AND id NOT IN (SELECT rowid FROM documents_found) ORDER BY id LIMIT 1
"""

# Each document is listed once, with the best score of its text and comments.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS r, bm25(documents_found, 4.0, 1.0) AS score
    FROM documents_found WHERE documents_found MATCH ?
)
SELECT min(f.score) AS score, f.r, v.author, v.at,
       'd' || d.id, d.title, d.thread, d.version, d.created_by, d.created_at,
       d.untrusted
FROM f LEFT JOIN documents_comment AS c ON c.id = -f.r
JOIN documents_document AS d ON d.id = coalesce(c.document, f.r)
JOIN documents_version AS v ON v.document = d.id AND v.version = d.version
WHERE d.thread {among}{more}
GROUP BY d.id ORDER BY score, d.id DESC LIMIT ? OFFSET ?
"""


class DocumentsConfig(ModConfig):
    max_size: Size = 1_000_000
    """Maximum size of a document in bytes."""
    max_lines: Annotated[int, Field(ge=1)] = 20_000
    """Maximum number of lines of a document."""


MAX_CHARACTERS = 60_000
"""Characters of a text or diff per answer, but at least one line."""
MAX_CONFLICTS = 20
MAX_CONFLICT_TEXT = 2_000
"""Characters of each text of a conflict."""


def within_max_characters(lines: Sequence[str]) -> Sequence[str]:
    """The first lines, as many as fit into one answer."""
    ends = accumulate(len(line) + 1 for line in lines)
    return lines[: max(1, len(list(takewhile(lambda end: end <= MAX_CHARACTERS, ends))))]


def conflict_answer(document: Document, conflicts: Sequence[Conflict]) -> DocumentEdited:
    more = len(conflicts) - MAX_CONFLICTS
    return DocumentEdited(
        status="conflict",
        document=document,
        untrusted=document.untrusted,
        version=document.version,
        conflicts=tuple(
            EditConflict(
                first=c.first,
                last=c.first + len(c.ours) - 1,
                was=shortened("\n".join(c.base), MAX_CONFLICT_TEXT),
                now=shortened("\n".join(c.ours), MAX_CONFLICT_TEXT),
                yours=shortened("\n".join(c.theirs), MAX_CONFLICT_TEXT),
            )
            for c in conflicts[:MAX_CONFLICTS]
        ),
        advice=(
            "nothing was saved. For each conflict, decide on the new text for lines `first` to "
            f"`last` of version {document.version}. Then send your whole change again with "
            f"base_version {document.version} and the line numbers of that version (read_document)"
            + (f". {more} more conflicts are not shown" if more > 0 else "")
        ),
    )


class DocumentsMod(Mod):
    """Shared Markdown documents with versions: edits by line with automatic merging, comments,
    history and diffs.

    A document belongs to a thread, whose readers can read and change it. Each accepted edit creates
    a version, and all versions stay readable. An edit names the version that its author read.
    Changes that others made elsewhere since then are merged; changes to the same lines are reported
    as conflicts, and nothing is saved.
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
        self._last = await self._store.last("documents_document")
        self._last_comment = await self._store.last("documents_comment")
        self.host.spawn(self._store.catch_up())

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`, for the mod `search`."""
        return await self._store.found(search)

    async def _find(self, call: Calling, id: str) -> Document:
        """The document, if the caller reads its thread. Raises `OperationError`."""
        document = await self._store.document(id)
        return self.host.visible(call, document, f"document {id}", "list_documents")

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_documents(self, call: Calling, args: ListDocuments) -> Documents:
        """List the shared documents that you can read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        documents, more = await self._store.of_threads(threads, before, args.limit)
        marked = any(each.untrusted for each in documents)
        return Documents(documents=documents, more=more, untrusted=marked)

    @operation()
    async def read_document(self, call: Calling, args: ReadDocument) -> DocumentText:
        """Read a shared document or a range of its lines, with line numbers for edits."""
        document = await self._find(call, args.id)
        version = args.version or document.version
        lines = (await self._store.text(document, version)).split("\n")
        first = min(args.first or 1, len(lines))
        part = within_max_characters(lines[first - 1 : args.last or len(lines)])
        return DocumentText(
            document=document,
            untrusted=document.untrusted,
            version=version,
            text="\n".join(number_lines(part, first) if args.numbers else part),
            first=first,
            last=first + len(part) - 1,
            lines=len(lines),
        )

    @operation()
    async def document_history(self, call: Calling, args: ReadHistory) -> DocumentHistory:
        """List the versions of a shared document with author, time and note."""
        document = await self._find(call, args.id)
        before = args.before or document.version + 1
        versions, more = await self._store.versions(document.id, before, args.limit)
        marked = document.untrusted
        return DocumentHistory(document=document, untrusted=marked, versions=versions, more=more)

    @operation()
    async def diff_document(self, call: Calling, args: DiffDocument) -> DocumentDiff:
        """Show the changes between two versions of a shared document."""
        document = await self._find(call, args.id)
        versions = args.old, args.new or document.version
        old, new = [(await self._store.text(document, each)).split("\n") for each in versions]
        names = [f"{document.title} (version {version})" for version in versions]
        diff = await asyncio.to_thread(list, unified_diff(old, new, *names))
        part = within_max_characters(diff)
        return DocumentDiff(
            document=document,
            untrusted=document.untrusted,
            old=versions[0],
            new=versions[1],
            diff="\n".join(part),
            cut=len(part) < len(diff),
        )

    # Writing ----------------------------------------------------------------------------------

    @operation(permission="write", output=Document)
    def create_document(self, call: Calling, args: CreateDocument) -> Commit:
        """Create a shared Markdown document for the readers of a thread."""
        thread = self.host.thread(call, args.thread)
        self._check_size(args.text)
        self._last += 1
        document = Document(
            id=f"d{self._last}",
            title=args.title,
            thread_id=thread,
            version=1,
            created_by=call.participant,
            created_at=time_of(self.host.now()),
            untrusted=args.untrusted,
        )
        signal = partial(self._signal, document, "created", call.participant)
        return Commit(insert_document(document, args.text), document, applied=signal)

    @operation(permission="write", output=DocumentEdited)
    async def edit_document(self, call: Calling, args: EditDocument) -> Commit:
        """Replace lines of a shared document, by the line numbers of the version that you read.
        Changes that others made elsewhere since then are merged. If they changed the same lines,
        nothing is saved and you get the conflicts."""
        base = await self._store.text(await self._find(call, args.id), args.base_version)
        return await self._save(
            call, args, base, "\n".join(apply_edits(base.split("\n"), args.edits))
        )

    @operation(permission="write", output=DocumentEdited)
    async def write_document(self, call: Calling, args: WriteDocument) -> Commit:
        """Replace the whole text of a shared document. Changes that others made since the version
        that you read are merged, as in edit_document."""
        base = await self._store.text(await self._find(call, args.id), args.base_version)
        return await self._save(call, args, base, args.text)

    async def _save(self, call: Calling, args: ChangeDocument, base: str, text: str) -> Commit:
        """Save a new version with this text, unless it conflicts with the latest version."""
        self._check_size(text)
        async with self._queues.turn(args.id) as until:
            document = await self._find(call, args.id)
            latest = await self._store.text(document, document.version)
            merged = await asyncio.to_thread(merge, *(t.split("\n") for t in (base, latest, text)))
            if merged.conflicts:
                return until(Commit((), conflict_answer(document, merged.conflicts)))
            result, before = "\n".join(merged.lines), document.version
            if result == latest:
                same = DocumentEdited(status="unchanged", document=document, version=before)
                return until(Commit((), same))
            self._check_size(result)
            status = "saved" if before == args.base_version else "merged"
            untrusted = document.untrusted or args.untrusted
            changes = {"version": before + 1, "untrusted": untrusted}
            document = document.model_copy(update=changes)
            author, at = call.participant, self.host.now()
            return until(
                Commit(
                    save_version(document, args.base_version, author, at, args.note, result),
                    DocumentEdited(status=status, document=document, version=document.version),
                    applied=partial(self._signal, document, "edited", author),
                )
            )

    def _check_size(self, text: str) -> None:
        size, limit = len(text.encode()), self.config.max_size
        if size > limit:
            raise too_large(f"text: has {size} bytes; the limit is {limit}")
        lines, most = text.count("\n") + 1, self.config.max_lines
        if lines > most:
            raise too_large(f"text: has {lines} lines; the limit is {most}")

    def _signal(self, document: Document, what: str, by: str) -> None:
        """Signal a change to the readers of the thread."""
        data: JsonValue = {"by": by, **document.model_dump(include={"id", "title", "version"})}
        self.host.signal(document.thread_id, what, data)

    # Comments ---------------------------------------------------------------------------------

    @operation(permission="write", output=Comment)
    async def comment_on_document(self, call: Calling, args: CommentOn) -> Commit:
        """Comment on a shared document or on one of its lines."""
        document = await self._find(call, args.id)
        if args.line is not None:
            lines = (await self._store.text(document, document.version)).count("\n") + 1
            if args.line > lines:
                raise bad_request(f"line: {args.line} is out of range; {args.id} has {lines} lines")
        self._last_comment += 1
        comment = Comment(
            id=self._last_comment,
            version=document.version,
            line=args.line,
            author=call.participant,
            at=time_of(self.host.now()),
            text=args.text,
        )
        signal = partial(self._signal, document, "commented", call.participant)
        statements = insert_comment(document.id, comment, untrusted=args.untrusted)
        return Commit(statements, comment, applied=signal)

    @operation()
    async def read_document_comments(self, call: Calling, args: ReadComments) -> Comments:
        """Read the comments on a shared document."""
        document, resolved = await self._find(call, args.id), args.resolved
        which = args.id, args.after, args.limit
        comments, more = await self._store.comments(*which, resolved=resolved)
        marked = document.untrusted
        return Comments(document=document, untrusted=marked, comments=comments, more=more)

    @operation(permission="write", output=Comment)
    async def resolve_document_comment(self, call: Calling, args: ResolveComment) -> Commit:
        """Resolve a comment on a shared document."""
        async with self._queues.turn(args.id) as until:
            document, by = await self._find(call, args.id), call.participant
            comment = await self._store.comment(args.id, args.comment)
            if comment is None:
                raise not_found(f"{args.id} has no comment {args.comment}")
            if comment.resolved_by is not None:
                return until(Commit((), comment))
            updated = comment.model_copy(update={"resolved_by": by})
            signal = partial(self._signal, document, "commented", by)
            return until(Commit(resolve_comment(comment.id, by), updated, applied=signal))
