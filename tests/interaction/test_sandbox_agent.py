"""What a sandboxed function can do to the agent beside it: nothing. It still works."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.sandbox.syscalls import MACHINES
from hubbub.loading import load_attribute
from tests.interaction import meddling
from tests.interaction.test_sandbox import left, result

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what it can refuse depends on the system"),
]


@pytest.mark.behaviour("K-11")
@pytest.mark.skipif(os.uname().machine not in MACHINES, reason="there is no filter for it")
@pytest.mark.parametrize("way", meddling.WAYS)
async def test_it_does_not_reach_the_agent(way: str, tmp_path: Path) -> None:
    path = tmp_path / "ear"
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as ear:
        if way == "lease":
            path.touch()
        else:
            ear.bind(str(path))
            ear.setblocking(False)
        told = await result(meddling.meddle, way=way, agent=os.getpid(), path=str(path))
        if way != "lease":
            with pytest.raises(BlockingIOError):
                ear.recv(10)
    assert int(told) in (errno.EPERM, errno.EACCES)


async def test_ordinary_functions_run() -> None:
    assert json.loads(await result(meddling.work)) == {
        "total": 4950,
        "written": "[1, 2]",
        "caught": 2,
        "loop": "awake",
        "across": "across",
        "flags": 0,
    }


@pytest.mark.behaviour("K-11")
async def test_however_deep_its_folders_nothing_is_left() -> None:
    assert await result(meddling.dig, depth=3000) not in left()


@pytest.mark.behaviour("K-11")
async def test_what_it_has_shut_is_deleted_too() -> None:
    assert await result(meddling.lock_up) not in left()


async def test_files_beside_a_function_do_not_replace_the_standard_library(tmp_path: Path) -> None:
    for name in ("calendar", "email", "random", "secrets", "tempfile", "types", "openai"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not meant')\n")
    (tmp_path / "dates.py").write_text(
        "import calendar\n\nfrom hubbub import tool\n\n"
        "@tool(sandbox='process')\ndef days(month: int) -> int:\n"
        "    '''Count the days of a month.'''\n    return calendar.monthrange(2025, month)[1]\n"
    )
    found = load_attribute("dates.py:days", tmp_path)
    assert isinstance(found, FunctionTool)
    assert await result(found, month=2) == "28"
