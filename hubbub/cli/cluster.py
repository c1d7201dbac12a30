"""Networks on several machines: `node` runs a share of them, `gateway` holds their sockets,
`cluster status | move | drain | undrain | dev` inspects and moves them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.output import JsonFlag, MetricsOption, emit_json, help_if_alone, program, table
from hubbub.errors import UserError
from hubbub.protocol.thread_ids import is_id

if TYPE_CHECKING:
    from hubbub.app.cluster import ClusterNetwork, NodeStatus
    from hubbub.app.dev_cluster import DevCluster

__all__ = ["register"]

MOST_NAME = 40
"""Characters: Postgres truncates the name of a session."""
FEW = 5
"""Names shown in a list; the rest are counted."""
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        envvar="HUBBUB_CLUSTER",
        help="postgresql://USER@HOST/DATABASE shared by all nodes; a network's own database works.",
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Whether to wait until it is done.")
]
group = typer.Typer(
    help="Inspect nodes, move networks, drain nodes, try a cluster.",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer, word: str) -> None:
    if word == "cluster":
        app.add_typer(group, name=word)
    else:
        app.command()(gateway if word == "gateway" else node)


def node(
    configs: Annotated[
        list[Path], typer.Argument(help="YAML files of networks, or folders of them.")
    ],
    name: Annotated[str, typer.Option("--name", envvar="HUBBUB_NODE", help="This node's name.")],
    cluster: ClusterOption,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            help="Host to listen on; overrides the configs, whose ports still apply.",
            show_default=False,
        ),
    ] = "",
    agents: Annotated[
        bool, typer.Option("--agents/--no-agents", help="Whether to start the agents.")
    ] = True,
    metrics: MetricsOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Run a share of many networks, alongside other nodes, until Ctrl-C."""
    from hubbub.app.lifeline import watch_parent
    from hubbub.app.process import loading

    watch_parent()  # if it was started by `cluster dev`
    with loading():
        from hubbub.app.process import run_loop
        from hubbub.cli.view import view_of
        from hubbub.network.store.location import cluster_extra

        with cluster_extra():
            from hubbub.app.node import Node, load_networks

    if not is_id(name) or len(name) > MOST_NAME:
        raise UserError(
            f"--name: '{name}' is not a valid name: use ASCII letters, digits, - and _, at most "
            f"{MOST_NAME}"
        )
    networks = load_networks(configs, cluster, listen)
    with view_of(as_json=as_json) as report:
        node = Node(name, cluster, networks, report, host=listen, with_agents=agents)
        run_loop(node.run(metrics=metrics, signals=True))


def gateway(
    hubs: Annotated[
        str,
        typer.Option(
            "--hubs",
            envvar="HUBBUB_HUBS",
            help="host:port of the hub and of its standbys, separated by commas.",
        ),
    ],
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="HUBBUB_GATEWAY_TOKEN",
            help="The network's `gateway_token`; preferably set in the environment.",
        ),
    ],
    listen: Annotated[str, typer.Option("--listen", help="host:port")] = "127.0.0.1:4840",
    name: Annotated[
        str,
        typer.Option(
            "--name",
            envvar="HUBBUB_NODE",
            help="This gateway's name. Default: its address.",
            show_default=False,
        ),
    ] = "",
    metrics: MetricsOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Hold a network's connections on behalf of the hub that owns it, until Ctrl-C."""
    from hubbub.app.lifeline import watch_parent
    from hubbub.app.process import loading

    watch_parent()  # if it was started by `cluster dev`
    with loading():
        from hubbub.app.gateway import hold
        from hubbub.app.process import run_loop
        from hubbub.cli.view import view_of

    with view_of(as_json=as_json) as report:
        names = [hub.strip() for hub in hubs.split(",") if hub.strip()]
        work = hold(
            names, token, listen, report, name=name or listen, metrics=metrics, signals=True
        )
        run_loop(work)


@group.command()
def status(cluster: ClusterOption, as_json: JsonFlag = False) -> None:
    """Show nodes and networks, with their owners and problems."""
    with _postgres():
        from hubbub.app.cluster import status
    from msgspec import to_builtins

    state = status(cluster)
    if as_json:
        emit_json(to_builtins(state))
        return
    table(("node", "listens on", "state", "networks"), map(_node_row, state.nodes))
    typer.echo()
    table(("network", "owner", "address", "gateways", ""), map(_network_row, state.networks))


