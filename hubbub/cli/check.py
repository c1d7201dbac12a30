"""`check` and `schema`: whether a config holds together, and what it may say."""

from __future__ import annotations

import json

import typer

from hubbub.cli.output import JsonFlag, counted, emit_json
from hubbub.cli.up import DEFAULT_CONFIG, ConfigArgument
from hubbub.config.problems import ConfigProblems
from hubbub.errors import ConfigError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    for command in (check, schema):
        app.command()(command)


def check(config: ConfigArgument = DEFAULT_CONFIG, as_json: JsonFlag = False) -> None:
    """Validate a network's YAML file; tell what is wrong, with line and nearest name."""
    from hubbub.app.preflight import load_valid

    try:
        loaded = load_valid(config)
    except ConfigError as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, ConfigProblems) else [error]
        emit_json([{"path": str(p.path), "line": p.line, "message": p.message} for p in problems])
        raise typer.Exit(2) from None
    if as_json:
        emit_json([])
        return
    file = loaded.file
    counts = (
        counted(len(file.agents), "agent", "agents"),
        counted(len(file.humans), "person", "people"),
        counted(len(file.channels), "channel", "channels"),
        counted(len(file.mods), "mod", "mods"),
    )
    told = ", ".join(counts)
    typer.echo(f"{config}: fine; network '{file.network.name}' with {told}")


def schema() -> None:
    """Print the JSON Schema of the YAML, for editors."""
    from hubbub.config.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
