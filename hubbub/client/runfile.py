"""Run files, through which programs of the same user discover a running network and its tokens.

`hubbub up` writes `<state dir>/run/<host>_<port>.json`, readable only by its user, and removes it
when it stops. A file whose process has died is ignored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from hubbub.errors import UserError
from hubbub.field_docs import Documented

__all__ = [
    "DEFAULT_ADDRESS",
    "Address",
    "RunFile",
    "find_network",
    "find_run_files",
    "remove_run_file",
    "state_dir",
    "write_run_file",
]

DEFAULT_ADDRESS = "127.0.0.1:4820"
_HOST = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)"
_HOST_PORT = re.compile(rf"(?:wss?://)?{_HOST}:(?P<port>\d{{1,5}})/?")
_USUAL_PORT = re.compile(rf"(?P<scheme>wss?)://{_HOST}/?")


class RunFile(Documented):
    """A running network."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    network: str
    """Its name."""
    url: str
    """ws://host:port"""
    pid: int
    """The process that runs it."""
    auth: str = "tokens"
    """tokens or open"""
    tokens: dict[str, str] = Field(default_factory=dict)
    """By participant."""
    humans: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Address:
    """The address of a network, and its tokens."""

    url: str
    tokens: dict[str, str] = field(default_factory=dict)
    """By participant; empty for a network that this user did not start on this machine."""
    humans: tuple[str, ...] = ()
    network: str | None = None
    """Its name, if known."""
    others: tuple[str, ...] = ()
    """The addresses of standby hubs."""

    @property
    def urls(self) -> tuple[str, ...]:
        """All possible addresses."""
        return (self.url, *self.others)


def state_dir() -> Path:
    """The folder for state that is neither configuration nor a network's data."""
    if own := os.environ.get("HUBBUB_STATE_DIR"):
        return Path(own)
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "hubbub"
    try:
        return Path.home() / ".local" / "state" / "hubbub"
    except RuntimeError as error:
        raise UserError(f"your user has no home folder: {_REMEDY}") from error


_REMEDY = "set HUBBUB_STATE_DIR to a folder that you can write to"


def write_run_file(run: RunFile) -> Path:
    """Write or replace the file of a network, readable only by its user. Raises `UserError`."""
    path = _path(run.url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(run.model_dump_json(indent=2))
        draft.replace(path)
    except OSError as error:
        raise UserError(f"cannot write to {path.parent}: {error.strerror}; {_REMEDY}") from error
    return path


def remove_run_file(run: RunFile) -> None:
    """Remove the file of a network, unless another process has replaced it."""
    path = _path(run.url)
    current = _read(path)
    if current is not None and current.pid == run.pid:
        path.unlink(missing_ok=True)


def find_run_files() -> list[RunFile]:
    """The networks that this user is running on this machine, sorted by address."""
    runs = (_read(path) for path in sorted((state_dir() / "run").glob("*.json")))
    return [run for run in runs if run is not None and _alive(run.pid)]


def find_network(address: str | None) -> Address:
    """The address to connect to.

    `address` is host:port, a ws:// URL or the name of a running network; several separated by
    commas are a hub and its standbys. None means the network running on this machine or, if there
    are several, the one at the default address. Raises `UserError` if that is ambiguous.
    """
    running = find_run_files()
    if address is not None:
        places = [_named(each.strip(), running) for each in address.split(",")]
        here = next((place for place in places if place.tokens), places[0])
        first, *others = (place.url for place in places)
        return replace(here, url=first, others=tuple(others))
    chosen = running if len(running) == 1 else [r for r in running if _is_default(r)]
    if len(chosen) == 1:
        return _address(chosen[0])
    if not running:
        raise UserError("no network is running; start one with `hubbub up`, or give its address")
    names = ", ".join(f"{run.network} ({run.url.removeprefix('ws://')})" for run in running)
    raise UserError(f"several networks are running, name one with --address: {names}")


def _named(address: str, running: list[RunFile]) -> Address:
    if (usual := _USUAL_PORT.fullmatch(address)) is not None:
        port = 443 if usual["scheme"] == "wss" else 80
        address = f"{usual['scheme']}://{usual['host']}:{port}"
    match = _HOST_PORT.fullmatch(address)
    if match is None:
        named = [run for run in running if run.network == address]
        if len(named) == 1:
            return _address(named[0])
        raise UserError(f"{address!r} is neither host:port nor the name of a running network")
    if not 0 < int(match["port"]) <= 65535:
        raise UserError(f"{address!r}: a port is a number from 1 to 65535")
    scheme = "wss" if address.startswith("wss://") else "ws"
    url = f"{scheme}://{match['host']}:{match['port']}"
    here = [run for run in running if _same_place(run.url, url)]
    return _address(here[0]) if here else Address(url)


def _address(run: RunFile) -> Address:
    return Address(run.url, run.tokens, tuple(run.humans), run.network)


def _is_default(run: RunFile) -> bool:
    return _same_place(run.url, f"ws://{DEFAULT_ADDRESS}")


def _same_place(one: str, other: str) -> bool:
    return _on_loopback(one) == _on_loopback(other)


def _on_loopback(url: str) -> str:
    """The URL on this machine of a hub that listens there, perhaps on all addresses."""
    for host, loopback in (("localhost", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")):
        url = url.replace(f"//{host}:", f"//{loopback}:")
    return url


def _path(url: str) -> Path:
    match = _HOST_PORT.fullmatch(url)
    if match is None:
        raise ValueError(f"not the URL of a network: {url!r}")
    host = match["host"].strip("[]").replace(":", "-")
    return state_dir() / "run" / f"{host}_{match['port']}.json"


def _read(path: Path) -> RunFile | None:
    """The run file; None if it is gone or invalid (or of another version)."""
    try:
        return RunFile.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # alive, but another user's
    return True
