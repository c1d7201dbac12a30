"""`files list | put | get`: what belongs to messages, from and to folders of this machine."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from hubbub.cli.chat.text import one_line
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import (
    AddressOption,
    AsOption,
    Target,
    TokenOption,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.naming import find_thread, label
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table
from hubbub.errors import UserError

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.mods.files.words import File

__all__ = ["group", "register"]

ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", "-t", help="Somebody, a #channel or another thread of yours."),
]

group = typer.Typer(
    help="List, bring and fetch files of a network (mod files).",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="files")


def _place(client: Client, person: str, thread: str | None) -> dict[str, str]:
    """The thread as an argument, if there is one. Raises `UserError`."""
    if thread is None:
        return {}
    people = {known.id for known in client.ready.participants}
    channels = {channel.name for channel in client.ready.channels}
    return {"thread": find_thread(thread, person, people, channels)}


# list -------------------------------------------------------------------------------------------


@group.command("list")
def list_(
    thread: ThreadOption = None,
    before: Annotated[
        str | None, typer.Option("--before", help="Only files that came before this one (f12).")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 20,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the files that you may read, the latest first."""
    from hubbub.mods.files.words import Files

    desk = Desk.of(as_, address, token)
    found = desk.ask(Files, "list_files", thread=thread, before=before, limit=limit)
    if as_json:
        emit_json(found)
        return
    rows = [
        (
            file.id,
            file.name,
            file.media_type,
            str(file.size),
            file.uploaded_by,
            day_time(file.at),
            "" if file.thread is None else label(file.thread, desk.person),
        )
        for file in found.files
    ]
    table(("FILE", "NAME", "TYPE", "BYTES", "BY", "AT", "THREAD"), rows)
    if found.more:
        typer.echo(f"there are earlier ones: --before {found.files[-1].id}")


# put --------------------------------------------------------------------------------------------


@group.command("put")
def put(
    paths: Annotated[list[Path], typer.Argument(help="Files of this machine.")],
    thread: ThreadOption = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Say this in the thread, with the files attached.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring files into the network: for yourself, or for those who read a thread."""
    if text is not None and thread is None:
        raise UserError("--text needs --thread: where to say it")
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
    target = Target(address, token)
    person = default_person(target, as_)
    brought = run_async(_put(target, person, paths, thread, text))
    if as_json:
        emit_json(brought)
        return
    for file in brought:
        typer.echo(f"{file.id} {one_line(file.name)}: {file.size} bytes, {file.media_type}")


async def _put(
    target: Target, person: str, paths: Sequence[Path], thread: str | None, text: str | None
) -> list[File]:
    async with joined(target, person) as client:
        place = _place(client, person, thread)
        brought = [await _upload(client, path, place) for path in paths]
        if text is not None:
            files = [{"name": file.name, "uri": f"file:{file.id}"} for file in brought]
            said = {"to": place["thread"], "text": text}
            await client.call("send_text_message", cid=None, attachments=files, **said)
    return brought


async def _upload(client: Client, path: Path, place: dict[str, str]) -> File:
    from hubbub.mods.files.words import File, Upload

    size, sha256 = await asyncio.to_thread(_measured, path)
    begun = Upload.model_validate(
        await client.call(
            "begin_upload", cid=None, name=path.name, size=size, sha256=sha256, **place
        )
    )
    offset = 0
    with path.open("rb") as file:
        while data := await asyncio.to_thread(file.read, begun.chunk):
            part = base64.b64encode(data).decode()
            await client.call(
                "upload_chunk", cid=None, upload=begun.upload, offset=offset, data=part
            )
            offset += len(data)
    return File.model_validate(await client.call("finish_upload", cid=None, upload=begun.upload))


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


# get --------------------------------------------------------------------------------------------


@group.command("get")
def get(
    id: Annotated[str, typer.Argument(help="The file, for example f12.")],
    path: Annotated[
        Path | None,
        typer.Argument(help="Where to write: a file or a folder, - for the output; else here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Fetch a file of the network, and print where it is then."""
    target = Target(address, token)
    person = default_person(target, as_)
    written = run_async(_get(target, person, id, path, force=force))
    if written is not None:
        typer.echo(str(written))


async def _get(
    target: Target, person: str, id: str, path: Path | None, *, force: bool
) -> Path | None:
    from hubbub.mods.files.words import File

    async with joined(target, person) as client:
        file = File.model_validate(await client.call("file_info", cid=None, id=id))
        if file.deleted_by is not None:
            raise UserError(f"{id} ({one_line(file.name)}) was deleted by {file.deleted_by}")
        if path == Path("-"):
            await _fetch(client, file, sys.stdout.buffer)
            return None
        place = _free_place(path, file.name, force=force)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as made:
            try:
                await _fetch(client, file, made)  # type: ignore[arg-type]  # a BinaryIO in all but name
            except BaseException:
                os.unlink(made.name)
                raise
        os.replace(made.name, place)
    return place


def _free_place(path: Path | None, name: str, *, force: bool) -> Path:
    """Where to write. Raises `UserError`, also for a name that the hub should not have let in."""
    from hubbub.errors import OperationError
    from hubbub.mods.files.names import checked_name

    if path is None or path.is_dir():
        try:
            path = (path or Path()) / checked_name(name)
        except OperationError as error:
            raise UserError(f"say where to write it: {error.message}") from None
    if path.exists() and not force:
        raise UserError(f"{path} is there already; --force replaces it")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: there is no such folder")
    return path


async def _fetch(client: Client, file: File, into: BinaryIO) -> None:
    """Write the content. Raises `UserError` if it is not what the hub says it is."""
    digest = hashlib.sha256()
    async for data in _parts(client, file):
        digest.update(data)
        into.write(data)
    into.flush()
    if digest.hexdigest() != file.sha256:
        raise UserError(f"{file.id}: what has arrived is not what was kept; try again")


async def _parts(client: Client, file: File) -> AsyncIterator[bytes]:
    from hubbub.mods.files.words import FileChunk

    offset, more = 0, True
    while more:
        answer = await client.call("download_chunk", cid=None, id=file.id, offset=offset)
        chunk = FileChunk.model_validate(answer)
        data = base64.b64decode(chunk.data)
        yield data
        offset, more = offset + len(data), chunk.more
