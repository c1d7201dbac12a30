"""Files: brought to the network, listed, and fetched from it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import JsonValue

from hubbub.errors import OperationError, UserError
from hubbub.mods.files.media_types import checked_name
from hubbub.mods.files.schemas import File, FileChunk, FileText, Upload
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.figures import size_words
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, done, notes, text_notes
from hubbub.people.text import one_line
from hubbub.protocol.operations import Done, SendResult

if TYPE_CHECKING:
    from hubbub.people.client import PersonClient

__all__ = ["COMMANDS", "bring", "fetch", "free_place", "local_file", "save"]


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
        raise UserError(f"{file.id}: the file arrived damaged; try again")


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


def text(found: FileText, person: PersonClient) -> list[NoteLine]:
    return text_notes(found.text)


async def put(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Bring files into the network, and say so in a thread."""
    thread, said = given.get("thread"), given.get("text")
    if said is not None and thread is None:
        raise UserError("--text needs --thread: where to say it")
    paths = [local_file(path) for path in given["paths"]]
    found = [await bring(person, path, thread) for path in paths]
    if said is not None:
        files = [_attachment(file) for file in found]
        await person.call("send_text_message", to=thread, text=said, attachments=files)
    lines = [f"{f.id} {one_line(f.name)}: {f.size} bytes, {f.media_type}" for f in found]
    return CommandResult([file.model_dump(mode="json") for file in found], notes(lines, "plain"))


def _attachment(file: File) -> JsonValue:
    return {"name": file.name, "uri": f"file:{file.id}"}


async def attach(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Upload a file, then say it in the thread that was open when this began."""
    thread = person.state.current
    # Its readers get it with the message: a reply thread may not exist before that.
    file = await bring(person, local_file(given["path"]), None)
    operation, where = person.state.way_to(thread)
    value = await person.call(
        operation, text=given.get("text") or file.name, attachments=[_attachment(file)], **where
    )
    remember(person, file.model_dump(mode="json"))
    return CommandResult(value, spoken=SendResult.model_validate(value))


async def get(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Save a file; nothing is replaced unless that is asked for."""
    value = await person.call("file_info", id=given["id"])
    file = File.model_validate(value)
    remember(person, value)
    if file.deleted_by is not None:
        raise UserError(f"{file.id} ({one_line(file.name)}) was deleted by {file.deleted_by}")
    if given.get("path") == "-" and not person.here:
        await fetch(person, file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return CommandResult(value)
    force = bool(given.get("force"))
    place = free_place(given.get("path") or "", file.name, replace=force)
    await (_replace(person, file, place) if force else save(person, file, place))
    line = f"{file.id} is saved: {place} ({size_words(file.size)})" if person.here else str(place)
    return CommandResult({"path": str(place), "file": value}, done(line))


async def _replace(person: PersonClient, file: File, place: Path) -> None:
    """The file is as it was, or whole."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        whole = Path(folder) / "whole"
        await save(person, file, whole)
        os.replace(whole, place)


THREAD = Parameter(
    "thread", "A person, a #channel or another thread, whose readers may fetch the files."
)
COMMANDS = (
    Command("files list", "list_files", here=True, columns=(
        "file=id", "name", "type=media_type", "size", "by=uploaded_by", "at", "thread",
        "deleted_by")),
    Command("files put", do=put, where="shell", about="Upload files of this machine, for yourself "
            "or for those who read a thread.", order=("paths",), more=(
                Parameter("paths", "Files of this machine.", many=True, required=True), THREAD,
                Parameter("text", "Say this in the thread, with the files attached."))),
    Command("files attach", "begin_upload", do=attach, where="chat", order=("path", "text?"),
            without=("name", "size", "media_type", "sha256", "thread"),
            about="Send a file of this machine here, with a text.",
            more=(Parameter("path", required=True), Parameter("text"))),
    Command("files get", "file_info", do=get, order=("id", "path?"),
            about="Save a file, and say where it is then.", more=(
                Parameter("path", "A file or a folder; - for the output; left out: here."),
                Parameter("force", "Replace a file that is there.", "flag"))),
    Command("files read", "read_file", text),
)  # fmt: skip
