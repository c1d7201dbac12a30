"""The mod `files`: what people and agents attach to messages, kept beside the log.

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

PART = 60_000
"""Bytes of text that one answer has; at least one line, which is never long."""


class TextLines(NamedTuple):
    """Some lines."""

    text: str
    last: int
    """The number of the last one."""


def part_of(text: str, first: int, last: int | None, *, numbers: bool) -> TextLines:
    """The lines `first` to `last` of a text, or as many of them as there is room for."""
    lines = text.split("\n")[first - 1 : last if last is None else max(last, first)]
    told: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        told.append(f"{number}| {line}" if numbers else line)
        size += len(told[-1].encode()) + 1
        if size > PART and len(told) > 1:
            told.pop()
            break
    return TextLines("\n".join(told), first + len(told) - 1)


SCHEME = "file:"
IS_ID = re.compile(r"f[1-9][0-9]{0,17}")
ATTACHED = 20
"""Files that one message may have."""


def file_id(attachment: Attachment) -> str | None:
    """What stands where a file's id should; None: the attachment is none of the network's files."""
    scheme, rest = attachment.uri[: len(SCHEME)], attachment.uri[len(SCHEME) :]
    return rest if scheme.lower() == SCHEME else None


async def stamped(
    attachments: Sequence[Attachment],
    files: Mapping[str, StoredFile],
    vault: ContentStore,
    room: int,
) -> tuple[Attachment, ...]:
    """The attachments with what is true of their files, and how their texts begin: `room`
    characters in all, in equal parts. What is cut ends in "…"."""
    readable = {id: kept for id, kept in files.items() if kept.lines}
    share = room // len(readable) if readable else 0
    stamps = {id: await _stamp(kept, vault, share) for id, kept in files.items()}
    given = ((file_id(each), each) for each in attachments)
    return tuple(each if id is None else stamps[id] for id, each in given)


async def _stamp(kept: StoredFile, vault: ContentStore, share: int) -> Attachment:
    how, excerpt = way_to_read(kept.media_type), None
    if kept.lines and share and how is not None:
        try:
            begins = await asyncio.to_thread(vault.text, kept.sha256, how, share + 1)
            excerpt = shortened(begins, share)
        except OperationError:
            excerpt = None  # it is damaged: who reads the file is told
    return Attachment(
        name=kept.name,
        media_type=kept.media_type,
        uri=f"{SCHEME}{kept.id}",
        size=kept.size,
        excerpt=excerpt,
    )


def marked(message: Message, files: Container[str]) -> Message:
    """The message with marks on attachments whose files are gone, and without their texts."""
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
    """Files that belong to messages: uploaded in parts, kept once however often they are brought,
    with the text that can be read from them.

    A file is in threads: who reads one of them may read the file, and its uploader. Attaching it to
    a message brings it into the message's thread. Names, types and sizes of attachments are what
    the files are, not what the sender says.
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
        self._uploader = Uploader(self, self._vault, self._intake, self._store, last, self._came)
        missing = await asyncio.to_thread(self._vault.prepare, await self._store.contents())
        if missing:
            where = str(self.host.folder)
            log.warning("contents of files are missing", folder=where, contents=len(missing))

    # Who may ----------------------------------------------------------------------------------

    def _place(self, who: str, file: StoredFile) -> tuple[bool, str | None]:
        """Whether somebody may read a file, and in which of their threads it is."""
        first = () if file.thread is None else (file.thread,)
        found = (each for each in (*first, *sorted(file.threads)) if self.host.reads(who, each))
        thread = next(found, None)
        return thread is not None or file.uploaded_by == who, thread

    async def _known(self, call: Calling, id: str) -> tuple[StoredFile, str | None]:
        """The file, also a deleted one, if the caller may read it, or might if it were there; and
        the caller's thread in which it is. Raises `OperationError`."""
        file = await self._store.file(id)
        may, thread = (False, None) if file is None else self._place(call.participant, file)
        if file is None or not may:
            raise not_found(f"there is no file {id} for you; see list_files")
        return file, thread

    async def _find(self, call: Calling, id: str) -> tuple[StoredFile, str | None]:
        """The same, if it was not deleted. Raises `OperationError`."""
        file, thread = await self._known(call, id)
        if file.deleted_by is not None:
            raise not_found(f"{id} ({file.name}) was deleted by {file.deleted_by}")
        return file, thread

    def _roots(self, who: str) -> set[str]:
        """Who reads a thread reads what hangs in it."""
        return set(map(thread_ids.root, self.host.threads_of(who)))

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_files(self, call: Calling, args: ListFiles) -> Files:
        """List the files that you may read, or those of one thread."""
        before, who = number_before(args.before), call.participant
        if args.thread is not None:
            thread = thread_ids.root(self.host.thread(call, args.thread))
            files, more = await self._store.of_thread(thread, before, args.limit)
        else:
            files, more = await self._store.of_reader(who, self._roots(who), before, args.limit)
        told = (file.for_reader(self._place(who, file)[1]) for file in files)
        return Files(files=tuple(told), more=more)

    @operation()
    async def file_info(self, call: Calling, args: FileOf) -> File:
        """Describe a file, also one that was deleted."""
        file, thread = await self._known(call, args.id)
        return file.for_reader(thread)

    @operation()
    async def read_file(self, call: Calling, args: ReadFile) -> FileText:
        """Read the text of a file, or some of its lines, with line numbers. Long texts come in
        parts: go on after the last line while there are more."""
        kept, thread = await self._find(call, args.id)
        how = way_to_read(kept.media_type)
        if not kept.lines or how is None:
            raise not_found(f"{args.id} has no text that can be read: {kept.no_text}")
        first = args.first_line or 1
        if first > kept.lines:
            raise bad_request(f"first_line: {args.id} has {kept.lines} lines")
        text = await asyncio.to_thread(self._vault.text, kept.sha256, how)
        part = part_of(text, first, args.last_line, numbers=args.numbers)
        return FileText(
            file=kept.for_reader(thread),
            text=part.text,
            first=first,
            last=part.last,
            lines=kept.lines,
            more=part.last < kept.lines,
            cut=kept.cut,
            outside=kept.outside,
        )

    @operation(tool=False, cost=0.25)
    async def download_chunk(self, call: Calling, args: DownloadChunk) -> FileChunk:
        """Read bytes of a file."""
        kept, _ = await self._find(call, args.id)
        if args.offset >= kept.size:
            raise bad_request(f"offset: {args.id} ends at {kept.size}")
        read = partial(self._vault.read, kept.sha256, kept.size, args.offset, CHUNK)
        data = await asyncio.to_thread(read)
        return FileChunk(
            id=args.id,
            offset=args.offset,
            size=kept.size,
            data=base64.b64encode(data).decode(),
            more=args.offset + len(data) < kept.size,
        )

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """What the mod `search` asks."""
        return await self._store.found(search)

    # Coming in -------------------------------------------------------------------------------

    @operation(permission="write", tool=False)
    async def begin_upload(self, call: Calling, args: BeginUpload) -> Upload:
        """Begin to upload a file; its content follows in parts."""
        coming = await self._uploader.begin(call, args, outside=True)
        self._uploader.wait_for_more(coming)
        return coming.to_schema()

    @operation(permission="write", tool=False, idempotent=True, cost=0.25)
    async def upload_chunk(self, call: Calling, args: UploadChunk) -> Upload:
        """Add the next part of an upload. A part that is there already changes nothing."""
        return await self._uploader.add(call, args)

    @operation(tool=False)
    def upload_state(self, call: Calling, args: UploadOf) -> Upload:
        """Tell how much of an upload has arrived, to go on after a lost connection."""
        return self._uploader.find(call, args.upload).to_schema()

    @operation(permission="write", tool=False, idempotent=True)
    async def cancel_upload(self, call: Calling, args: UploadOf) -> Done:
        """Cancel an upload."""
        await self._uploader.give_up(self._uploader.find(call, args.upload))
        return Done()

    @operation(permission="write", tool=False, output=File)
    async def finish_upload(self, call: Calling, args: UploadOf) -> Commit:
        """Turn a complete upload into a file."""
        return await self._uploader.finish(call, args.upload)

    @operation(permission="write", output=File)
    async def write_file(self, call: Calling, args: WriteFile) -> Commit:
        """Write a text file, to attach it to a message by the uri `file:<id>` or to share it with
        those who read a thread."""
        return await self._uploader.write(call, args)

    def on_timer(self, key: str) -> None:
        """An upload was idle for too long."""
        self._uploader.expire(key)

    def _came(self, kept: StoredFile) -> None:
        """A file is durable."""
        self._tell(kept, "added", kept.uploaded_by)

    def _tell(self, kept: StoredFile, what: str, by: str) -> None:
        """Those who look at a list of files: of one in no thread, its uploader alone."""
        told: dict[str, JsonValue] = {"id": kept.id, "name": kept.name, "by": by}
        if not kept.threads:
            self.host.signal(thread_ids.BROADCAST, what, told, to=(kept.uploaded_by,))
        for thread in kept.threads:
            with suppress(OperationError):  # a thread in which nobody has spoken yet
                self.host.signal(thread, what, told)

    # What becomes of them ---------------------------------------------------------------------

    @operation(permission="write", output=File)
    async def share_file(self, call: Calling, args: ShareFile) -> Commit:
        """Let those who read a thread read a file, too."""
        kept, _ = await self._find(call, args.id)
        thread, who = thread_ids.root(self.host.place(call, args.thread)), call.participant
        kept = kept.model_copy(update={"threads": (*kept.threads, thread)})
        share = repository.granted(kept.id, thread, who, self._roots(who))
        tell = partial(self._tell, kept, "added", who)
        return Commit([share], kept.for_reader(thread), applied=tell)

    @operation(permission="write", output=File)
    async def delete_file(self, call: Calling, args: FileOf) -> Commit:
        """Delete a file that you have uploaded; messages that it was attached to say that it is
        gone. Owners of the network may delete what they may read."""
        kept, thread = await self._find(call, args.id)
        by, at = call.participant, self.host.now()
        if kept.uploaded_by != by and not call.owner:
            raise forbidden(f"{args.id} is for {kept.uploaded_by} or an owner to delete")
        gone = {"deleted_by": by, "deleted_at": time_of(at)}
        answer = kept.for_reader(thread).model_copy(update=gone)
        went = partial(self._went, kept, by)
        return Commit(repository.deleted(kept, by, at), answer, applied=went)

    def _went(self, kept: StoredFile, by: str) -> None:
        self._tell(kept, "deleted", by)
        self.host.spawn(self._intake.release(kept.sha256))

    # Messages ---------------------------------------------------------------------------------

    async def on_references(self, draft: Draft) -> Verdict:
        """Attached files must be there for the sender; what the message says of them is true."""
        ids = [file_id(each) for each in draft.attachments]
        wanted = [id for id in ids if id is not None]
        if not wanted:
            return PASS
        if len(wanted) > ATTACHED:
            return Reject(f"a message has at most {ATTACHED} files, this one {len(wanted)}")
        files = await self._store.there(filter(IS_ID.fullmatch, wanted))
        for id in wanted:
            if id not in files or not self._may_attach(draft, files[id]):
                return Reject(f"there is no file {id[:40]!r} for you; see list_files")
        attachments = await stamped(draft.attachments, files, self._vault, self.config.excerpt)
        outside = draft.outside or any(file.outside for file in files.values())
        return Replace(draft.replace(attachments=attachments, outside=outside))

    def _may_attach(self, draft: Draft, file: StoredFile) -> bool:
        who = filter(None, (draft.sender_id, draft.spoken_by))
        return any(self._place(each, file)[0] for each in who)

    def watches(self, draft: Draft) -> bool:
        return draft.attachments != ()

    def on_stored(self, message: Message) -> Sequence[Statement]:
        """Who reads the message may read what is attached to it."""
        thread = thread_ids.root(message.thread_id)
        givers = filter(None, (message.sender_id, message.spoken_by))
        roots = {who: self._roots(who) for who in givers}
        return [
            repository.granted(id, thread, who, roots[who])
            for id in map(file_id, message.attachments)
            for who in roots
            if id is not None and IS_ID.fullmatch(id)
        ]

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Attachments whose files were deleted say so."""
        ids = {id for each in messages for id in map(file_id, each.attachments) if id is not None}
        if not ids:
            return messages
        there = await self._store.there(filter(IS_ID.fullmatch, ids))
        return [marked(each, there) for each in messages]
