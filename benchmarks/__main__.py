"""`python -m benchmarks`: run the scenarios, print the table, write the JSON."""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.probes import commit_ms, describe, fdatasync_ms
from benchmarks.report import markdown, print_table, write_into, write_json
from benchmarks.scenarios import SCENARIOS
from benchmarks.servers import allow_many_sockets
from hubbub.app.process import run_loop

__all__ = ["main"]

RESULTS = Path(__file__).with_name("results")
SPEED = Path(__file__).parent.parent / "docs" / "explanation" / "speed.md"
WIDTH = 120
"""Columns of the table when it goes to a file."""
_NAMES = ", ".join(SCENARIOS)


def main(
    quick: Annotated[bool, typer.Option(help="A short run: fewer and shorter rounds.")] = False,
    write: Annotated[
        bool, typer.Option(help="Write the table of docs/explanation/speed.md, too.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help=f"One of: {_NAMES}.")] = None,
) -> None:
    """Measure Hubbub side by side with what it is compared to. Goals are shown, not enforced."""
    if not Path("/proc/self/stat").exists():
        raise typer.BadParameter("the benchmark reads the clocks of processes: run it on Linux")
    chosen = only or list(SCENARIOS)
    if unknown := sorted(set(chosen) - set(SCENARIOS)):
        raise typer.BadParameter(f"no scenario {', '.join(unknown)}; there are: {_NAMES}")
    allow_many_sockets()
    started = datetime.now().astimezone()
    RESULTS.mkdir(exist_ok=True)
    # Not in /tmp, which may be memory: a durable figure needs a real disk.
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=RESULTS) as scratch:
        console = Console(width=None if sys.stdout.isatty() else WIDTH)
        bench = Bench(Path(scratch), console, quick)
        figures = run_loop(_run(bench, chosen))
    print_table(bench.console, figures, bench.notes)
    if write:
        write_into(SPEED, markdown(figures, bench.notes))
    path = write_json(RESULTS, started, figures, bench.notes)
    bench.console.print(f"written to {path}", soft_wrap=True, highlight=False)


async def _run(bench: Bench, chosen: list[str]) -> list[Figure]:
    _probe(bench, "before")
    figures: list[Figure] = []
    for name in chosen:
        figures += await SCENARIOS[name](bench)
    _probe(bench, "after")
    return figures


def _probe(bench: Bench, when: str) -> None:
    sync, commit = fdatasync_ms(bench.scratch), commit_ms(bench.scratch)
    bench.note(f"disk {when}: fdatasync {describe(sync)}; SQLite commit {describe(commit)}")


if __name__ == "__main__":
    typer.run(main)
