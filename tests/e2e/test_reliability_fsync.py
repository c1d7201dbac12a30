"""Acknowledged messages are on disk, as the hub's system calls show."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.support.hubs import DEADLINE_S, running_hub
from tests.e2e.support.peers import peer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MESSAGES = 40
SYSTEM_CALLS = "pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg"
_LINE = re.compile(r"^\d+ +(?P<rest>.*)$")
_ACK = re.compile(r'\\"op\\":\\"result\\",\\"ref\\":\\"say-(?P<n>\d+)\\"')


@cache
def _why_no_strace() -> str:
    """Why system calls cannot be traced; empty if they can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed"
    attempt = subprocess.run(
        [strace, "-e", "trace=none", "true"], capture_output=True, text=True, check=False
    )
    return "" if attempt.returncode == 0 else f"strace is not permitted: {attempt.stderr[:200]}"


def _events(trace: str) -> list[str]:
    """`wal` (log written), `synced` (fdatasync of it done) and `ack <n>`, in order."""
    events: list[str] = []
    syncing: set[str] = set()
    for line in trace.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        pid, rest = line.split(None, 1)[0], match["rest"]
        if rest.startswith("pwrite64(") and "hub.db-wal>" in rest:
            events.append("wal")
        elif rest.startswith(("fdatasync(", "fsync(")) and "hub.db-wal>" in rest:
            if "unfinished" in rest:
                syncing.add(pid)
            elif rest.endswith("= 0"):
                events.append("synced")
        elif "sync resumed" in rest and pid in syncing:
            syncing.discard(pid)
            if rest.endswith("= 0"):
                events.append("synced")
        elif ack := _ACK.search(rest):
            events.append(f"ack {ack['n']}")
    return events


@pytest.mark.behaviour("R-5", "S-2")
@pytest.mark.skipif(bool(_why_no_strace()), reason=_why_no_strace() or "strace works")
async def test_no_message_is_acknowledged_before_its_commit_is_synced(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    prefix = ["strace", "-f", "-y", "-s", "4096", "-e", f"trace={SYSTEM_CALLS}", "-o", str(trace)]
    async with running_hub(tmp_path, prefix=prefix) as hub, asyncio.timeout(DEADLINE_S):
        async with peer(hub.url) as ann, peer(hub.url) as bob:
            await bob.identify("bob", "agent")
            await ann.identify("ann")
            for n in range(MESSAGES):
                args, ref = {"to": "bob", "text": f"number {n}"}, f"say-{n}"
                await ann.send(op="call", ref=ref, name="send_text_message", args=args)
                assert (await ann.answer(ref))["op"] == "result"
        await hub.terminate()
    events = _events(trace.read_text(errors="replace"))
    for n in range(MESSAGES):
        before = events[: events.index(f"ack {n}")]
        since = before[before.index(f"ack {n - 1}") :] if n else before
        assert "wal" in since, f"message {n} was acknowledged but not written"
        last_write = max(i for i, event in enumerate(since) if event == "wal")
        assert "synced" in since[last_write:], f"message {n} was acknowledged before the sync"


def test_the_trace_parser_detects_an_early_acknowledgement() -> None:
    trace = (
        "7 pwrite64(9</x/hub.db-wal>, ...) = 4096\n"
        "7 fdatasync(9</x/hub.db-wal> <unfinished ...>\n"
        '8 sendto(11<socket:[1]>, "...{\\"op\\":\\"result\\",\\"ref\\":\\"say-0\\"", ...) = 40\n'
        "7 <... fdatasync resumed>) = 0\n"
    )
    assert _events(trace) == ["wal", "ack 0", "synced"]
