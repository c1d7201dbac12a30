"""All commands in one table, and how their failures are reported.

Exit codes: 0 success, 1 the network failed, 2 the user's input is invalid. A failure prints one
sentence on stderr; HUBBUB_DEBUG=1 adds the traceback.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.cli.operations import add_group, add_mod_group
from hubbub.cli.output import help_if_alone
from hubbub.config.problems import closest
from hubbub.errors import ConfigError, ConnectionLost, HubbubError, OperationError, UserError
from hubbub.people.commands import GROUPS
from hubbub.protocol.codes import ErrorCode

__all__ = ["SECTIONS", "command_of", "failed", "program", "run"]

_UsageError = typer.BadParameter.__bases__[0]
"""The base class of typer's command-line errors; typer does not export it."""
_NO_COMMAND = re.compile(r"no such command '(?P<word>\S+)'\.(?: Did you mean (?P<near>.+)\?)?")
_NETWORK_FAULTS = frozenset(
    {ErrorCode.INTERNAL, ErrorCode.STORE_UNAVAILABLE, ErrorCode.LOG_DAMAGED, ErrorCode.DRAINING}
)
_OTHER_COMMANDS = {
    "create": "`hubbub init`",
    "help": "`hubbub --help`",
    "join": "`hubbub chat`",
    "launch": "`hubbub up`",
    "login": "`hubbub chat`",
    "new": "`hubbub init`",
    "ps": "`hubbub network status`",
    "run": "`hubbub up`",
    "serve": "`hubbub up`",
    "start": "`hubbub up`",
    "status": "`hubbub network status`",
    "users": "`hubbub agents list`",
    "validate": "`hubbub network check`",
    "version": "`hubbub --version`",
}
"""Commands by the words that other programs have for them."""
_OTHER_OPTIONS = {
    "--bind": "--listen",
    "--host": "--listen",
    "--name": "--as",
    "--port": "--listen",
    "--user": "--as",
}
"""Options, likewise."""

OWN: Mapping[str, tuple[str, str, str]] = {
    "init": ("Run", "init", "Write a commented starter network: hubbub.yaml and an agent."),
    "up": ("Run", "up", "Start a network: the hub and its agents, until Ctrl-C."),
    "gateway": (
        "Run",
        "cluster",
        "Hold a network's connections on behalf of the hub that owns it.",
    ),
    "node": ("Run", "cluster", "Run a share of many networks, alongside other nodes."),
    "cluster": ("Run", "cluster", "Inspect nodes, move networks, drain nodes, try a cluster."),
    "network": ("Run", "network", GROUPS["network"].about),
    "tokens": ("Run", "tokens", "Create, list and revoke tokens."),
    "chat": ("Talk", "talk", "Join as a person: read, write, switch threads."),
    "ask": ("Talk", "talk", "Ask an agent, wait for its answer and print it."),
    "send": ("Talk", "talk", "Send a message to participants, to a channel, or to everyone."),
    "messages": ("Talk", "transcripts", GROUPS["messages"].about),
    "agents": ("Inspect", "agents", GROUPS["agents"].about),
    "mcp": ("Run", "mcp", "Connect an MCP host: Claude Code, Cursor, opencode, VS Code."),
    "acp": ("Talk", "acp", "Serve an agent to an ACP editor such as Zed, JetBrains or Neovim."),
    "bridges": ("Run", "bridges", "Bridge IRC or Matrix rooms into the network."),
    "webhooks": ("Workspace", "webhooks", GROUPS["webhooks"].about),
    "prompts": ("Build", "prompts", "List, show, compare and check prompts."),
    "test": ("Build", "prompt_tests", "Run test cases for prompts, agents and whole networks."),
    "record": (
        "Build",
        "recordings",
        "Record an interaction, to replay it or turn it into a case.",
    ),
    "replay": ("Build", "recordings", "Replay a recording and show where it differs."),
    "branch": ("Build", "recordings", "Branch the network at a message, with changed agents."),
    "mods": ("Build", "mods", "List and inspect mods, create your own, reload settings."),
}
"""Commands and groups with handwritten parts: section, module, description."""
SECTIONS = ("Run", "Talk", "Inspect", "Control", "Workspace", "Build")
command_of = cache(typer.main.get_command)
"""The click command of a typer app. Cached: reading signatures takes longer than most commands."""


def _index() -> dict[str, tuple[str, str]]:
    """The section and help of each top-level command, by name."""
    words = {word: (section, about) for word, (section, _, about) in OWN.items()}
    return words | {word: (group.section, group.about) for word, group in GROUPS.items()}


