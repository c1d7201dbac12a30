"""The files on the page about several machines work as they are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.app.gateway import figures_of
from hubbub.app.metrics import Figures
from hubbub.app.node import Node
from hubbub.cli.app import command_of, program
from hubbub.config.loader import load
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.uplink import Uplink
from hubbub.network.exposition import render
from hubbub.network.metrics import HubMetrics
from tests.doc_pages import ROOT, example

PAGE = "docs/how-to/run-on-several-machines.md"
UNITS = ("hubbub-node.service", "hubbub-gateway@.service")


def _metrics() -> set[str]:
    """The names of all metrics of nodes, hubs and gateways."""
    holder = SessionHolder(float, lambda work: work.close())
    gateway = Figures("g1", figures_of(holder, Uplink(holder, [("127.0.0.1", 1)], "")))
    node = Node("n1", "postgresql://hubbub@nowhere/cluster", {}, print)
    text = render(HubMetrics(), others=[gateway]) + node.rendered()
    return set(re.findall(r"^# TYPE (\S+)", text.decode(), re.M))


def test_the_page_and_its_alarms_name_existing_metrics() -> None:
    rules = [
        rule
        for group in yaml.safe_load(example(PAGE, "alarms.yaml"))["groups"]
        for rule in group["rules"]
    ]
    in_alarms = {name for rule in rules for name in re.findall(r"hubbub_\w+", rule["expr"])}
    on_page = set(re.findall(r"`(hubbub_\w+)`", (ROOT / PAGE).read_text()))
    assert len(rules) > 5
    assert {name.removesuffix("_bucket") for name in in_alarms | on_page} <= _metrics()


def _check_command(words: list[str]) -> None:
    commands: Any = command_of(program())  # untyped: typer's own classes
    command = commands.commands[words[1]]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options, words


def test_the_services_of_containers_and_systemd_run_existing_commands() -> None:
    compose = yaml.safe_load(example(PAGE, "compose.yaml"))
    commands = [service["command"] for service in compose["services"].values()]
    ours = [shlex.split(each) for each in commands if each.startswith("hubbub ")]
    for unit in UNITS:
        (line,) = re.findall(r"^ExecStart=/opt/hubbub/bin/(.*)$", example(PAGE, unit), re.M)
        ours.append(shlex.split(line))
    assert sorted(words[1] for words in ours) == ["gateway"] * 3 + ["node"] * 4
    for words in ours:
        _check_command(words)


def test_the_network_on_the_page_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "newsroom.yaml"
    path.write_text(example(PAGE, "networks/newsroom.yaml"))
    environ = {"HUBBUB_GATEWAY_TOKEN": "a token for gateways"}
    assert load(path, environ=environ).file.network.name == "newsroom"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = example(PAGE, unit).replace("/opt/hubbub/bin/hubbub", "/bin/true")
        (tmp_path / unit.replace("@.", "@4820.")).write_text(
            text.replace("User=hubbub", "User=daemon")
        )
    command = ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
