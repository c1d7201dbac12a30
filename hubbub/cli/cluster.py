"""Networks on several machines: `node` owns a share of them, `gateway` holds their sockets,
`cluster status | move | drain | undrain | dev` shows and moves them."""

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
"""Characters: Postgres cuts what a session calls itself."""
FEW = 5
"""Names that a list shows."""
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        envvar="HUBBUB_CLUSTER",
        help="postgresql://USER@HOST/DATABASE, which all nodes share; it may be a network's own.",
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Whether to return when it is done, or at once.")
]
group = typer.Typer(
    help="Nodes that share networks: see, move, drain, try.",
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
        from hubbub.app.process import run_loop
        from hubbub.cli.view import view_of
        from hubbub.network.store.location import cluster_extra

        with cluster_extra():
            from hubbub.app.node import Node, load_networks

    if not is_id(name) or len(name) > MOST_NAME:
        raise UserError(
            f"--name: '{name}' is no name: letters, digits, - and _, at most {MOST_NAME}"
        )
    networks = load_networks(configs, cluster, listen)
    with view_of(as_json=as_json) as report:
        made = Node(name, cluster, networks, report, host=listen, with_agents=agents)
        run_loop(made.run(metrics=metrics, signals=True))


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
    """Show nodes and networks: who owns what, and what stands in the way."""
    with _postgres():
        from hubbub.app.cluster import status
    from msgspec import to_builtins

    seen = status(cluster)
    if as_json:
        emit_json(to_builtins(seen))
        return
    table(("node", "listens on", "state", "networks"), map(_node_row, seen.nodes))
    typer.echo()
    table(("network", "owner", "address", "gateways", ""), map(_network_row, seen.networks))


def _node_row(node: NodeStatus) -> tuple[str, ...]:
    state = "live" if node.live else "gone"
    return node.name, node.host, f"{state}, drained" if node.drained else state, _few(node.networks)


def _network_row(network: ClusterNetwork) -> tuple[str, ...]:
    notes = [f"{node} cannot run it: {why}" for node, why in network.problems.items()]
    if network.moved_to is not None:
        notes.insert(0, f"moved to {network.moved_to}")
    if network.owner is not None and not network.serves:
        notes.insert(0, "does not listen yet")
    if network.placed != network.owner:
        notes.insert(0, f"goes to {network.placed}" if network.placed else "no node can run it")
    address, gateways = network.address or "", _few(network.gateways)
    return network.name, network.owner or "nobody", address, gateways, "; ".join(notes)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


@group.command()
def move(
    network: Annotated[str, typer.Argument(help="The network's name.")],
    cluster: ClusterOption,
    node: Annotated[str | None, typer.Argument(help="The node that is to own it.")] = None,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Take an earlier move back.")
    ] = False,
    wait: WaitOption = True,
) -> None:
    """Have a network owned by a node, for as long as that lives."""
    with _postgres():
        from hubbub.app.cluster import move
    if (node is None) is not anywhere:
        raise UserError("name the node that the network moves to, or --anywhere, and not both")
    move(cluster, network, node, wait=wait)


NodeArgument = Annotated[str, typer.Argument(help="The node's name.")]


@group.command()
def drain(node: NodeArgument, cluster: ClusterOption, wait: WaitOption = True) -> None:
    """Have a node own nothing, until it is undrained: others take its networks."""
    with _postgres():
        from hubbub.app.cluster import drain
    drain(cluster, node, wanted=True, wait=wait)


@group.command()
def undrain(node: NodeArgument, cluster: ClusterOption) -> None:
    """Have a node own its share again."""
    with _postgres():
        from hubbub.app.cluster import drain
    drain(cluster, node, wanted=False, wait=False)


@group.command()
def dev(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(help="YAML files; left out: the starter network.", show_default=False),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", "-n", min=1, max=20, help="How many.")] = 3,
) -> None:
    """Start Postgres, nodes on 127.0.0.1, 127.0.0.2 and so on, and gateways, until Ctrl-C.

    What is said there ends with it.
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
        run_loop(dev_cluster(configs, nodes, view, lambda up: _tell(up, printer.write)))


def _tell(up: DevCluster, write: Callable[[str], object]) -> None:
    """What one can do with it."""
    name, gateway = next(iter(up.gateways.items()))
    lines = [
        f"{len(up.nodes)} nodes; {name} is at http://{gateway}, whichever of them owns it",
        *(f"{other} is at http://{at}" for other, at in list(up.gateways.items())[1:]),
        "in another terminal:",
        f"  export HUBBUB_CLUSTER='{up.url}'",
        f"  {program()} cluster status",
        f"  {program()} cluster move {name} {up.nodes[-1]}",
        f"  {program()} cluster drain {up.nodes[0]}",
        f"  {program()} chat --address {gateway}",
        "  kill -9 a node: another one takes what it had, and connections stay open",
        "Ctrl-C ends all of it",
    ]
    write("\n".join(lines) + "\n")


def _postgres() -> AbstractContextManager[None]:
    from hubbub.network.store.location import cluster_extra

    return cluster_extra()