class Sections(TyperGroup):
    """Top-level help, grouped into sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # classes of typer's own
        index = _index()
        for section in SECTIONS:
            words = [word for word in _order() if index[word][0] == section]
            with formatter.section(section):
                formatter.write_dl([(word, index[word][1]) for word in words])


def _order() -> list[str]:
    """Top-level commands in help order: handwritten ones first, in the order of a first session."""
    own, generated = list(OWN), [word for word in GROUPS if word not in OWN]
    return [*own[: own.index("agents")], "threads", *own[own.index("agents") :],
            *(word for word in generated if word != "threads")]  # fmt: skip


@cache
def program(*words: str) -> typer.Typer:
    """The program with these commands and groups; with all of them if none are named."""
    app = _base()
    for word in words or _order():
        group = add_group(app, word) if word in GROUPS else app
        if word in OWN:
            import_module(f"hubbub.cli.{OWN[word][1]}").register(group, word)
    return app


def _base() -> typer.Typer:
    app = typer.Typer(
        name="hubbub",
        cls=Sections,
        help="A messaging network in which AI agents and people work together in threads.",
        epilog="Run `hubbub COMMAND --help` for details. Your network's own mods add commands too.",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(main)
    return app


def main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    # No docstring: typer would take it for the program's help, which _base() sets.
    if version:
        from hubbub import __version__

        typer.echo(__version__)
        raise typer.Exit
    help_if_alone(context)


def _program_for(args: Sequence[str]) -> typer.Typer:
    """The program with only the commands that this command line needs."""
    word = args[0] if args else ""
    if word in _index():
        return program(word)
    app = _base()
    if not word or word.startswith("-") or not add_mod_group(app, word):
        for name, (_, about) in _index().items():  # for help, completion and suggestions
            app.add_typer(typer.Typer(), name=name, help=about)
    return app


def run(args: Sequence[str]) -> int:
    """Run a command line (without the program's name) and return the exit code."""
    if os.environ.get("HUBBUB_DEBUG"):  # the default logging is enough otherwise
        from hubbub.app.process import configure_logging

        configure_logging(debug=True)
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):  # not every encoding has all letters
            output.reconfigure(errors="replace")
    try:
        command = command_of(_program_for(_completing() or args))
        code = command.main(args=list(args), prog_name="hubbub", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SystemExit as exit_:  # typer exits this way when the reader of the output is gone
        return exit_.code if isinstance(exit_.code, int) else 1
    except Exception as error:  # noqa: BLE001  a traceback is shown on request only
        return failed(error)
    return code if isinstance(code, int) else 0


def _completing() -> list[str]:
    """The words of the command line that a shell is completing."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:] if "_HUBBUB_COMPLETE" in os.environ else []


def _message(error: OperationError) -> str:
    """The hub's message with commands in place of operation names."""
    from hubbub.people.chat.slash import missing_mod
    from hubbub.people.commands import in_commands
    from hubbub.people.figures import SHELL
    from hubbub.people.parameters import known_operations

    if error.code == ErrorCode.UNKNOWN_OPERATION:
        match = re.search(r"no operation is named '(\w+)'", error.message)
        spec = known_operations().get(match[1]) if match else None
        if spec is not None and spec.mod:
            return missing_mod(spec.mod)
    if error.code == ErrorCode.AUTH_FAILED:
        named = re.search(r": join as ([\w-]+)$", error.message)
        return f"{error.message} (`--as {named[1]}`)" if named else error.message
    if error.code == ErrorCode.TOO_LARGE:
        return f"too long: {error.message.partition(': ')[2] or error.message}"
    return in_commands(error.message, SHELL)


def failed(error: Exception) -> int:
    """Print an error and return the exit code."""
    return _report(_innermost(error))


def _innermost(error: Exception) -> Exception:
    """The error inside exception groups that hold only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _report(error: Exception) -> int:
    if isinstance(error, _UsageError):
        return _fail(error, _usage(error), 2)
    match error:
        case ConfigError():
            return _fail(error, str(error), 2, prefix="")
        case UserError():
            return _fail(error, str(error), 2)
        case OperationError():
            is_user_error = not error.temporary and error.code not in _NETWORK_FAULTS
            return _fail(error, _message(error), 2 if is_user_error else 1)
        case ConnectionLost():
            return _fail(error, f"lost the connection to the network: {error}", 1)
        case HubbubError():
            return _fail(error, str(error), 1)
    sentence = f"unexpected {type(error).__name__}: {error} (set HUBBUB_DEBUG=1 for a traceback)"
    return _fail(error, sentence, 1)


def _usage(error: BaseException) -> str:
    """A typer usage error as one sentence, with a suggestion."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "hubbub"
    option = getattr(error, "option_name", None)
    if option is not None:
        meant = _OTHER_OPTIONS.get(option)
        known = {name for each in context.command.params for name in each.opts} if context else ()
        near = meant if meant in known else closest(option, known)
        if near and not near.startswith("-"):
            near = f"{near.strip('_').upper()} without an option"
        sentence = f"no such option: {option}" + (f"; did you mean {near}?" if near else "")
    else:
        sentence = getattr(error, "format_message", lambda: str(error))()
        sentence = sentence.replace("Value error, ", "")  # pydantic's
        sentence = sentence[:1].lower() + sentence[1:]
        if (match := _NO_COMMAND.fullmatch(sentence)) is not None:
            suggestion = " or ".join(re.findall(r"'(\S+)'", match["near"] or ""))
            if path == "hubbub":
                word = match["word"]
                suggestion = _OTHER_COMMANDS.get(word) or suggestion or _in_groups(word)
            sentence = f"no such command: {match['word']}"
            sentence += f"; did you mean {suggestion}?" if suggestion else ""
    return f"{' '.join(sentence.split()).removesuffix('.')} (see `{path} --help`)"


def _in_groups(word: str) -> str:
    """Commands in groups with this name or a similar one: `check` in `network`."""
    groups: dict[str, Any] = getattr(command_of(program()), "commands", {})
    inside = {name: list(getattr(group, "commands", {})) for name, group in groups.items()}
    names = {each for words in inside.values() for each in words}
    matches = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    return " or ".join(
        f"`hubbub {name} {near}`"
        for near in matches
        for name, words in inside.items()
        if near in words
    )


def _fail(error: BaseException, sentence: str, code: int, prefix: str = "hubbub: ") -> int:
    if os.environ.get("HUBBUB_DEBUG"):
        traceback.print_exception(error)
    for line in sentence.splitlines():
        sys.stderr.write(f"{prefix}{line}\n")
    return code
