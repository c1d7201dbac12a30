"""`thread list | title | resolve | reopen | follow | unfollow | mute | unmute` (mod `threads`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.chat.text import visible
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table

if TYPE_CHECKING:
    from hubbub.mods.threads.schemas import ThreadInfo

__all__ = ["register"]

group = typer.Typer(
    help="Title, resolve, follow and mute threads (mod threads).",
    invoke_without_command=True,
    callback=help_if_alone,
)
ThreadArgument = Annotated[
    str, typer.Argument(help='The thread, for example "#general › m13", @bob or its id.')
]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="thread")


@group.command("list")
def list_(
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Only this one and those in it.")
    ] = None,
    state: Annotated[str, typer.Option("--state", help="all, open or resolved.")] = "all",
    followed: Annotated[bool, typer.Option("--followed", help="Only those you follow.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 20,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List reply threads, the most recently active first."""
    from hubbub.mods.threads.schemas import ThreadInfos

    desk = Desk.of(as_, address, token)
    found = desk.ask(
        ThreadInfos,
        "list_thread_info",
        thread=thread,
        state=state,
        followed=followed,
        limit=limit,
    )
    if as_json:
        emit_json(found)
        return
    table(
        ("THREAD", "STATE", "REPLIES", "LAST", ""),
        (
            (
                label(each.thread_id, desk.person),
                _state(each),
                str(each.replies),
                day_time(each.last_at),
                visible(each.title or each.automatic or ""),
            )
            for each in found.threads
        ),
    )
    if found.more:
        typer.echo("there are others; see --limit")


def _state(info: ThreadInfo) -> str:
    words = ["resolved" if info.resolved_by is not None else "open"]
    words += [word for word, holds in (("followed", info.followed), ("muted", info.muted)) if holds]
    return ", ".join(words)


@group.command("title")
def title(
    thread: ThreadArgument,
    text: Annotated[str, typer.Argument(help="What it is called; empty: as it begins.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what a reply thread is called."""
    desk = Desk.of(as_, address, token)
    _about(desk, "set_thread_title", thread, as_json, title=text)


def _about(desk: Desk, name: str, thread: str, as_json: bool, **args: str) -> None:
    from hubbub.mods.threads.schemas import ThreadState

    told = desk.ask(ThreadState, name, thread=thread, **args)
    if as_json:
        emit_json(told)
        return
    state = "open" if told.resolved_by is None else f"resolved by {told.resolved_by}"
    called = f": {visible(told.title)}" if told.title else ""
    typer.echo(f"{label(told.thread_id, desk.person)} {state}{called}")


def _choose(desk: Desk, name: str, thread: str, as_json: bool) -> None:
    from hubbub.mods.threads.schemas import ThreadChoice

    told = desk.ask(ThreadChoice, name, thread=thread)
    if as_json:
        emit_json(told)
        return
    state = "followed" if told.followed else "muted" if told.muted else "neither followed nor muted"
    above = told.chosen_in is not None and told.chosen_in != told.thread_id
    where = f", as {label(told.chosen_in, desk.person)} is" if above and told.chosen_in else ""
    typer.echo(f"{label(told.thread_id, desk.person)} {state}{where}")


def _command(name: str, deed: Callable[[Desk, str, str, bool], None], help: str) -> None:
    """Add a command that says one thing of a thread."""

    def command(
        thread: ThreadArgument,
        as_: AsOption = None,
        address: AddressOption = None,
        token: TokenOption = None,
        as_json: JsonFlag = False,
    ) -> None:
        deed(Desk.of(as_, address, token), f"{name}_thread", thread, as_json)

    group.command(name, help=help)(command)


_command("resolve", _about, "Mark a reply thread as done with.")
_command("reopen", _about, "Open a resolved reply thread again.")
_command("follow", _choose, "Be told of what is new in a thread.")
_command("unfollow", _choose, "Follow a thread no longer.")
_command("mute", _choose, "Be told of nothing in a thread but mentions.")
_command("unmute", _choose, "Mute a thread no longer.")
