"""All commands in one place, and what becomes of their failures.

Exit codes: 0 fine, 1 the network failed, 2 the user's input is wrong. A failure is one sentence on
stderr; HUBBUB_DEBUG=1 shows the traceback too.
"""

from __future__ import annotations

import difflib
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

from hubbub.cli.operations import add_group, group_of_mod
from hubbub.cli.output import help_if_alone
from hubbub.config.problems import closest
from hubbub.errors import ConfigError, ConnectionLost, HubbubError, OperationError, UserError
from hubbub.people.commands import GROUPS
from hubbub.protocol.codes import ErrorCode

__all__ = ["SECTIONS", "command_of", "failed", "program", "run"]

_UsageError = typer.BadParameter.__bases__[0]
"""The base of what typer raises about a command line; typer itself does not export it."""
_NO_COMMAND = re.compile(r"no such command '(?P<word>\S+)'\.(?: Did you mean (?P<near>.+)\?)?")
_NETWORK_FAULTS = frozenset(
    {ErrorCode.INTERNAL, ErrorCode.STORE_UNAVAILABLE, ErrorCode.LOG_DAMAGED, ErrorCode.DRAINING}
)

OWN: Mapping[str, tuple[str, str, str]] = {
    "init": ("Run", "init", "Write a commented starter network: hubbub.yaml and an agent."),
    "up": ("Run", "up", "Start a network: the hub and its agents, until Ctrl-C."),
    "gateway": ("Run", "cluster", "Hold the connections of a network for whichever hub owns it."),
    "node": ("Run", "cluster", "Own a share of many networks, beside other nodes."),
    "cluster": ("Run", "cluster", "Nodes that share networks: see, move, drain, try."),
    "network": ("Run", "network", GROUPS["network"].about),
    "tokens": ("Run", "tokens", "Make, list and revoke tokens."),
    "chat": ("Talk", "talk", "Take part as a person: read, write, switch threads."),
    "ask": ("Talk", "talk", "Ask an agent, wait for its answer and print it."),
    "send": ("Talk", "talk", "Send a message: to participants, to a channel, or to everybody."),
    "messages": ("Talk", "transcripts", GROUPS["messages"].about),
    "agents": ("Look", "agents", GROUPS["agents"].about),
    "mcp": ("Run", "mcp", "Let Claude Code, Cursor, opencode, VS Code and the like join."),
    "acp": ("Talk", "acp", "Serve an agent to an editor: Zed, JetBrains, Neovim and the like."),
    "bridges": ("Run", "bridges", "Let people of another chat, IRC or Matrix, take part."),
    "webhooks": ("Workplace", "webhooks", GROUPS["webhooks"].about),
    "prompts": ("Build", "prompts", "List, show, compare and check prompts."),
    "test": ("Build", "prompt_tests", "Run cases of prompts, agents and whole networks."),
    "record": ("Build", "recordings", "Record what came of a message, to replay it or as a case."),
    "replay": ("Build", "recordings", "Play a recording again, and show what differs."),
    "branch": ("Build", "recordings", "Let the network go on otherwise from one of its messages."),
    "mods": ("Build", "mods", "List and show mods, create your own, reload settings."),
}
"""Commands and groups with parts that are written by hand: section, module, what they do."""
SECTIONS = ("Run", "Talk", "Look", "In charge", "Workplace", "Build")
command_of = cache(typer.main.get_command)
"""The commands of a program. Reading their signatures takes longer than most of them run."""


def _index() -> dict[str, tuple[str, str]]:
    """Section and help of each word after `hubbub`."""
    words = {word: (section, about) for word, (section, _, about) in OWN.items()}
    return words | {word: (group.section, group.about) for word, group in GROUPS.items()}


