"""Standby hubs on one Postgres, while the owner is killed, hangs, restarts or is cut off."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

import pytest
from pydantic import JsonValue

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from tests.e2e.support.cables import unix_cable
from tests.e2e.support.hubs import NO_LIMIT, UNBOUND
from tests.e2e.support.traffic import Ledger, exchange
from tests.e2e.test_postgres import KINDS, STREAMS, check_log
from tests.e2e.test_up import WITHIN_S, Up, start
from tests.postgres_server import PostgresServer

FAULTS = int(os.environ.get("FAULTS", "3"))
"""The number of faults of each kind."""
LEASES_S = 15.0
"""How long an owner hangs: three times as long as it takes to lose the store."""
pytestmark = [pytest.mark.postgres, pytest.mark.timeout(FAULTS * 2 * WITHIN_S)]


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))


class Node:
    """`hubbub up --standby`, which can be restarted at the same address."""

    def __init__(self, config: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._config = config
        self._up: Up | None = None

    @property
    def process(self) -> Process:
        assert self._up is not None
        return self._up.process

    async def start(self, *, until: str) -> str:
        """Returns the first event of `until` and `up`."""
        options = ("--no-agents", "--json", "--standby", "--listen", self.address)
        self._up = Up(await start("up", str(self._config), *options))
        line = await self._up.until(lambda line: line["event"] in (until, "up"))
        return str(line["event"])

    async def event(self, name: str) -> None:
        assert self._up is not None
        await self._up.event(name)

    async def exits_with(self, reason: str) -> None:
        """Waits for it to exit with 2 and this reason."""
        async with asyncio.timeout(WITHIN_S):
            _, err = await self.process.communicate()
        assert self.process.returncode == 2
        assert reason in err.decode()
        assert "Traceback" not in err.decode()

    async def stop(self) -> None:
        if self._up is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()


def write_config(path: Path, store: str, **more: JsonValue) -> Path:
    """The config of a network with this store; `more` extends its `network` section."""
    network: dict[str, JsonValue] = {"name": "test", "store": store, "auth": "open"}
    network |= {"limits": {**NO_LIMIT}, **UNBOUND, **more}
    channels = {"general": {"members": "all"}}
    path.write_text(json.dumps({"network": network, "channels": channels, "mods": ["search"]}))
    return path


@pytest.mark.behaviour("R-14")
async def test_a_standby_takes_over_from_a_killed_or_hung_owner_without_loss(
    tmp_path: Path, server: PostgresServer
) -> None:
    config = write_config(tmp_path / "network.yaml", server.url())
    owner, other = Node(config), Node(config)
    outages: dict[signal.Signals, list[float]] = {signal.SIGKILL: [], signal.SIGSTOP: []}
    faults = [*outages] * FAULTS
    random.Random(83).shuffle(faults)
    async with _under_load(server, owner, other) as ledger:
        for fault in faults:
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner.process.send_signal(fault)
                await other.event("up")
                await ledger.more_acks(20)
                outages[fault].append(time.monotonic() - began)
                if fault is signal.SIGSTOP:
                    await asyncio.sleep(max(0.0, LEASES_S - outages[fault][-1]))
                    owner.process.send_signal(signal.SIGCONT)
                    await owner.exits_with("another hub has taken over this store")
                else:
                    await owner.stop()
            owner, other = other, owner
            await other.start(until="standing_by")
    for fault, seconds in outages.items():
        print(
            f"{fault.name}: serves again after {median(seconds):.1f} s, {max(seconds):.1f} at most"
        )


@pytest.mark.behaviour("R-15")
async def test_a_rolling_restart_keeps_the_network_running(
    tmp_path: Path, server: PostgresServer
) -> None:
    config = write_config(tmp_path / "network.yaml", server.url())
    owner, other = Node(config), Node(config)
    outages: list[float] = []
    async with _under_load(server, owner, other) as ledger:
        for _ in range(2 * FAULTS):  # FAULTS restarts of each
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner.process.terminate()
                await other.event("up")
                await ledger.more_acks(20)
                outages.append(time.monotonic() - began)
                _, err = await owner.process.communicate()
            assert owner.process.returncode == 0, err.decode()
            owner, other = other, owner
            await other.start(until="standing_by")
    print(f"SIGTERM: serves again after {median(outages):.1f} s, {max(outages):.1f} at most")


async def test_an_owner_cut_off_from_postgres_exits_and_the_standby_takes_over(
    tmp_path: Path, server: PostgresServer
) -> None:
    async with unix_cable(tmp_path / server.socket.name, server.socket) as cable:
        url = f"postgresql://hubbub@/postgres?host={tmp_path}"
        owner = Node(write_config(tmp_path / "cut-off.yaml", url))
        other = Node(write_config(tmp_path / "network.yaml", server.url()))
        async with _under_load(server, owner, other) as ledger, asyncio.timeout(WITHIN_S):
            await ledger.more_acks(50)
            cable.silence()
            await other.event("up")
            await owner.exits_with("is out of reach; restart it with")
            await ledger.more_acks(20)


@asynccontextmanager
async def _under_load(server: PostgresServer, owner: Node, other: Node) -> AsyncIterator[Ledger]:
    """Participants that know both nodes send; at the end every message is accounted for."""
    ledger = Ledger()
    patient = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.2, retries=100_000))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(owner.stop)
        stack.push_async_callback(other.stop)
        await owner.start(until="up")
        await other.start(until="standing_by")
        urls = [f"ws://{node.address}" for node in (owner, other)]
        clients = {
            name: await stack.enter_async_context(
                Client(WebSocketTransport(*urls), name, kind, options=patient)
            )
            for name, kind in KINDS.items()
        }
        async with exchange(clients, STREAMS, ledger):
            yield ledger
    check_log(ledger, server.url(), STREAMS)


async def test_standby_with_a_sqlite_store_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "network.yaml"
    network = {"name": "test", "store": "sqlite:hub.db", "listen": "127.0.0.1:0"}
    config.write_text(json.dumps({"network": network}))
    process = await start("up", str(config), "--standby")
    async with asyncio.timeout(WITHIN_S):
        _, err = await process.communicate()
    assert process.returncode == 2
    assert b"only a store in Postgres can be taken over by another hub" in err
