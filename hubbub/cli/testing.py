"""`testing`: what helps to try a network out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.output import help_if_alone

__all__ = ["register"]

group = typer.Typer(
    help="What helps to try a network out.", invoke_without_command=True, callback=help_if_alone
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="testing")


@group.command(name="model-server")
def model_server(
    script: Annotated[Path, typer.Argument(help="The script to play (YAML).")],
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.")] = 0,
) -> None:
    """Serve a scripted model over the OpenAI API, until Ctrl-C."""
    from hubbub.testing.model_server import main

    main(script, host, port)
