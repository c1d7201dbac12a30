"""People in charge, at a shell: stops, the breaker, approvals, take-over, spending, stories."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial, wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import JsonValue

from hubbub.cli.chat.text import visible
from hubbub.cli.control import deeds
from hubbub.cli.control.reading import json_object, minutes, scope_of
from hubbub.cli.joining import (
    AddressOption,
    AsOption,
    Target,
    TokenOption,
    default_person,
    joined,
    run_async,
)
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


# What all commands have in common -----------------------------------------------------------------


def _common(
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Their options: who does it, in which network, and how it is printed."""


def _command(make: Callable[..., deeds.Deed], *, by_person: bool) -> Callable[..., None]:
    """A command that does what `make` returns, with the options that all have.

    `by_person`: what people decide is decided by one of them, as messages are sent; all else is
    done as the operator unless somebody is named.
    """
    own, common = (signature(each, eval_str=True).parameters for each in (make, _common))

    @wraps(make)
    def command(
        *, as_: str | None, address: str | None, token: str | None, as_json: bool, **given: object
    ) -> None:
        deed, target = make(**given), Target(address, token)
        _do(deed, target, as_json, default_person(target, as_) if by_person else as_)

    parameters = [*own.values(), *common.values()]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


_by_anybody = partial(_command, by_person=False)
_by_person = partial(_command, by_person=True)


# Stops --------------------------------------------------------------------------------------------


@_by_person
def stop(
    scope: Annotated[str, typer.Argument(help="turn, thread, agent or all.")],
    target: Annotated[
        str | None,
        typer.Argument(help="The turn (or its agent), the thread or the agent; none for all."),
    ] = None,
    reason: ReasonOption = "",
) -> deeds.Deed:
    """Stop a turn; or a thread, an agent or everything, until it is resumed."""
    return deeds.Stop(_scope(scope), target, reason)


@_by_person
def resume(
    scope: Annotated[
        str | None,
        typer.Argument(help="thread, agent or all; left out: the only thing that is stopped."),
    ] = None,
    target: Annotated[str | None, typer.Argument(help="The thread or the agent.")] = None,
) -> deeds.Deed:
    """Let what is stopped go on."""
    return deeds.Resume(None if scope is None else _scope(scope, resume=True), target)


@_by_anybody
def stops() -> deeds.Deed:
    """Show what is stopped, latched or taken over."""
    return deeds.Stops()


def _scope(word: str, *, resume: bool = False) -> StopScope:
    try:
        scope = scope_of(word)
    except UserError as exc:
        raise UserError(f"hubbub {'resume' if resume else 'stop'} {exc}") from None
    if resume and scope == "turn":
        raise UserError("a turn that was stopped is over; resume takes thread, agent or all")
    return scope


@breaker.command(name="list")
@_by_anybody
def list_() -> deeds.Deed:
    """Show the threads that are latched."""
    return deeds.Breakers()


@breaker.command()
@_by_person
def release(
    thread: Annotated[
        str | None, typer.Argument(help="The thread; left out: the only one that is latched.")
    ] = None,
) -> deeds.Deed:
    """Let turns begin again in a thread that is latched."""
    return deeds.Release(thread)


# Approvals ----------------------------------------------------------------------------------------


@_by_person
def approvals(
    everything: Everything = False,
) -> deeds.Deed:
    """Show tool calls that wait for a person's word."""
    return deeds.Approvals(everything)


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
    target = Target(address, token)
    person = default_person(target, as_)
    changed = None if arguments is None else json_object(arguments)
    if edit:
        asked = run_async(_asked(target, person, id))
        changed = _edited(asked)
    _do(deeds.Approve(id, changed), target, as_json, person)


@_by_person
def deny(
    id: ApprovalArgument,
    reason: ReasonOption = "",
) -> deeds.Deed:
    """Do not let a tool call run."""
    return deeds.Deny(id, reason)


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


@_by_person
def take_over(
    agent: AgentArgument,
    time: Annotated[
        str | None, typer.Option("--for", help="How long, for example 15m or 1h.")
    ] = None,
) -> deeds.Deed:
    """Speak for an agent for a while (`hubbub send --speak-as`); nothing wakes it meanwhile."""
    return deeds.TakeOver(agent, None if time is None else minutes(time))


@_by_person
def hand_back(
    agent: AgentArgument,
) -> deeds.Deed:
    """Let an agent speak for itself again."""
    return deeds.HandBack(agent)


# What is and was ----------------------------------------------------------------------------------


@_by_anybody
def spending(
    agent: Annotated[str | None, typer.Option("--agent", help="Only what it has spent.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Only what was spent there.")
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="Today included.")] = 1,
) -> deeds.Deed:
    """Show what agents have spent: turns, tokens, money."""
    return deeds.Spending(agent, thread, days)


@_by_anybody
def requests(
    everything: Everything = False,
) -> deeds.Deed:
    """Show the work that agents have asked of each other."""
    return deeds.Requests(everything)


@_by_anybody
def interaction(
    id: Annotated[str, typer.Argument(help="The interaction (i42), or a message of it (m42).")],
) -> deeds.Deed:
    """Draw who caused what: messages, whom they woke, what that cost; and the budget."""
    return deeds.Interaction(id)


@_by_anybody
def why(
    first: Annotated[
        str, typer.Argument(metavar="[AGENT]", help="The agent; left out: everybody.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The message, for example m42.")
    ] = None,
) -> deeds.Deed:
    """Tell the story of a message: whom it reached, whom it woke and why, what they did."""
    message, agent = (first, None) if second is None else (second, first)
    if second is None and parse_message_id(first) is None:
        raise UserError(f"{first!r} is no message; they look like m42 (hubbub why [AGENT] MESSAGE)")
    return deeds.Why(message, agent)


# Doing it -----------------------------------------------------------------------------------------


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
