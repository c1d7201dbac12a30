"""`doctor`: what is wrong on this machine, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.joining import run_async
from hubbub.cli.output import JsonFlag, console, emit_json
from hubbub.cli.up import DEFAULT_CONFIG

if TYPE_CHECKING:
    from hubbub.app.doctor import Diagnosis

__all__ = ["register"]

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(help="The network's YAML file.", show_default="hubbub.yaml, if there"),
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Read the whole log instead: is every message whole?")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Look at Python, port, database, tokens and models; each model is really called."""
    from hubbub.app.doctor import diagnose, diagnose_log

    path = config or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    found = diagnose_log(path or DEFAULT_CONFIG) if log else run_async(diagnose(path))
    if as_json:
        emit_json(
            {
                "healthy": found.healthy,
                "findings": [vars(finding) for finding in found.findings],
                "models": [vars(proposal) for proposal in found.proposals],
            }
        )
    else:
        _show(found)
    if not found.healthy:
        raise typer.Exit(1)


def _show(found: Diagnosis) -> None:
    from rich.text import Text

    from hubbub.app.providers import models_section

    screen = console()
    for finding in found.findings:
        mark, style = _MARKS[finding.verdict]
        line = Text(f"{mark} ", style=style)
        line.append(f"{finding.what:<10} ", style="bold")
        line.append(finding.text)
        screen.print(line)
    if found.proposals:
        screen.print("\nModels within reach; to use them put this into the network's YAML:\n")
        screen.print(models_section(found.proposals))
