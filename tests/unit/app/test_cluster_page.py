"""The page about several machines: its files can be used as they stand."""

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


def _counted() -> set[str]:
    """The names of all that nodes, their hubs and gateways count."""
    holder = SessionHolder(float, lambda work: work.close())
    gateway = Figures("g1", figures_of(holder, Uplink(holder, [("127.0.0.1", 1)], "")))
    node = Node("n1", "postgresql://hubbub@nowhere/cluster", {}, print)
    text = render(HubMetrics(), others=[gateway]) + node.rendered()
    return set(re.findall(r"^# TYPE (\S+)", text.decode(), re.M))


def test_the_page_and_its_alarms_name_what_is_counted() -> None:
    rules = [
        rule
        for group in yaml.safe_load(example(PAGE, "alarms.yaml"))["groups"]
        for rule in group["rules"]
    ]
    asked = {name for rule in rules for name in re.findall(r"hubbub_\w+", rule["expr"])}
    told = set(re.findall(r"`(hubbub_\w+)`", (ROOT / PAGE).read_text()))
    known = _counted()
    assert len(rules) > 5
    assert {name.removesuffix("_bucket") for name in asked | told} <= known


def _check_command(words: list[str]) -> None:
    command: Any = command_of(program())  # of typer's own classes
    for word in words[1:2]:
        command = command.commands[word]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known, words


def test_services_of_containers_and_systemd_start_what_there_is() -> None:
    compose = yaml.safe_load(example(PAGE, "compose.yaml"))
    commands = [service["command"] for service in compose["services"].values()]
    ours = [shlex.split(each) for each in commands if each.startswith("hubbub ")]
    for unit in UNITS:
        (line,) = re.findall(r"^ExecStart=/opt/hubbub/bin/(.*)$", example(PAGE, unit), re.M)
        ours.append(shlex.split(line))
    assert sorted(words[1] for words in ours) == ["gateway"] * 3 + ["node"] * 4
    for words in ours:
        _check_command(words)


def test_the_network_of_the_page_is_one(tmp_path: Path) -> None:
    place = tmp_path / "newsroom.yaml"
    place.write_text(example(PAGE, "networks/newsroom.yaml"))
    environ = {"HUBBUB_GATEWAY_TOKEN": "a token for gateways"}
    assert load(place, environ=environ).file.network.name == "newsroom"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = example(PAGE, unit).replace("/opt/hubbub/bin/hubbub", "/bin/true")
        (tmp_path / unit.replace("@.", "@4820.")).write_text(
            text.replace("User=hubbub", "User=daemon")
        )
    command = ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
