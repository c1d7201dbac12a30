"""Exit codes and sentences of the program as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

import hubbub as package
from hubbub.cli import app
from hubbub.cli.app import command_of, program, run
from hubbub.errors import ConnectionLost, HubbubError, OperationError, StoreUnavailable, UserError
from tests.unit.cli.conftest import Command

COMMANDS = ["up", "check", "schema", "init", "chat", "log", "who", "threads", "send", "status"]
COMMANDS += ["turns", "turn", "why", "doctor", "version", "token", "agent", "testing"]


def test_help_names_every_command(hubbub: Command) -> None:
    ran = hubbub("--help")
    assert ran.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(hubbub: Command, command: str) -> None:
    ran = hubbub(command, "--help")
    assert ran.code == 0
    assert f"Usage: hubbub {command}" in ran.out


@pytest.mark.parametrize("args", [(), ("token",), ("agent",), ("testing",)])
def test_a_group_alone_shows_its_help(hubbub: Command, args: tuple[str, ...]) -> None:
    ran = hubbub(*args)
    assert ran.code == 0
    assert "Commands:" in ran.out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("statsu",), "No such command 'statsu'. Did you mean 'status'? (see `hubbub --help`)"),
        (("who", "--jsn"), "no such option: --jsn; did you mean --json? (see `hubbub who --help`)"),
        (("turn",), "Missing argument 'id' (see `hubbub turn --help`)"),
        (("token", "ad", "ann"), "No such command 'ad'. Did you mean 'add'?"),
        (("turns", "-n", "many"), "'--limit' / '-n'"),
        (("who", "extra"), "extra"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_with_a_way_on(
    hubbub: Command, args: tuple[str, ...], expected: str
) -> None:
    ran = hubbub(*args)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("hubbub: ")
    assert ran.err.count("\n") == 1
    assert expected in ran.err
    assert "--help`)" in ran.err


def test_the_version_is_the_packages(hubbub: Command) -> None:
    assert hubbub("version").out == f"{package.__version__}\n"


@pytest.mark.parametrize(
    ("failure", "code", "sentence"),
    [
        (UserError("name another"), 2, "hubbub: name another\n"),
        (OperationError("unknown_participant", "nobody"), 2, "hubbub: nobody\n"),
        (OperationError("internal", "a bug"), 1, "hubbub: a bug\n"),
        (OperationError("rate_limited", "slower", temporary=True), 1, "hubbub: slower\n"),
        (ConnectionLost(1006, "gone"), 1, "hubbub: the connection to the network was lost: "),
        (StoreUnavailable("disk full"), 1, "hubbub: disk full\n"),
        (HubbubError("lost"), 1, "hubbub: lost\n"),
        (ExceptionGroup("tasks", [UserError("inside")]), 2, "hubbub: inside\n"),
        (ZeroDivisionError("oops"), 1, "hubbub: unexpected ZeroDivisionError: oops (HUBBUB_DEBUG"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
    ],
)
def test_a_failure_has_its_exit_code_and_no_traceback(
    failing: None, hubbub: Command, failure: BaseException, code: int, sentence: str
) -> None:
    FAILURES.append(failure)
    ran = hubbub("fail-for-test")
    assert ran.code == code
    assert ran.err.startswith(sentence)
    assert "Traceback" not in ran.err


FAILURES: list[BaseException] = []


@pytest.fixture
def failing() -> object:
    """A command that fails as the test says, for as long as the test lasts."""

    whole = program()

    @whole.command("fail-for-test")
    def fail() -> None:
        raise FAILURES.pop()

    command_of.cache_clear()
    yield
    whole.registered_commands.pop()
    command_of.cache_clear()


def test_debugging_shows_the_traceback(
    failing: None, hubbub: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_DEBUG", "1")
    FAILURES.append(ZeroDivisionError("oops"))
    assert "Traceback" in hubbub("fail-for-test").err


@pytest.mark.slow
def test_the_module_is_the_same_program() -> None:
    args = [sys.executable, "-m", "hubbub", "version"]
    ran = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"{package.__version__}\n")


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_program_without_a_word() -> None:
    code = "import sys; from hubbub.cli.app import run\nsys.stdin.read()\nsys.exit(run(['schema']))"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == ""


def test_public_names_exist() -> None:
    assert all(hasattr(app, name) for name in app.__all__)
    assert callable(run)
