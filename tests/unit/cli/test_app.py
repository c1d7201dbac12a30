"""The program's help, exit codes and errors, and the commands that need no network."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from syrupy.assertion import SnapshotAssertion

import hubbub as package
from hubbub.app import providers
from hubbub.cli.app import SECTIONS, command_of, program
from hubbub.errors import ConnectionLost, HubbubError, OperationError, StoreUnavailable, UserError
from tests.unit.cli.conftest import NETWORK, Shell, running

PROVIDERS = ("OPENROUTER", "MISTRAL", "DEEPSEEK", "GEMINI")


@pytest.fixture(autouse=True)
def no_models_available(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the models of this machine."""
    monkeypatch.setattr(providers, "LOOPBACK", ())
    for name in PROVIDERS:
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


def test_every_command_has_help(hubbub: Shell) -> None:
    """The texts themselves are tested on the reference page."""
    help = hubbub("--help").out
    commands = command_of(program()).commands  # type: ignore[attr-defined]
    assert len(commands) <= 32
    for name, command in commands.items():
        assert f"\n  {name} " in help
        for subname, subcommand in getattr(command, "commands", {}).items():
            assert subcommand.help, f"{name} {subname}"
    for section in SECTIONS:
        assert f"\n{section}:\n" in help
    assert hubbub("turns", "show", "--help").out.startswith("Usage: hubbub turns show")
    for group in ("tokens", "agents", "prompts", "tasks"):
        result = hubbub(group)
        assert result.code == 0
        assert "Commands:" in result.out
    assert hubbub("--version").out == f"{package.__version__}\n"


