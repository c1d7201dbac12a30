"""Uploads in progress, in memory, with their bytes in the folder of contents.

They do not survive a restart: their bytes are removed at the next start.
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
from hubbub.mods.files.media_types import HEAD, TYPE_RULE, checked_name, is_accepted, true_type
from hubbub.mods.files.reader import (
    FileReading,
    FileRefused,
    NoText,
    ReadLimits,
    extract_text,
    way_to_read,
)
from hubbub.mods.files.repository import (
    ContentStore,
    FileRepository,
    StorageUsage,
    StoredFile,
    insert_file,
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
    """What happens to a message with attachments if a hook fails. They are then not checked, so the
    default is to refuse the message."""
    max_size: Size = 25_000_000
    """Maximum size of a file in bytes."""
    quota: Size = 500_000_000
    """Maximum total size of the files of a participant in bytes."""
    total: Size = 5_000_000_000
    """Maximum total size of the files of the network in bytes."""
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = 50_000
    """Maximum number of files in the network."""
    max_uploads: Annotated[int, Field(ge=1)] = 8
    """Maximum number of concurrent uploads per participant."""
    upload_idle: Span = 3600.0
    """Seconds after which an idle upload is cancelled."""
    types: tuple[TypeRule, ...] = ()
    """Accepted media types (`image/*`, `application/pdf`) and suffixes of names (`.md`). Default:
    all."""
    excerpt: Annotated[int, Field(ge=0, le=20_000)] = 1_500
    """Characters of text from its files that a message includes, shared among them. 0: none."""
    max_text: Size = 2_000_000
    """Maximum number of characters of extracted text stored per file."""
    max_unpacked: Size = 250_000_000
    """Maximum unpacked size of a compressed file in bytes. Larger ones are refused."""


MAX_OPEN = 500
"""Maximum number of concurrent uploads in the network."""


class Content(NamedTuple):
    """The facts about a file from its bytes."""

    sha256: str
    media_type: str
    reading: FileReading


@dataclass(eq=False, slots=True)
class OpenUpload:
    """An upload in progress."""

    id: str
    owner: str
    thread: str | None
    name: str
    size: int
    media_type: str | None
    sha256: str | None
    untrusted: bool
    received: int = 0
    content: Content | None = None
    """Set when the upload is complete and stored as a content."""
    file: File | None = None
    """The resulting file, for repeated calls."""

    def to_schema(self) -> Upload:
        return Upload(upload=self.id, name=self.name, size=self.size, received=self.received)


log = get_logger(__name__)

INDEXED = 200_000
"""Characters of a text that are indexed for search."""
READERS = 2
"""Number of files processed concurrently."""


class ContentManager:
    """Stores contents of uploads, and removes unused ones. A content of an upload is held, so that
    it is not removed before its file is stored."""

    def __init__(self, vault: ContentStore, has: Callable[[str], Awaitable[bool]]):
        """`has` returns whether a file has the content with this checksum."""
        self._vault, self._has = vault, has
        self._held: Counter[str] = Counter()
        self._moving = asyncio.Lock()
        """Serializes changes, so that no content is removed while it is uploaded again."""
        self._reading = asyncio.Semaphore(READERS)

    async def take(self, upload: OpenUpload, rules: FilesConfig) -> Content:
        """Store the content of a complete upload, and hold it. Raises `OperationError` if it is not
        acceptable, and `StoreUnavailable`."""
        vault, id = self._vault, upload.id
        sha256, size = await asyncio.to_thread(vault.flush, id)
        if size != upload.size:
            _refuse(f"the upload should have {upload.size} bytes but has {size}")
        if upload.sha256 not in (None, sha256):
            _refuse(f"the SHA-256 of the upload is {sha256}, not {upload.sha256}")
        head = await asyncio.to_thread(vault.part, id, 0, HEAD)
        media_type = true_type(upload.name, upload.media_type, head)
        if not is_accepted(rules.types, upload.name, media_type):
            _refuse(f"{media_type} is not accepted, only {', '.join(rules.types)}")
        reading = await self._read(upload, media_type, rules)
        how = way_to_read(media_type)
        async with self._moving:
            if reading.lines and how is not None:
                await asyncio.to_thread(vault.keep_text, id, sha256, how, reading.text)
            await asyncio.to_thread(vault.keep, id, sha256)
            self._held[sha256] += 1
        return Content(sha256, media_type, reading)

    async def _read(self, upload: OpenUpload, media_type: str, rules: FilesConfig) -> FileReading:
        """The text of the file, or why there is none. Raises `OperationError` for a bomb."""
        limits = ReadLimits(characters=rules.max_text, unpacked=rules.max_unpacked)
        path = self._vault.upload_path(upload.id)
        async with self._reading:
            try:
                return await asyncio.to_thread(extract_text, path, media_type, limits)
            except NoText as why:
                return FileReading(no_text=str(why))
            except FileRefused as why:
                _refuse(str(why))
            except Exception:  # a malformed file can break any reader in any way
                log.exception("a file could not be read", media_type=media_type)
                return FileReading(no_text="reading it failed")

    async def release(self, sha256: str, *, held: bool = False) -> None:
        """Remove a content if no file or upload has it. `held`: the caller's hold ends. Raises
        `StoreUnavailable`."""
        async with self._moving:
            if held:
                self.unhold(sha256)
            if not self._held[sha256] and not await self._has(sha256):
                await asyncio.to_thread(self._vault.remove, sha256)

    def unhold(self, sha256: str) -> None:
        """End a hold, because a file has the content."""
        self._held[sha256] -= 1
        if not self._held[sha256]:
            del self._held[sha256]


def _refuse(why: str) -> NoReturn:
    raise OperationError(ErrorCode.REJECTED, f"files: {why}")


class ModAccess(Protocol):
    """The mod, whose settings can change."""

    config: FilesConfig
    host: Host


class Uploader:
    """The uploads of a network. `on_added` is called for each file that is durable."""

    def __init__(
        self,
        mod: ModAccess,
        vault: ContentStore,
        intake: ContentManager,
        store: FileRepository,
        last: int,
        on_added: Callable[[StoredFile], None],
    ):
        self._mod, self._host = mod, mod.host
        self._vault, self._intake, self._store = vault, intake, store
        self._all: dict[str, OpenUpload] = {}
        self._queues = KeyedQueues()
        """By upload: calls for the same upload are serialized."""
        self._last, self._on_added = last, on_added

    # Starting ---------------------------------------------------------------------------------

    async def begin(self, call: Calling, args: BeginUpload, *, untrusted: bool) -> OpenUpload:
        """Start an upload. Raises `OperationError` if it is not acceptable."""
        name, who = checked_name(args.name), call.participant
        place = None if args.thread is None else self._host.place(call, args.thread)
        before = self._open()
        usage = await self._store.usage(who)
        # An upload that became a file in between is counted twice rather than not at all.
        self._check_room(who, args.size, usage, before | self._open())
        upload = OpenUpload(
            # Random, so that it differs from ids of an earlier run of the hub.
            id=f"u{secrets.token_hex(8)}",
            owner=who,
            thread=None if place is None else thread_ids.root(place),
            name=name,
            size=args.size,
            media_type=args.media_type,
            sha256=args.sha256,
            untrusted=untrusted,
        )
        self._all[upload.id] = upload
        return upload

    def _open(self) -> set[OpenUpload]:
        """Uploads that are not files yet."""
        return {each for each in self._all.values() if each.file is None}

    def _check_room(
        self, who: str, size: int, usage: StorageUsage, upload: set[OpenUpload]
    ) -> None:
        config, mine = self._mod.config, [each for each in upload if each.owner == who]
        if size > config.max_size:
            raise too_large(f"the file has {size} bytes; the limit is {config.max_size}")
        if len(mine) >= config.max_uploads:
            text = f"you have {len(mine)} uploads in progress; finish or cancel one first"
            raise over_limit(text)
        if len(upload) >= MAX_OPEN:
            text = "too many uploads are in progress; try again later"
            raise OperationError(ErrorCode.LIMIT, text, temporary=True)
        left = config.quota - usage.of_one - sum(each.size for each in mine)
        if size > left:
            raise _full(f"you have {max(left, 0)} of {config.quota} bytes left", size)
        left = config.total - usage.total - sum(each.size for each in upload)
        if size > left:
            raise _full(f"the network has {max(left, 0)} of {config.total} bytes left", size)
        if usage.files + len(upload) >= config.max_files:
            raise _full(f"the network has {config.max_files} files, which is the limit", size)

    def find(self, call: Calling, id: str) -> OpenUpload:
        """An upload of the caller. Raises `OperationError`, the same for unknown and others'."""
        upload = self._all.get(id)
        if upload is None or upload.owner != call.participant:
            raise not_found(
                f"you have no upload {id}; it expired or the hub restarted. Start it again"
            )
        return upload

    # Parts ------------------------------------------------------------------------------------

    async def add(self, call: Calling, args: UploadChunk) -> Upload:
        """Write the next part. Raises `OperationError` if it does not fit."""
        upload, data = self.find(call, args.upload), _decoded(args.data)
        async with self._queues.turn(upload.id):
            self.find(call, args.upload)  # it may have ended since
            if not await self._is_received(upload, args.offset, data):
                await asyncio.to_thread(self._vault.write, upload.id, args.offset, data)
                upload.received += len(data)
        self.restart_timeout(upload)
        return upload.to_schema()

    async def _is_received(self, upload: OpenUpload, offset: int, data: bytes) -> bool:
        """Whether the part was already received. Raises `OperationError` if it does not fit."""
        received, end = upload.received, offset + len(data)
        advice = f"{received} of {upload.size} bytes were received; continue at offset {received}"
        details = {"received": received}
        if end > upload.size:
            text = f"the file ends at {upload.size}, but this part ends at {end}; {advice}"
            raise too_large(text, **details)
        if offset > received:
            raise bad_request(f"offset: {advice}", **details)
        if offset == received:
            return False
        stored = b""
        if end <= received:
            stored = await asyncio.to_thread(self._stored_bytes, upload, offset, len(data))
        if stored != data:
            text = f"different bytes were received at this offset; {advice}"
            raise conflict(text, **details)
        return True

    def _stored_bytes(self, upload: OpenUpload, offset: int, size: int) -> bytes:
        """Bytes of an upload, whether or not it is a content already."""
        if upload.content is None:
            return self._vault.part(upload.id, offset, size)
        return self._vault.read(upload.content.sha256, upload.size, offset, size)

    def restart_timeout(self, upload: OpenUpload) -> None:
        """Restart the idle timeout of an upload."""
        if upload.id in self._all:
            self._host.at(self._host.now() + self._mod.config.upload_idle, upload.id)

    # Finishing --------------------------------------------------------------------------------

    async def cancel(self, upload: OpenUpload) -> None:
        """Cancel an upload. Raises `StoreUnavailable`; the next start then removes the bytes."""
        async with self._queues.turn(upload.id):
            if upload.id in self._all:
                await self._remove(upload)

    async def _remove(self, upload: OpenUpload) -> None:
        del self._all[upload.id]
        self._host.cancel(upload.id)
        await asyncio.to_thread(self._vault.drop, upload.id)
        if upload.content is not None and upload.file is None:
            await self._intake.release(upload.content.sha256, held=True)

    def expire(self, id: str) -> None:
        """Cancel an upload that was idle for too long."""
        if id in self._all:
            self._host.spawn(self.cancel(self._all[id]))

    async def finish(self, call: Calling, id: str) -> Commit:
        """Turn a complete upload into a file. Raises `OperationError`."""
        async with self._queues.turn(id) as until:
            return until(await self._commit(self.find(call, id)))

    async def write(self, call: Calling, args: WriteFile) -> Commit:
        """Create a file from a text. Raises `OperationError`."""
        data = args.text.encode(errors="replace")
        begin = BeginUpload(name=args.name, size=len(data), thread=args.thread)
        upload = await self.begin(call, begin, untrusted=args.untrusted)
        async with self._queues.turn(upload.id) as until:
            # The caller does not know this upload, so its next turn cancels it.
            self._host.spawn(self.cancel(upload))
            await asyncio.to_thread(self._vault.write, upload.id, 0, data)
            upload.received = len(data)
            return until(await self._commit(upload))

    async def _commit(self, upload: OpenUpload) -> Commit:
        if upload.file is not None:
            return Commit((), upload.file)
        if upload.received != upload.size:
            raise bad_request(
                f"{upload.received} of {upload.size} bytes were received; upload the rest first",
                received=upload.received,
            )
        if upload.content is None:
            try:
                upload.content = await self._intake.take(upload, self._mod.config)
            except OperationError:
                await self._remove(upload)  # it cannot become valid
                raise
        sha256, media_type, reading = upload.content
        self._last += 1
        stored = StoredFile(
            id=f"f{self._last}",
            name=upload.name,
            media_type=media_type,
            size=upload.size,
            sha256=sha256,
            thread=upload.thread,
            uploaded_by=upload.owner,
            at=time_of(self._host.now()),
            untrusted=upload.untrusted,
            threads=() if upload.thread is None else (upload.thread,),
            **reading._asdict(),
        )
        statements = insert_file(stored, reading.text[:INDEXED])
        file = stored.for_reader(upload.thread)
        return Commit(statements, file, applied=partial(self._on_durable, upload, stored, file))

    def _on_durable(self, upload: OpenUpload, stored: StoredFile, file: File) -> None:
        upload.file = file
        self._intake.unhold(stored.sha256)
        self._on_added(stored)


def _full(why: str, size: int) -> OperationError:
    return over_limit(f"{why}; this file has {size} bytes. Delete some files first")


def _decoded(data: str) -> bytes:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("data: is not base64") from None
    if not decoded:
        raise bad_request("data: is empty")
    return decoded
