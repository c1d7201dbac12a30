"""The program as a whole: exit codes, sentences, and the commands that need no network."""

from __future__ import annotations

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
def nothing_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """No models of this machine: what is found must not depend on it."""
    monkeypatch.setattr(providers, "LOOPBACK", ())
    for name in PROVIDERS:
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


def test_every_command_explains_itself(hubbub: Shell) -> None:
    """The texts themselves are those of the reference page."""
    listed = hubbub("--help").out
    commands = command_of(program()).commands  # type: ignore[attr-defined]
    assert len(commands) <= 32
    for name, command in commands.items():
        assert f"\n  {name} " in listed
        for word, below in getattr(command, "commands", {}).items():
            assert below.help, f"{name} {word}"
    for section in SECTIONS:
        assert f"\n{section}:\n" in listed
    assert hubbub("turns", "show", "--help").out.startswith("Usage: hubbub turns show")
    for group in ("tokens", "agents", "prompts", "tasks"):
        ran = hubbub(group)
        assert ran.code == 0
        assert "Commands:" in ran.out
    assert hubbub("--version").out == f"{package.__version__}\n"


def test_a_wrong_command_line_is_one_sentence_with_a_way_on(
    hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    lines = (
        "tsks",
        "check",
        "agents list --jsn",
        "turns show",
        "tokens ad ann",
        "turns list -n many",
        "agents list extra",
        "tasks list --state odd",
        "tasks list -n 999",
        "up",
    )
    told = hubbub.story(*lines)
    assert told == snapshot
    assert told.count("\nhubbub: ") == told.count("(exit code 2)") == len(lines)


FAILURES: list[BaseException] = []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails as the test says."""

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
    for failure, code, sentence in (
        (UserError("name another"), 2, "hubbub: name another\n"),
        (OperationError("unknown_participant", "nobody"), 2, "hubbub: nobody\n"),
        (OperationError("internal", "a bug"), 1, "hubbub: a bug\n"),
        (OperationError("rate_limited", "slower", temporary=True), 1, "hubbub: slower\n"),
        (ConnectionLost(1006, "gone"), 1, "hubbub: lost the connection to the network: "),
        (StoreUnavailable("disk full"), 1, "hubbub: disk full\n"),
        (HubbubError("lost"), 1, "hubbub: lost\n"),
        (ExceptionGroup("tasks", [UserError("inside")]), 2, "hubbub: inside\n"),
        (
            ZeroDivisionError("oops"),
            1,
            "hubbub: unexpected ZeroDivisionError: oops (set HUBBUB_DEBUG",
        ),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
    ):
        FAILURES.append(failure)
        ran = hubbub("up")
        assert ran.code == code, failure
        assert ran.err.startswith(sentence)
        assert "Traceback" not in ran.err
    monkeypatch.setenv("HUBBUB_DEBUG", "1")
    FAILURES.append(ZeroDivisionError("oops"))
    assert "Traceback" in hubbub("up").err
    program.cache_clear()
    command_of.cache_clear()


@pytest.mark.slow
def test_the_module_is_the_same_program() -> None:
    args = [sys.executable, "-m", "hubbub", "--version"]
    ran = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"{package.__version__}\n")


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_program_without_a_word() -> None:
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


# check, schema ------------------------------------------------------------------------------------


def test_a_config_is_checked_and_its_mistakes_told_one_a_line(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    (home / "hubbub.yaml").write_text(
        "network: {name: town}\nhumans: {ann: {}}\nchannels: {a: {}, b: {}}\n"
    )
    (home / "net.yaml").write_text("netwrk: {}\nhumans: []\n")
    (home / "empty.yaml").touch()
    assert (
        hubbub.story(
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


def test_the_doctor_tells_what_is_found_to_people_and_programs(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = hubbub("network", "doctor")
    assert ran.code == 0
    assert "✓ python" in ran.out
    assert 'api_key: "${OPENAI_API_KEY}"' in ran.out
    assert "sk-secret" not in ran.out
    (home / "hubbub.yaml").write_text("netwrk: {}\n")
    ran = hubbub("network", "doctor")
    assert ran.code == 1
    assert "✗ config     hubbub.yaml:1: unknown key 'netwrk'" in ran.out
    (home / "net.yaml").write_text("network: {auth: open, listen: '127.0.0.1:0'}\n")
    found = hubbub("network", "doctor", "net.yaml", "--json").json()
    assert found["healthy"] is True
    looked_at = {"python", "sqlite", "config", "port", "database", "tokens"}
    assert {finding["what"] for finding in found["findings"]} == looked_at


def test_a_running_network_holds_its_port_and_database(home: Path, hubbub: Shell) -> None:
    with running(NETWORK.replace(":memory:", "town.db"), home) as url:
        address = url.removeprefix("ws://")
        text = f"network: {{auth: open, listen: '{address}', store: 'sqlite:town.db'}}\n"
        (home / "same.yaml").write_text(text)
        ran = hubbub("network", "doctor", "same.yaml")
    assert ran.code == 0
    assert "is used by the network 'town'" in ran.out
    assert "in use by the running network" in ran.out


# init ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.behaviour("L-9")
def test_a_network_is_written_that_passes_check(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = hubbub("init")
    assert ran.out.splitlines() == [
        "wrote hubbub.yaml",
        "wrote agents/greeter.py",
        "wrote .gitignore",
        "no model is available; the network runs without one, and hubbub.yaml shows how to add one",
        "start it: hubbub up hubbub.yaml",
    ]
    assert hubbub("network", "check").code == 0
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    told = hubbub("init", "new/folder", "--json").json()
    names = ["hubbub.yaml", "agents/greeter.py", ".gitignore"]
    assert told["files"] == [f"new/folder/{name}" for name in names]
    (home / ".gitignore").write_text("mine\n")
    assert hubbub("init", "--force").code == 0
    assert (home / ".gitignore").read_text() == "mine\n", "a repository keeps its own"
    assert [(model["model"], model["key"]) for model in told["models"]] == [
        ("gpt-5-mini", "OPENAI_API_KEY")
    ]
    assert "sk-secret" not in (home / "new/folder/hubbub.yaml").read_text()
    assert hubbub("network", "check", "new/folder/hubbub.yaml").code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY is not set" in hubbub("network", "check", "new/folder/hubbub.yaml").err


def test_what_is_there_is_not_replaced_unasked(home: Path, hubbub: Shell) -> None:
    place = home / "hubbub.yaml"
    place.write_text("# mine\n")
    ran = hubbub("init")
    sentence = "hubbub: would overwrite hubbub.yaml: name another folder, or use --force\n"
    assert (ran.code, ran.err) == (2, sentence)
    assert place.read_text() == "# mine\n"
    assert not (home / "agents").exists()
    assert hubbub("init", "--force").code == 0
    assert place.read_text() != "# mine\n"
    assert "cannot write" in hubbub("init", "hubbub.yaml").err
