"""`hubbub chat` and `hubbub ask` as people run them, in a pipe and in a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEADLINE_S = 100.0
HUBBUB = [sys.executable, "-m", "hubbub"]
SLEEPER = """
import asyncio

from hubbub import Agent, Message


class Sleeper(Agent):
    async def on_direct(self, message: Message) -> str:
        await asyncio.Event().wait()
        return "never"
"""
FILE = f"""
network: {{name: office, auth: open, listen: '127.0.0.1:0', store: 'sqlite::memory:'}}
channels: {{general: {{}}}}
humans: {{ann: {{}}, bob: {{}}}}
agents:
  calculator: {{kind: python, class: '{ROOT}/configs/agents/calculator.py:Calculator'}}
  sleeper: {{kind: python, class: 'sleeper.py:Sleeper'}}
mods: [files, tasks]
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user with a running network of two agents and some mods."""
    folder = tmp_path_factory.mktemp("office")
    (folder / "office.yaml").write_text(FILE)
    (folder / "sleeper.py").write_text(SLEEPER)
    environment = {
        **os.environ,
        "HUBBUB_STATE_DIR": str(folder / "state"),
        "TERM": "xterm-256color",
        "USER": "ann",
        "LOGNAME": "ann",
    }
    up = subprocess.Popen(
        [*HUBBUB, "up", str(folder / "office.yaml"), "--json"], env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert up.stdout is not None
    try:
        lines = iter(up.stdout.readline, "")
        assert any('"event": "up"' in line for line in lines), "the network does not start"
        yield environment
    finally:
        up.terminate()
        up.communicate(timeout=DEADLINE_S)


def script(environment: dict[str, str], *lines: str, name: str = "ann", code: int = 0) -> list[str]:
    """The output of `hubbub chat` for these lines of standard input."""
    done = subprocess.run(
        [*HUBBUB, "chat", "--as", name],
        env=environment,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.stderr == ""
    assert done.returncode == code
    return done.stdout.splitlines()


def test_a_piped_chat_asks_an_agent_and_prints_the_answer(environment: dict[str, str]) -> None:
    shown = script(environment, "/dm calculator 19 + 23", "/wait 30")
    assert any(line.endswith("ann: 19 + 23 ✓") for line in shown)
    assert any("calculator: " in line and "42" in line for line in shown)


@pytest.mark.behaviour("M-315", "M-316")
def test_a_piped_chat_sends_a_file_that_another_person_saves(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "plan.csv").write_bytes(b"a,b\n" * 50_000)
    script(environment, "/open #general", f"/attach {tmp_path}/plan.csv the plan")
    get = ("/open #general", f"/get f1 {tmp_path}/copy.csv")
    shown = script(environment, *get, name="bob")
    assert any("[f1 plan.csv, text/csv, 200.0 kB]" in line for line in shown)
    assert (tmp_path / "copy.csv").read_bytes() == (tmp_path / "plan.csv").read_bytes()
    again = script(environment, *get, name="bob", code=1)
    assert again[-1] == f"{tmp_path}/copy.csv already exists; choose another path"


class Terminal:
    """A terminal with `hubbub chat`, which answers requests for the cursor's position."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        self.drawn = ""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._process = subprocess.Popen(
            [*HUBBUB, "chat", *options], env=environment, stdin=slave, stdout=slave, stderr=slave,
            process_group=0,  # Ctrl-Z stops the whole group
        )  # fmt: skip
        os.close(slave)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def shows(self, text: str) -> None:
        """Waits until the text has been drawn."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.drawn:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.drawn!r}"
            ready, _, _ = select.select([self._master], [], [], 0.5)
            if ready:
                self._read()

    def pauses(self) -> None:
        """Presses Ctrl-Z, waits until the process is stopped, and continues it."""
        self.types("\x1a")
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
        os.kill(self._process.pid, signal.SIGCONT)

    def _read(self) -> None:
        data = os.read(self._master, 65536)
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._master, b"\x1b[1;1R")
        self.drawn += data.decode(errors="replace")

    def leaves(self) -> int:
        """Presses Ctrl-D, repeatedly in case a prompt is being drawn; returns the exit code."""
        self.types("\x04")
        deadline = time.monotonic() + DEADLINE_S
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "the chat does not exit"
            try:
                if select.select([self._master], [], [], 0.1)[0]:
                    self._read()
                else:
                    self.types("\x04")
            except OSError:  # the other end is closed
                break
        return self._process.wait(DEADLINE_S)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@contextmanager
def terminal(environment: dict[str, str], *options: str) -> Iterator[Terminal]:
    terminal = Terminal(environment, *options)
    try:
        terminal.shows("office as ann")
        yield terminal
        assert terminal.leaves() == 0
    finally:
        terminal.close()


@pytest.mark.behaviour("U-1", "M-310")
def test_a_terminal_chat_asks_an_agent_adds_a_task_and_completes_commands(
    environment: dict[str, str],
) -> None:
    with terminal(environment, "--open", "#general") as ann:
        ann.types("/dm calculator 17 * 3\r")
        ann.shows("── @calculator ──")
        ann.shows("✓")
        ann.shows("51")
        ann.types("/tasks add Write")
        ann.pauses()
        ann.types(" it\r")
        ann.shows("open: Write it")
        ann.types("/cla")
        ann.shows("Claim a task")  # in the menu
        ann.types("\tnothing\r")
        ann.shows("task must be an id such as t3, not 'nothing': /tasks claim <task>")


def test_ctrl_c_during_ask_cancels_the_turn(environment: dict[str, str]) -> None:
    def turns() -> list[dict[str, str]]:
        run = [*HUBBUB, "turns", "list", "--as", "ann", "--agent", "sleeper", "--json"]
        output = subprocess.check_output(run, env=environment, timeout=DEADLINE_S)
        listed: list[dict[str, str]] = json.loads(output)["turns"]
        return listed

    asking = subprocess.Popen(
        [*HUBBUB, "ask", "sleeper", "sleep well", "--as", "ann"], env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not turns():
            assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        _, errors = asking.communicate(timeout=DEADLINE_S)
        assert (asking.returncode, errors.count("Traceback")) == (130, 0)
        (turn,) = turns()
        assert turn["outcome"] == "cancelled"
    finally:
        asking.kill()
        asking.communicate(timeout=DEADLINE_S)
