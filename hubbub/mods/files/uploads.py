"""Uploads that are under way: in memory, with their bytes in the folder of contents.

When the hub ends they are over: what has come in is removed at the next start.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple, NoReturn, Protocol

from pydantic import BeforeValidator, Field

from hubbub.config.units import Size, Span
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.mods.api import ModConfig, OnFailure
from hubbub.mods.fields import time_of
from hubbub.mods.files.media_types import HEAD, TYPE_RULE, checked_name, takes, true_type
from hubbub.mods.files.reader import (
    FileReading,
    FileRefused,
    NoText,
    ReadLimits,
    inspected,
    way_to_read,
)
from hubbub.mods.files.repository import (
    ContentStore,
    FileRepository,
    StorageUsage,
    StoredFile,
    added,
)
from hubbub.mods.files.schemas import BeginUpload, File, Upload, UploadChunk, WriteFile
from hubbub.mods.host import Host
from hubbub.mods.operation import (
    Calling,
    Commit,
    bad_request,
    conflict,
    not_found,
    over_limit,
    too_large,
)
from hubbub.mods.repository import KeyedQueues
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode

__all__ = ["ContentManager", "FilesConfig", "OpenUpload", "Uploader"]


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


TypeRule = Annotated[str, BeforeValidator(_lower), Field(pattern=TYPE_RULE)]


class FilesConfig(ModConfig):
    on_failure: OnFailure = "reject"
    """What becomes of a message with attachments whose hook has failed: nobody has checked them, so
    it is refused, unless this says `pass`."""
    max_size: Size = 25_000_000
    """Bytes of one file."""
    quota: Size = 500_000_000
    """Bytes of all files of one participant."""
    total: Size = 5_000_000_000
    """Bytes of all files of the network."""
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = 50_000
    """Files of the network."""
    max_uploads: Annotated[int, Field(ge=1)] = 8
    """Uploads of one participant that are under way."""
    upload_idle: Span = 3600.0
    """Seconds after which an upload is given up to which nothing was added."""
    types: tuple[TypeRule, ...] = ()
    """What is taken: media types (`image/*`, `application/pdf`) and ends of names (`.md`); left
    out: all."""
    excerpt: Annotated[int, Field(ge=0, le=20_000)] = 1_500
    """Characters of text that a message carries of its files, shared among them; 0: none."""
    max_text: Size = 2_000_000
    """Characters of the text of one file that are kept for reading."""
    max_unpacked: Size = 250_000_000
    """Bytes that a packed file may become; a larger one is refused."""


MOST_OPEN = 500
"""Uploads of everybody together."""


class Content(NamedTuple):
    """What a file is, as its bytes say."""

    sha256: str
    media_type: str
    reading: FileReading


@dataclass(eq=False, slots=True)
class OpenUpload:
    """A file on its way."""

    id: str
    owner: str
    thread: str | None
    name: str
    size: int
    media_type: str | None
    sha256: str | None
    outside: bool
    received: int = 0
    content: Content | None = None
    """What has come in, once it lies among the contents."""
    file: File | None = None
    """What it has become: whoever asks again is told the same."""

    def to_schema(self) -> Upload:
        return Upload(upload=self.id, name=self.name, size=self.size, received=self.received)


log = get_logger(__name__)

INDEXED = 200_000
"""Characters of a text that a search looks through."""
READERS = 2
"""Files that are read at the same time."""


class ContentManager:
    """Brings contents in, and removes those that nobody refers to. A content that is being brought
    in is held: it stays though no file has it yet."""

    def __init__(self, vault: ContentStore, has: Callable[[str], Awaitable[bool]]):
        """`has` tells whether a file has the content of this checksum."""
        self._vault, self._has = vault, has
        self._held: Counter[str] = Counter()
        self._moving = asyncio.Lock()
        """Contents come and go one at a time, so that none goes while it comes again."""
        self._reading = asyncio.Semaphore(READERS)

    async def take(self, coming: OpenUpload, rules: FilesConfig) -> Content:
        """The content of an upload that is all here; it is held from now on. Raises
        `OperationError` for one that must not stay, and `StoreUnavailable`."""
        vault, id = self._vault, coming.id
        sha256, size = await asyncio.to_thread(vault.flushed, id)
        if size != coming.size:
            _refuse(f"it should have {coming.size} bytes, and has {size}")
        if coming.sha256 not in (None, sha256):
            _refuse(f"the SHA-256 of what has arrived is {sha256}, not {coming.sha256}")
        head = await asyncio.to_thread(vault.part, id, 0, HEAD)
        media_type = true_type(coming.name, coming.media_type, head)
        if not takes(rules.types, coming.name, media_type):
            _refuse(f"{media_type} is not taken here, only {', '.join(rules.types)}")
        reading = await self._read(coming, media_type, rules)
        how = way_to_read(media_type)
        async with self._moving:
            if reading.lines and how is not None:
                await asyncio.to_thread(vault.keep_text, id, sha256, how, reading.text)
            await asyncio.to_thread(vault.keep, id, sha256)
            self._held[sha256] += 1
        return Content(sha256, media_type, reading)

    async def _read(self, coming: OpenUpload, media_type: str, rules: FilesConfig) -> FileReading:
        """What the file says, or why nothing. Raises `OperationError` for a bomb."""
        limits = ReadLimits(characters=rules.max_text, unpacked=rules.max_unpacked)
        path = self._vault.upload_path(coming.id)
        async with self._reading:
            try:
                return await asyncio.to_thread(inspected, path, media_type, limits)
            except NoText as why:
                return FileReading(no_text=str(why))
            except FileRefused as why:
                _refuse(str(why))
            except Exception:  # what strangers have made can break any reader in any way
                log.exception("a file could not be read", media_type=media_type)
                return FileReading(no_text="reading it has failed")

    async def release(self, sha256: str, *, held: bool = False) -> None:
        """Remove a content if no file has it and nobody brings it. `held`: who calls held it.
        Raises `StoreUnavailable`."""
        async with self._moving:
            if held:
                self.let_go(sha256)
            if not self._held[sha256] and not await self._has(sha256):
                await asyncio.to_thread(self._vault.remove, sha256)

    def let_go(self, sha256: str) -> None:
        """A file has the content now."""
        self._held[sha256] -= 1
        if not self._held[sha256]:
            del self._held[sha256]


def _refuse(why: str) -> NoReturn:
    raise OperationError(ErrorCode.REJECTED, f"files: {why}")


class ModAccess(Protocol):
    """The mod: its settings may change."""

    config: FilesConfig
    host: Host


class Uploader:
    """The files of a network that are on their way. `came` is told of each that is durable."""

    def __init__(
        self,
        mod: ModAccess,
        vault: ContentStore,
        intake: ContentManager,
        store: FileRepository,
        last: int,
        came: Callable[[StoredFile], None],
    ):
        self._mod, self._host = mod, mod.host
        self._vault, self._intake, self._store = vault, intake, store
        self._all: dict[str, OpenUpload] = {}
        self._queues = KeyedQueues()
        """By upload: one call at a time does something with it."""
        self._last, self._came = last, came

    # Beginning --------------------------------------------------------------------------------

    async def begin(self, call: Calling, args: BeginUpload, *, outside: bool) -> OpenUpload:
        """Raises `OperationError` for what is not taken."""
        name, who = checked_name(args.name), call.participant
        place = None if args.thread is None else self._host.place(call, args.thread)
        before = self._open()
        usage = await self._store.usage(who)
        # What has become a file meanwhile is counted twice rather than not at all.
        self._check_room(who, args.size, usage, before | self._open())
        coming = OpenUpload(
            # Nothing that a hub which ran before can have given to another.
            id=f"u{secrets.token_hex(8)}",
            owner=who,
            thread=None if place is None else thread_ids.root(place),
            name=name,
            size=args.size,
            media_type=args.media_type,
            sha256=args.sha256,
            outside=outside,
        )
        self._all[coming.id] = coming
        return coming

    def _open(self) -> set[OpenUpload]:
        """Those that are no files yet."""
        return {each for each in self._all.values() if each.file is None}

    def _check_room(
        self, who: str, size: int, usage: StorageUsage, coming: set[OpenUpload]
    ) -> None:
        config, mine = self._mod.config, [each for each in coming if each.owner == who]
        if size > config.max_size:
            raise too_large(f"a file has at most {config.max_size} bytes, not {size}")
        if len(mine) >= config.max_uploads:
            text = f"{len(mine)} uploads of yours are under way; finish or cancel one first"
            raise over_limit(text)
        if len(coming) >= MOST_OPEN:
            text = "too many uploads are under way; try again later"
            raise OperationError(ErrorCode.LIMIT, text, temporary=True)
        left = config.quota - usage.of_one - sum(each.size for each in mine)
        if size > left:
            raise _full(f"of your {config.quota} bytes for files {max(left, 0)} are left", size)
        left = config.total - usage.total - sum(each.size for each in coming)
        if size > left:
            raise _full(f"the network has room for {max(left, 0)} bytes more", size)
        if usage.files + len(coming) >= config.max_files:
            raise _full(f"the network has its {config.max_files} files", size)

    def find(self, call: Calling, id: str) -> OpenUpload:
        """An upload of the caller's own. Raises `OperationError` for others as for none."""
        found = self._all.get(id)
        if found is None or found.owner != call.participant:
            raise not_found(
                f"you have no upload {id}: it was given up, or the hub began anew; begin it again"
            )
        return found

    # Parts ------------------------------------------------------------------------------------

    async def add(self, call: Calling, args: UploadChunk) -> Upload:
        """Write the next part. Raises `OperationError` where it does not fit."""
        coming, data = self.find(call, args.upload), _decoded(args.data)
        async with self._queues.turn(coming.id):
            self.find(call, args.upload)  # it may have ended meanwhile
            if not await self._is_there(coming, args.offset, data):
                await asyncio.to_thread(self._vault.write, coming.id, args.offset, data)
                coming.received += len(data)
        self.wait_for_more(coming)
        return coming.to_schema()

    async def _is_there(self, coming: OpenUpload, offset: int, data: bytes) -> bool:
        """Whether the part came before. Raises `OperationError` where it does not fit."""
        received, end = coming.received, offset + len(data)
        go_on = f"{received} of {coming.size} bytes are here; go on with offset {received}"
        details = {"received": received}
        if end > coming.size:
            text = f"the file ends at {coming.size}, this part at {end}; {go_on}"
            raise too_large(text, **details)
        if offset > received:
            raise bad_request(f"offset: {go_on}", **details)
        if offset == received:
            return False
        known = b""
        if end <= received:
            known = await asyncio.to_thread(self._known, coming, offset, len(data))
        if known != data:
            text = f"other bytes came there before; {go_on}"
            raise conflict(text, **details)
        return True

    def _known(self, coming: OpenUpload, offset: int, size: int) -> bytes:
        """Bytes of an upload, wherever it lies by now."""
        if coming.content is None:
            return self._vault.part(coming.id, offset, size)
        return self._vault.read(coming.content.sha256, coming.size, offset, size)

    def wait_for_more(self, coming: OpenUpload) -> None:
        """The time after which it is given up begins anew."""
        if coming.id in self._all:
            self._host.at(self._host.now() + self._mod.config.upload_idle, coming.id)

    # Ends -------------------------------------------------------------------------------------

    async def give_up(self, coming: OpenUpload) -> None:
        """Raises `StoreUnavailable`; the next start removes what is left then."""
        async with self._queues.turn(coming.id):
            if coming.id in self._all:
                await self._remove(coming)

    async def _remove(self, coming: OpenUpload) -> None:
        del self._all[coming.id]
        self._host.cancel(coming.id)
        await asyncio.to_thread(self._vault.drop, coming.id)
        if coming.content is not None and coming.file is None:
            await self._intake.release(coming.content.sha256, held=True)

    def expire(self, id: str) -> None:
        """Nothing was added for too long."""
        if id in self._all:
            self._host.spawn(self.give_up(self._all[id]))

    async def finish(self, call: Calling, id: str) -> Commit:
        """The file of an upload that is all there. Raises `OperationError`."""
        async with self._queues.turn(id) as until:
            return until(await self._finished(self.find(call, id)))

    async def write(self, call: Calling, args: WriteFile) -> Commit:
        """A file of a text. Raises `OperationError`."""
        data = args.text.encode(errors="replace")
        begin = BeginUpload(name=args.name, size=len(data), thread=args.thread)
        coming = await self.begin(call, begin, outside=args.outside)
        async with self._queues.turn(coming.id) as until:
            # Nobody knows the upload: its next turn is its end.
            self._host.spawn(self.give_up(coming))
            await asyncio.to_thread(self._vault.write, coming.id, 0, data)
            coming.received = len(data)
            return until(await self._finished(coming))

    async def _finished(self, coming: OpenUpload) -> Commit:
        if coming.file is not None:
            return Commit((), coming.file)
        if coming.received != coming.size:
            raise bad_request(
                f"{coming.received} of {coming.size} bytes are here; upload the rest first",
                received=coming.received,
            )
        if coming.content is None:
            try:
                coming.content = await self._intake.take(coming, self._mod.config)
            except OperationError:
                await self._remove(coming)  # no other part could make it right
                raise
        sha256, media_type, reading = coming.content
        self._last += 1
        kept = StoredFile(
            id=f"f{self._last}",
            name=coming.name,
            media_type=media_type,
            size=coming.size,
            sha256=sha256,
            thread=coming.thread,
            uploaded_by=coming.owner,
            at=time_of(self._host.now()),
            outside=coming.outside,
            threads=() if coming.thread is None else (coming.thread,),
            **reading._asdict(),
        )
        statements = added(kept, reading.text[:INDEXED])
        file = kept.for_reader(coming.thread)
        return Commit(statements, file, applied=partial(self._is_durable, coming, kept, file))

    def _is_durable(self, coming: OpenUpload, kept: StoredFile, file: File) -> None:
        coming.file = file
        self._intake.let_go(kept.sha256)
        self._came(kept)


def _full(why: str, size: int) -> OperationError:
    return over_limit(f"{why}, and this file has {size}; delete some first")


def _decoded(data: str) -> bytes:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("data: this is no base64") from None
    if not decoded:
        raise bad_request("data: there is nothing in it")
    return decoded
