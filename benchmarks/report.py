"""The table that is printed and the JSON that is kept."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure

__all__ = ["machine", "markdown", "print_table", "write_into", "write_json"]

PACKAGES = ("hubbub", "websockets", "uvloop", "aiosqlite", "pydantic", "openai", "jinja2")


def machine() -> dict[str, JsonValue]:
    """What the figures were made on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "system": platform.platform(),
        "python": sys.version,
        "sqlite": _sqlite_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def print_table(console: Console, figures: Sequence[Figure], notes: Sequence[str]) -> None:
    """One line per figure: both sides, the ratio, the goal, and whether it is met."""
    table = Table(title="Hubbub, side by side", title_justify="left")
    table.add_column("scenario")
    table.add_column("figure")
    for name in ("other side", "hubbub", "ratio", "goal"):
        table.add_column(name, justify="right")
    table.add_column("")
    previous = ""
    for figure in figures:
        if previous and figure.scenario != previous:
            table.add_section()
        table.add_row(*_cells(figure, first=figure.scenario != previous))
        previous = figure.scenario
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)


def markdown(figures: Sequence[Figure], notes: Sequence[str]) -> str:
    """The table as a page shows it, with what it was made on."""
    lines = [
        "| scenario | figure | other side | hubbub | ratio | goal | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for figure in figures:
        met = "" if figure.goal is None else "✓" if figure.goal.met(figure) else "✗"
        cells = (
            figure.scenario,
            f"{figure.name} ({figure.unit})",
            "" if figure.theirs is None else short(figure.theirs),
            short(figure.ours),
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            "" if figure.goal is None else str(figure.goal),
            met,
        )
        lines.append(f"| {' | '.join(cells)} |")
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES if _version(name))
    made_on = (
        f"{os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"SQLite {_sqlite_version()}, {packages}."
    )
    return "\n".join([*lines, "", made_on, *(f"Note: {note}." for note in notes)])


def write_into(page: Path, table: str, name: str = "bench") -> None:
    """Replace what stands between the markers of a page. Raises ValueError if it has none."""
    first, last = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    before, start, rest = page.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not start or not end:
        raise ValueError(f"{page} has no {first} … {last}")
    page.write_text(f"{before}{first}\n\n{table}\n\n{last}{after}", encoding="utf-8")


def write_json(
    folder: Path, started: datetime, figures: Sequence[Figure], notes: Sequence[str]
) -> Path:
    """Keep everything, machine and rounds included, as `<folder>/<date>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{started:%Y-%m-%dT%H%M%S}.json"
    report = {
        "started": started.isoformat(),
        "machine": machine(),
        "figures": [figure.as_json() for figure in figures],
        "notes": list(notes),
    }
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _cells(figure: Figure, *, first: bool) -> tuple[str, ...]:
    met = "" if figure.goal is None else "[green]✓" if figure.goal.met(figure) else "[red]✗"
    return (
        figure.scenario if first else "",
        f"{figure.name} [dim]({figure.unit})",
        "" if figure.theirs is None else short(figure.theirs),
        short(figure.ours),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        "" if figure.goal is None else str(figure.goal),
        met,
    )


def short(value: float) -> str:
    """Three significant digits are all that the measurements carry."""
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _sqlite_version() -> str:
    import sqlite3  # only for its version

    return sqlite3.sqlite_version


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
