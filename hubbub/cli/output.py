"""What commands print: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from hubbub.cli.chat.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["JsonFlag", "clock_time", "console", "emit_json", "help_if_alone", "table"]

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
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value


def clock_time(moment: datetime) -> str:
    """The local time of day."""
    return moment.astimezone().strftime("%H:%M:%S")


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
