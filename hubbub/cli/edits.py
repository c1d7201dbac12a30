"""`edit`, `delete`, `history`: what one has said, changed afterwards (mod `edits`)."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import BaseModel

from hubbub.cli.chat.text import visible
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.output import JsonFlag, emit_json

__all__ = ["register"]

MessageArgument = Annotated[str, typer.Argument(help="The message, for example m42.")]


def register(app: typer.Typer) -> None:
    app.command()(edit)
    app.command()(delete)
    app.command()(history)


def edit(
    message: MessageArgument,
    text: Annotated[str, typer.Argument(help="What it says from now on.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Change what a message of yours says (mod edits). Nobody is woken by it."""
    from hubbub.protocol.operations import SendResult

    desk = Desk.of(as_, address, token)
    told = desk.ask(SendResult, "edit_message", message_id=message, text=text)
    _print(told, f"{message} says something else now ({told.id})", as_json)


def delete(
    message: MessageArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Delete a message of yours (mod edits). Owners of the network delete anybody's."""
    from hubbub.protocol.operations import SendResult

    told = Desk.of(as_, address, token).ask(SendResult, "delete_message", message_id=message)
    _print(told, f"{message} is deleted ({told.id})", as_json)


def _print(told: BaseModel, line: str, as_json: bool) -> None:
    if as_json:
        emit_json(told)
    else:
        typer.echo(line)


def history(
    message: MessageArgument,
    before: Annotated[
        int | None, typer.Option("--before", min=1, help="Only versions before this position.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 20,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a message said from when to when (mod edits)."""
    from hubbub.mods.edits.schemas import MessageVersions

    found = Desk.of(as_, address, token).ask(
        MessageVersions, "message_history", message_id=message, before=before, limit=limit
    )
    if as_json:
        emit_json(found)
        return
    if found.more:
        typer.echo(f"there are earlier ones; see --before {found.versions[0].seq}")
    for each in found.versions:
        by = each.by if each.spoken_by is None else f"{each.spoken_by} as {each.by}"
        text = visible(each.text).replace("\n", "\n    ")
        typer.echo(f"{day_time(each.at)} {each.kind} by {by}  {text}".rstrip())
