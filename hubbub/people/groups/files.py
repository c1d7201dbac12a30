"""Files: brought to the network, listed, and fetched from it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.files.schemas import File, FileText
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.figures import size_words
from hubbub.people.parameters import Parameter
from hubbub.people.shown import NoteLine, Shown, done, notes, text_notes
from hubbub.people.text import one_line
from hubbub.people.transfer import bring, fetch, free_place, local_file, save
from hubbub.protocol.operations import SendResult

__all__ = ["COMMANDS"]


def text(found: FileText, person: PersonClient) -> list[NoteLine]:
    return text_notes(found.text)


async def put(person: PersonClient, given: dict[str, Any]) -> Shown:
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
    return Shown([file.model_dump(mode="json") for file in found], notes(lines, "plain"))


def _attachment(file: File) -> JsonValue:
    return {"name": file.name, "uri": f"file:{file.id}"}


async def attach(person: PersonClient, given: dict[str, Any]) -> Shown:
    """Upload a file, then say it in the thread that was open when this began."""
    thread = person.state.current
    # Its readers get it with the message: a reply thread may not exist before that.
    file = await bring(person, local_file(given["path"]), None)
    operation, where = person.state.way_to(thread)
    value = await person.call(
        operation, text=given.get("text") or file.name, attachments=[_attachment(file)], **where
    )
    remember(person, file.model_dump(mode="json"))
    return Shown(value, spoken=SendResult.model_validate(value))


async def get(person: PersonClient, given: dict[str, Any]) -> Shown:
    """Save a file; nothing is replaced unless that is asked for."""
    value = await person.call("file_info", id=given["id"])
    file = File.model_validate(value)
    remember(person, value)
    if file.deleted_by is not None:
        raise UserError(f"{file.id} ({one_line(file.name)}) was deleted by {file.deleted_by}")
    if given.get("path") == "-" and not person.here:
        await fetch(person, file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return Shown(value)
    force = bool(given.get("force"))
    place = free_place(given.get("path") or "", file.name, replace=force)
    await (_replace(person, file, place) if force else save(person, file, place))
    line = f"{file.id} is saved: {place} ({size_words(file.size)})" if person.here else str(place)
    return Shown({"path": str(place), "file": value}, done(line))


async def _replace(person: PersonClient, file: File, place: Path) -> None:
    """The file is as it was, or whole."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        whole = Path(folder) / "whole"
        await save(person, file, whole)
        os.replace(whole, place)


THREAD = Parameter("thread", "Somebody, a #channel or another thread: who reads it may fetch them.")
COMMANDS = (
    Command("files list", "list_files", here=True, columns=(
        "file=id", "name", "type=media_type", "size", "by=uploaded_by", "at", "thread",
        "deleted_by")),
    Command("files put", do=put, where="shell", about="Bring files of this machine, for yourself "
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
