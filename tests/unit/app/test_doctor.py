"""The doctor reports problems of a machine and its network."""

from __future__ import annotations

import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.app.doctor import Diagnosis, Symptom, diagnose, diagnose_log, probe_model
from hubbub.config.models import ModelConfig
from hubbub.errors import ModelError
from hubbub.network.store import add_token_offline, open_store
from hubbub.testing.model_script import Refusal, Script, ScriptedAnswer, ScriptedCall, load_script
from hubbub.testing.model_server import ModelServer
from hubbub.testing.store_rows import direct, opened
from tests.doc_pages import example
from tests.unit.conftest import Write

NETWORK = "network: {auth: open, listen: '127.0.0.1:0', store: 'sqlite:x.db'}\n"
CALLING = ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments={"reason": "asked to"})])
TALKING = ScriptedAnswer(text="Certainly!", ignore_tool_choice=True)


def finding(diagnosis: Diagnosis, what: str) -> Symptom:
    return next(f for f in diagnosis.findings if f.what == what)


async def test_without_a_config_only_the_machine_is_checked() -> None:
    diagnosis = await diagnose(None, {"MISTRAL_API_KEY": "m"})
    assert diagnosis.healthy
    assert {f.what for f in diagnosis.findings} == {"python", "sqlite"}
    assert any(p.key == "MISTRAL_API_KEY" for p in diagnosis.proposals)


async def test_checking_a_network_does_not_create_its_database(
    write: Write, tmp_path: Path
) -> None:
    path = write("net.yaml", NETWORK)
    diagnosis = await diagnose(path, {})
    assert diagnosis.healthy
    assert {f.what: f.verdict for f in diagnosis.findings} == dict.fromkeys(
        ("python", "sqlite", "config", "port", "database", "tokens"), "ok"
    )
    assert "will be created" in finding(diagnosis, "database").text
    assert not (tmp_path / "x.db").exists()
    await add_token_offline(f"sqlite:{tmp_path / 'x.db'}", "0" * 64, "ann")
    for _ in range(2):
        assert "0 messages" in finding(await diagnose(path, {}), "database").text


async def test_checking_a_network_does_not_change_its_database(
    write: Write, tmp_path: Path
) -> None:
    path = write("net.yaml", NETWORK.replace("auth: open, ", ""))
    assert "will be created" in finding(await diagnose(path, {}), "database").text
    assert not (tmp_path / "x.db").exists()
    store = open_store(f"sqlite:{tmp_path / 'x.db'}")
    async with opened(store):
        await store.append(direct(1, 4))
        assert "in use by another hub" in finding(await diagnose(path, {}), "database").text
    assert "4 messages" in finding(await diagnose(path, {}), "database").text
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 1")
    before = (tmp_path / "x.db").read_bytes()
    diagnosis = await diagnose(path, {})
    assert diagnosis.healthy
    assert "has an older schema, which the next" in finding(diagnosis, "database").text
    assert (tmp_path / "x.db").read_bytes() == before


async def test_people_without_a_token_are_a_warning(write: Write, tmp_path: Path) -> None:
    await add_token_offline(f"sqlite:{tmp_path / 'x.db'}", "0" * 64, "ann")
    text = "network: {listen: '127.0.0.1:0', store: 'sqlite:x.db'}\nhumans: {ann: {}, bob: {}}\n"
    tokens = finding(await diagnose(write("net.yaml", text), {}), "tokens")
    assert tokens.verdict == "warning"
    assert tokens.text.startswith("bob can join only from this machine; ")


@pytest.mark.slow
async def test_a_network_with_a_sandbox_shows_what_the_kernel_enforces(write: Write) -> None:
    agent = "models: {default: {model: m, base_url: 'http://127.0.0.1:1/v1', retries: 0}}\n"
    agent += "agents: {bot: {sandbox: {read: [.]}}}\n"
    sandbox = finding(await diagnose(write("net.yaml", NETWORK + agent), {}), "sandbox")
    assert sandbox.verdict in ("ok", "warning")
    assert "enforce" in sandbox.text


@pytest.mark.slow
@pytest.mark.behaviour("I-10")
async def test_the_program_of_a_coding_agent_is_started(write: Write) -> None:
    pytest.importorskip("acp", reason="needs the extra `acp`")
    program = Path(__file__).parents[2] / "interaction" / "acp_program.py"
    text = "agents:\n" + "".join(
        f"  {name}: {{kind: acp, acp: {{command: {command}}}}}\n"
        for name, command in {"good": [sys.executable, str(program)], "bad": ["false"]}.items()
    )
    diagnosis = await diagnose(write("net.yaml", NETWORK + text), {})
    assert finding(diagnosis, "agent good").verdict == "ok"
    assert finding(diagnosis, "agent good").text.endswith("speaks ACP 1 and keeps its sessions")
    assert finding(diagnosis, "agent bad").verdict == "problem"
    assert finding(diagnosis, "agent bad").text == "false exited (exit code 1)"


async def test_an_obstacle_to_starting_the_network_is_a_problem(write: Write) -> None:
    diagnosis = await diagnose(write("net.yaml", "netwrk: {}\nmods: [moderatio]\n"), {})
    assert not diagnosis.healthy
    assert [f.text for f in diagnosis.findings if f.verdict == "problem"] == [
        "net.yaml:1: unknown key 'netwrk' in the file; did you mean 'network'?",
        "net.yaml:2: unknown mod 'moderatio'; did you mean 'moderation'?",
    ]
    with socket.create_server(("127.0.0.1", 0)) as held:
        listen = f"127.0.0.1:{held.getsockname()[1]}"
        text = f"network: {{auth: open, listen: '{listen}', store: 'sqlite::memory:'}}"
        diagnosis = await diagnose(write("net.yaml", text), {})
    assert finding(diagnosis, "port").verdict == "problem"
    assert "in use" in finding(diagnosis, "port").text
    assert finding(diagnosis, "database").verdict == "warning"
    write("x.db", "this is no database, whatever its name says; " * 30)
    diagnosis = await diagnose(write("net.yaml", NETWORK + "models: {default: {model: m}}\n"), {})
    assert finding(diagnosis, "database").verdict == "problem"
    assert "set OPENAI_API_KEY" in finding(diagnosis, "model default").text
    assert not diagnosis.healthy