def _node_row(node: NodeStatus) -> tuple[str, ...]:
    state = "live" if node.live else "gone"
    return node.name, node.host, f"{state}, drained" if node.drained else state, _few(node.networks)


def _network_row(network: ClusterNetwork) -> tuple[str, ...]:
    notes = [f"{node} cannot run it: {why}" for node, why in network.problems.items()]
    if network.moved_to is not None:
        notes.insert(0, f"moved to {network.moved_to}")
    if network.owner is not None and not network.serves:
        notes.insert(0, "not listening yet")
    if network.placed != network.owner:
        notes.insert(0, f"moves to {network.placed}" if network.placed else "no node can run it")
    address, gateways = network.address or "", _few(network.gateways)
    return network.name, network.owner or "-", address, gateways, "; ".join(notes)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


@group.command()
def move(
    network: Annotated[str, typer.Argument(help="The network's name.")],
    cluster: ClusterOption,
    node: Annotated[str | None, typer.Argument(help="The node to move it to.")] = None,
    anywhere: Annotated[bool, typer.Option("--anywhere", help="Undo an earlier move.")] = False,
    wait: WaitOption = True,
) -> None:
    """Move a network to a node, which owns it while the node is alive."""
    with _postgres():
        from hubbub.app.cluster import move
    if (node is None) is not anywhere:
        raise UserError("name either the node to move the network to, or --anywhere")
    move(cluster, network, node, wait=wait)


NodeArgument = Annotated[str, typer.Argument(help="The node's name.")]


@group.command()
def drain(node: NodeArgument, cluster: ClusterOption, wait: WaitOption = True) -> None:
    """Move all networks off a node, which owns none until it is undrained."""
    with _postgres():
        from hubbub.app.cluster import drain
    drain(cluster, node, wanted=True, wait=wait)


@group.command()
def undrain(node: NodeArgument, cluster: ClusterOption) -> None:
    """Let a node own its share of networks again."""
    with _postgres():
        from hubbub.app.cluster import drain
    drain(cluster, node, wanted=False, wait=False)


@group.command()
def dev(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(help="YAML files. Default: the starter network.", show_default=False),
    ] = None,
    nodes: Annotated[
        int, typer.Option("--nodes", "-n", min=1, max=20, help="Number of nodes.")
    ] = 3,
) -> None:
    """Start a cluster on this machine, until Ctrl-C: Postgres, nodes on 127.0.0.1, 127.0.0.2 and so
    on, and gateways.

    All messages are deleted when it stops.
    """
    from hubbub.app.process import loading

    with loading():
        from hubbub.app.process import Printer, configure_logging, run_loop
        from hubbub.cli.init import starter_files, write_files
        from hubbub.cli.view import TerminalView

        with _postgres():
            from hubbub.app.dev_cluster import dev_cluster

    with (
        tempfile.TemporaryDirectory(prefix="hubbub-starter-") as folder,
        Printer(sys.stderr, TerminalView.gap) as errors,
        Printer(sys.stdout, TerminalView.gap) as printer,
    ):
        configure_logging(debug=bool(os.environ.get("HUBBUB_DEBUG")), printer=errors)
        if not configs:
            write_files({Path(folder, name): text for name, text in starter_files([]).items()},
                        force=True)  # fmt: skip
            configs = [Path(folder, "hubbub.yaml")]
        view = TerminalView(printer.write)
        run_loop(dev_cluster(configs, nodes, view, lambda up: _print_usage(up, printer.write)))


def _print_usage(up: DevCluster, write: Callable[[str], object]) -> None:
    """Print commands to try in the cluster."""
    name, gateway = next(iter(up.gateways.items()))
    lines = [
        f"{len(up.nodes)} nodes; {name} is at http://{gateway}, on whichever node",
        *(f"{other} is at http://{at}" for other, at in list(up.gateways.items())[1:]),
        "in another terminal:",
        f"  export HUBBUB_CLUSTER='{up.url}'",
        f"  {program()} cluster status",
        f"  {program()} cluster move {name} {up.nodes[-1]}",
        f"  {program()} cluster drain {up.nodes[0]}",
        f"  {program()} chat --address {gateway}",
        "  kill -9 a node: another takes over its networks, and connections stay open",
        "Ctrl-C stops everything",
    ]
    write("\n".join(lines) + "\n")


def _postgres() -> AbstractContextManager[None]:
    from hubbub.network.store.location import cluster_extra

    return cluster_extra()
