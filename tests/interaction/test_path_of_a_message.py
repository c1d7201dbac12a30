"""The way of one real message through the hub, as the interpreter sees it."""

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
"""Of functions of the package that a text between two people takes. A call is what most of its cost
is made of that can be counted on any machine: who needs more of them says why here."""
Step = tuple[str, str]
"""A module, and the function that is called in it."""


@contextmanager
def traced() -> Iterator[list[Step]]:
    """Which functions of the package are called within, in this thread."""
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


async def joined(url: str, name: str) -> ClientConnection:
    peer = await connect(url, compression=None)
    await peer.recv()
    await said(peer, op="identify", version="hubbub.v1", participant=name, kind="human")
    while json.loads(await peer.recv())["op"] != "ready":
        pass
    return peer


async def said(peer: ClientConnection, **frame: object) -> None:
    await peer.send(json.dumps(frame))


async def heard(peer: ClientConnection, op: str) -> None:
    while json.loads(await peer.recv())["op"] != op:
        pass


def rooms(steps: Sequence[Step]) -> list[str]:
    """The modules, each where it is first entered."""
    return list(dict.fromkeys(module for module, _ in steps))


def drawn(heading: str) -> list[str]:
    """The modules that the page shows under a heading, a line each."""
    block = PAGE.read_text().split(heading)[1].split("```text\n")[1].split("```")[0]
    return [re.split(r"\s{2,}", line)[0] for line in block.splitlines()]


async def test_a_message_passes_few_modules_and_the_page_shows_which() -> None:
    async with LocalNetwork(sockets=True) as network:
        ann, bob = await joined(network.url, "ann"), await joined(network.url, "bob")
        await heard(ann, "signal")  # who has come is said: what follows is the message alone
        await heard(bob, "signal")
        call = {"op": "call", "name": "send_text_message"}
        for n in range(2):  # the first one makes the thread
            args = {"to": "bob", "text": "hello"}
            with traced() as steps:
                await said(ann, **call, ref=f"r{n}", cid=f"c{n}", args=args)
                await heard(bob, "event")
                await heard(ann, "result")
        await ann.close()
        await bob.close()
    stored = next(n for n, (module, _) in enumerate(steps) if module.startswith("network/store"))
    durable = steps.index(("network/writes.py", "committed"))  # the first whom the log tells
    written = [n for n, step in enumerate(steps) if step == ("network/connection.py", "write")]
    first = next(n for n, step in enumerate(steps) if step[0] == "network/connection.py")
    way_in = rooms(steps[first : stored + 1])
    way_out = ["network/log.py", *rooms(steps[durable : written[1] + 1])]
    calls = stored - first + written[1] - durable
    print("\n".join(["in", *way_in, "", "out", *way_out, "", f"{calls} calls"]))
    assert way_in == drawn(IN)
    assert way_out == drawn(OUT)
    assert len(way_in) <= 12
    assert len(way_out) <= 6
    assert calls <= CALLS
