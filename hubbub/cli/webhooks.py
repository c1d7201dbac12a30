"""`webhooks serve`: receive webhooks and post them in the network."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from hubbub.cli.connection import AddressOption, TokenOption
from hubbub.cli.output import DEFAULT_CONFIG, ConfigOption

__all__ = ["register"]


def register(group: typer.Typer, word: str) -> None:
    group.command()(serve)


def serve(
    config: ConfigOption = DEFAULT_CONFIG,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Receive webhooks and post them in the network, until Ctrl-C. Configure them in the YAML under
    mods.webhooks.inbound."""
    from hubbub.app.inbound import job_of, run

    def announce(addresses: Sequence[str]) -> None:
        for each in addresses:
            typer.echo(f"POST {each}")
        typer.echo("receiving webhooks; Ctrl-C stops")

    run(job_of(config, address, token), announce)
