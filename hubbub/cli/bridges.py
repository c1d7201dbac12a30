"""`bridges run` and `bridges setup`: bridges to other chats."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from hubbub.cli.connection import AddressOption, TokenOption
from hubbub.cli.output import DEFAULT_CONFIG, ConfigOption

__all__ = ["register"]

NameOption = Annotated[str, typer.Option("--name", help="The bridge's name in the YAML.")]


def register(root: typer.Typer, word: str) -> None:
    group = typer.Typer(help="Bridge IRC or Matrix rooms into the network.")
    group.command()(run)
    group.command()(setup)
    root.add_typer(group, name=word)


def run(
    name: NameOption,
    config: ConfigOption = DEFAULT_CONFIG,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Run a bridge for a running network, until Ctrl-C. `hubbub up` starts the bridges of its YAML
    itself."""
    from hubbub.app.lifeline import watch_parent

    watch_parent()  # before anything slow: the launcher may be gone already
    from hubbub.app import bridges

    bridges.run(config, name, address, token, os.environ)


def setup(name: NameOption, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Print the bridge's registration for the other chat's server, as YAML."""
    import yaml

    from hubbub.app.bridges import load_bridge

    _, chat = load_bridge(config, name, os.environ)
    if needed := chat.setup():
        typer.echo(yaml.safe_dump(dict(needed), sort_keys=False).rstrip())
    else:
        typer.echo(f"{chat.title} needs no setup", err=True)
