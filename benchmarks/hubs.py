"""Hubs to be measured: a config, a store on disk that knows the participants' tokens, a process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import yaml
from pydantic import JsonValue

from benchmarks.bench import Bench
from benchmarks.fill import admit, fill
from benchmarks.servers import Server, start, start_network
from benchmarks.sides import token_of
from hubbub.cli.init import starter_files
from hubbub.network.store import open_store

__all__ = ["filled_store", "hub", "pair_names", "start_hub", "write_config"]

UNLIMITED = 1_000_000_000
"""Calls per second and burst: the limiter counts, but does not stop the load."""
MOST_CONNECTIONS = 15_000
MODS: Sequence[JsonValue] = [{"moderation": {"max_length": 20_000}}]
"""Of the hubs to be measured, unless the mods are what is measured. The config of `hubbub init` has
none; this one reads every text."""


def write_config(
    store: Path,
    mods: Sequence[JsonValue] = MODS,
    url: str | None = None,
    gateway_token: str | None = None,
    *,
    agents: bool = True,
) -> Path:
    """The network that `hubbub init` writes, on `store` (or the store at `url`, its files beside
    `store`), with these mods; JSON is YAML.

    It is on a free port, knows participants by their tokens, and holds up no load.
    """
    texts = starter_files([])
    config = yaml.safe_load(texts.pop("hubbub.yaml"))
    config["network"] |= {
        "listen": "127.0.0.1:0",
        "store": url or f"sqlite:{store}",
        "auth": "tokens",
        "limits": {
            "calls_per_second": UNLIMITED,
            "burst": UNLIMITED,
            "connections": MOST_CONNECTIONS,
            "strangers": MOST_CONNECTIONS,
        },
        # Two agents that write to each other all the time are what it is about.
        "wake": {"loop_limit": {"enabled": False}},
        "breaker": {"enabled": False},
    }
    if not agents:
        del config["agents"]
    if gateway_token is not None:
        config["network"]["gateway_token"] = gateway_token
    config["mods"] = list(mods)
    for name, text in texts.items():
        file = store.parent / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    path = store.with_suffix(".yaml")
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@asynccontextmanager
async def hub(
    bench: Bench,
    participants: Iterable[str],
    store: Path | None = None,
    mods: Sequence[JsonValue] = MODS,
    *,
    bare: bool = False,
    url: str | None = None,
    gateway_token: str | None = None,
) -> AsyncIterator[Server]:
    """`hubbub up` that the participants may join; on a new store unless one is given, also by its
    `url`.

    `bare`: the hub alone, without what the command adds to it.
    """
    store = store or bench.scratch / f"{uuid4().hex[:8]}.db"
    opened = open_store(url or f"sqlite:{store}")
    await opened.open()
    try:
        await admit(opened, [(name, token_of(name)) for name in participants])
    finally:
        await opened.close()
    async with start_hub(store, mods, bare=bare, url=url, gateway_token=gateway_token) as server:
        yield server


@asynccontextmanager
async def start_hub(
    store: Path,
    mods: Sequence[JsonValue] = MODS,
    *,
    bare: bool = False,
    url: str | None = None,
    gateway_token: str | None = None,
) -> AsyncIterator[Server]:
    """The same on a store that is there already."""
    config = write_config(store, mods, url, gateway_token, agents=not bare)
    starting = start("benchmarks.hub_process", str(config)) if bare else start_network(config)
    async with starting as server:
        yield server


async def filled_store(bench: Bench, count: int) -> Path:
    """A store with `count` messages, made once per run."""
    path = bench.scratch / f"filled-{count}.db"
    if path.exists():
        return path
    bench.say(f"writing a log of {count:,} messages")
    store = open_store(f"sqlite:{path}")
    await store.open()
    try:
        await fill(store, count)
    finally:
        await store.close()
    return path


def pair_names(count: int, first: int = 0) -> list[str]:
    """The participants of `benchmarks.sides.hub_pairs`."""
    return [f"{end}{n}" for n in range(first, first + count) for end in "ab"]
