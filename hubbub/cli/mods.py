"""`mods list | show | new | reload`: inspect mods, create one, and reload settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import AddressOption, NetworkTarget, TokenOption, joined, run_async
from hubbub.cli.output import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonFlag,
    console,
    emit_json,
    help_if_alone,
    table,
)
from hubbub.config.problems import shown_path
from hubbub.errors import OperationError, UserError
from hubbub.field_docs import descriptions
from hubbub.protocol.admin import ModStates

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.config.models import NetworkFile
    from hubbub.mods.api import Mod, ModConfig
    from hubbub.mods.loader import ListedMod

__all__ = ["group", "register"]

OptionalConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="The network's YAML file. Default: hubbub.yaml if present."
    ),
]

group = typer.Typer(
    help="List and inspect mods, create your own, reload settings.",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer, word: str) -> None:
    app.add_typer(group, name=word)


# list -------------------------------------------------------------------------------------------


@group.command("list")
def list_(config: OptionalConfig = None, as_json: JsonFlag = False) -> None:
    """List the mods of a network, then other available mods. The network's mods are listed in the
    order in which they process messages."""
    from hubbub.mods.loader import docs_of, find_mod, known_mods

    rows = [_row(n, mod) for n, mod in enumerate(_mods_of(config), 1)]
    used = {row["name"] for row in rows}
    for name, known in known_mods().items():
        if name not in used:
            about = docs_of(find_mod(name).kind) if known.origin == "built in" else ""
            rows.append({"order": "", "name": name, "origin": known.origin, "about": about})
    if as_json:
        emit_json(rows)
        return
    table(("", "mod", "from", "description"), [tuple(row.values()) for row in rows])


def _mods_of(config: Path | None) -> list[ListedMod]:
    """The mods in a config; none without a config."""
    from hubbub.app.preflight import load_valid

    if config is None and not DEFAULT_CONFIG.is_file():
        return []
    return _named(load_valid(config or DEFAULT_CONFIG).file)


def _named(file: NetworkFile) -> list[ListedMod]:
    """The mods of a config, in its order."""
    from hubbub.mods.loader import named

    return named(file.mods, file.network.allow_mods)


def _row(n: int, mod: ListedMod) -> dict[str, str]:
    from hubbub.mods.loader import docs_of

    origin = shown_path(Path(mod.origin)) if mod.origin.endswith(".py") else mod.origin
    about = docs_of(mod.kind)
    return {"order": str(n), "name": mod.kind.name, "origin": origin, "about": about}


# show -------------------------------------------------------------------------------------------


@group.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A mod's name, or file.py:ClassName.")],
    as_json: JsonFlag = False,
) -> None:
    """Show a mod: its description, settings and operations."""
    import inspect

    from hubbub.mods.loader import find_mod

    mod = find_mod(name)
    kind = mod.kind
    settings, operations = _settings(kind.Config), _operations(kind)
    if as_json:
        about = inspect.getdoc(kind) or ""
        emit_json(
            {
                "name": kind.name,
                "origin": mod.origin,
                "about": about,
                "requires": kind.requires,
                "conflicts": kind.conflicts,
                "settings": settings,
                "operations": operations,
            }
        )
        return
    screen = console()
    screen.print(f"{kind.name} ({mod.origin})\n\n{inspect.getdoc(kind) or ''}\n")
    for word, others in (("requires", kind.requires), ("conflicts with", kind.conflicts)):
        if others:
            screen.print(f"{word}: {', '.join(others)}")
    table(("setting", "default", ""), [tuple(map(str, s.values())) for s in settings])
    if operations:
        screen.print()
        table(("operation", "allowed for", ""), [tuple(map(str, o.values())) for o in operations])


def _settings(model: type[ModConfig]) -> list[Mapping[str, object]]:
    settings: list[Mapping[str, object]] = []
    meanings = descriptions(model)
    for name, field in model.model_fields.items():
        default = (
            "required" if field.is_required() else field.get_default(call_default_factory=True)
        )
        about = " ".join(meanings.get(name, "").split())
        settings.append({"name": name, "default": str(default), "about": about})
    return settings


def _operations(kind: type[Mod]) -> list[Mapping[str, object]]:
    who = {"read": "everyone", "write": "everyone", "admin": "owners"}
    return [
        {"name": o.name, "who": who[o.permission], "about": o.description} for o in kind.declared()
    ]


# new --------------------------------------------------------------------------------------------


@group.command("new")
def new(
    name: Annotated[str, typer.Argument(help="The mod's name, for example thanks.")],
    folder: Annotated[
        Path, typer.Argument(help="The folder to write to; created if missing.")
    ] = Path("mods"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a starter mod with a passing test. Prints how to add it to the YAML."""
    from importlib.util import find_spec

    from hubbub.cli.init import mod_class, mod_files, write_files
    from hubbub.mods.loader import NAME, known_mods

    if not NAME.fullmatch(name) or iskeyword(name):
        raise UserError(
            f"{name!r} is not a valid name for a mod: use lower-case letters, digits and _"
        )
    if name in known_mods():
        raise UserError(f"mod {name!r} already exists; see `hubbub mods show {name}`")
    module = find_spec(name)
    if module is not None and module.origin is not None:  # without an origin it is any folder
        raise UserError(
            f"{name!r} is the name of a Python module, which the mod's test would import: give it "
            "another name"
        )
    texts = mod_files(name)
    _check_tables(name, [text for file, text in texts.items() if file.endswith(".sql")])
    files = {folder / file: text for file, text in texts.items()}
    write_files(files, force=force)
    for path in files:
        typer.echo(f"wrote {path}")
    typer.echo(f"test it: pytest {folder}")
    typer.echo(f"use it: add to the YAML's mods:  - {folder}/{name}.py:{mod_class(name)}")


