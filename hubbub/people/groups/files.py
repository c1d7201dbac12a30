"""Files: upload, list and download."""

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
from hubbub.people.figures import size_text
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, done, notes, text_notes
from hubbub.people.text import one_line
from hubbub.protocol.operations import Done, SendResult

if TYPE_CHECKING:
    from hubbub.people.client import PersonClient

__all__ = ["COMMANDS", "fetch", "free_path", "local_file", "save", "upload"]


def local_file(path: str) -> Path:
    """A local file; `~` is the home folder. Raises `UserError`."""
    place = Path(path).expanduser()
    if not place.is_file():
        what = "not a regular file" if place.exists() else "no such file"
        raise UserError(f"{path}: {what}")
    return place


async def upload(person: PersonClient, path: Path, thread: str | None) -> File:
    """Upload a local file for the readers of a thread. Raises `UserError`, `OperationError`."""
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
        with suppress(OperationError):  # an upload that is not cancelled times out
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
    """Write the content to a new file. Raises `UserError`, `OperationError`."""
    try:
        with _created(place) as output:
            await fetch(person, file, output)
    except FileExistsError:
        raise UserError(f"{place} already exists; choose another path") from None
    except OSError as exc:
        raise UserError(f"{place}: {exc.strerror or exc}") from exc
    finally:
        person.progress("")


@contextmanager
def _created(place: Path) -> Iterator[BinaryIO]:
    """A new file, which is deleted if the body fails. Follows no symlink and replaces nothing."""
    with place.open("xb") as file:
        try:
            yield file
        except BaseException:
            place.unlink(missing_ok=True)
            raise


async def fetch(person: PersonClient, file: File, into: BinaryIO) -> None:
    """Write the content into a stream. Raises `UserError` if its checksum does not match,
    `OperationError`."""
    digest, offset, more = hashlib.sha256(), 0, True
    while more:
        person.progress(_so_far(file.name, offset, file.size))
        chunk = await person.ask(FileChunk, "download_chunk", id=file.id, offset=offset)
        data = base64.b64decode(chunk.data)
        digest.update(data)
        into.write(data)
        offset, more = offset + len(data), chunk.more
    if digest.hexdigest() != file.sha256:
        raise UserError(f"{file.id}: the download is corrupt; try again")


def free_path(path: str, name: str, *, replace: bool = False) -> Path:
    """The path for a download of this name; it must not exist unless `replace` is set. Raises
    `UserError`, also for names that are unsafe or would be hidden."""
    place = Path(path).expanduser() if path else Path()
    if not path or place.is_dir():
        try:
            safe = checked_name(name)
        except OperationError as error:
            raise UserError(f"name a path to write to: {one_line(error.message)}") from None
        if safe.startswith("."):
            raise UserError(f"{one_line(name)} would be a hidden file: name a path to write to")
        place /= safe
    if not replace and (place.is_symlink() or place.exists()):
        raise UserError(f"{place} already exists; choose another path")
    if not place.parent.is_dir():
        raise UserError(f"{place.parent}: no such folder")
    return place


def text(answer: FileText, person: PersonClient) -> list[NoteLine]:
    return text_notes(answer.text)


async def put(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Upload files, and post them in a thread if a text is given. All, or none: to repeat a command
    of which a part was done would upload that part twice."""
    thread, message = given.get("thread"), given.get("text")
    if message is not None and thread is None:
        raise UserError("--text needs --thread")
    paths = [local_file(path) for path in given["paths"]]
    uploaded = list[File]()
    try:
        for path in paths:
            uploaded.append(await upload(person, path, thread if message is None else None))
        if message is not None:
            files = [_attachment(file) for file in uploaded]
            await person.call("send_text_message", to=thread, text=message, attachments=files)
    except (UserError, OperationError):
        for file in uploaded:
            with suppress(OperationError):
                await person.call("delete_file", id=file.id)
        raise
    lines = [f"{f.id} {one_line(f.name)}: {f.size} bytes, {f.media_type}" for f in uploaded]
    value: list[JsonValue] = [file.model_dump(mode="json") for file in uploaded]
    return CommandResult(value, notes(lines, "plain"))


def _attachment(file: File) -> JsonValue:
    return {"name": file.name, "uri": f"file:{file.id}"}


async def attach(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Upload a file, then post it in the thread that was open at the start."""
    thread = person.state.current
    # The message grants its readers access: a reply thread may not exist before it.
    file = await upload(person, local_file(given["path"]), None)
    operation, where = person.state.way_to(thread)
    value = await person.call(
        operation, text=given.get("text") or file.name, attachments=[_attachment(file)], **where
    )
    remember(person, file.model_dump(mode="json"))
    return CommandResult(value, sent=SendResult.model_validate(value))


async def get(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Download a file; replaces an existing file only with --force."""
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
    place = free_path(given.get("path") or "", file.name, replace=force)
    await (_replace(person, file, place) if force else save(person, file, place))
    line = f"saved {file.id} as {place} ({size_text(file.size)})" if person.here else str(place)
    return CommandResult({"path": str(place), "file": value}, done(line))


async def _replace(person: PersonClient, file: File, place: Path) -> None:
    """Replace a file atomically."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        whole = Path(folder) / "whole"
        await save(person, file, whole)
        os.replace(whole, place)


THREAD = Parameter(
    "thread", "A person, a #channel or another thread whose readers can download the files."
)
COMMANDS = (
    Command("files list", "list_files", here=True, columns=(
        "file=id", "name", "type=media_type", "size", "by=uploaded_by", "at", "thread",
        "deleted_by")),
    Command("files put", do=put, where="shell", about="Upload files, for yourself or for the "
            "readers of a thread.", order=("paths",), more=(
                Parameter("paths", "Local files.", many=True, required=True), THREAD,
                Parameter("text", "Post this text in the thread, with the files attached."))),
    Command("files attach", "begin_upload", do=attach, where="chat", order=("path", "text?"),
            without=("name", "size", "media_type", "sha256", "thread"),
            about="Send a local file to this thread, with a text.",
            more=(Parameter("path", required=True), Parameter("text"))),
    Command("files get", "file_info", do=get, order=("id", "path?"),
            about="Download a file and print its path.", more=(
                Parameter("path", "A file or folder; - for standard output. Default: the current "
                          "folder."),
                Parameter("force", "Replace an existing file.", "flag"))),
    Command("files read", "read_file", text),
)  # fmt: skip
