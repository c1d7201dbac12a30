"""`backup` and `restore`: copies of a network's store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.output import JsonFlag, emit_json
from hubbub.cli.up import DEFAULT_CONFIG

__all__ = ["register"]

ConfigOption = Annotated[
    Path, typer.Option("--config", help="The network's YAML file.", show_default="hubbub.yaml")
]


def register(app: typer.Typer) -> None:
    app.command()(backup)
    app.command()(restore)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must be new.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonFlag = False,
) -> None:
    """Copy a network's store, with its attachments, while the network runs or not."""
    from hubbub.network.store.backups import back_up

    _tell(file, back_up(_store(config), file.absolute()), "backed up", as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `hubbub backup` has written.")],
    config: ConfigOption = DEFAULT_CONFIG,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of the store that is there.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a network's store what a backup has; the network must be stopped."""
    from hubbub.network.store.backups import restore as put_back

    _tell(file, put_back(_store(config), file.absolute(), replace=replace), "restored", as_json)


def _store(config: Path) -> str:
    from hubbub.config.loader import load

    return load(config).file.network.store


def _tell(file: Path, messages: int, what: str, as_json: bool) -> None:
    if as_json:
        emit_json({"file": str(file), "messages": messages})
    else:
        typer.echo(f"{what}: {messages} messages, {file}")
