"""People in charge, at a shell: stops, the breaker, approvals, take-over, spending, stories."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import JsonValue

from hubbub.cli.chat.text import visible
from hubbub.cli.control import deeds
from hubbub.cli.control.reading import json_object, minutes, scope_of
from hubbub.cli.joining import AddressOption, AsOption, Target, TokenOption, joined, run_async
from hubbub.cli.joining import default_person as person_named
from hubbub.cli.output import JsonFlag, console, emit_json, help_if_alone
from hubbub.errors import UserError
from hubbub.ids import parse_message_id

if TYPE_CHECKING:
    from hubbub.cli.control.control import Control
    from hubbub.cli.control.told import Answer
    from hubbub.client import Client
    from hubbub.protocol.control import StopScope

__all__ = ["register"]

Everything = Annotated[bool, typer.Option("--all", help="Those that are over, too.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", "-r", help="Why: agents and people are told.", show_default=False)
]
AgentArgument = Annotated[str, typer.Argument(help="The agent.")]
ApprovalArgument = Annotated[
    str, typer.Argument(help="The approval, or a part of its id that no other has.")
]
breaker = typer.Typer(
    help="See and release threads in which too many turns began.",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer) -> None:
    commands: tuple[Callable[..., None], ...] = (stop, resume, stops, approvals, approve, deny)
    commands += (take_over, hand_back, spending, requests, interaction, why)
    for command in commands:
        app.command(command.__name__.replace("_", "-"))(command)
    app.add_typer(breaker, name="breaker")


# Stops --------------------------------------------------------------------------------------------


def stop(
    scope: Annotated[str, typer.Argument(help="turn, thread, agent or all.")],
    target: Annotated[
        str | None,
        typer.Argument(help="The turn (or its agent), the thread or the agent; none for all."),
    ] = None,
    reason: ReasonOption = "",
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Stop a turn; or a thread, an agent or everything, until it is resumed."""
    deed = deeds.Stop(_scope(scope), target, reason)
    _do(deed, Target(address, token), as_json, _someone(address, token, as_))


