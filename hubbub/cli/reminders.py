"""`remind` and `reminders`: to be reminded, and to remind others (mod `schedule`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table

if TYPE_CHECKING:
    from hubbub.mods.schedule.schemas import Reminder

__all__ = ["register"]

group = typer.Typer(
    help="List, pause, resume and cancel reminders (mod schedule).",
    invoke_without_command=True,
    callback=help_if_alone,
)
IdArgument = Annotated[str, typer.Argument(help="The reminder, for example r3.")]


def register(app: typer.Typer) -> None:
    app.command()(remind)
    app.add_typer(group, name="reminders")


def remind(
    text: Annotated[str, typer.Argument(help="What to say.")],
    when: Annotated[
        str, typer.Argument(help='"in 10m", "09:00", "2026-01-31T09:00", "every 2h", or cron.')
    ],
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Where; left out: where only you read it.")
    ] = None,
    wake: Annotated[
        list[str] | None, typer.Option("--wake", help="Whom it is for; more than once for more.")
    ] = None,
    timezone: Annotated[str | None, typer.Option("--timezone", help="As Europe/Berlin.")] = None,
    times: Annotated[int | None, typer.Option("--times", help="How often at most.")] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set a reminder, for yourself or for others (mod schedule)."""
    from hubbub.mods.schedule.schemas import Reminder

    desk = Desk.of(as_, address, token)
    given = {"text": text, "when": when, "timezone": timezone, "times": times}
    made = desk.ask(Reminder, "remind", thread=thread, wakes=wake or (), **given)
    _tell(desk, made, as_json=as_json)


@group.command("list")
def list_(
    everybody: Annotated[bool, typer.Option("--all", help="Of everybody; for owners.")] = False,
    after: Annotated[str | None, typer.Option("--after", help="Only those after r3.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List your reminders and when each comes next."""
    from hubbub.mods.schedule.schemas import Reminders

    desk = Desk.of(as_, address, token)
    found = desk.ask(Reminders, "list_reminders", everybody=everybody, after=after, limit=limit)
    if as_json:
        emit_json(found)
        return
    rows = [
        (each.id, each.of, _next(each), each.when, label(each.thread_id, desk.person), each.text)
        for each in found.reminders
    ]
    table(("REMINDER", "OF", "NEXT", "WHEN", "THREAD", ""), rows)
    if found.more:
        typer.echo(f"there are later ones: --after {found.reminders[-1].id}")


@group.command("cancel")
def cancel(
    id: IdArgument, as_: AsOption = None, address: AddressOption = None, token: TokenOption = None
) -> None:
    """Cancel a reminder: it does not come any more."""
    _change(Desk.of(as_, address, token), "cancel_reminder", id)
    typer.echo(f"{id} is cancelled")


@group.command("pause")
def pause(
    id: IdArgument, as_: AsOption = None, address: AddressOption = None, token: TokenOption = None
) -> None:
    """Pause a reminder until you resume it."""
    desk = Desk.of(as_, address, token)
    _tell(desk, _change(desk, "pause_reminder", id))


@group.command("resume")
def resume(
    id: IdArgument, as_: AsOption = None, address: AddressOption = None, token: TokenOption = None
) -> None:
    """Let a paused reminder come again."""
    desk = Desk.of(as_, address, token)
    _tell(desk, _change(desk, "resume_reminder", id))


def _change(desk: Desk, operation: str, id: str) -> Reminder:
    from hubbub.mods.schedule.schemas import Reminder

    return desk.ask(Reminder, operation, id=id)


def _tell(desk: Desk, reminder: Reminder, *, as_json: bool = False) -> None:
    if as_json:
        emit_json(reminder)
    else:
        typer.echo(f"{reminder.id}  {_next(reminder)}  {label(reminder.thread_id, desk.person)}")


def _next(reminder: Reminder) -> str:
    if reminder.next is None:
        return f"paused: {reminder.problem}" if reminder.problem else "paused"
    return day_time(reminder.next)
