"""`bridges run` and `bridges setup`: to other chats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.connection import AddressOption, TokenOption

__all__ = ["register"]

NameOption = Annotated[str, typer.Option("--name", help="Its name in the YAML.")]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The network's YAML file.")]
_USUAL = Path("hubbub.yaml")


def register(root: typer.Typer, word: str) -> None:
    group = typer.Typer(help="Let people of another chat, IRC or Matrix, take part.")
    group.command()(run)
    group.command()(setup)
    root.add_typer(group, name=word)


def run(
    name: NameOption,
    config: ConfigOption = _USUAL,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Run a bridge of a network that runs already, until Ctrl-C. `hubbub up` runs those of its
    YAML by itself."""
    from hubbub.app.lifeline import hold_on

    hold_on()  # before anything that takes time: the launcher may be gone already
    from hubbub.app import bridges

    bridges.run(config, name, address, token, os.environ)


def setup(name: NameOption, config: ConfigOption = _USUAL) -> None:
    """Print what the other chat's server needs to know of a bridge, as a YAML file."""
    import yaml

    from hubbub.app.bridges import load_bridge

    _, chat = load_bridge(config, name, os.environ)
    if needed := chat.setup():
        typer.echo(yaml.safe_dump(dict(needed), sort_keys=False).rstrip())
    else:
        typer.echo(f"{chat.title} needs to know nothing", err=True)
