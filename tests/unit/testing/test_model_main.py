"""The model server as a program of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from hubbub.errors import ConfigError
from hubbub.testing.model_server import main

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from hubbub.testing.model_server import main; main(sys.argv[1])"


async def test_it_says_where_it_listens_answers_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{text: hello}]")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(script), stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 30)
    url = next(word for word in line.decode().split() if word.startswith("http://"))
    async with AsyncOpenAI(base_url=url, api_key="any") as client:
        done = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    assert done.choices[0].message.content == "hello"
    process.send_signal(signal.SIGINT)
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, errors) == (0, b"")


def test_a_broken_script_is_told_before_anything_listens(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{txt: hello}]")
    with pytest.raises(ConfigError, match="txt"):
        main(script)
