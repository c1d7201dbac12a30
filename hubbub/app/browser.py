"""The network's page in the user's browser: where it is, whether to open it, and how."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping

__all__ = ["open_browser", "page_url", "wants_browser"]

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Listening on all addresses is no place to go to; this machine's own is among them."""
_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_WITH_DESKTOP = frozenset({"darwin", "win32", "cygwin"})


def page_url(url: str) -> str:
    """The page of the network whose hub listens at `url` (ws://host:port), as seen from here."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    return f"http://{_EVERYWHERE.get(host, host)}:{port}/"


def wants_browser(env: Mapping[str, str], platform: str, tty: bool) -> bool:
    """Whether a person sits here, at a desktop, and would like to see the page.

    `env` is the environment, `platform` is `sys.platform`, `tty` says whether the output is read on
    a terminal. Not inside SSH: the screen is somewhere else; not in CI.
    """
    if not tty or _says_yes(env.get("CI", "")) or any(env.get(name) for name in _REMOTE):
        return False
    return platform in _WITH_DESKTOP or any(env.get(name) for name in _SCREENS)


def _says_yes(value: str) -> bool:
    return value.lower() not in ("", "0", "false", "no")


def open_browser(url: str) -> threading.Thread:
    """Open `url` in the user's browser, if there is one; that there is none is no error.

    Nobody waits: `webbrowser` runs in a process of its own, without a terminal (some browsers talk,
    others draw themselves there) and out of reach of a Ctrl-C that is meant for this process. The
    thread that is returned clears up after it, and keeps nothing alive.
    """
    thread = threading.Thread(target=_open, args=(url,), name="browser", daemon=True)
    thread.start()
    return thread


def _open(url: str) -> None:
    # Isolated (-I): a file of the user's folder must not pass for a module of the library.
    command = [sys.executable, "-I", "-m", "webbrowser", url]
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
    except OSError:  # no process to be had: the link stands on the terminal all the same
        return
