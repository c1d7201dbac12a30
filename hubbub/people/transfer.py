"""Files on their way to the hub and from it, part by part."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hubbub.errors import OperationError, UserError
from hubbub.mods.files.media_types import checked_name
from hubbub.mods.files.schemas import File, FileChunk, Upload
from hubbub.people.text import one_line
from hubbub.protocol.operations import Done

if TYPE_CHECKING:
    from hubbub.people.client import PersonClient

__all__ = ["bring", "fetch", "free_place", "local_file", "save"]


def local_file(path: str) -> Path:
    """A file of this machine; `~` is the home folder. Raises `UserError`."""
    place = Path(path).expanduser()
    if not place.is_file():
        raise UserError(f"{path}: there is no such file")
    return place


async def bring(person: PersonClient, path: Path, thread: str | None) -> File:
    """Upload a file of this machine, for those who read the thread. Raises `UserError`,
    `OperationError`."""
    try:
        size, sha256 = await asyncio.to_thread(_measured, path)
    except OSError as exc:
        raise UserError(f"{path}: {exc.strerror or exc}") from exc
    if not size:
        raise UserError(f"{path}: the file is empty")
    begun = await person.ask(
        Upload, "begin_upload", name=path.name, size=size, sha256=sha256, thread=thread
    )
    try:
        await _send(person, path, begun)
        return await person.ask(File, "finish_upload", upload=begun.upload)
    except (OperationError, OSError) as exc:
        with suppress(OperationError):  # else it ends by itself after a while
            await person.ask(Done, "cancel_upload", upload=begun.upload)
        if isinstance(exc, OSError):
            raise UserError(f"{path}: {exc.strerror or exc}") from exc
        raise
    finally:
        person.progress("")


async def _send(person: PersonClient, path: Path, begun: Upload) -> None:
    offset = 0
    with path.open("rb") as file:
        while data := await asyncio.to_thread(file.read, begun.chunk):
            person.progress(_so_far(path.name, offset, begun.size))
            part = base64.b64encode(data).decode()
            await person.ask(Upload, "upload_chunk", upload=begun.upload, offset=offset, data=part)
            offset += len(data)


def _so_far(name: str, bytes: int, size: int) -> str:
    return f"{one_line(name)} {100 * bytes // max(size, 1)} %"


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


async def save(person: PersonClient, file: File, place: Path) -> None:
    """Write the content to a place where nothing is. Raises `UserError`, `OperationError`."""
    try:
        with _made(place) as made:
            await fetch(person, file, made)
    except FileExistsError:
        raise UserError(f"{place} is there already; name another place") from None
    except OSError as exc:
        raise UserError(f"{place}: {exc.strerror or exc}") from exc
    finally:
        person.progress("")


@contextmanager
def _made(place: Path) -> Iterator[BinaryIO]:
    """A new file, which goes away if what is done with it fails. Follows no link, and replaces
    nothing."""
    with place.open("xb") as made:
        try:
            yield made
        except BaseException:
            place.unlink(missing_ok=True)
            raise


async def fetch(person: PersonClient, file: File, into: BinaryIO) -> None:
    """Write the content. Raises `UserError` if it is not what the hub says, `OperationError`."""
    digest, offset, more = hashlib.sha256(), 0, True
    while more:
        person.progress(_so_far(file.name, offset, file.size))
        chunk = await person.ask(FileChunk, "download_chunk", id=file.id, offset=offset)
        data = base64.b64decode(chunk.data)
        digest.update(data)
        into.write(data)
        offset, more = offset + len(data), chunk.more
    if digest.hexdigest() != file.sha256:
        raise UserError(f"{file.id}: what has arrived is not what was kept; try again")


def free_place(path: str, name: str, *, replace: bool = False) -> Path:
    """Where a file of this name is to be written: nothing is there yet, unless it may be replaced.
    Raises `UserError`, also for a name that the hub should not have let in, or that would be
    hidden."""
    place = Path(path).expanduser() if path else Path()
    if not path or place.is_dir():
        try:
            safe = checked_name(name)
        except OperationError as error:
            raise UserError(f"say where to write it: {one_line(error.message)}") from None
        if safe.startswith("."):
            raise UserError(f"{one_line(name)} would be hidden there: say where to write it")
        place /= safe
    if not replace and (place.is_symlink() or place.exists()):
        raise UserError(f"{place} is there already; name another place")
    if not place.parent.is_dir():
        raise UserError(f"{place.parent}: there is no such folder")
    return place
