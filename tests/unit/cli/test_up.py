"""`up` and the browser: the process, the terminal and the browser are real."""

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
    """The user has a desktop, and a browser that writes what it is given into this pipe."""
    found = home / "opened"
    os.mkfifo(found)
    program = home / "browser"
    program.write_text(f'#!/bin/sh\necho noise\necho "$1" > {found}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    (home / "hubbub.yaml").write_text(NETWORK, encoding="utf-8")
    return found


class Terminal:
    """What `hubbub up` shows on a terminal (or in a pipe) of its own."""

    def __init__(self, reading: int, process: subprocess.Popen[bytes]):
        self._reading, self.process = reading, process
        self.text = ""

    def until(self, words: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while words not in self.text:
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


def appears(pipe: Path) -> str:
    """What is written into the pipe, as soon as it is."""
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([reading], [], [], WITHIN_S)[0], f"nothing came through {pipe.name}"
        return os.read(reading, 65536).decode().strip()
    finally:
        os.close(reading)


def file_of(browser: Path) -> Path:
    """A file that is there once the browser has been started: nobody need wait for it."""
    found = browser.with_name("file")
    browser.write_text(f"#!/bin/sh\ntouch {found}\n")
    return found


@pytest.mark.slow
def test_at_a_desktop_the_page_opens_by_itself_once_there_is_one(opened: Path) -> None:
    with up() as terminal:
        terminal.until("Ctrl-C")
        url = appears(opened)
        assert url.startswith("http://127.0.0.1:")
        assert url in terminal.text.splitlines()[1]
        assert terminal.stop() == 0
        assert "noise" not in terminal.text


@pytest.mark.slow
@pytest.mark.parametrize(("option", "up_when"), [("--no-browser", "Ctrl-C"), ("--json", '"up"')])
def test_it_does_not_where_nobody_would_see_it_or_wants_it(
    opened: Path, option: str, up_when: str
) -> None:
    file = file_of(opened.with_name("browser"))
    with up(option) as shown:
        shown.until(up_when)
        assert shown.stop() == 0
    assert not file.exists()


@pytest.mark.slow
def test_who_asks_for_a_browser_gets_it_also_without_a_terminal_and_one_that_stays_holds_up_nothing(
    opened: Path, home: Path
) -> None:
    (home / "browser").write_text(f'#!/bin/sh\necho $$ "$1" > {opened}\nexec sleep 600\n')
    with up("--browser", "--json", terminal=False) as shown:
        id, url = appears(opened).split()
        assert url.startswith("http://127.0.0.1:")
        try:
            assert shown.stop() == 0
            os.kill(int(id), 0)  # it is the user's now, and has not felt the Ctrl-C
        finally:
            os.kill(int(id), signal.SIGKILL)


@pytest.mark.slow
def test_an_address_that_cannot_be_had_opens_nothing(opened: Path, hubbub: Shell) -> None:
    file = file_of(opened.with_name("browser"))
    assert hubbub("up", "--browser", "--listen", "nowhere").code == 2
    assert not file.exists()


def test_what_happens_is_shown_before_the_browser_is_opened(
    opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")  # it need not really open
    seen: list[LifecycleEvent] = []
    report = _with_browser(seen.append)
    report(UP)
    report(Stopping("SIGINT"))
    assert seen == [UP, Stopping("SIGINT")]
    for thread in threading.enumerate():
        if thread.name == "browser":
            assert thread.daemon
            thread.join(WITHIN_S)
