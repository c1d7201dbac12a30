"""`up`: start a whole network from one YAML file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.output import DEFAULT_CONFIG, ConfigArgument, JsonFlag
from hubbub.errors import UserError

if TYPE_CHECKING:
    from hubbub.app.lifecycle import LifecycleEvent, Report

__all__ = ["register"]


def register(app: typer.Typer, word: str) -> None:
    app.command()(up)


def up(
    config: ConfigArgument = DEFAULT_CONFIG,
    listen: Annotated[
        str | None, typer.Option("--listen", help="host:port to listen on; overrides the config.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="sqlite:FILE, sqlite::memory: or postgresql://USER@HOST/DATABASE; overrides the "
            "config.",
        ),
    ] = None,
    agents: Annotated[
        bool, typer.Option("--agents/--no-agents", help="Whether to start the agents.")
    ] = True,
    browser: Annotated[
        bool | None,
        typer.Option(
            "--browser/--no-browser",
            help="Whether to open the page in a browser. Default: if this machine has a desktop.",
            show_default=False,
        ),
    ] = None,
    direct_texts: Annotated[
        bool,
        typer.Option(
            "--direct-texts",
            help="Show the text of direct messages. Default: only sender and recipient.",
        ),
    ] = False,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="Wait while another hub runs this network, and take over if it dies.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Start a network: the hub and its agents, until Ctrl-C."""
    from hubbub.app.process import loading

    with loading():
        from hubbub.app.preflight import load_checked
        from hubbub.app.process import run_loop
        from hubbub.cli.view import view_of, wants_browser

    if config == DEFAULT_CONFIG and not config.exists():
        raise UserError(
            "no hubbub.yaml in this folder: create one with `hubbub init`, or name another file "
            "with `hubbub up FILE`"
        )
    overrides = {"listen": listen, "store": _absolute(store)}
    given = {key: value for key, value in overrides.items() if value is not None}
    loaded = load_checked(config, given, meanwhile=_load_hub)
    from hubbub.app.network import serve

    if browser is None:
        terminal = not as_json and sys.stdout.isatty()
        browser = wants_browser(os.environ, sys.platform, terminal)
    with view_of(as_json=as_json, direct_texts=direct_texts) as view:
        report = _with_browser(view) if browser else view
        run_loop(serve(loaded, report, with_agents=agents, standby=standby, signals=True))


def _load_hub() -> None:
    from hubbub.app.process import loading

    with loading():
        import hubbub.app.network  # noqa: F401  takes as long as the check it runs alongside


def _with_browser(view: Report) -> Report:
    """The view, which also opens the page in a browser once the hub is up."""
    from hubbub.app.lifecycle import NetworkUp
    from hubbub.cli.view import open_browser, page_url

    def report(event: LifecycleEvent) -> None:
        view(event)
        if isinstance(event, NetworkUp):
            open_browser(page_url(event.url))

    return report


def _absolute(store: str | None) -> str | None:
    """A store named on the command line, relative to the current folder."""
    if store is None or not store.startswith("sqlite:") or store == "sqlite::memory:":
        return store
    return f"sqlite:{Path(store.removeprefix('sqlite:')).expanduser().absolute()}"
