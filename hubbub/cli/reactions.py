"""`react`: an emoji under a message, in place of a message (mod `reactions`)."""

from __future__ import annotations

from typing import Annotated

import typer

from hubbub.cli.desk import Desk
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.output import JsonFlag, emit_json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(react)


def react(
    message: Annotated[str, typer.Argument(help="The message, for example m42.")],
    emoji: Annotated[str, typer.Argument(help="One emoji, or a name that the network knows.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take your reaction back.")] = False,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """React to a message with an emoji (mod reactions), and print what stands under it then."""
    from hubbub.mods.reactions.schemas import Reacted

    name = "remove_reaction" if remove else "add_reaction"
    under = Desk.of(as_, address, token).ask(Reacted, name, message_id=message, emoji=emoji)
    if as_json:
        emit_json(under)
        return
    counts = "  ".join(f"{each.emoji} {each.count}" for each in under.reactions)
    typer.echo(f"{under.message_id}  {counts or 'no reactions'}")