def _check_tables(name: str, scripts: Sequence[str]) -> None:
    """Raises `UserError` if a network's store cannot have the mod's tables."""
    import sqlite3

    from hubbub.network.store.migrate import migrate
    from hubbub.network.store.mods import bring_up

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, ":memory:")
        bring_up(db, name, dict(enumerate(scripts, 1)))


# reload -----------------------------------------------------------------------------------------


@group.command("reload")
def reload_(
    config: ConfigOption = DEFAULT_CONFIG,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Apply the settings in the YAML to the mods of a running network. Invalid settings are refused
    and change nothing; mods are added and removed only when the network starts."""
    from hubbub.app.preflight import load_valid

    file = load_valid(config).file
    target = NetworkTarget(address or file.network.name, token)
    results = run_async(_reload(target, _named(file)))
    if as_json:
        emit_json(results)
    else:
        table(("mod", ""), [(each["name"], each["outcome"]) for each in results])
    if any(each["outcome"].startswith("refused") for each in results):
        raise typer.Exit(1)


async def _reload(target: NetworkTarget, mods: Sequence[ListedMod]) -> list[dict[str, str]]:
    """The outcome for each mod in the order of the YAML, then for running mods not in it."""
    async with joined(target) as client:
        answer = ModStates.model_validate(await client.call("list_mods"))
        running = [mod.name for mod in answer.mods]
        results = [await _reload_mod(client, mod, running) for mod in mods]
    listed = {mod.kind.name for mod in mods}
    gone = "no longer in the YAML: runs until the network restarts"
    return results + [{"name": name, "outcome": gone} for name in running if name not in listed]


async def _reload_mod(client: Client, mod: ListedMod, running: Sequence[str]) -> dict[str, str]:
    name = mod.kind.name
    if name not in running:
        return {"name": name, "outcome": "new: starts when the network restarts"}
    try:
        await client.call("configure_mod", name=name, settings=dict(mod.settings))
    except OperationError as error:
        return {"name": name, "outcome": f"refused: {error.message}"}
    return {"name": name, "outcome": "reloaded"}