class Sections(TyperGroup):
    """The program's help, in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # classes of typer's own
        index = _index()
        for section in SECTIONS:
            words = [word for word in _order() if index[word][0] == section]
            with formatter.section(section):
                formatter.write_dl([(word, index[word][1]) for word in words])


def _order() -> list[str]:
    """Words in the order of the help: by hand first, as somebody meets them."""
    own, made = list(OWN), [word for word in GROUPS if word not in OWN]
    return [*own[: own.index("agents")], "threads", *own[own.index("agents") :],
            *(word for word in made if word != "threads")]  # fmt: skip


@cache
def program(*words: str) -> typer.Typer:
    """The program with these commands and groups; without any, all."""
    made = _base()
    for word in words or _order():
        group = add_group(made, word) if word in GROUPS else made
        if word in OWN:
            import_module(f"hubbub.cli.{OWN[word][1]}").register(group, word)
    return made


def _base() -> typer.Typer:
    made = typer.Typer(
        name="hubbub",
        cls=Sections,
        help="A messaging network in which AI agents and people work together in threads.",
        epilog="`hubbub COMMAND --help` says more. A network's own mods have commands here, too.",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(main)
    return made


def main(
    context: typer.Context,
    asked: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    # No docstring: the program's help stands above.
    if asked:
        from hubbub import __version__

        typer.echo(__version__)
        raise typer.Exit
    help_if_alone(context)


def _program_for(args: Sequence[str]) -> typer.Typer:
    """The program with what a command line needs, and no more."""
    word = args[0] if args else ""
    if word in _index():
        return program(word)
    made = _base()
    if not word or word.startswith("-") or not group_of_mod(made, word):
        for known, (_, about) in _index().items():  # for help, completion, and the nearest word
            made.add_typer(typer.Typer(), name=known, help=about)
    return made


def run(args: Sequence[str]) -> int:
    """Run a command line (without the program's name); returns the exit code."""
    if os.environ.get("HUBBUB_DEBUG"):  # otherwise what the log does by itself is enough
        from hubbub.app.process import configure_logging

        configure_logging(debug=True)
    try:
        command = command_of(_program_for(_completing() or args))
        code = command.main(args=list(args), prog_name="hubbub", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SystemExit as ended:  # typer's way out when the reader of our output has gone
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001  a traceback is shown on request only
        return failed(error)
    return code if isinstance(code, int) else 0


def _completing() -> list[str]:
    """The words of a command line that a shell asks to complete."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:] if "_HUBBUB_COMPLETE" in os.environ else []


def _message(error: OperationError) -> str:
    """The hub's sentence with commands in place of its operations."""
    from hubbub.people.chat.slash import missing_mod
    from hubbub.people.commands import in_commands
    from hubbub.people.figures import SHELL
    from hubbub.people.parameters import known_operations

    if error.code == ErrorCode.UNKNOWN_OPERATION:
        named = re.search(r"there is no operation '(\w+)'", error.message)
        spec = known_operations().get(named[1]) if named else None
        if spec is not None and spec.mod:
            return missing_mod(spec.mod)
    if error.code == ErrorCode.AUTH_FAILED:
        named = re.search(r": join as ([\w-]+)$", error.message)
        return f"{error.message} (`--as {named[1]}`)" if named else error.message
    if error.code == ErrorCode.TOO_LARGE:
        return f"this is too long: {error.message.partition(': ')[2] or error.message}"
    return in_commands(error.message, SHELL)


def failed(error: Exception) -> int:
    """Say what has failed; returns the exit code."""
    return _judge(_innermost(error))


def _innermost(error: Exception) -> Exception:
    """What a task group wrapped, if it is a single failure."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _judge(error: Exception) -> int:
    """Say what has failed, and whose fault it is."""
    if isinstance(error, _UsageError):
        return _fail(error, _usage(error), 2)
    match error:
        case ConfigError():
            return _fail(error, str(error), 2, prefix="")
        case UserError():
            return _fail(error, str(error), 2)
        case OperationError():
            users = not error.temporary and error.code not in _NETWORK_FAULTS
            return _fail(error, _message(error), 2 if users else 1)
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
        sentence = sentence.replace("Value error, ", "")  # pydantic's
        sentence = sentence[:1].lower() + sentence[1:]
        if (named := _NO_COMMAND.fullmatch(sentence)) is not None:
            near = " or ".join(re.findall(r"'(\S+)'", named["near"] or ""))
            meant = near or (_elsewhere(named["word"]) if path == "hubbub" else "")
            sentence = f"no such command: {named['word']}"
            sentence += f"; did you mean {meant}?" if meant else ""
    return f"{' '.join(sentence.split()).removesuffix('.')} (see `{path} --help`)"


def _elsewhere(word: str) -> str:
    """Commands of groups that are called so, or nearly: `check` in `network`."""
    groups: dict[str, Any] = getattr(command_of(program()), "commands", {})
    inside = {name: list(getattr(group, "commands", {})) for name, group in groups.items()}
    known = {each for words in inside.values() for each in words}
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.75)
    return " or ".join(
        f"`hubbub {name} {near}`"
        for near in found
        for name, words in inside.items()
        if near in words
    )


def _fail(error: BaseException, sentence: str, code: int, prefix: str = "hubbub: ") -> int:
    if os.environ.get("HUBBUB_DEBUG"):
        traceback.print_exception(error)
    for line in sentence.splitlines():
        sys.stderr.write(f"{prefix}{line}\n")
    return code
