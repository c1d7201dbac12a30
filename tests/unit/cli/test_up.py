"""`hubbub up` opens the page, with a real process, terminal and browser."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubbub.app.lifecycle import LifecycleEvent, NetworkUp, Stopping
from hubbub.cli.up import _with_browser
from tests.unit.cli.conftest import NETWORK, Shell

WITHIN_S = 100.0
UP = NetworkUp("town", "ws://127.0.0.1:4820", "open", "", (), (), ())


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desktop with a browser that writes its URL into this FIFO."""
    fifo = home / "opened"
    os.mkfifo(fifo)
    program = home / "browser"
    program.write_text(f'#!/bin/sh\necho noise\necho "$1" > {fifo}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    (home / "hubbub.yaml").write_text(NETWORK, encoding="utf-8")
    return fifo


class Terminal:
    """The output of `hubbub up` on a terminal or in a pipe."""

    def __init__(self, reading: int, process: subprocess.Popen[bytes]):
        self._reading, self.process = reading, process
        self.text = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while text not in self.text:
            assert select.select([self._reading], [], [], deadline - time.monotonic())[0], self.text
            self.text += os.read(self._reading, 65536).decode()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WITHIN_S)


@contextmanager
def up(*args: str, terminal: bool = True) -> Iterator[Terminal]:
    reading, writing = os.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "up", *args],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        yield Terminal(reading, process)
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def read_from(fifo: Path) -> str:
    """Wait until something is written into the FIFO."""
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([reading], [], [], WITHIN_S)[0], f"nothing written into {fifo.name}"
        return os.read(reading, 65536).decode().strip()
    finally:
        os.close(reading)


def marker_of(browser: Path) -> Path:
    """Replace the browser by one that only creates this file."""
    marker = browser.with_name("marker")
    browser.write_text(f"#!/bin/sh\ntouch {marker}\n")
    return marker


@pytest.mark.slow
def test_the_page_opens_in_the_browser_of_a_desktop(opened: Path) -> None:
    with up() as terminal:
        terminal.until("Ctrl-C")
        url = read_from(opened)
        assert url.startswith("http://127.0.0.1:")
        assert url in terminal.text.splitlines()[1]
        assert terminal.stop() == 0
        assert "noise" not in terminal.text


@pytest.mark.slow
@pytest.mark.parametrize(("option", "up_when"), [("--no-browser", "Ctrl-C"), ("--json", '"up"')])
def test_the_page_does_not_open_with_no_browser_or_json(
    opened: Path, option: str, up_when: str
) -> None:
    marker = marker_of(opened.with_name("browser"))
    with up(option) as terminal:
        terminal.until(up_when)
        assert terminal.stop() == 0
    assert not marker.exists()


@pytest.mark.slow
def test_the_browser_option_needs_no_terminal_and_the_browser_survives_ctrl_c(
    opened: Path, home: Path
) -> None:
    (home / "browser").write_text(f'#!/bin/sh\necho $$ "$1" > {opened}\nexec sleep 600\n')
    with up("--browser", "--json", terminal=False) as terminal:
        pid, url = read_from(opened).split()
        assert url.startswith("http://127.0.0.1:")
        try:
            assert terminal.stop() == 0
            os.kill(int(pid), 0)  # raises if Ctrl-C ended the browser too
        finally:
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.slow
def test_the_page_does_not_open_if_the_network_cannot_listen(opened: Path, hubbub: Shell) -> None:
    marker = marker_of(opened.with_name("browser"))
    assert hubbub("up", "--browser", "--listen", "nowhere").code == 2
    assert not marker.exists()


def test_events_are_reported_while_a_daemon_thread_opens_the_browser(
    opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")  # so that no browser starts
    seen: list[LifecycleEvent] = []
    report = _with_browser(seen.append)
    report(UP)
    report(Stopping("SIGINT"))
    assert seen == [UP, Stopping("SIGINT")]
    for thread in threading.enumerate():
        if thread.name == "browser":
            assert thread.daemon
            thread.join(WITHIN_S)
