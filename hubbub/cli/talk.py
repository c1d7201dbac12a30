"""`chat` and `send`: a person's end of the network."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.ask import TimeoutOption, finish, wait_for_answers
from hubbub.cli.connection import (
    AddressOption,
    AsOption,
    NetworkTarget,
    TokenOption,
    default_person,
    joined,
    run_async,
    unreachable,
)
from hubbub.cli.operations import complete_recipient, complete_thread
from hubbub.cli.output import JsonFlag, emit_json
from hubbub.config.problems import nearest
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.people.figures import SHELL, delivery_notes
from hubbub.people.names import find_thread, label
from hubbub.people.text import visible
from hubbub.protocol.operations import SendResult

if TYPE_CHECKING:
    from hubbub.client import Address, Client
    from hubbub.people.chat.console import Console

__all__ = ["chat", "register"]

_MODES = ("queue", "steer", "interrupt")


def register(app: typer.Typer, word: str) -> None:
    if word == "chat":
        app.command()(chat)
    else:
        app.command()(send)


def chat(
    opening: Annotated[
        str | None,
        typer.Option(
            "--open",
            "-o",
            help="The thread to begin in: #general, @bob; left out: where everybody is.",
            autocompletion=complete_thread,
            show_default=False,
        ),
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Take part as a person: read, write, switch threads (/help says how).

    Lines may come from a pipe or file too; the exit code is then 1 if one of them was refused.
    """
    from hubbub.client import Client, ClientOptions, WebSocketTransport, find_network

    target = NetworkTarget(address, token)
    found, name = find_network(address), default_person(target, as_)
    client = Client(
        WebSocketTransport(found.url),
        name,
        "human",
        token=token or found.tokens.get(name),
        options=ClientOptions(schemas=False),
    )
    if code := run_async(_chat(client, found, opening)):
        raise typer.Exit(code)


async def _chat(client: Client, place: Address, opening: str | None) -> int:
    from hubbub.people.chat.conversation import run_chat

    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except OperationError as exc:
            raise UserError(exc.message) from exc
        except ConnectionLost as exc:
            raise unreachable(place, exc) from exc
        return await run_chat(client, _console(), opening=opening)


def _console() -> Console:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from hubbub.people.chat.pipe import PipeConsole

        return PipeConsole(sys.stdin.fileno(), sys.stdout)
    from hubbub.people.chat.terminal import TerminalConsole

    return TerminalConsole()


def send(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TO] TEXT…",
            help="The recipient (bob, several as a,b, #general or another thread), then the text.",
            autocompletion=complete_recipient,
        ),
    ],
    channel: Annotated[
        str | None, typer.Option("--channel", "-c", help="Post the text to this channel.")
    ] = None,
    broadcast: Annotated[
        bool, typer.Option("--broadcast", "-b", help="Send the text to everybody.")
    ] = False,
    speak_as: Annotated[
        str | None,
        typer.Option("--speak-as", help="An agent that you have taken over, and speak for."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="What becomes of a turn that runs there: queue (it is not disturbed), steer (it "
            "hears this) or interrupt (it ends).",
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", "-w", help="Print the answers of the agents that it wakes, too."),
    ] = False,
    timeout: TimeoutOption = 300.0,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a message: to somebody, to a channel, or to everybody.

    With --wait the exit code is 1 if no agent answers, and Ctrl-C stops the agents' turns.
    """
    operation, args = _message(words, channel, broadcast)
    args |= _manner(speak_as, mode)
    target = NetworkTarget(address, token)
    person = default_person(target, as_)
    limit = timeout if wait else None
    run_async(_send(target, person, operation, args, limit, as_json))


async def _send(
    target: NetworkTarget,
    person: str,
    operation: str,
    args: Mapping[str, str],
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Send, say so, and wait for the answers at most so long (None: not at all)."""
    speaker = args.get("speak_as", person)
    async with joined(target, person, cursor="latest") as client:
        if "to" in args:
            people = {known.id for known in client.ready.participants}
            channels = {channel.name for channel in client.ready.channels}
            args = {**args, "to": find_thread(args["to"], speaker, people, channels)}
        # `cid` is no argument of any operation: each call gets a fresh one.
        sent = SendResult.model_validate(await client.call(operation, cid=None, **args))
        if wait_s is None or not as_json:
            _print_sent(sent, speaker, as_json)
        if wait_s is None:
            return
        answers = await wait_for_answers(client, sent, wait_s, quiet=as_json, names=True)
    finish(answers, as_json=as_json)


def _print_sent(sent: SendResult, speaker: str, as_json: bool) -> None:
    if as_json:
        emit_json(sent)
        return
    thread = label(sent.thread_id, speaker)
    away = f"; away, will get it later: {', '.join(sent.absent)}" if sent.absent else ""
    nobody = f"; nobody is called {', '.join(sent.unresolved)}" if sent.unresolved else ""
    typer.echo(visible(f"{sent.id} sent as {speaker} in {thread}{away}{nobody}"))
    for line in delivery_notes(sent, SHELL):
        typer.echo(visible(line))


def _message(words: list[str], channel: str | None, broadcast: bool) -> tuple[str, dict[str, str]]:
    """The operation and its arguments that the words mean. Raises UserError."""
    if channel is not None and broadcast:
        raise UserError("send takes --channel or --broadcast, not both")
    said = words if channel is not None or broadcast else words[1:]
    if said and not " ".join(said).strip():
        raise UserError("there is nothing in this message")
    if channel is not None:
        return "post_to_channel", {"channel": channel.lstrip("#"), "text": " ".join(words)}
    if broadcast:
        return "broadcast_text_message", {"text": " ".join(words)}
    if len(words) < 2:
        raise UserError(
            f"send needs a recipient and a text: hubbub send {words[0]} 'hello', "
            "or --channel NAME, or --broadcast"
        )
    return "send_text_message", {"to": words[0], "text": " ".join(words[1:])}


def _manner(speak_as: str | None, mode: str | None) -> dict[str, str]:
    """How a message is to be taken, as arguments. Raises `UserError`."""
    if mode is not None and mode not in _MODES:
        raise UserError(f"there is no mode {mode!r}{nearest(mode, _MODES)}")
    manner = {"speak_as": speak_as, "mode": mode}
    return {name: value for name, value in manner.items() if value is not None}
