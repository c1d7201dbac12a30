"""Agents that owners create while `hubbub up` runs: files, processes and errors."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.client import Client
from hubbub.config.loader import load
from hubbub.errors import OperationError
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptedCall
from tests.e2e.support.config_network import run_config

pytestmark = pytest.mark.slow

NETWORK = """\
network:
  name: made
  listen: 127.0.0.1:0
  auth: {auth}
  store: sqlite:made.db
  agent_folder: {{tools: [send_text_message, finish, read_thread]}}
channels: {{desk: {{members: [ann]}}}}
models: {{default: {{model: scripted, base_url: "{url}"}}}}
humans: {{ann: {{roles: [owner]}}, bob: {{roles: [owner]}}, carl: {{}}}}
"""
SCRIPT = Script(
    answers=[
        ScriptedAnswer(
            calls=[ScriptedCall(tool="finish", arguments={"reason": "x", "message": "Here."})]
        )
    ]
    * 9
)


async def refused(client: Client, operation: str, **args: Any) -> str:
    """The error of an operation; `call` would repeat a failed write eight times."""
    with pytest.raises(OperationError) as caught:
        await client.post(operation, **args)
    return f"{caught.value.code}: {caught.value.message}"


async def call(client: Client, operation: str, **args: Any) -> dict[str, Any]:
    answer = await client.call(operation, **args)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.behaviour("U-17")
async def test_an_added_agent_starts_at_once_and_keeps_its_file_and_versions(
    tmp_path: Path,
) -> None:
    config, file = tmp_path / "net.yaml", tmp_path / "agents.d" / "rev.yaml"
    async with ModelServer(SCRIPT) as model:
        config.write_text(NETWORK.format(auth="tokens", url=model.base_url))
        async with run_config(str(tmp_path / "net"), tmp_path) as network:
            ann, bob = await network.join("ann"), await network.join("bob")
            first = {"instruction": "Be blunt.\n\n  - ${HOME}: {x}", "channels": ["desk"]}
            saved = await call(ann.client, "add_agent", agent="rev", **first)
            assert saved == {"agent": "rev", "version": 1}
            assert await ann.asks("rev", "hello") == "Here."
            assert "rev" in (await call(ann.client, "list_channels"))["channels"][0]["members"]

            # Edits of the file by hand are preserved, and are a version, too.
            text = file.read_text().replace("    instruction", "    # blunt\n    instruction")
            file.write_text(text + "    greet: I am here.\n")
            await call(bob.client, "edit_agent", agent="rev", model="default", daily_usd=0.5)
            assert "    # blunt\n    instruction" in file.read_text()
            assert "greet: I am here." in file.read_text()
            assert load(config).file.agents["rev"].instruction == first["instruction"]
            both = [
                bob.client.call("edit_agent", agent="rev", version=2, instruction=text)
                for text in ("one", "two")
            ]
            results = await asyncio.gather(*both, return_exceptions=True)
            (lost,) = (each for each in results if isinstance(each, OperationError))
            assert lost.code == "conflict"
            definition = await call(ann.client, "read_agent", agent="rev")
            versions = [(each["version"], each["by"]) for each in definition["versions"]]
            assert versions == [(3, "bob"), (2, "bob"), (1, "ann")]
            await call(ann.client, "roll_back_agent", agent="rev", to=1)
            assert load(config).file.agents["rev"].instruction == first["instruction"]
            assert await ann.asks("rev", "again") == "Here."
            await ann.client.call("stop_agent", agent="rev")
            await call(ann.client, "edit_agent", agent="rev", instruction="Stopped.")
            (process,) = (await call(ann.client, "list_agent_processes"))["processes"]
            assert process["state"] == "stopped"

        # A file without a record, as if the process had been killed in between.
        file.write_text("agents:\n  rev:\n    instruction: By hand.\n")
        async with run_config(str(tmp_path / "net"), tmp_path) as network:
            ann = await network.join("ann")
            assert await ann.asks("rev", "hello") == "Here."
            latest = (await call(ann.client, "read_agent", agent="rev"))["versions"][0]
            assert (latest["version"], latest.get("by")) == (6, None)
            await call(ann.client, "remove_agent", agent="rev")
            assert not file.exists()
            await call(ann.client, "add_agent", agent="rev", instruction="Anew.")
            assert await ann.asks("rev", "hello") == "Here."
            assert (await call(ann.client, "read_agent", agent="rev"))["version"] == 8


@pytest.mark.behaviour("U-17")
async def test_an_invalid_or_hostile_definition_gives_one_error_and_writes_nothing(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    config, folder = tmp_path / "net.yaml", tmp_path / "agents.d"
    config.write_text(NETWORK.format(auth="tokens", url="http://127.0.0.1:9/v1"))
    good: dict[str, JsonValue] = {"agent": "x", "instruction": "Be."}
    wrong: list[dict[str, JsonValue]] = [
        {"agent": "../x"},
        {"agent": "x: {class: y}"},
        {"agent": "hub"},
        {"agent": "t1"},
        {"agent": "carl"},
        {"instruction": " "},
        {"model": "other"},
        {"tools": ["./x.py:run"]},
        {"tools": ["list_threads"]},
        {"channels": ["nowhere"]},
        {"daily_usd": -1},
        {"max_steps": 0},
        {"class": "x.py:X"},
        {"permission_mode": "root"},
    ]
    async with run_config(str(tmp_path / "net"), tmp_path) as network:
        ann, carl = await network.join("ann"), await network.join("carl")
        errors = [await refused(ann.client, "add_agent", **{**good, **each}) for each in wrong]
        errors.append(await refused(carl.client, "add_agent", **good))
        errors.append(await refused(ann.client, "edit_agent", agent="ann", instruction="x"))
        assert errors == snapshot
        assert not folder.exists() or not list(folder.iterdir())
        checked = await call(ann.client, "check_agent", **good, max_steps=0, daily_usd=-1)
        assert {each["field"] for each in checked["problems"]} == {"max_steps", "daily_usd"}

        # YAML syntax in a text is stored as text.
        text = "a: b\n--- \n'\"\n  class: x.py:X\n${HOME} \x85 \u2028 # no\n\ttab\n"
        await call(ann.client, "add_agent", agent="yaml", instruction=text, description="[x]: *y")
        agent = load(config).file.agents["yaml"]
        assert (agent.instruction, agent.card.description, agent.class_) == (text, "[x]: *y", None)

        # A folder in place of the temporary file makes the write fail, even for root.
        before = (folder / "yaml.yaml").read_bytes()
        (folder / ".yaml.yaml.tmp").mkdir()
        problem = await refused(ann.client, "edit_agent", agent="yaml", instruction="x")
        assert problem.startswith("store_unavailable: agents.d/yaml.yaml cannot be written")
        assert (folder / "yaml.yaml").read_bytes() == before
        (folder / ".yaml.yaml.tmp").rmdir()
        await call(ann.client, "edit_agent", agent="yaml", instruction="x")
        assert stat.S_ISREG(os.stat(folder / "yaml.yaml").st_mode)
