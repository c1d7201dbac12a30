"""`hubbub chat` as people use it: its own process, a running network, a pipe or a terminal."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
HUBBUB = [sys.executable, "-m", "hubbub"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user whose quickstart network runs."""
    state = tmp_path_factory.mktemp("state")
    environment = {
        **os.environ,
        "HUBBUB_STATE_DIR": str(state),
        "HUBBUB_LISTEN": "127.0.0.1:0",
        "HUBBUB_STORE": "sqlite::memory:",
        "TERM": "xterm-256color",
        "USER": "ann",
        "LOGNAME": "ann",
    }
    up = subprocess.Popen(
        [*HUBBUB, "up", str(ROOT / "configs" / "quickstart.yaml")],
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


def wait_for_run_file(state: Path, up: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not list(state.glob("run/*.json")):
        assert up.poll() is None, up.communicate()[0]
        assert time.monotonic() < deadline, "the network does not come up"
        time.sleep(0.05)


def script(environment: dict[str, str], *lines: str, name: str = "ann", code: int = 0) -> list[str]:
    """What `hubbub chat` prints for these lines on its standard input."""
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


def test_a_script_asks_an_agent_and_reads_the_answer(environment: dict[str, str]) -> None:
    shown = script(environment, "/dm calculator 19 + 23", "/wait 30")
    assert any(line.endswith("ann: 19 + 23 ✓") for line in shown)
    assert any("calculator: " in line and "42" in line for line in shown)


def test_two_people_find_each_other_without_being_told_where(
    environment: dict[str, str],
) -> None:
    script(environment, "/channel general", "anybody here?", name="bob")
    shown = script(environment, "/channel general", "/who")
    assert any(line.endswith("bob: anybody here?") for line in shown)
    assert any("bob" in line and "human" in line for line in shown)


def test_a_wrong_line_does_not_end_a_script_but_fails_it(environment: dict[str, str]) -> None:
    shown = script(environment, "/frobnicate", "/dm nobody", "still here", code=1)
    assert "there is no command /frobnicate; /help lists them" in shown
    assert any(line.endswith("still here ✓") for line in shown)


def test_an_impossible_name_is_one_sentence_and_exit_code_2(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*HUBBUB, "chat", "--as", "two words"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert "cannot be a name" in done.stderr
    assert "Traceback" not in done.stderr


class Terminal:
    """A terminal with `hubbub chat` in it. Answers where the cursor is, as terminals do."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        self.drawn = ""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._process = subprocess.Popen(
            [*HUBBUB, "chat", *options], env=environment, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def shows(self, text: str) -> None:
        """Wait until the text has been drawn."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.drawn:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.drawn!r}"
            ready, _, _ = select.select([self._master], [], [], 0.5)
            if ready:
                self._read()

    def _read(self) -> None:
        data = os.read(self._master, 65536)
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._master, b"\x1b[1;1R")
        self.drawn += data.decode(errors="replace")

    def leaves(self) -> int:
        """Press Ctrl-D; the exit code."""
        self.types("\x04")
        deadline = time.monotonic() + DEADLINE_S
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "the chat does not end"
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self._read()
                except OSError:  # nobody holds the other end any more
                    break
        return self._process.wait(DEADLINE_S)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Terminal]:
    terminal = Terminal(environment)
    yield terminal
    terminal.close()


@pytest.mark.behaviour("U-1")
def test_a_person_at_a_terminal_asks_and_leaves(terminal: Terminal) -> None:
    terminal.shows("quickstart as ann")
    terminal.types("/dm calculator 17 * 3\r")
    terminal.shows("── @calculator ──")
    terminal.shows("✓")
    terminal.shows("51")
    assert terminal.leaves() == 0


@pytest.mark.behaviour("U-1")
def test_a_person_fills_the_screen_asks_and_leaves(environment: dict[str, str]) -> None:
    terminal = Terminal(environment, "--full")
    try:
        terminal.shows("quickstart as ann")
        terminal.types("/dm calculator 17 * 5\r")
        terminal.shows("17 * 5")
        terminal.shows("✓✓ calculator")
        terminal.shows("85")
        assert terminal.leaves() == 0
        assert "Traceback" not in terminal.drawn
        assert "\x1b[?1049l" in terminal.drawn  # the screen is as it was before
    finally:
        terminal.close()


def test_a_full_screen_wants_a_terminal(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*HUBBUB, "chat", "--full"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("hubbub: the full screen needs a terminal")
