"""The mod `files`: what people and agents attach to messages, kept beside the log.

mods:
  - files: {max_size: 25MB, types: [image/*, text/*, application/pdf]}
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.mods.api import PASS, Reject, Replace, Verdict
from hubbub.mods.files import catalog as rows
from hubbub.mods.files.attaching import ATTACHED, file_id, shown, stamped
from hubbub.mods.files.bringing import Bringing
from hubbub.mods.files.catalog import FILE_ROWS, Catalog, Kept, root_of
from hubbub.mods.files.finding import not_findable
from hubbub.mods.files.intake import Intake
from hubbub.mods.files.looking import FilesReader
from hubbub.mods.files.settings import FilesConfig
from hubbub.mods.files.vault import Vault
from hubbub.mods.files.words import (
    BeginUpload,
    CancelUpload,
    DeleteFile,
    File,
    FinishUpload,
    ShareFile,
    Upload,
    UploadChunk,
    UploadState,
    WriteFile,
)
from hubbub.mods.operation import Calling, operation
from hubbub.mods.rows import Keeping, Statement
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import Done

__all__ = ["FilesMod"]

log = get_logger(__name__)


class FilesMod(FilesReader):
    """Files that belong to messages: uploaded in parts, kept once however often they are brought,
    with the text that can be read from them.

    A file is in threads: who reads one of them may read the file, and its uploader. Attaching it to
    a message brings it into the message's thread. Names, types and sizes of attachments are what
    the files are, not what the sender says.
    """

    name = "files"
    Config = FilesConfig
    migrations = "tables"

    def __init__(self, config: FilesConfig):
        super().__init__(config)
        self._catalog = Catalog()
        self._intake: Intake
        self._bringing: Bringing

    async def start(self) -> None:
        self._vault = Vault(self.host.folder)
        self._intake = Intake(self._vault, self._catalog)
        ((last,),) = await self.host.rows("SELECT coalesce(max(id), 0) FROM files_file")
        self._bringing = Bringing(self, self._vault, self._intake, self._catalog, last, self._came)
        granted: dict[int, set[str]] = {}
        for file, thread in await self.host.rows("SELECT file, thread FROM files_grant"):
            granted.setdefault(file, set()).add(thread)
        for row in await self.host.rows(f"{FILE_ROWS} WHERE deleted_at IS NULL"):
            self._catalog.add(Kept.of(row, granted.get(row[0], set())))
        missing = await asyncio.to_thread(self._vault.prepare, set(self._catalog.refs))
        if missing:
            where = str(self.host.folder)
            log.warning("contents of files are missing", folder=where, contents=len(missing))

    # Coming in --------------------------------------------------------------------------------

    @operation(permission="write", tool=False)
    def begin_upload(self, call: Calling, args: BeginUpload) -> Upload:
        """Begin to upload a file; its content follows in parts."""
        coming = self._bringing.begin(call, args, outside=True)
        self._bringing.wait_for_more(coming)
        return coming.told()

    @operation(permission="write", tool=False, idempotent=True, cost=0.25)
    async def upload_chunk(self, call: Calling, args: UploadChunk) -> Upload:
        """Add the next part of an upload. A part that is there already changes nothing."""
        return await self._bringing.add(call, args)

    @operation(tool=False)
    def upload_state(self, call: Calling, args: UploadState) -> Upload:
        """Tell how much of an upload is there, to go on after a lost connection."""
        return self._bringing.find(call, args.upload).told()

    @operation(permission="write", tool=False, idempotent=True)
    async def cancel_upload(self, call: Calling, args: CancelUpload) -> Done:
        """Give an upload up."""
        await self._bringing.give_up(self._bringing.find(call, args.upload))
        return Done()

    @operation(permission="write", tool=False, output=File)
    async def finish_upload(self, call: Calling, args: FinishUpload) -> Keeping:
        """Make a file of an upload that is all there."""
        return await self._bringing.finish(call, args.upload)

    @operation(permission="write", output=File)
    async def write_file(self, call: Calling, args: WriteFile) -> Keeping:
        """Write a text file, to attach it to a message by the uri `file:<id>` or to share it with
        those who read a thread."""
        return await self._bringing.write(call, args)

    def on_timer(self, key: str) -> None:
        """An upload was idle for too long."""
        self._bringing.expire(key)

    def _came(self, kept: Kept) -> None:
        """A file is durable."""
        self._tell(kept, "added", kept.uploaded_by)

    def _tell(self, kept: Kept, what: str, by: str) -> None:
        """Those who look at a list of files."""
        for thread in kept.threads:
            with suppress(OperationError):  # a thread in which nobody has spoken yet
                self.host.signal(thread, what, {"id": f"f{kept.id}", "name": kept.name, "by": by})

    # What becomes of them ---------------------------------------------------------------------

    @operation(permission="write", output=File)
    async def share_file(self, call: Calling, args: ShareFile) -> Keeping:
        """Let those who read a thread read a file, too."""
        kept = await self._find(call, args.id)
        thread = root_of(self.host.place(call, args.thread))

        def shared() -> None:
            self._catalog.grant(kept, thread)
            self._tell(kept, "added", call.participant)

        return Keeping([rows.granted(kept.id, thread)], kept.told(thread), kept=shared)

    @operation(permission="write", output=File)
    async def delete_file(self, call: Calling, args: DeleteFile) -> Keeping:
        """Delete a file that you have brought; messages that it was attached to say that it is
        gone. Owners of the network may delete what they may read."""
        kept = await self._find(call, args.id)
        by, at = call.participant, self.host.now()
        if kept.uploaded_by != by and not call.owner:
            raise OperationError(
                ErrorCode.FORBIDDEN, f"{args.id} is for {kept.uploaded_by} or an owner to delete"
            )
        answer = rows.told_row(kept, self._place(by, kept)[1], by, at)
        statements = [rows.deleted(kept, by, at), not_findable(kept.id)]
        return Keeping(statements, answer, kept=partial(self._went, kept, by))

    def _went(self, kept: Kept, by: str) -> None:
        self._catalog.remove(kept)
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
        files: dict[str, Kept] = {}
        for id in wanted:
            kept = self._readable_by(id, draft.sender_id, draft.spoken_by)
            if kept is None:
                return Reject(f"there is no file {id[:40]!r} for you; see list_files")
            files[id] = kept
        attachments = await stamped(draft.attachments, files, self._vault, self.config.excerpt)
        outside = draft.outside or any(kept.outside for kept in files.values())
        return Replace(replace(draft, attachments=attachments, outside=outside))

    def _readable_by(self, id: str, *whom: str | None) -> Kept | None:
        """The file, if one of them may read it."""
        if not rows.is_id(id):
            return None
        found = (self._readable(who, id) for who in whom if who is not None)
        return next((kept for kept in found if kept is not None), None)

    def on_stored(self, message: Message) -> Sequence[Statement]:
        """Who reads the message may read what is attached to it."""
        if not message.attachments:
            return ()
        statements = []
        for id in filter(None, map(file_id, message.attachments)):
            kept = self._readable_by(id, message.sender_id, message.spoken_by)
            thread = root_of(message.thread_id)
            if kept is not None and thread not in kept.threads:
                # In memory before it is durable: where the disk refuses the message, its sender
                # has all the same meant the thread to have the file.
                self._catalog.grant(kept, thread)
                statements.append(rows.granted(kept.id, thread))
        return statements

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Attachments whose files were deleted say so."""
        files = self._catalog.files
        return [shown(each, files) if each.attachments else each for each in messages]
