"""`gateway`: a process that holds sockets for the hub that owns a network."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from hubbub.cli.output import JsonFlag, MetricsOption

__all__ = ["register"]


def register(app: typer.Typer, word: str) -> None:
    app.command()(gateway)


def gateway(
    hubs: Annotated[
        str,
        typer.Option(
            "--hubs",
            envvar="HUBBUB_HUBS",
            help="host:port of the hub, and of those that stand by for it, with commas between.",
        ),
    ],
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="HUBBUB_GATEWAY_TOKEN",
            help="The network's `gateway_token`; better in the environment.",
        ),
    ],
    listen: Annotated[str, typer.Option("--listen", help="host:port")] = "127.0.0.1:4840",
    name: Annotated[
        str,
        typer.Option(
            "--name",
            envvar="HUBBUB_NODE",
            help="Of this gateway; left out: where it listens.",
            show_default=False,
        ),
    ] = "",
    metrics: MetricsOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Hold the connections of a network for whichever hub owns it, until Ctrl-C."""
    from hubbub.app.lifeline import hold_on
    from hubbub.app.process import loading

    hold_on()  # if it was started by `cluster dev`
    with loading():
        from hubbub.app.gateway import hold
        from hubbub.app.process import Printer, configure_logging, run_loop
        from hubbub.cli.view import JsonView, TerminalView

    shape = JsonView if as_json else TerminalView
    with Printer(sys.stderr, TerminalView.gap) as errors, Printer(sys.stdout, shape.gap) as printer:
        configure_logging(debug=bool(os.environ.get("HUBBUB_DEBUG")), printer=errors)
        names = [hub.strip() for hub in hubs.split(",") if hub.strip()]
        report = shape(printer.write)
        work = hold(
            names, token, listen, report, name=name or listen, metrics=metrics, signals=True
        )
        run_loop(work)
