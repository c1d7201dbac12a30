"""A real Matrix server, Synapse, in its own environment, and people who use it.

`python -m tests.bridges.homeserver` installs it, or reports in one line what is missing.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import subprocess
import sys
from asyncio.subprocess import DEVNULL, STDOUT
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from hubbub.bridges.matrix import Matrix, MatrixConfig
from tests.bridges.servers import DEADLINE_S, free_port, listening

__all__ = ["Homeserver", "MatrixUser", "homeserver", "needs_synapse"]

_VERSION = "matrix-synapse==1.163.2"
_FOLDER = Path(sys.prefix) / "synapse"
_PYTHON = _FOLDER / "bin" / "python"
_SYNAPSE = _FOLDER / "bin" / "synapse_homeserver"
needs_synapse = pytest.mark.skipif(
    not _SYNAPSE.exists(), reason="no Synapse: `make test-bridges` installs it"
)
_NO_LIMIT = {"per_second": 1000, "burst_count": 1000}


class MatrixUser:
    """A person in the room."""

    def __init__(self, http: httpx2.AsyncClient, name: str):
        self._http, self.id = http, f"@{name}:example.org"
        self.heard: list[dict[str, Any]] = []
        self.room = ""
        self._since: str | None = None
        self._waiting: list[dict[str, Any]] = []
        self._numbers = itertools.count()

    async def ask(self, method: str, path: str, body: object = None, **params: str) -> Any:
        answer = await self._http.request(
            method, f"/_matrix/client/v3/{path}", json=body, params=params
        )
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    async def make_room(self) -> str:
        """Creates a public room; returns its id."""
        created = await self.ask("POST", "createRoom", {"preset": "public_chat"})
        self.room = str(created["room_id"])
        return self.room

    async def say(self, text: str, **content: Any) -> str:
        """Sends a message; returns the id of its event."""
        path = f"rooms/{self.room}/send/m.room.message/{next(self._numbers)}"
        sent = await self.ask("PUT", path, {"msgtype": "m.text", "body": text, **content})
        return str(sent["event_id"])

    async def delete(self, event: str) -> None:
        await self.ask("PUT", f"rooms/{self.room}/redact/{event}/{next(self._numbers)}", {})

    async def sees(self, user: str) -> None:
        """Waits until the user is in the room."""
        async with asyncio.timeout(DEADLINE_S):
            path = f"rooms/{self.room}/joined_members"
            while user not in (await self.ask("GET", path))["joined"]:
                await self._sync()

    async def hears(self, text: str) -> dict[str, Any]:
        """The next event of another user whose text contains `text`."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                while self._waiting:
                    event = self._waiting.pop(0)
                    self.heard.append(event)
                    if text in event["content"].get("body", "") and event["sender"] != self.id:
                        return event
                await self._sync()

    async def _sync(self) -> None:
        """Waits up to 2 s for new events."""
        since = {} if self._since is None else {"since": self._since, "timeout": "2000"}
        answer = await self.ask("GET", "sync", **since)
        self._since = answer["next_batch"]
        rooms = answer.get("rooms", {}).get("join", {})
        self._waiting += rooms.get(self.room, {}).get("timeline", {}).get("events", [])


class Homeserver:
    def __init__(self, port: int, stack: AsyncExitStack):
        self.port, self._stack = port, stack

    async def user(self, name: str) -> MatrixUser:
        """A new user."""
        http = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=DEADLINE_S)
        user = MatrixUser(await self._stack.enter_async_context(http), name)
        account = {"username": name, "password": "secret", "auth": {"type": "m.login.dummy"}}
        token = (await user.ask("POST", "register", account))["access_token"]
        http.headers["authorization"] = f"Bearer {token}"
        return user


@asynccontextmanager
async def homeserver(folder: Path, bridge: int) -> AsyncIterator[Homeserver]:
    """A running homeserver, which sends its events to a bridge at that port."""
    port = free_port()
    tokens = {"as_token": "a" * 24, "hs_token": "h" * 24}
    addresses = {"homeserver": f"http://127.0.0.1:{port}", "listen": f"127.0.0.1:{bridge}"}
    settings = MatrixConfig.model_validate({**addresses, **tokens, "domain": "example.org"})
    setup = Matrix("matrix", settings, []).setup()
    (folder / "bridge.yaml").write_text(yaml.safe_dump(dict(setup)))
    key = base64.b64encode(b"k" * 32).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_test {key}\n")
    listener = {
        "port": port,
        "type": "http",
        "bind_addresses": ["127.0.0.1"],
        "resources": [{"names": ["client"]}],
    }
    config = {
        "server_name": "example.org",
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "matrix.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "pid_file": str(folder / "matrix.pid"),
        "macaroon_secret_key": "m" * 20,
        "form_secret": "f" * 20,
        "report_stats": False,
        "trusted_key_servers": [],
        "enable_registration": True,
        "enable_registration_without_verification": True,
        "app_service_config_files": [str(folder / "bridge.yaml")],
        "rc_message": _NO_LIMIT,
        "rc_registration": _NO_LIMIT,
    }
    (folder / "homeserver.yaml").write_text(yaml.safe_dump(config))
    process = await asyncio.create_subprocess_exec(
        str(_PYTHON), "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.yaml"),
        stdout=DEVNULL, stderr=STDOUT, cwd=folder,
    )  # fmt: skip
    try:
        await listening(port)
        async with AsyncExitStack() as stack:
            yield Homeserver(port, stack)
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    if not _SYNAPSE.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_FOLDER)], check=True)
        done = subprocess.run([str(_PYTHON), "-m", "pip", "install", "-q", _VERSION], check=False)
        if done.returncode:
            print("no Synapse, so the tests with Matrix are skipped: PyPI was not reached")
