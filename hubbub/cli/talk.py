"""`chat`: a person's end of the network in a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from hubbub.cli.joining import AddressOption, AsOption, TokenOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(chat)


def chat(
    opening: Annotated[
        str | None,
        typer.Option(
            "--open",
            "-o",
            help="The thread to begin in: #general, @bob; left out: where everybody is.",
            show_default=False,
        ),
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Take part as a person: read, write, switch threads (/help says how).

    Lines may come from a pipe or file too; the exit code is then 1 if one of them was refused.
    """
    from hubbub.cli.chat.entry import chat as take_part

    code = take_part(address=address, name=as_, token=token, opening=opening)
    if code:
        raise typer.Exit(code)