@pytest.mark.behaviour("L-9")
async def test_each_model_is_called_with_a_tool(write: Write) -> None:
    async with ModelServer(Script(answers=[CALLING])) as server:
        text = NETWORK + f"models: {{default: {{model: m1, base_url: '{server.base_url}'}}}}\n"
        diagnosis = await diagnose(write("net.yaml", text), {})
        assert server.requests[0].model == "m1"
    assert finding(diagnosis, "model default").verdict == "ok"
    assert diagnosis.proposals == ()
    script = write("doctor.yaml", example("docs/reference/model-server.md", "doctor.yaml"))
    async with ModelServer(load_script(script)) as server:
        model = ModelConfig(model="scripted", base_url=server.base_url)
        assert "calls tools" in await probe_model("default", model)


async def test_a_limit_in_dollars_on_a_model_without_a_price_is_a_warning(write: Write) -> None:
    model = "{model: m, base_url: 'http://127.0.0.1:1/v1'%s}"
    text = f"""
models: {{a: {model % ""}, b: {model % ", price: {input: 0, output: 0}"}}}
agents: {{x: {{instruction: x, model: a%s}}, y: {{instruction: y, model: b, daily: {{usd: 1}}}}}}
"""
    diagnosis = await diagnose(write("net.yaml", NETWORK + text % ""), {})
    assert all(found.what != "limits" for found in diagnosis.findings)
    for limited, own in (
        (NETWORK.replace("auth", "budgets: {usd: 1}, auth"), ""),
        (NETWORK.replace("auth", "daily: {thread: {usd: 1}}, auth"), ""),
        (NETWORK, ", daily: {usd: 1}"),
    ):
        limits = finding(await diagnose(write("net.yaml", limited + text % own), {}), "limits")
        expected = "the limits in usd do not count models.a, which has no price"
        assert (limits.verdict, limits.text) == ("warning", expected)


async def test_credentials_in_the_url_of_a_model_are_not_shown() -> None:
    async with ModelServer(Script(answers=[CALLING])) as server:
        url = server.base_url.replace("//", "//bob:s3cret@")
        result = await probe_model("default", ModelConfig(model="m", base_url=url))
    assert result.startswith("m at http://***@127.0.0.1:")
    assert "s3cret" not in result


async def test_the_reason_why_agents_cannot_use_a_model_is_reported() -> None:
    for answer, expected in (
        (TALKING, "answered without calling a tool"),
        (Refusal(status=401), "refused the API key"),
        (Refusal(status=404), "has no model"),
    ):
        async with ModelServer(Script(answers=[answer, answer])) as server:
            model = ModelConfig(model="m", base_url=server.base_url)
            with pytest.raises(ModelError, match=expected):
                await probe_model("default", model)
    model = ModelConfig(model="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="cannot be reached"):
        await probe_model("default", model)


async def test_the_dialect_of_a_model_without_tool_calls_is_reported() -> None:
    for first in (Refusal(status=400, message="m does not support tools"), TALKING):
        async with ModelServer(Script(answers=[first, CALLING])) as server:
            model = ModelConfig(model="m", base_url=server.base_url)
            result = await probe_model("default", model)
        assert "calls tools in the dialect tool_call" in result
    async with ModelServer(Script(answers=[CALLING])) as server:
        model = ModelConfig(model="m", base_url=server.base_url, dialect="final_output")
        assert "in the dialect final_output" in await probe_model("default", model)
        assert "</final_output>" in server.requests[0].system, "no other dialect is tried"


@pytest.mark.behaviour("S-17")
async def test_a_damaged_log_is_a_problem_that_names_the_message(
    write: Write, tmp_path: Path
) -> None:
    path = write("net.yaml", NETWORK)
    store = open_store(f"sqlite:{tmp_path / 'x.db'}")
    async with opened(store):
        await store.append(direct(1, 30))
        diagnosis = diagnose_log(path)  # while the store is open
    assert [(f.verdict, f.text) for f in diagnosis.findings] == [
        ("ok", "all 30 messages in x.db are intact")
    ]
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as db:
        db.execute("UPDATE message SET sender = 'mallory' WHERE seq = 7")
    [log] = diagnose_log(path).findings
    assert log.verdict == "problem"
    assert log.text.startswith("x.db: message m7 is damaged in the log")


@pytest.mark.behaviour("I-10")
async def test_the_addresses_of_the_mcp_and_openai_endpoints_are_shown(write: Write) -> None:
    write("x.py", "from hubbub import Agent\n\n\nclass X(Agent):\n    pass\n")
    agents = "agents: {calc: {kind: python, class: x.py:X}}\n"
    text = NETWORK.replace("auth: open", "auth: open, mcp: true, openai: true")
    diagnosis = await diagnose(write("net.yaml", text + agents), {})
    mcp, openai = finding(diagnosis, "mcp"), finding(diagnosis, "openai")
    assert "/mcp/NAME" in mcp.text or "needs an extra" in mcp.text
    assert openai.verdict == "ok"
    assert openai.text.endswith("/v1; the key is a person's name, the models: calc")
    assert finding(await diagnose(write("bare.yaml", text), {}), "openai").verdict == "warning"
