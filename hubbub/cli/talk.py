"""`chat`: a person's end of the network in a terminal."""

from __future__ import annotations

import typer

from hubbub.cli.joining import AddressOption, AsOption, TokenOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(chat)


def chat(as_: AsOption = None, address: AddressOption = None, token: TokenOption = None) -> None:
    """Take part as a person: read, write, switch threads (/help says how)."""
    from hubbub.cli.chat import chat as take_part

    code = take_part(address=address, name=as_, token=token)
    if code:
        raise typer.Exit(code)
