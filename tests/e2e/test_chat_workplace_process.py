"""What mods bring, at `hubbub chat` as people use it: its own process, a running network."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_chat_process import DEADLINE_S, HUBBUB, Terminal, script, wait_for_run_file

pytestmark = pytest.mark.slow

FILE = """
network: {name: office, auth: open}
channels: {general: {}}
humans: {ann: {}, bob: {}}
mods: [edits, reactions, files, tasks]
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user whose network with mods runs."""
    folder = tmp_path_factory.mktemp("office")
    (folder / "office.yaml").write_text(FILE)
    state = folder / "state"
    environment = {
        **os.environ,
        "HUBBUB_STATE_DIR": str(state),
        "HUBBUB_LISTEN": "127.0.0.1:0",
        "HUBBUB_STORE": f"sqlite:{folder}/office.db",
        "TERM": "xterm-256color",
        "USER": "ann",
        "LOGNAME": "ann",
    }
    up = subprocess.Popen(
        [*HUBBUB, "up", str(folder / "office.yaml")],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for_run_file(state, up)
        yield environment
    finally:
        up.terminate()
        up.communicate(timeout=DEADLINE_S)


@pytest.mark.behaviour("M-315")
@pytest.mark.behaviour("M-316")
def test_a_script_sends_a_file_and_another_person_saves_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "plan.csv").write_bytes(b"a,b\n" * 50_000)
    script(environment, "/channel general", f"/attach {tmp_path}/plan.csv the plan")
    shown = script(environment, "/channel general", f"/get f1 {tmp_path}/copy.csv", name="bob")
    assert any("[f1 plan.csv, text/csv, 200.0 kB]" in line for line in shown)
    assert (tmp_path / "copy.csv").read_bytes() == (tmp_path / "plan.csv").read_bytes()
    again = script(
        environment, "/channel general", f"/get f1 {tmp_path}/copy.csv", name="bob", code=1
    )
    assert again[-1] == f"{tmp_path}/copy.csv is there already; name another place"


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Terminal]:
    terminal = Terminal(environment, "--open", "#general")
    yield terminal
    terminal.close()


@pytest.mark.behaviour("M-310")
def test_commands_of_mods_are_completed_in_a_terminal(terminal: Terminal) -> None:
    terminal.shows("#general")
    terminal.types("/todo Write it\r")
    terminal.shows("open: Write it")
    terminal.types("/cla")
    terminal.shows("take a task")  # in the menu
    terminal.types("\tnothing\r")
    terminal.shows("/claim takes a task's id such as t3: /claim <t3>")
