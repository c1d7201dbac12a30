"""The path of one real message through the hub, traced by the interpreter."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from websockets.asyncio.client import ClientConnection, connect

import hubbub
from hubbub.testing.network import LocalNetwork

PACKAGE = Path(hubbub.__file__).parent
PAGE = PACKAGE.parent / "docs/explanation/architecture.md"
IN, OUT = "## The path in\n", "## The path out\n"
CALLS = 48
"""The most function calls that a text message between two people may take. Their number stands for
its cost on any machine. Give the reason here if you raise it."""
Step = tuple[str, str]
"""A module and a function called in it."""


@contextmanager
def traced_calls() -> Iterator[list[Step]]:
    """The functions of the package called within, in this thread."""
    steps: list[Step] = []

    def see(frame: FrameType, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            steps.append((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_name))

    sys.setprofile(see)
    try:
        yield steps
    finally:
        sys.setprofile(None)


async def join(url: str, name: str) -> ClientConnection:
    peer = await connect(url, compression=None)
    await peer.recv()
    await send(peer, op="identify", version="hubbub.v1", participant=name, kind="human")
    while json.loads(await peer.recv())["op"] != "ready":
        pass
    return peer


async def send(peer: ClientConnection, **frame: object) -> None:
    await peer.send(json.dumps(frame))


async def read_until(peer: ClientConnection, op: str) -> None:
    while json.loads(await peer.recv())["op"] != op:
        pass


def modules_of(steps: Sequence[Step]) -> list[str]:
    """The modules in the order of their first call."""
    return list(dict.fromkeys(module for module, _ in steps))


def documented(heading: str) -> list[str]:
    """The modules that the page lists under a heading, one a line."""
    block = PAGE.read_text().split(heading)[1].split("```text\n")[1].split("```")[0]
    return [re.split(r"\s{2,}", line)[0] for line in block.splitlines()]


async def test_a_message_passes_few_modules_and_the_docs_list_them() -> None:
    async with LocalNetwork(sockets=True) as network:
        ann, bob = await join(network.url, "ann"), await join(network.url, "bob")
        await read_until(ann, "signal")  # presence; only the message follows
        await read_until(bob, "signal")
        call = {"op": "call", "name": "send_text_message"}
        for n in range(2):  # the first one creates the thread
            args = {"to": "bob", "text": "hello"}
            with traced_calls() as steps:
                await send(ann, **call, ref=f"r{n}", cid=f"c{n}", args=args)
                await read_until(bob, "event")
                await read_until(ann, "result")
        await ann.close()
        await bob.close()
    stored = next(n for n, (module, _) in enumerate(steps) if module.startswith("network/store"))
    durable = steps.index(("network/writes.py", "committed"))  # the first listener of the log
    written = [n for n, step in enumerate(steps) if step == ("network/connection.py", "write")]
    first = next(n for n, step in enumerate(steps) if step[0] == "network/connection.py")
    way_in = modules_of(steps[first : stored + 1])
    way_out = ["network/log.py", *modules_of(steps[durable : written[1] + 1])]
    calls = stored - first + written[1] - durable
    print("\n".join(["in", *way_in, "", "out", *way_out, "", f"{calls} calls"]))
    assert way_in == documented(IN)
    assert way_out == documented(OUT)
    assert len(way_in) <= 12
    assert len(way_out) <= 6
    assert calls <= CALLS
