"""`directory find | list | show` (mod `directory`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.desk import Desk
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table

if TYPE_CHECKING:
    from hubbub.mods.directory.schemas import AgentCard

__all__ = ["register"]

group = typer.Typer(
    help="Find who can do something, and read cards (mod directory).",
    invoke_without_command=True,
    callback=help_if_alone,
)
PeopleOption = Annotated[bool, typer.Option("--people", help="People, too.")]
PresentOption = Annotated[bool, typer.Option("--present", help="Only who is connected now.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="directory")


@group.command("find")
def find(
    need: Annotated[list[str], typer.Argument(help="What must be done, in a few words.")],
    people: PeopleOption = False,
    present: PresentOption = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 5,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find agents whose cards fit a need, the best first."""
    from hubbub.mods.directory.schemas import FoundAgents

    desk = Desk.of(as_, address, token)
    found = desk.ask(
        FoundAgents, "find_agent", need=" ".join(need), people=people, present=present, limit=limit
    )
    if as_json:
        emit_json(found)
        return
    if not found.agents:
        typer.echo(found.advice)
        return
    head = ("NAME", "STATE", "FITS", "COST", "")
    rows = [
        (card.id, _state(card), ", ".join(card.why), card.cost, card.description)
        for card in found.agents
    ]
    table(head, rows)


@group.command("list")
def list_(
    people: PeopleOption = False,
    present: PresentOption = False,
    after: Annotated[str | None, typer.Option("--after", help="Names after this one.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List agents with what their cards say, by name."""
    from hubbub.mods.directory.schemas import Agents

    desk = Desk.of(as_, address, token)
    found = desk.ask(
        Agents, "list_agents", people=people, present=present, after=after, limit=limit
    )
    if as_json:
        emit_json(found)
        return
    _table(found.agents)
    if found.more:
        typer.echo(f"there are others: --after {found.agents[-1].id}")


@group.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A participant.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a card."""
    from hubbub.mods.directory.schemas import AgentCard

    card = Desk.of(as_, address, token).ask(AgentCard, "read_card", participant=name)
    if as_json:
        emit_json(card)
        return
    rows = [
        ("name", card.id),
        ("kind", card.kind),
        ("state", _state(card)),
        ("description", card.description),
        ("skills", ", ".join(card.skills)),
        ("inputs", card.inputs),
        ("cost", card.cost),
        ("availability", card.availability),
        *((name, str(value)) for name, value in card.more.items()),
    ]
    table((), [row for row in rows if row[1]])


def _table(cards: Sequence[AgentCard]) -> None:
    head = ("NAME", "STATE", "SKILLS", "COST", "")
    table(head, [(c.id, _state(c), ", ".join(c.skills), c.cost, c.description) for c in cards])


def _state(card: AgentCard) -> str:
    """Whether it is there, and how much it has to do."""
    if not card.present:
        return f"away, {card.open} waiting" if card.open else "away"
    return f"busy ({card.open})" if card.open else "free"
