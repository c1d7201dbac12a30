"""The page opens in the user's browser."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from hubbub.cli.view import open_browser, page_url, wants_browser

WITHIN_S = 100.0
DESKTOP = {"DISPLAY": ":0"}


def test_the_url_of_the_page_can_be_opened_on_this_machine() -> None:
    for url, page in {
        "ws://127.0.0.1:4820": "http://127.0.0.1:4820/",
        "ws://localhost:80": "http://localhost:80/",
        "ws://[::1]:4820": "http://[::1]:4820/",
        "ws://192.168.1.7:4820": "http://192.168.1.7:4820/",
        "ws://0.0.0.0:4820": "http://127.0.0.1:4820/",
        "ws://[::]:4820": "http://[::1]:4820/",
    }.items():
        assert page_url(url) == page


def test_a_browser_is_wanted_only_on_a_local_desktop_with_a_terminal() -> None:
    cases: tuple[tuple[dict[str, str], str, bool, bool], ...] = (
        ({}, "darwin", True, True),
        ({}, "win32", True, True),
        (DESKTOP, "linux", True, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True, True),
        (DESKTOP, "freebsd14", True, True),
        # no desktop
        ({}, "linux", True, False),
        ({"DISPLAY": ""}, "linux", True, False),
        # the output is not a terminal
        (DESKTOP, "linux", False, False),
        ({}, "darwin", False, False),
        # the screen is somewhere else
        ({**DESKTOP, "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, "linux", True, False),
        ({"SSH_TTY": "/dev/ttys001"}, "darwin", True, False),
        ({"SSH_CLIENT": "10.0.0.1 5 22"}, "win32", True, False),
        ({**DESKTOP, "SSH_CONNECTION": ""}, "linux", True, True),
        # continuous integration
        ({**DESKTOP, "CI": "true"}, "linux", True, False),
        ({"CI": "false"}, "darwin", True, True),
        ({"CI": ""}, "darwin", True, True),
    )
    for env, platform, tty, wanted in cases:
        assert wants_browser(env, platform, tty) is wanted, (env, platform, tty)


@pytest.mark.slow
def test_the_users_browser_gets_only_the_url_and_is_detached_from_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "browser"
    session = f"cut -d' ' -f6 /proc/$$/stat > {tmp_path}/session" if sys.platform == "linux" else ""
    program.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/opened\necho noise; echo noise >&2\n'
        f"cat  # reads its stdin\n{session}\nexit 3\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    # A file in the current folder must not replace the module of the standard library.
    (tmp_path / "webbrowser.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    thread = open_browser("http://127.0.0.1:4820/")
    thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert (tmp_path / "opened").read_text() == "http://127.0.0.1:4820/\n"
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "imported").exists()
    if session:
        assert int((tmp_path / "session").read_text()) != os.getsid(0)


@pytest.mark.slow
def test_a_missing_browser_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BROWSER", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    open_browser("http://127.0.0.1:4820/").join(WITHIN_S)
    assert capfd.readouterr() == ("", "")
