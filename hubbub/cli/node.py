"""`node`: a process that owns its share of many networks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.output import JsonFlag, MetricsOption
from hubbub.errors import UserError
from hubbub.protocol.thread_ids import is_id

__all__ = ["register"]

MOST_NAME = 40
"""Characters: Postgres cuts what a session calls itself."""
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        envvar="HUBBUB_CLUSTER",
        help="postgresql://USER@HOST/DATABASE, which all nodes share; it may be a network's own.",
    ),
]


def register(app: typer.Typer, word: str) -> None:
    app.command()(node)


def node(
    configs: Annotated[
        list[Path], typer.Argument(help="YAML files of networks, or folders of them.")
    ],
    name: Annotated[str, typer.Option("--name", envvar="HUBBUB_NODE", help="Of this node.")],
    cluster: ClusterOption,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", help="Host, in place of the configs'; the ports stay.", show_default=False
        ),
    ] = "",
    agents: Annotated[
        bool, typer.Option("--agents/--no-agents", help="Whether to start the agents.")
    ] = True,
    metrics: MetricsOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Own a share of many networks, beside other nodes, until Ctrl-C."""
    from hubbub.app.lifeline import hold_on
    from hubbub.app.process import loading

    hold_on()  # if it was started by `cluster dev`
    with loading():
        from hubbub.app.process import Printer, configure_logging, run_loop
        from hubbub.cli.view import JsonView, TerminalView
        from hubbub.network.store.location import cluster_extra

        with cluster_extra():
            from hubbub.app.node import Node, load_networks

    if not is_id(name) or len(name) > MOST_NAME:
        raise UserError(
            f"--name: '{name}' is no name: letters, digits, - and _, at most {MOST_NAME}"
        )
    networks = load_networks(configs, cluster, listen)
    shape = JsonView if as_json else TerminalView
    with Printer(sys.stderr, TerminalView.gap) as errors, Printer(sys.stdout, shape.gap) as printer:
        configure_logging(debug=bool(os.environ.get("HUBBUB_DEBUG")), printer=errors)
        report = shape(printer.write)
        made = Node(name, cluster, networks, report, host=listen, with_agents=agents)
        run_loop(made.run(metrics=metrics, signals=True))
