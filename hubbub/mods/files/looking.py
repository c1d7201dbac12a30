"""What the mod `files` tells of the files that somebody may read, and what is in them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import ClassVar

from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.files import catalog as rows
from hubbub.mods.files.catalog import FILE_ROWS, Catalog, Kept, root_of
from hubbub.mods.files.finding import found
from hubbub.mods.files.reading import way_to_read
from hubbub.mods.files.settings import FilesConfig
from hubbub.mods.files.texts import part_of
from hubbub.mods.files.vault import Vault
from hubbub.mods.files.words import (
    CHUNK,
    DownloadChunk,
    File,
    FileChunk,
    FileInfo,
    Files,
    FileText,
    ListFiles,
    ReadFile,
)
from hubbub.mods.ids import number_before, number_of
from hubbub.mods.operation import Calling, operation
from hubbub.mods.searching import Findable, Hit, Search
from hubbub.protocol.codes import ErrorCode

__all__ = ["FilesReader"]


class FilesReader(Mod):
    """The part of the mod that changes nothing."""

    config: FilesConfig
    finds: ClassVar[Findable] = "files"
    _catalog: Catalog
    _vault: Vault

    # Who may ----------------------------------------------------------------------------------

    def _place(self, who: str, kept: Kept) -> tuple[bool, str | None]:
        return self._catalog.place(kept, who, partial(self.host.reads, who))

    def _readable(self, who: str, id: str) -> Kept | None:
        kept = self._catalog.files.get(number_of(id))
        return kept if kept is not None and self._place(who, kept)[0] else None

    async def _find(self, call: Calling, id: str) -> Kept:
        """The file, if the caller may read it. Raises `OperationError`."""
        kept = self._readable(call.participant, id)
        if kept is not None:
            return kept
        gone = await self._deleted(call, id)
        if gone is not None:
            raise OperationError(
                ErrorCode.NOT_FOUND, f"{id} ({gone.name}) was deleted by {gone.deleted_by}"
            )
        raise OperationError(ErrorCode.NOT_FOUND, f"there is no file {id} for you; see list_files")

    async def _deleted(self, call: Calling, id: str) -> File | None:
        """A file that the caller might have read, if it were still there."""
        number = number_of(id)
        sql = FILE_ROWS.replace(" FROM", ", deleted_by, deleted_at FROM")
        found = await self.host.rows(f"{sql} WHERE id = ? AND deleted_at IS NOT NULL", number)
        if not found:
            return None
        *row, by, at = found[0]
        threads = await self.host.rows("SELECT thread FROM files_grant WHERE file = ?", number)
        kept = Kept.of(tuple(row), {thread for (thread,) in threads})
        may, thread = self._place(call.participant, kept)
        return rows.told_row(kept, thread, by, at) if may else None

    def _told(self, call: Calling, kept: Kept) -> File:
        return kept.told(self._place(call.participant, kept)[1])

    # Reading ----------------------------------------------------------------------------------

    @operation()
    async def list_files(self, call: Calling, args: ListFiles) -> Files:
        """List the files that you may read, or those of one thread."""
        before = number_before(args.before)
        who, catalog = call.participant, self._catalog
        if args.thread is not None:
            thread = root_of(self.host.thread(call, args.thread))
            files = catalog.of_thread(thread, before)
        else:
            files = catalog.of_reader(who, partial(self.host.reads, who), before)
        some = list(islice(files, args.limit + 1))
        told = tuple(self._told(call, kept) for kept in some[: args.limit])
        return Files(files=told, more=len(some) > args.limit)

    @operation()
    async def file_info(self, call: Calling, args: FileInfo) -> File:
        """Tell what a file is, also one that was deleted."""
        kept = self._readable(call.participant, args.id)
        gone = await self._deleted(call, args.id) if kept is None else None
        return gone or self._told(call, await self._find(call, args.id))

    @operation()
    async def read_file(self, call: Calling, args: ReadFile) -> FileText:
        """Read the text of a file, or some of its lines, with line numbers. Long texts come in
        parts: go on after the last line while there are more."""
        kept = await self._find(call, args.id)
        how = way_to_read(kept.media_type)
        if not kept.lines or how is None:
            raise OperationError(
                ErrorCode.NOT_FOUND, f"{args.id} has no text that can be read: {kept.no_text}"
            )
        first = args.first_line or 1
        if first > kept.lines:
            raise OperationError(
                ErrorCode.BAD_REQUEST, f"first_line: {args.id} has {kept.lines} lines"
            )
        text = await asyncio.to_thread(self._vault.text, kept.sha256, how)
        part = part_of(text, first, args.last_line, numbers=args.numbers)
        return FileText(
            file=self._told(call, kept),
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
        kept = await self._find(call, args.id)
        if args.offset >= kept.size:
            raise OperationError(ErrorCode.BAD_REQUEST, f"offset: {args.id} ends at {kept.size}")
        read = partial(self._vault.read, kept.sha256, kept.size, args.offset, CHUNK)
        data = await asyncio.to_thread(read)
        return FileChunk(
            id=args.id,
            offset=args.offset,
            size=kept.size,
            data=base64.b64encode(data).decode(),
            more=args.offset + len(data) < kept.size,
        )

    async def found(self, search: Search) -> Sequence[Hit]:
        """What the mod `search` asks."""
        return await found(self.host, search)
