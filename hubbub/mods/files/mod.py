"""The mod `files`: files attached to messages and stored next to the log.

mods:
  - files: {max_size: 25MB, types: [image/*, text/*, application/pdf]}
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, NamedTuple

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.api import PASS, Mod, Reject, Replace, Verdict
from hubbub.mods.fields import number_before, time_of
from hubbub.mods.files import repository
from hubbub.mods.files.reader import way_to_read
from hubbub.mods.files.repository import ContentStore, FileRepository, StoredFile
from hubbub.mods.files.schemas import (
    CHUNK,
    BeginUpload,
    DownloadChunk,
    File,
    FileChunk,
    FileOf,
    Files,
    FileText,
    ListFiles,
    ReadFile,
    ShareFile,
    Upload,
    UploadChunk,
    UploadOf,
    WriteFile,
)
from hubbub.mods.files.uploads import ContentManager, FilesConfig, Uploader
from hubbub.mods.operation import (
    Calling,
    Commit,
    Statement,
    bad_request,
    forbidden,
    not_found,
    operation,
)
from hubbub.mods.text_search import Findable, SearchHit, SearchQuery
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Attachment, Draft, Message
from hubbub.protocol.operations import Done
from hubbub.wording import shortened

__all__ = ["FilesMod"]

log = get_logger(__name__)

MAX_BYTES = 60_000
"""Maximum size of the text in one answer, which has at least one line of limited length."""


class TextLines(NamedTuple):
    """A range of lines."""

    text: str
    last: int
    """Number of the last line."""


def part_of(text: str, first: int, last: int | None, *, numbers: bool) -> TextLines:
    """The lines `first` to `last` of a text, or as many of them as fit into an answer."""
    lines = text.split("\n")[first - 1 : last if last is None else max(last, first)]
    part: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        part.append(f"{number}| {line}" if numbers else line)
        size += len(part[-1].encode()) + 1
        if size > MAX_BYTES and len(part) > 1:
            part.pop()
            break
    return TextLines("\n".join(part), first + len(part) - 1)


SCHEME = "file:"
IS_ID = re.compile(r"f[1-9][0-9]{0,17}")
MAX_ATTACHED = 20
"""Maximum number of files attached to a message."""


def file_id(attachment: Attachment) -> str | None:
    """The id in a `file:` URI, not validated. None for an attachment that is not a file here."""
    scheme, rest = attachment.uri[: len(SCHEME)], attachment.uri[len(SCHEME) :]
    return rest if scheme.lower() == SCHEME else None


async def with_file_facts(
    attachments: Sequence[Attachment],
    files: Mapping[str, StoredFile],
    vault: ContentStore,
    room: int,
) -> tuple[Attachment, ...]:
    """The attachments with the actual facts about their files, and excerpts of their texts with
    `room` characters in total, in equal shares. Truncated excerpts end in "…"."""
    readable = {id: file for id, file in files.items() if file.lines}
    share = room // len(readable) if readable else 0
    checked = {id: await _attachment(file, vault, share) for id, file in files.items()}
    ids = ((file_id(each), each) for each in attachments)
    return tuple(each if id is None else checked[id] for id, each in ids)


async def _attachment(file: StoredFile, vault: ContentStore, share: int) -> Attachment:
    how, excerpt = way_to_read(file.media_type), None
    if file.lines and share and how is not None:
        try:
            beginning = await asyncio.to_thread(vault.text, file.sha256, how, share + 1)
            excerpt = shortened(beginning, share)
        except OperationError:
            excerpt = None  # it is damaged, and reading the file reports that
    return Attachment(
        name=file.name,
        media_type=file.media_type,
        uri=f"{SCHEME}{file.id}",
        size=file.size,
        excerpt=excerpt,
    )


def _deleted_by(message: Draft | Message) -> int | None:
    """The position of the message that this one deletes."""
    amends = message.amends
    if amends is None or amends.kind != "deleted":
        return None
    return parse_message_id(amends.message_id)


def mark_deleted(message: Message, files: Container[str]) -> Message:
    """The message with attachments marked whose files are deleted, without their excerpts."""
    attachments = tuple(
        each
        if (id := file_id(each)) is None or id in files
        else each.model_copy(update={"excerpt": None, "size": None, "gone": True})
        for each in message.attachments
    )
    if attachments == message.attachments:
        return message
    return message.model_copy(update={"attachments": attachments})


class FilesMod(Mod):
    """Files attached to messages: uploaded in parts, stored once per content, with extracted text.

    A file is shared with threads, and their readers and the uploader can read it. Attaching it to a
    message shares it with the message's thread. Names, types and sizes of attachments are taken
    from the files, not from the sender.
    """

    name = "files"
    Config = FilesConfig
    config: FilesConfig
    migrations = "tables"
    finds: ClassVar[Findable] = "files"

    def __init__(self, config: FilesConfig):
        super().__init__(config)
        self._store: FileRepository
        self._vault: ContentStore
        self._intake: ContentManager
        self._uploader: Uploader

    async def start(self) -> None:
        self._vault, self._store = ContentStore(self.host.folder), FileRepository(self.host)
        self._intake = ContentManager(self._vault, self._store.has)
        last = await self._store.last("files_file")
        self._uploader = Uploader(
            self, self._vault, self._intake, self._store, last, self._on_added
        )
        missing = await asyncio.to_thread(self._vault.prepare, await self._store.contents())
        if missing:
            where = str(self.host.folder)
            log.warning("contents of files are missing", folder=where, contents=len(missing))

    # Permissions ------------------------------------------------------------------------------

    def _access(self, who: str, file: StoredFile) -> tuple[bool, str | None]:
        """Whether a participant can read a file, and a thread of theirs that has it."""
        first = () if file.thread is None else (file.thread,)
        readable = (each for each in (*first, *sorted(file.threads)) if self.host.reads(who, each))
        thread = next(readable, None)
        return thread is not None or file.uploaded_by == who, thread

    async def _find_any(self, call: Calling, id: str) -> tuple[StoredFile, str | None]:
        """The file, even if deleted, if the caller can read it, and a thread of the caller that has
        it. Raises `OperationError`."""
        file = await self._store.file(id)
        may, thread = (False, None) if file is None else self._access(call.participant, file)
        if file is None or not may:
            raise not_found(f"there is no file {id} that you can see; use list_files")
        return file, thread

    async def _find(self, call: Calling, id: str) -> tuple[StoredFile, str | None]:
        """Like `_find_any`, but without deleted files. Raises `OperationError`."""
        file, thread = await self._find_any(call, id)
        if file.deleted_by is not None:
            raise not_found(f"{id} ({file.name}) was deleted by {file.deleted_by}")
        return file, thread

    def _roots(self, who: str) -> set[str]:
        """The root threads that the participant reads. Files are shared with root threads."""
        return set(map(thread_ids.root, self.host.threads_of(who)))

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_files(self, call: Calling, args: ListFiles) -> Files:
        """List the files that you can read, or those of one thread."""
        before, who = number_before(args.before), call.participant
        if args.thread is not None:
            thread = thread_ids.root(self.host.thread(call, args.thread))
            files, more = await self._store.of_thread(thread, before, args.limit)
        else:
            files, more = await self._store.of_reader(who, self._roots(who), before, args.limit)
        schemas = (file.for_reader(self._access(who, file)[1]) for file in files)
        return Files(files=tuple(schemas), more=more)

    @operation()
    async def file_info(self, call: Calling, args: FileOf) -> File:
        """Describe a file, including a deleted one."""
        file, thread = await self._find_any(call, args.id)
        return file.for_reader(thread)

    @operation()
    async def read_file(self, call: Calling, args: ReadFile) -> FileText:
        """Read the text of a file or a range of its lines, with line numbers. Long texts come in
        parts: while there are more lines, continue after the last one."""
        stored, thread = await self._find(call, args.id)
        how = way_to_read(stored.media_type)
        if not stored.lines or how is None:
            raise not_found(f"{args.id} has no readable text: {stored.no_text}")
        first = args.first_line or 1
        if first > stored.lines:
            raise bad_request(f"first_line: {args.id} has {stored.lines} lines")
        text = await asyncio.to_thread(self._vault.text, stored.sha256, how)
        part = part_of(text, first, args.last_line, numbers=args.numbers)
        return FileText(
            file=stored.for_reader(thread),
            text=part.text,
            first=first,
            last=part.last,
            lines=stored.lines,
            more=part.last < stored.lines,
            cut=stored.cut,
            untrusted=stored.untrusted,
        )

    @operation(tool=False, cost=0.25)
    async def download_chunk(self, call: Calling, args: DownloadChunk) -> FileChunk:
        """Read bytes of a file."""
        stored, _ = await self._find(call, args.id)
        if args.offset >= stored.size:
            raise bad_request(f"offset: {args.id} has only {stored.size} bytes")
        read = partial(self._vault.read, stored.sha256, stored.size, args.offset, CHUNK)
        data = await asyncio.to_thread(read)
        return FileChunk(
            id=args.id,
            offset=args.offset,
            size=stored.size,
            data=base64.b64encode(data).decode(),
            more=args.offset + len(data) < stored.size,
        )

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`, for the mod `search`."""
        return await self._store.found(search)

    # Uploading -------------------------------------------------------------------------------

    @operation(permission="write", tool=False)
    async def begin_upload(self, call: Calling, args: BeginUpload) -> Upload:
        """Start the upload of a file. Its content follows in parts."""
        upload = await self._uploader.begin(call, args, untrusted=True)
        self._uploader.restart_timeout(upload)
        return upload.to_schema()

    @operation(permission="write", tool=False, idempotent=True, cost=0.25)
    async def upload_chunk(self, call: Calling, args: UploadChunk) -> Upload:
        """Add the next part of an upload. A part that was already received changes nothing."""
        return await self._uploader.add(call, args)

    @operation(tool=False)
    def upload_state(self, call: Calling, args: UploadOf) -> Upload:
        """Show how much of an upload was received, to resume after a lost connection."""
        return self._uploader.find(call, args.upload).to_schema()

    @operation(permission="write", tool=False, idempotent=True)
    async def cancel_upload(self, call: Calling, args: UploadOf) -> Done:
        """Cancel an upload."""
        await self._uploader.cancel(self._uploader.find(call, args.upload))
        return Done()

    @operation(permission="write", tool=False, output=File)
    async def finish_upload(self, call: Calling, args: UploadOf) -> Commit:
        """Turn a complete upload into a file."""
        return await self._uploader.finish(call, args.upload)

    @operation(permission="write", output=File)
    async def write_file(self, call: Calling, args: WriteFile) -> Commit:
        """Write a text file, to attach to a message with the URI `file:<id>` or to share with the
        readers of a thread."""
        return await self._uploader.write(call, args)

    def on_timer(self, key: str) -> None:
        self._uploader.expire(key)  # keys are ids of uploads

    def _on_added(self, stored: StoredFile) -> None:
        self._signal(stored, "added", stored.uploaded_by)

    def _signal(self, stored: StoredFile, what: str, by: str) -> None:
        """Signal a change to the readers of the file's threads, or else to its uploader."""
        data: dict[str, JsonValue] = {"id": stored.id, "name": stored.name, "by": by}
        if not stored.threads:
            self.host.signal(thread_ids.BROADCAST, what, data, to=(stored.uploaded_by,))
        for thread in stored.threads:
            with suppress(OperationError):  # a thread without messages
                self.host.signal(thread, what, data)

    # Sharing and deleting ---------------------------------------------------------------------

    @operation(permission="write", output=File)
    async def share_file(self, call: Calling, args: ShareFile) -> Commit:
        """Share a file with the readers of a thread."""
        stored, _ = await self._find(call, args.id)
        thread, who = thread_ids.root(self.host.place(call, args.thread)), call.participant
        stored = stored.model_copy(update={"threads": (*stored.threads, thread)})
        share = repository.share(stored.id, thread, who, self._roots(who))
        signal = partial(self._signal, stored, "added", who)
        return Commit([share], stored.for_reader(thread), applied=signal)

    @operation(permission="write", output=File)
    async def delete_file(self, call: Calling, args: FileOf) -> Commit:
        """Delete a file that you uploaded. Messages it is attached to show that it was deleted.
        Owners of the network can delete any file that they can read."""
        stored, thread = await self._find(call, args.id)
        by, at = call.participant, self.host.now()
        if stored.uploaded_by != by and not call.owner:
            raise forbidden(f"only {stored.uploaded_by} and owners can delete {args.id}")
        gone = {"deleted_by": by, "deleted_at": time_of(at)}
        answer = stored.for_reader(thread).model_copy(update=gone)
        applied = partial(self._on_deleted, stored, by)
        return Commit(repository.delete_file(stored, by, at), answer, applied=applied)

    def _on_deleted(self, stored: StoredFile, by: str) -> None:
        self._signal(stored, "deleted", by)
        self.host.spawn(self._intake.release(stored.sha256))

    # Messages ---------------------------------------------------------------------------------

    async def on_references(self, draft: Draft) -> Verdict:
        """Check that the sender can read the attached files, and fill in the facts about them."""
        ids = [file_id(each) for each in draft.attachments]
        wanted = [id for id in ids if id is not None]
        if not wanted:
            return PASS
        if len(wanted) > MAX_ATTACHED:
            return Reject(f"the message has {len(wanted)} files; the limit is {MAX_ATTACHED}")
        files = await self._store.existing(filter(IS_ID.fullmatch, wanted))
        for id in wanted:
            if id not in files or not self._may_attach(draft, files[id]):
                return Reject(f"there is no file {id[:40]!r} that you can see; use list_files")
        attachments = await with_file_facts(
            draft.attachments, files, self._vault, self.config.excerpt
        )
        untrusted = draft.untrusted or any(file.untrusted for file in files.values())
        return Replace(draft.replace(attachments=attachments, untrusted=untrusted))

    def _may_attach(self, draft: Draft, file: StoredFile) -> bool:
        who = filter(None, (draft.sender_id, draft.sent_by))
        return any(self._access(each, file)[0] for each in who)

    def watches(self, draft: Draft) -> bool:
        return draft.attachments != () or _deleted_by(draft) is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        """Share attached files with the readers of the message, until it is deleted."""
        if (deleted := _deleted_by(message)) is not None:
            return [repository.unshare(deleted)]
        thread = thread_ids.root(message.thread_id)
        senders = filter(None, (message.sender_id, message.sent_by))
        roots = {who: self._roots(who) for who in senders}
        return [
            repository.share(id, thread, who, roots[who], message=message.seq)
            for id in map(file_id, message.attachments)
            for who in roots
            if id is not None and IS_ID.fullmatch(id)
        ]

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Mark attachments whose files were deleted."""
        ids = {id for each in messages for id in map(file_id, each.attachments) if id is not None}
        if not ids:
            return messages
        existing = await self._store.existing(filter(IS_ID.fullmatch, ids))
        return [mark_deleted(each, existing) for each in messages]
