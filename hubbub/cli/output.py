"""What commands print: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from hubbub.cli.chat.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "JsonFlag",
    "clock_time",
    "console",
    "counted",
    "emit_json",
    "help_if_alone",
    "program",
    "table",
]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def console(*, stderr: bool = False) -> Console:
    """A console that never wraps, guesses or interprets: what is printed is what is meant."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def emit_json(
    value: BaseModel | Sequence[BaseModel] | Mapping[str, object] | Sequence[Mapping[str, object]],
) -> None:
    """One line of JSON."""
    typer.echo(json.dumps(_jsonable(value), ensure_ascii=False))


def _jsonable(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value


def clock_time(moment: datetime) -> str:
    """The local time of day."""
    return moment.astimezone().strftime("%H:%M:%S")


def program() -> str:
    """What somebody types here to run this program: `hubbub` if a shell finds that."""
    if shutil.which("hubbub"):
        return "hubbub"
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == "hubbub":
        return f"{_from_here(Path(sys.executable))} -m hubbub"
    return _from_here(started) if started.name == "hubbub" else "hubbub"


def _from_here(path: Path) -> str:
    """The path relative to the current folder, if it lies below."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def counted(count: int, one: str, many: str) -> str:
    """`1 agent`, `2 agents`."""
    return f"{count} {one if count == 1 else many}"


def help_if_alone(context: typer.Context) -> None:
    """For groups of commands: without a command, show the help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns for people, with the texts made safe. Without `head` there is no heading."""
    from rich.cells import cell_len
    from rich.text import Text

    lines = [list(head)] if head else []
    lines += [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    screen = console()
    for n, cells in enumerate(lines):
        padded = (c + " " * (w - cell_len(c)) for c, w in zip(cells, widths, strict=True))
        screen.print(Text("  ".join(padded).rstrip(), style="dim" if head and n == 0 else ""))
