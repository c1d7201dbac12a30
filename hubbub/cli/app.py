"""All commands in one place, and what becomes of their failures.

Exit codes: 0 fine, 1 the network failed, 2 the user's input is wrong. A failure is one sentence on
stderr; HUBBUB_DEBUG=1 shows the traceback too.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated

import typer

from hubbub.cli.output import help_if_alone
from hubbub.config.problems import closest
from hubbub.errors import ConfigError, ConnectionLost, HubbubError, OperationError, UserError
from hubbub.protocol.codes import ErrorCode

__all__ = ["COMMANDS", "command_of", "program", "run"]

_UsageError = typer.BadParameter.__bases__[0]
"""The base of what typer raises about a command line; typer itself does not export it."""
_COMMANDS = {
    "list_threads": "`hubbub threads`",
    "list_participants": "`hubbub who`",
    "join_channel": "/join in `hubbub chat`",
    "list_approvals": "`hubbub approvals`",
}
"""The hub speaks to programs and models."""
_NETWORK_FAULTS = frozenset(
    {ErrorCode.INTERNAL, ErrorCode.STORE_UNAVAILABLE, ErrorCode.LOG_DAMAGED, ErrorCode.DRAINING}
)

COMMANDS = {
    "up": "up",
    "check": "check schema",
    "init": "init",
    "talk": "chat",
    "people": "who threads send status",
    "log": "log",
    "finding": "search digest",
    "reactions": "react",
    "edits": "edit delete history",
    "thread": "thread",
    "tasks": "tasks",
    "polls": "polls",
    "files": "files",
    "reminders": "remind reminders",
    "directory": "directory",
    "transcript": "transcript",
    "turns": "turns turn",
    "charge": "stop resume stops approvals approve deny take-over hand-back spending requests "
    "interaction why breaker",
    "prompts": "prompts",
    "mods": "mods",
    "webhooks": "webhook",
    "doctor": "doctor",
    "backups": "backup restore",
    "tokens": "token",
    "agent": "agent",
    "testing": "testing",
}
"""Modules and the commands of each, in the order in which `hubbub --help` lists them. A command
that is asked for loads its own module only."""
_HOMES = {command: home for home, commands in COMMANDS.items() for command in commands.split()}
command_of = cache(typer.main.get_command)
"""The commands of a program. Reading their signatures takes longer than most of them run."""


@cache
def program(*homes: str) -> typer.Typer:
    """The program with the commands of these modules; without any, of all."""
    made = typer.Typer(
        name="hubbub",
        help="A messaging network in which AI agents and people work together in threads.",
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(main)
    for home in homes or COMMANDS:
        import_module(f"hubbub.cli.{home}").register(made)
    made.command()(version)
    return made


def main(
    context: typer.Context,
    asked: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    # No docstring: the program's help stands above.
    if asked:
        version()
        raise typer.Exit
    help_if_alone(context)


def version() -> None:
    """Print the version."""
    from hubbub import __version__

    typer.echo(__version__)


def _program_for(args: Sequence[str]) -> typer.Typer:
    home = _HOMES.get(args[0]) if args else None
    return program(home) if home else program()


def run(args: Sequence[str]) -> int:
    """Run a command line (without the program's name); returns the exit code."""
    if os.environ.get("HUBBUB_DEBUG"):  # otherwise what the log does by itself is enough
        from hubbub.app.logs import configure_logging

        configure_logging(debug=True)
    try:
        command = command_of(_program_for(args))
        code = command.main(args=list(args), prog_name="hubbub", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SystemExit as ended:  # typer's way out when whoever read our output has gone
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001  nobody is to be shown a traceback unasked
        return _judge(_innermost(error))
    return code if isinstance(code, int) else 0


def _told(error: OperationError) -> str:
    """The hub's sentence with commands in place of its operations."""
    message = error.message
    if error.code == ErrorCode.UNKNOWN_OPERATION:
        from hubbub.cli.missing import unknown_operation

        message = unknown_operation(message) or message
    for operation, command in _COMMANDS.items():
        message = re.sub(rf"\b{operation}\b", command, message)
    return message


def _innermost(error: Exception) -> Exception:
    """What a task group wrapped, if it is a single failure."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _judge(error: Exception) -> int:
    """Tell the failure, and whose it is."""
    if isinstance(error, _UsageError):
        return _fail(error, _usage(error), 2)
    match error:
        case ConfigError():
            return _fail(error, str(error), 2, prefix="")
        case UserError():
            return _fail(error, str(error), 2)
        case OperationError():
            users = not error.temporary and error.code not in _NETWORK_FAULTS
            return _fail(error, _told(error), 2 if users else 1)
        case ConnectionLost():
            return _fail(error, f"the connection to the network was lost: {error}", 1)
        case HubbubError():
            return _fail(error, str(error), 1)
    sentence = f"unexpected {type(error).__name__}: {error} (HUBBUB_DEBUG=1 shows where)"
    return _fail(error, sentence, 1)


def _usage(error: BaseException) -> str:
    """typer's complaint as one sentence with a way on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "hubbub"
    option = getattr(error, "option_name", None)
    if option is not None:
        near = closest(option, getattr(error, "possibilities", None) or ())
        sentence = f"no such option: {option}" + (f"; did you mean {near}?" if near else "")
    else:
        sentence = getattr(error, "format_message", lambda: str(error))()
    return f"{' '.join(sentence.split()).removesuffix('.')} (see `{path} --help`)"


def _fail(error: BaseException, sentence: str, code: int, prefix: str = "hubbub: ") -> int:
    if os.environ.get("HUBBUB_DEBUG"):
        traceback.print_exception(error)
    for line in sentence.splitlines():
        sys.stderr.write(f"{prefix}{line}\n")
    return code
