"""`polls list | show | vote | close` (mod `polls`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.chat.text import visible
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, counted, emit_json, help_if_alone, table

if TYPE_CHECKING:
    from hubbub.mods.polls.schemas import Poll

__all__ = ["register"]

group = typer.Typer(
    help="See polls, vote, and close your own (mod polls).",
    invoke_without_command=True,
    callback=help_if_alone,
)
PollArgument = Annotated[str, typer.Argument(help="The poll, for example p3.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="polls")


@group.command("list")
def list_(
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="A thread: #general, @bob.")
    ] = None,
    state: Annotated[str | None, typer.Option("--state", help="open or closed.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List polls, the latest first."""
    from hubbub.mods.polls.schemas import Polls

    desk = Desk.of(as_, address, token)
    found = desk.ask(Polls, "list_polls", thread=thread, state=state, limit=limit)
    if as_json:
        emit_json(found)
        return
    table(
        ("POLL", "STATE", "VOTERS", "UNTIL", "THREAD", ""),
        (
            (
                poll.id,
                poll.state,
                str(poll.voters),
                day_time(poll.closed_at or poll.deadline),
                label(poll.thread_id, desk.person),
                poll.question,
            )
            for poll in found.polls
        ),
    )
    if found.more:
        typer.echo("there are earlier ones; see --limit")


@group.command("show")
def show(
    poll: PollArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a poll and how it stands."""
    from hubbub.mods.polls.schemas import Poll

    _print(Desk.of(as_, address, token).ask(Poll, "read_poll", poll=poll), as_json)


@group.command("vote")
def vote(
    poll: PollArgument,
    options: Annotated[list[str], typer.Argument(help="Options, or their numbers.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Vote, in place of what you have voted for before."""
    from hubbub.mods.polls.schemas import Poll, Voted

    desk = Desk.of(as_, address, token)
    desk.ask(Voted, "vote", poll=poll, options=options)
    _print(desk.ask(Poll, "read_poll", poll=poll), as_json)


@group.command("close")
def close(
    poll: PollArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """End a poll of yours."""
    from hubbub.mods.polls.schemas import Poll

    _print(Desk.of(as_, address, token).ask(Poll, "close_poll", poll=poll), as_json)


def _print(found: Poll, as_json: bool) -> None:
    if as_json:
        emit_json(found)
        return
    poll = found.poll
    voted = counted(poll.voters, "vote", "votes")
    secret = ", secret" if poll.secret else ""
    until = f", until {day_time(poll.deadline)}" if poll.deadline and not poll.closed_at else ""
    typer.echo(visible(f"{poll.id} {poll.state}, {voted}{secret}{until}: {poll.question}"))
    rows = [
        (
            "*" if option.number in found.mine else "",
            str(option.number),
            "" if option.votes is None else str(option.votes),
            option.text,
            ", ".join(option.voters),
        )
        for option in found.options
    ]
    table((), rows)
    if found.outcome is not None:
        winners = f": {', '.join(found.winners)}" if found.winners else ""
        typer.echo(visible(f"{found.outcome.replace('_', ' ')}{winners}"))