def resume(
    scope: Annotated[
        str | None,
        typer.Argument(help="thread, agent or all; left out: the only thing that is stopped."),
    ] = None,
    target: Annotated[str | None, typer.Argument(help="The thread or the agent.")] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let what is stopped go on."""
    deed = deeds.Resume(None if scope is None else _scope(scope, resume=True), target)
    _do(deed, Target(address, token), as_json, _someone(address, token, as_))


def stops(
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what is stopped, latched or taken over."""
    _do(deeds.Stops(), Target(address, token), as_json, as_)


def _scope(word: str, *, resume: bool = False) -> StopScope:
    try:
        scope = scope_of(word)
    except UserError as exc:
        raise UserError(f"hubbub {'resume' if resume else 'stop'} {exc}") from None
    if resume and scope == "turn":
        raise UserError("a turn that was stopped is over; resume takes thread, agent or all")
    return scope


@breaker.command(name="list")
def list_(
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the threads that are latched."""
    _do(deeds.Breakers(), Target(address, token), as_json, as_)


@breaker.command()
def release(
    thread: Annotated[
        str | None, typer.Argument(help="The thread; left out: the only one that is latched.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let turns begin again in a thread that is latched."""
    person = _someone(address, token, as_)
    _do(deeds.Release(thread), Target(address, token), as_json, person)


# Approvals ----------------------------------------------------------------------------------------


def approvals(
    everything: Everything = False,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show tool calls that wait for a person's word."""
    person = _someone(address, token, as_)
    _do(deeds.Approvals(everything), Target(address, token), as_json, person)


def approve(
    id: ApprovalArgument,
    arguments: Annotated[
        str | None,
        typer.Option("--arguments", help="A JSON object in place of what was asked for."),
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Change the arguments in $VISUAL or $EDITOR.")
    ] = False,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let a tool call run, as it was asked for or with other arguments."""
    if edit and arguments is not None:
        raise UserError("approve takes --arguments or --edit, not both")
    target, person = Target(address, token), _someone(address, token, as_)
    changed = None if arguments is None else json_object(arguments)
    if edit:
        asked = run_async(_asked(target, person, id))
        changed = _edited(asked)
    _do(deeds.Approve(id, changed), target, as_json, person)


def deny(
    id: ApprovalArgument,
    reason: ReasonOption = "",
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Do not let a tool call run."""
    _do(deeds.Deny(id, reason), Target(address, token), as_json, _someone(address, token, as_))


async def _asked(target: Target, person: str, name: str) -> dict[str, JsonValue]:
    """The arguments of an approval that waits."""
    async with joined(target, person) as client:
        return (await _control(client).approval(name)).arguments


def _edited(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The arguments as somebody has left them in an editor. Raises `UserError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arguments.json"
        path.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as exc:
            raise UserError(f"the editor {editor!r} does not start: {exc}") from exc
        if code:
            raise UserError(f"the editor {editor!r} ended with {code}; nothing is approved")
        return json_object(path.read_text("utf-8"))


# Take-over ----------------------------------------------------------------------------------------


def take_over(
    agent: AgentArgument,
    time: Annotated[
        str | None, typer.Option("--for", help="How long, for example 15m or 1h.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Speak for an agent for a while (`hubbub send --speak-as`); nothing wakes it meanwhile."""
    deed = deeds.TakeOver(agent, None if time is None else minutes(time))
    _do(deed, Target(address, token), as_json, _someone(address, token, as_))


def hand_back(
    agent: AgentArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let an agent speak for itself again."""
    person = _someone(address, token, as_)
    _do(deeds.HandBack(agent), Target(address, token), as_json, person)


# What is and was ----------------------------------------------------------------------------------


def spending(
    agent: Annotated[str | None, typer.Option("--agent", help="Only what it has spent.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Only what was spent there.")
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="Today included.")] = 1,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what agents have spent: turns, tokens, money."""
    _do(deeds.Spending(agent, thread, days), Target(address, token), as_json, as_)


def requests(
    everything: Everything = False,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the work that agents have asked of each other."""
    _do(deeds.Requests(everything), Target(address, token), as_json, as_)


def interaction(
    id: Annotated[str, typer.Argument(help="The interaction (i42), or a message of it (m42).")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Draw who caused what: messages, whom they woke, what that cost; and the budget."""
    _do(deeds.Interaction(id), Target(address, token), as_json, as_)


def why(
    first: Annotated[
        str, typer.Argument(metavar="[AGENT]", help="The agent; left out: everybody.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The message, for example m42.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell the story of a message: whom it reached, whom it woke and why, what they did."""
    message, agent = (first, None) if second is None else (second, first)
    if second is None and parse_message_id(first) is None:
        raise UserError(f"{first!r} is no message; they look like m42 (hubbub why [AGENT] MESSAGE)")
    _do(deeds.Why(message, agent), Target(address, token), as_json, as_)


# Doing it -----------------------------------------------------------------------------------------


def _someone(address: str | None, token: str | None, name: str | None) -> str:
    """What people decide is decided by one of them, as messages are sent."""
    return person_named(Target(address, token), name)


def _do(deed: deeds.Deed, target: Target, as_json: bool, person: str | None) -> None:
    """Do it as this person, or as the operator, and print what came of it."""
    answer = run_async(_done(deed, target, person))
    if as_json:
        emit_json(answer.value)
    elif answer.tree is not None and (screen := console()).is_terminal:
        screen.print(answer.tree, soft_wrap=False, no_wrap=True, overflow="ellipsis")
    else:
        for line in answer.lines:
            typer.echo(visible(line))


async def _done(deed: deeds.Deed, target: Target, person: str | None) -> Answer:
    async with joined(target, person) as client:
        return await _control(client).do(deed)


def _control(client: Client) -> Control:
    from hubbub.cli.chat.known import Known
    from hubbub.cli.control.control import Control
    from hubbub.cli.control.words import SHELL

    known = Known(client.participant)
    known.know(client.ready)
    return Control(client, known, SHELL, here=False)
