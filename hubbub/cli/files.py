"""`files list | put | get`: what belongs to messages, from and to folders of this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.asking import Asking
from hubbub.cli.chat.text import one_line
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption, joined, run_async
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table
from hubbub.errors import UserError

if TYPE_CHECKING:
    from hubbub.mods.files.schemas import File

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
    from hubbub.mods.files.schemas import Files

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
    from hubbub.cli.workplace.carrying import local_file

    files = [local_file(str(path)) for path in paths]
    brought = run_async(_put(Desk.of(as_, address, token), files, thread, text))
    if as_json:
        emit_json(brought)
        return
    for file in brought:
        typer.echo(f"{file.id} {one_line(file.name)}: {file.size} bytes, {file.media_type}")


async def _put(
    desk: Desk, paths: Sequence[Path], thread: str | None, text: str | None
) -> list[File]:
    from hubbub.cli.workplace.carrying import bring, untold

    async with joined(desk.target, desk.person) as client:
        place = desk.place(client, thread)
        brought = [await bring(Asking(client), path, place, untold) for path in paths]
        if text is not None and place is not None:
            files = [{"name": file.name, "uri": f"file:{file.id}"} for file in brought]
            said = {"to": place, "text": text, "attachments": files}
            await client.call("send_text_message", cid=None, **said)
    return brought


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
    written = run_async(_get(Desk.of(as_, address, token), id, path, force=force))
    if written is not None:
        typer.echo(str(written))


async def _get(desk: Desk, id: str, path: Path | None, *, force: bool) -> Path | None:
    from hubbub.cli.workplace.carrying import fetch, free_place, save, untold
    from hubbub.mods.files.schemas import File

    async with joined(desk.target, desk.person) as client:
        asking = Asking(client)
        file = await asking.ask(File, "file_info", id=id)
        if file.deleted_by is not None:
            raise UserError(f"{id} ({one_line(file.name)}) was deleted by {file.deleted_by}")
        if path == Path("-"):
            await fetch(asking, file, sys.stdout.buffer, untold)
            sys.stdout.buffer.flush()
            return None
        place = free_place("" if path is None else str(path), file.name, replace=force)
        if not force:
            await save(asking, file, place, untold)
            return place
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            whole = Path(folder) / "whole"
            await save(asking, file, whole, untold)
            os.replace(whole, place)
    return place
