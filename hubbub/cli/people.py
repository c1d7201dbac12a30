"""`who`, `threads`, `send`, `status`: the network as it stands, and a word into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.control.words import SHELL, kept_back
from hubbub.cli.joining import (
    AddressOption,
    AsOption,
    Target,
    TokenOption,
    ask,
    check_known,
    default_person,
    joined,
    participants,
    run_async,
)
from hubbub.cli.naming import find_thread, label
from hubbub.cli.output import JsonFlag, clock_time, emit_json, table
from hubbub.config.problems import nearest
from hubbub.errors import UserError
from hubbub.protocol.admin import NetworkStatus
from hubbub.protocol.operations import SendResult, Threads

__all__ = ["register"]

_MODES = ("queue", "steer", "interrupt")


def register(app: typer.Typer) -> None:
    for command in (who, threads, send, status):
        app.command()(command)


def who(
    address: AddressOption = None, token: TokenOption = None, as_json: JsonFlag = False
) -> None:
    """Show who is in the network."""
    found = run_async(participants(Target(address, token)))
    if as_json:
        emit_json(found)
        return
    table(
        ("NAME", "KIND", "", "ABOUT"),
        (
            (
                p.id,
                p.kind,
                "present" if p.present else "away",
                clip(one_line(p.card.description), 60),
            )
            for p in found
        ),
    )


def threads(
    as_: AsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 20,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show your threads, most recently active first."""
    target = Target(address, token)
    person = default_person(target, as_)
    run_async(check_known(target.without_token(), person))
    found = Threads.model_validate(run_async(ask(target, "list_threads", person, limit=limit)))
    if as_json:
        emit_json(found.threads)
        return
    rows = (
        (
            label(thread.id, person),
            str(thread.head),
            clock_time(thread.messages[-1].sent_at),
            f"{thread.messages[-1].sender_id}: {clip(one_line(thread.messages[-1].text), 60)}",
        )
        for thread in found.threads
        if thread.messages
    )
    table(("THREAD", "MESSAGES", "LAST", ""), rows)


def send(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TO] TEXT…",
            help="The recipient (bob, several as a,b, #general or another thread), then the text.",
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
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a message: to somebody, to a channel, or to everybody."""
    operation, args = _message(words, channel, broadcast)
    args |= _manner(speak_as, mode)
    target = Target(address, token)
    person = default_person(target, as_)
    sent = run_async(_send(target, person, operation, args))
    speaker = speak_as or person
    if as_json:
        emit_json(sent)
        return
    thread = label(sent.thread_id, speaker)
    away = f"; away, will get it later: {', '.join(sent.absent)}" if sent.absent else ""
    nobody = f"; nobody is called {', '.join(sent.unresolved)}" if sent.unresolved else ""
    typer.echo(visible(f"{sent.id} sent as {speaker} in {thread}{away}{nobody}"))
    for line in kept_back(sent, SHELL):
        typer.echo(visible(line))


async def _send(target: Target, person: str, operation: str, args: Mapping[str, str]) -> SendResult:
    async with joined(target, person) as client:
        if "to" in args:
            people = {known.id for known in client.ready.participants}
            channels = {channel.name for channel in client.ready.channels}
            speaker = args.get("speak_as", person)
            args = {**args, "to": find_thread(args["to"], speaker, people, channels)}
        # `cid` is no argument of any operation: each call gets a fresh one.
        return SendResult.model_validate(await client.call(operation, cid=None, **args))


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


def status(
    address: AddressOption = None, token: TokenOption = None, as_json: JsonFlag = False
) -> None:
    """Show how the network is doing."""
    found = NetworkStatus.model_validate(run_async(ask(Target(address, token), "network_status")))
    if as_json:
        emit_json(found)
        return
    rows = [
        (name.replace("_", " "), str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in found.model_dump(exclude={"down"}).items()
    ]
    rows += [("down", visible(f"{agent.id} {agent.down}")) for agent in found.down]
    table((), rows)