def test_a_wrong_command_line_is_reported_in_one_line_with_a_remedy(
    hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    lines = (
        "tsks",
        "check",
        "start",
        "up --port 4821",
        "agents list --jsn",
        "messages digest --since 1h",
        "turns show",
        "tokens ad ann",
        "turns list -n many",
        "agents list extra",
        "tasks list --state odd",
        "tasks list -n 999",
        "up",
    )
    output = hubbub.transcript(*lines)
    assert output == snapshot
    assert output.count("\nhubbub: ") == output.count("(exit code 2)") == len(lines)


FAILURES: list[BaseException] = []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `hubbub up` by a command that raises the last of `FAILURES`."""

    def fail(group: typer.Typer, word: str) -> None:
        @group.command(word)
        def command() -> None:
            raise FAILURES.pop()

    monkeypatch.setattr("hubbub.cli.up.register", fail)
    program.cache_clear()
    command_of.cache_clear()


@pytest.mark.usefixtures("failing")
def test_a_failure_has_its_exit_code_and_no_traceback(
    hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for failure, code, message in (
        (UserError("name another"), 2, "hubbub: name another\n"),
        (OperationError("unknown_participant", "nobody"), 2, "hubbub: nobody\n"),
        (OperationError("internal", "a bug"), 1, "hubbub: a bug\n"),
        (OperationError("rate_limited", "slower", temporary=True), 1, "hubbub: slower\n"),
        (ConnectionLost(1006, "gone"), 1, "hubbub: lost the connection to the network: "),
        (StoreUnavailable("disk full"), 1, "hubbub: disk full\n"),
        (HubbubError("lost"), 1, "hubbub: lost\n"),
        (ExceptionGroup("tasks", [UserError("inside")]), 2, "hubbub: inside\n"),
        (ZeroDivisionError("oops"), 1, "hubbub: unexpected ZeroDivisionError: oops (set HUBBUB_"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
    ):
        FAILURES.append(failure)
        result = hubbub("up")
        assert result.code == code, failure
        assert result.err.startswith(message)
        assert "Traceback" not in result.err
    monkeypatch.setenv("HUBBUB_DEBUG", "1")
    FAILURES.append(ZeroDivisionError("oops"))
    assert "Traceback" in hubbub("up").err
    program.cache_clear()
    command_of.cache_clear()


@pytest.mark.slow
def test_a_closed_output_pipe_ends_the_program_silently() -> None:
    code = "import sys; from hubbub.cli.app import run\nsys.stdin.read()\n"
    code += "sys.exit(run(['network', 'schema']))"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == ""


def test_a_terminal_without_a_letter_shows_another_sign_for_it(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(NETWORK, home):
        hubbub("send", "-b", "5 → 6", "--as", "bob")
        written = io.BytesIO()
        terminal = io.TextIOWrapper(written, encoding="latin-1")
        monkeypatch.setattr(sys, "stdout", terminal)
        assert hubbub("messages", "list").code == 0
        terminal.flush()
        assert b"5 ? 6" in written.getvalue()


# check, schema ------------------------------------------------------------------------------------


def test_network_check_reports_each_mistake_on_one_line(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    (home / "hubbub.yaml").write_text(
        "network: {name: town}\nhumans: {ann: {}}\nchannels: {a: {}, b: {}}\n"
    )
    (home / "net.yaml").write_text("netwrk: {}\nhumans: []\n")
    (home / "empty.yaml").touch()
    assert (
        hubbub.transcript(
            "network check",
            "network check net.yaml",
            "network check net.yaml --json",
            "network check empty.yaml --json",
            "network check gone.yaml --json",
        )
        == snapshot
    )
    assert "properties" in hubbub("network", "schema").json()


# doctor -------------------------------------------------------------------------------------------


def test_the_doctor_reports_its_findings_as_text_and_json(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = hubbub("network", "doctor")
    assert result.code == 0
    assert "✓ python" in result.out
    assert 'api_key: "${OPENAI_API_KEY}"' in result.out
    assert "sk-secret" not in result.out
    (home / "hubbub.yaml").write_text("netwrk: {}\n")
    result = hubbub("network", "doctor")
    assert result.code == 1
    assert "✗ config     hubbub.yaml:1: unknown key 'netwrk'" in result.out
    (home / "net.yaml").write_text("network: {auth: open, listen: '127.0.0.1:0'}\n")
    diagnosis = hubbub("network", "doctor", "net.yaml", "--json").json()
    assert diagnosis["healthy"] is True
    checks = {"python", "sqlite", "config", "port", "database", "tokens"}
    assert {finding["what"] for finding in diagnosis["findings"]} == checks


def test_the_doctor_accepts_the_port_and_database_of_the_running_network(
    home: Path, hubbub: Shell
) -> None:
    with running(NETWORK.replace(":memory:", "town.db"), home) as url:
        address = url.removeprefix("ws://")
        text = f"network: {{auth: open, listen: '{address}', store: 'sqlite:town.db'}}\n"
        (home / "same.yaml").write_text(text)
        result = hubbub("network", "doctor", "same.yaml")
    assert result.code == 0
    assert "is used by the network 'town'" in result.out
    assert "in use by the running network" in result.out


# init ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.behaviour("L-9")
def test_init_writes_a_network_that_passes_the_check(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = hubbub("init")
    assert result.out.splitlines() == [
        "wrote hubbub.yaml",
        "wrote agents/greeter.py",
        "wrote .gitignore",
        "no model is available; the network runs without one, and hubbub.yaml shows how to add one",
        "start it: hubbub up hubbub.yaml",
    ]
    assert hubbub("network", "check").code == 0
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    written = hubbub("init", "new/folder", "--json").json()
    names = ["hubbub.yaml", "agents/greeter.py", ".gitignore"]
    assert written["files"] == [f"new/folder/{name}" for name in names]
    (home / ".gitignore").write_text("mine\n")
    assert hubbub("init", "--force").code == 0
    assert (home / ".gitignore").read_text() == "mine\n", "an existing one is never replaced"
    (model,) = written["models"]
    assert (model["model"], model["key"]) == ("gpt-5-mini", "OPENAI_API_KEY")
    assert "sk-secret" not in (home / "new/folder/hubbub.yaml").read_text()
    assert hubbub("network", "check", "new/folder/hubbub.yaml").code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY is not set" in hubbub("network", "check", "new/folder/hubbub.yaml").err


def test_init_overwrites_an_existing_network_only_with_force(home: Path, hubbub: Shell) -> None:
    path = home / "hubbub.yaml"
    path.write_text("# mine\n")
    result = hubbub("init")
    message = "hubbub: would overwrite hubbub.yaml: name another folder, or use --force\n"
    assert (result.code, result.err) == (2, message)
    assert path.read_text() == "# mine\n"
    assert not (home / "agents").exists()
    assert hubbub("init", "--force").code == 0
    assert path.read_text() != "# mine\n"
    assert "cannot write" in hubbub("init", "hubbub.yaml").err
