"""An editor that talks to an agent through `hubbub acp`, with the ACP library's own client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptedCall
from tests.e2e.support.config_network import Network, environment, run_here
from tests.interaction.peers import soon

acp = pytest.importorskip("acp", reason="needs the extra `acp`")
pytestmark = pytest.mark.slow

NETWORK = """
network: {{name: desk, auth: open}}
humans: {{ann: {{roles: [owner]}}}}
models:
  default: {{model: m, base_url: "{url}", stream: true, retries: 0}}
agents:
  bot:
    permission_mode: ask
    tools: ["paint.py:paint", send_text_message]
"""
PAINT = """
from hubbub import tool

@tool(permission="write")
async def paint(colour: str) -> str:
    "Paint the fence."
    return f"it is {colour}"
"""


class Editor:
    """Records updates and allows every tool call."""

    def __init__(self) -> None:
        self.text = ""
        self.approved: list[str] = []
        self.answering = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text
            self.answering.set()
        elif update.session_update == "user_message_chunk":
            self.text += f"[{update.content.text}]"

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> Any:
        self.approved.append(tool_call.title)
        outcome = {"outcome": "selected", "optionId": options[0].option_id}
        return acp.RequestPermissionResponse.model_validate({"outcome": outcome})


@asynccontextmanager
async def editing(network: Network, folder: Path) -> AsyncIterator[tuple[Any, Editor]]:
    """The connection of an editor that has started `hubbub acp`."""
    options = ("-m", "hubbub", "acp", "--agent", "bot", "--as", "ann", "--address", network.url)
    editor, env = Editor(), environment(folder)
    async with acp.spawn_agent_process(editor, sys.executable, *options, env=env) as process:
        connection, _ = process
        initialized = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert initialized.agent_info.name == "bot"
        yield connection, editor


def finish(text: str, **how: Any) -> ScriptedAnswer:
    return ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments={"message": text})], **how)


@pytest.mark.behaviour("I-23")
async def test_an_editor_prompts_approves_cancels_and_reloads_its_session(tmp_path: Path) -> None:
    red = ScriptedAnswer(calls=[ScriptedCall(tool="paint", arguments={"colour": "red"})])
    answers = [
        red,
        finish("The fence is red."),
        finish("It goes on and on and on.", hold="long", hold_after=5),
    ]
    (tmp_path / "paint.py").write_text(PAINT)
    async with ModelServer(Script(answers=answers)) as model:
        path = tmp_path / "desk.yaml"
        path.write_text(NETWORK.format(url=model.base_url))
        async with run_here(path, tmp_path) as network:
            async with editing(network, tmp_path) as (connection, editor):
                session = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
                async with soon():
                    done = await connection.prompt(
                        session_id=session, prompt=[acp.text_block("paint the fence")]
                    )
                assert (done.stop_reason, editor.text) == ("end_turn", "The fence is red.")
                assert [title.partition(":")[0] for title in editor.approved] == ["paint"]
                editor.text = ""
                editor.answering.clear()
                prompting = asyncio.create_task(
                    connection.prompt(session_id=session, prompt=[acp.text_block("tell more")])
                )
                async with soon():
                    await editor.answering.wait()
                    await connection.cancel(session_id=session)
                    assert (await prompting).stop_reason == "cancelled"
            async with editing(network, tmp_path) as (connection, editor):
                unused = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
                for each in (unused, session):
                    await connection.load_session(cwd="/", session_id=each, mcp_servers=[])
                assert editor.text == "[paint the fence]The fence is red.[tell more]"


def test_acp_with_its_output_in_a_file_fails_with_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hubbub", "acp", "--agent", "bot"]
    with (tmp_path / "out").open("wb") as file:
        ran = subprocess.run(command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.PIPE)
    assert ran.returncode == 2
    assert ran.stderr.decode() == (
        "hubbub: standard output is a file: "
        "an editor starts `hubbub acp` and connects it by pipes\n"
    )
