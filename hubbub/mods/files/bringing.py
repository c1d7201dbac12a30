"""Bringing files in: uploads in parts, and texts at once, within limits and quotas."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from functools import partial
from typing import Protocol

from hubbub.errors import OperationError
from hubbub.mods.files.catalog import Catalog, Kept, added, root_of
from hubbub.mods.files.finding import findable
from hubbub.mods.files.intake import Intake
from hubbub.mods.files.names import checked_name
from hubbub.mods.files.settings import FilesConfig
from hubbub.mods.files.uploads import MOST_OPEN, Coming, Content, Uploads
from hubbub.mods.files.vault import Vault
from hubbub.mods.files.words import BeginUpload, File, Upload, UploadChunk, WriteFile
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling
from hubbub.mods.rows import Keeping
from hubbub.protocol.codes import ErrorCode

__all__ = ["Bringing"]


class Owner(Protocol):
    """The mod: its settings may change."""

    config: FilesConfig
    host: Host


class Bringing:
    """The files of a network that are on their way. `came` is told of each that is durable."""

    def __init__(
        self,
        mod: Owner,
        vault: Vault,
        intake: Intake,
        catalog: Catalog,
        last: int,
        came: Callable[[Kept], None],
    ):
        self._mod, self._host = mod, mod.host
        self._vault, self._intake, self._catalog = vault, intake, catalog
        self._uploads, self._last, self._came = Uploads(), last, came

    # Beginning --------------------------------------------------------------------------------

    def begin(self, call: Calling, args: BeginUpload, *, outside: bool) -> Coming:
        """Raises `OperationError` for what is not taken."""
        name = checked_name(args.name)
        thread = None if args.thread is None else root_of(self._host.place(call, args.thread))
        self._check_room(call.participant, args.size)
        return self._uploads.begin(
            call.participant,
            thread,
            name,
            args.size,
            args.media_type,
            args.sha256,
            outside=outside,
        )

    def _check_room(self, who: str, size: int) -> None:
        config, catalog = self._mod.config, self._catalog
        mine, all_ = self._uploads.open_of(who), self._uploads.open_of()
        if size > config.max_size:
            text = f"a file has at most {config.max_size} bytes, not {size}"
            raise OperationError(ErrorCode.TOO_LARGE, text)
        if len(mine) >= config.max_uploads:
            text = f"{len(mine)} uploads of yours are under way; finish or cancel one first"
            raise OperationError(ErrorCode.LIMIT, text)
        if len(all_) >= MOST_OPEN:
            text = "too many uploads are under way; try again later"
            raise OperationError(ErrorCode.LIMIT, text, temporary=True)
        left = config.quota - catalog.used[who] - sum(each.size for each in mine)
        if size > left:
            raise _full(f"of your {config.quota} bytes for files {max(left, 0)} are left", size)
        left = config.total - catalog.total - sum(each.size for each in all_)
        if size > left:
            raise _full(f"the network has room for {max(left, 0)} bytes more", size)
        if len(catalog) + len(all_) >= config.max_files:
            raise _full(f"the network has its {config.max_files} files", size)

    def find(self, call: Calling, id: str) -> Coming:
        """An upload of the caller's own. Raises `OperationError`."""
        return self._uploads.find(call.participant, id)

    # Parts ------------------------------------------------------------------------------------

    async def add(self, call: Calling, args: UploadChunk) -> Upload:
        """Write the next part. Raises `OperationError` where it does not fit."""
        coming, data = self.find(call, args.upload), _decoded(args.data)
        async with coming.lock:
            self.find(call, args.upload)  # it may have ended meanwhile
            if not await self._is_there(coming, args.offset, data):
                await asyncio.to_thread(self._vault.write, coming.id, args.offset, data)
                coming.received += len(data)
        self.wait_for_more(coming)
        return coming.told()

    async def _is_there(self, coming: Coming, offset: int, data: bytes) -> bool:
        """Whether the part came before. Raises `OperationError` where it does not fit."""
        received, end = coming.received, offset + len(data)
        go_on = f"{received} of {coming.size} bytes are here; go on with offset {received}"
        details = {"received": received}
        if end > coming.size:
            text = f"the file ends at {coming.size}, this part at {end}; {go_on}"
            raise OperationError(ErrorCode.TOO_LARGE, text, details=details)
        if offset > received:
            raise OperationError(ErrorCode.BAD_REQUEST, f"offset: {go_on}", details=details)
        if offset == received:
            return False
        known = b""
        if end <= received:
            known = await asyncio.to_thread(self._known, coming, offset, len(data))
        if known != data:
            text = f"other bytes came there before; {go_on}"
            raise OperationError(ErrorCode.CONFLICT, text, details=details)
        return True

    def _known(self, coming: Coming, offset: int, size: int) -> bytes:
        """Bytes of an upload, wherever it lies by now."""
        if coming.content is None:
            return self._vault.part(coming.id, offset, size)
        return self._vault.read(coming.content.sha256, coming.size, offset, size)

    def wait_for_more(self, coming: Coming) -> None:
        """The time after which it is given up begins anew."""
        if not coming.over:
            self._host.at(self._host.now() + self._mod.config.upload_idle, coming.id)

    # Ends -------------------------------------------------------------------------------------

    async def give_up(self, coming: Coming) -> None:
        """Raises `StoreUnavailable`; the next start removes what is left then."""
        async with coming.lock:
            if not coming.over:
                await self._remove(coming)

    async def _remove(self, coming: Coming) -> None:
        self._uploads.end(coming)
        self._host.cancel(coming.id)
        await asyncio.to_thread(self._vault.drop, coming.id)
        if coming.content is not None and coming.file is None:
            await self._intake.release(coming.content.sha256, held=True)

    def expire(self, id: str) -> None:
        """Nothing was added for too long."""
        coming = self._uploads.get(id)
        if coming is not None:
            self._host.spawn(self.give_up(coming))

    async def finish(self, call: Calling, id: str) -> Keeping:
        """The file of an upload that is all there. Raises `OperationError`."""
        coming = self.find(call, id)
        await coming.lock.acquire()
        try:
            self.find(call, id)  # it may have ended meanwhile
            keeping = await self._finished(coming)
        except BaseException:
            coming.lock.release()
            raise
        keeping.over = coming.lock.release
        return keeping

    async def write(self, call: Calling, args: WriteFile) -> Keeping:
        """A file of a text. Raises `OperationError`."""
        data = args.text.encode(errors="replace")
        begin = BeginUpload(name=args.name, size=len(data), thread=args.thread)
        coming = self.begin(call, begin, outside=args.outside)
        await coming.lock.acquire()
        try:
            await asyncio.to_thread(self._vault.write, coming.id, 0, data)
            coming.received = len(data)
            keeping = await self._finished(coming)
        except BaseException:
            self._let_go(coming)
            raise
        keeping.over = partial(self._let_go, coming)
        return keeping

    def _let_go(self, coming: Coming) -> None:
        """Nobody knows the upload behind a file that was written at once."""
        coming.lock.release()
        self._host.spawn(self.give_up(coming))

    async def _finished(self, coming: Coming) -> Keeping:
        if coming.file is not None:
            return Keeping((), coming.file)
        if coming.received != coming.size:
            raise OperationError(
                ErrorCode.BAD_REQUEST,
                f"{coming.received} of {coming.size} bytes are here; upload the rest first",
                details={"received": coming.received},
            )
        if coming.content is None:
            try:
                coming.content = await self._intake.take(coming, self._mod.config)
            except OperationError:
                await self._remove(coming)  # no other part could make it right
                raise
        kept = self._made(coming, coming.content)
        file = kept.told(coming.thread)
        statements = [*added(kept), findable(kept.id, kept.name, coming.content.text)]
        return Keeping(statements, file, kept=partial(self._is_durable, coming, kept, file))

    def _made(self, coming: Coming, content: Content) -> Kept:
        self._last += 1
        return Kept(
            id=self._last,
            name=coming.name,
            media_type=content.media_type,
            size=coming.size,
            sha256=content.sha256,
            thread=coming.thread,
            uploaded_by=coming.owner,
            at=self._host.now(),
            outside=coming.outside,
            lines=content.lines,
            no_text=content.no_text,
            cut=content.cut,
            threads=set() if coming.thread is None else {coming.thread},
        )

    def _is_durable(self, coming: Coming, kept: Kept, file: File) -> None:
        coming.file = file
        self._catalog.add(kept)
        self._intake.let_go(kept.sha256)
        self._came(kept)


def _full(why: str, size: int) -> OperationError:
    return OperationError(ErrorCode.LIMIT, f"{why}, and this file has {size}; delete some first")


def _decoded(data: str) -> bytes:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise OperationError(ErrorCode.BAD_REQUEST, "data: this is no base64") from None
    if not decoded:
        raise OperationError(ErrorCode.BAD_REQUEST, "data: there is nothing in it")
    return decoded
