"""Output of commands: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from hubbub.people.text import aligned, counted, visible

if TYPE_CHECKING:
    from rich.console import Console

    from hubbub.people.shown import CommandResult, Tone

__all__ = [
    "DEFAULT_CONFIG",
    "ConfigArgument",
    "ConfigOption",
    "JsonFlag",
    "MetricsOption",
    "console",
    "counted",
    "emit_json",
    "help_if_alone",
    "print_shown",
    "program",
    "table",
]

DEFAULT_CONFIG = Path("hubbub.yaml")
ConfigArgument = Annotated[
    Path, typer.Argument(help="The network's YAML file.", show_default="hubbub.yaml")
]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The network's YAML file.")]
MetricsOption = Annotated[
    str,
    typer.Option(
        "--metrics", help="host:port on which to serve Prometheus metrics.", show_default=False
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
_STYLES: dict[Tone, str] = {
    "info": "dim", "good": "green", "error": "red", "plain": "", "removed": "red",
}  # fmt: skip


def console(*, stderr: bool = False) -> Console:
    """A console that prints text verbatim: no wrapping, highlighting, markup or emoji."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_shown(shown: CommandResult, *, as_json: bool) -> None:
    """Print a command's result: JSON for programs, plain text for pipes, colours on a terminal."""
    if as_json:
        emit_json(shown.value)
    elif not sys.stdout.isatty():
        for note in shown.notes:
            typer.echo(visible(note.text))
    elif shown.tree is not None:
        console().print(shown.tree, soft_wrap=False, no_wrap=True, overflow="ellipsis")
    else:
        from rich.text import Text

        screen = console()
        for note in shown.notes:
            screen.print(Text(visible(note.text), style=_STYLES[note.tone]))


def emit_json(value: object) -> None:
    """Print a value, which can contain models, as one line of JSON."""
    typer.echo(json.dumps(_jsonable(value), ensure_ascii=False))


def _jsonable(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value


def program() -> str:
    """The command that runs this program: `hubbub` if it is on the PATH."""
    if shutil.which("hubbub"):
        return "hubbub"
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == "hubbub":
        return f"{_from_here(Path(sys.executable))} -m hubbub"
    return _from_here(started) if started.name == "hubbub" else "hubbub"


def _from_here(path: Path) -> str:
    """The path relative to the current folder, if it is inside."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def help_if_alone(context: typer.Context) -> None:
    """Print the help of a command group that is used without a command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns for people, with safe text. An empty `head` prints no heading."""
    from rich.text import Text

    screen = console()
    for n, line in enumerate(aligned(head, rows)):
        screen.print(Text(line, style="dim" if head and n == 0 else ""))
