"""`chat`, `ask` and `send`: the commands with which a person talks in the network."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import (
    AddressOption,
    AsOption,
    NetworkTarget,
    TokenOption,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.operations import complete_agent, complete_recipient, complete_thread
from hubbub.cli.output import JsonFlag, emit_json
from hubbub.config.problems import nearest
from hubbub.errors import OperationError, UserError
from hubbub.people.figures import SHELL, delivery_notes, unresolved_notes
from hubbub.people.messages import attachment_text
from hubbub.people.names import find_thread, label
from hubbub.people.text import one_line, visible
from hubbub.wording import did_you_mean

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.people.answers import Answers
    from hubbub.people.chat.console import Console
    from hubbub.protocol.messages import Message, Participant
    from hubbub.protocol.operations import SendResult

__all__ = ["AnswerPrinter", "chat", "register"]

CONCIERGE = "concierge"
"""The default agent of `ask`, if the network has one of this name."""
STOP_S = 5.0
"""Seconds that Ctrl-C waits for the turn to stop."""

TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", min=0.1, help="Seconds to wait for the answer; the turn continues after that."
    ),
]


_MODES = ("queue", "steer", "interrupt")


def register(app: typer.Typer, word: str) -> None:
    commands: Mapping[str, Callable[..., None]] = {"chat": chat, "ask": ask, "send": send}
    app.command()(commands[word])


def chat(
    opening: Annotated[
        str | None,
        typer.Option(
            "--open",
            "-o",
            help="The thread to open first: #general, @bob. Default: the broadcast thread.",
            autocompletion=complete_thread,
            show_default=False,
        ),
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Join as a person: read, write, switch threads (/help lists the commands).

    Lines can also come from a pipe or a file; the exit code is then 1 if one of them was refused.
    """
    target = NetworkTarget(address, token)
    if code := run_async(_chat(target, default_person(target, as_), opening)):
        raise typer.Exit(code)


async def _chat(target: NetworkTarget, person: str, opening: str | None) -> int:
    from hubbub.people.chat.conversation import run_chat

    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(joined(target, person))
        except OperationError as exc:
            raise UserError(exc.message) from exc
        return await run_chat(client, _console(), opening=opening)


def _console() -> Console:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from hubbub.people.chat.console import PipeConsole

        return PipeConsole(sys.stdin.fileno(), sys.stdout)
    from hubbub.people.chat.terminal import TerminalConsole

    return TerminalConsole()


# Asking -------------------------------------------------------------------------------------------


def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT] TEXT…",
            help="The agent (default: the concierge, or the only agent online), then the text. "
            "Piped input is appended to the text.",
            autocompletion=complete_agent,
            show_default=False,
        ),
    ] = None,
    timeout: TimeoutOption = 300.0,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask an agent, wait for its answer and print it.

    If there is no answer, prints the reason and exits with code 1. Ctrl-C stops the agent's turn.
    """
    target = NetworkTarget(address, token)
    person = default_person(target, as_)
    run_async(_ask(target, person, words or [], _piped(), timeout, as_json))


async def _ask(
    target: NetworkTarget,
    person: str,
    words: Sequence[str],
    piped: str,
    wait_s: float,
    as_json: bool,
) -> None:
    async with joined(target, person, cursor="latest") as client:
        people = [each for each in client.ready.participants if each.id != person]
        agent, text = _question(words, piped, people)
        if agent.down is not None:
            raise UserError(f"{agent.id} {agent.down}")
        value = await client.call("send_text_message", to=agent.id, text=text)
        from hubbub.protocol.operations import SendResult  # imported while the hub works

        sent = SendResult.model_validate(value)
        for line in delivery_notes(sent, SHELL) if sent.queued else ():
            typer.echo(visible(line), err=True)
        if not agent.present:
            typer.echo(f"{agent.id} is not connected; waiting for it", err=True)
        answers = await wait_for_answers(client, sent, wait_s, quiet=as_json)
    finish(answers, as_json=as_json)


def _piped() -> str:
    """Input from a pipe or a file; empty at a terminal or without input."""
    if sys.stdin is None:  # closed
        return ""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
        return ""
    return sys.stdin.buffer.read().decode(errors="replace").strip("\n")


def _question(
    words: Sequence[str], piped: str, people: Sequence[Participant]
) -> tuple[Participant, str]:
    """The agent to ask, and the text. Raises `UserError`."""
    agents = {each.id: each for each in people if each.kind == "agent"}
    if words and words[0].startswith("@"):  # in quotes, as typed in a chat
        words = [*words[0].split(maxsplit=1), *words[1:]]
    first, *rest = words or [""]
    name = first.removeprefix("@")
    named = name in agents and (bool(rest or piped) or first != name)
    if not named and first.startswith("@"):
        raise UserError(f"there is no agent {one_line(name)!r}{did_you_mean(name, agents)}")
    if name in agents and not named:
        raise UserError(f'ask needs a text: hubbub ask {name} "what can you do?"')
    if not named and rest:
        _check_first(first, people, agents)
    typed = " ".join(rest if named else words)
    text = "\n\n".join(part for part in (typed.strip(), piped) if part)
    if not text:
        raise UserError('ask needs a text: hubbub ask "what can you do?"')
    return (agents[name] if named else _default(agents)), text


def _check_first(first: str, people: Sequence[Participant], agents: dict[str, Participant]) -> None:
    """Raise `UserError` if the first word is a person's name, or close to an agent's name."""
    if any(each.id == first and each.kind == "human" for each in people):
        raise UserError(f"{first} is a person; write to people with `hubbub send {first} …`")
    if " " not in first and (near := did_you_mean(first, agents)):
        raise UserError(f"there is no agent {first!r}{near} (put the text in quotes)")


def _default(agents: dict[str, Participant]) -> Participant:
    """The agent to ask if none is named. Raises `UserError`."""
    candidates = [each for each in agents.values() if each.present] or list(agents.values())
    if CONCIERGE in agents:
        return agents[CONCIERGE]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise UserError("this network has no agents")
    names = ", ".join(each.id for each in candidates)
    raise UserError(f"name the agent before the text: {names}")


# Waiting and printing, also for `send --wait` -----------------------------------------------------


async def wait_for_answers(
    client: Client, sent: SendResult, wait_s: float, *, quiet: bool = False, names: bool = False
) -> Answers:
    """Wait for the answers to a message, and print each as it arrives unless `quiet`; with `names`,
    after the name of its agent. Cancellation, as by Ctrl-C, stops the turns. Raises `typer.Exit`
    after `wait_s` seconds."""
    from hubbub.people.answers import Answers

    printer = AnswerPrinter(names=names)
    streams = sys.stdout.isatty() and len(sent.queued) == 1
    answers = Answers(
        client,
        sent,
        answered=printer.ignore if quiet else printer.whole,
        writing=printer.part if streams and not quiet else printer.ignore,
    )
    try:
        async with asyncio.timeout(wait_s):
            await answers.wait()
    except TimeoutError:
        who = ", ".join(sorted(answers.agents))
        if answers.messages:
            typer.echo(f"{who} may still send more; {_where(client, sent)}", err=True)
            return answers
        typer.echo(
            f"no answer within {wait_s:g} s; {who} may still answer; {_where(client, sent)}",
            err=True,
        )
        raise typer.Exit(1) from None
    except asyncio.CancelledError:
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await answers.stop()
        typer.echo("stopped", err=True)
        raise
    return answers


def finish(answers: Answers, *, as_json: bool) -> None:
    """Print the JSON result, or the reason why there is no answer; then raises `typer.Exit`."""
    reason = answers.reason
    if as_json:
        emit_json(
            {
                "question": answers.question,
                "answer": "\n\n".join(map(_body, answers.messages)) or None,
                "reason": reason or None,
                "messages": answers.messages,
                "receipts": list(answers.receipts.values()),
            }
        )
    elif reason:
        typer.echo(reason, err=True)
    if reason:
        raise typer.Exit(1)


class AnswerPrinter:
    """Prints answers: whole, or in part while the model still writes."""

    def __init__(self, *, names: bool = False):
        self._names, self._written = names, ""

    def ignore(self, *_: object) -> None:
        """Print nothing."""

    def part(self, agent: str, text: str) -> None:
        """Print an answer in progress; `text` is all of it so far."""
        self._extend(self._named(agent, visible(text)))

    def whole(self, message: Message) -> None:
        """Print a complete answer."""
        self._extend(self._named(message.sender_id, _body(message)))
        self._write("\n")
        self._written = ""

    def _named(self, agent: str, text: str) -> str:
        return f"{agent}: {text}" if self._names else text

    def _extend(self, text: str) -> None:
        """Print the new part of a growing text; a different text goes on a new line."""
        if self._written and not text.startswith(self._written):
            self._write("\n")
            self._written = ""
        self._write(text.removeprefix(self._written))
        self._written = text

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _body(message: Message) -> str:
    """A message as safe text, with its attachments below."""
    return "\n".join([visible(message.text), *map(attachment_text, message.attachments)])


def _where(client: Client, sent: SendResult) -> str:
    """How to read an answer that arrives later."""
    thread = SHELL.name(label(sent.thread_id, client.participant))
    return f"read it with `{SHELL(f'messages list --thread {thread}')}`"


# Sending ------------------------------------------------------------------------------------------


def send(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TO] TEXT…",
            help="The recipient (bob, several as a,b, #general or any thread), then the text.",
            autocompletion=complete_recipient,
        ),
    ],
    channel: Annotated[
        str | None, typer.Option("--channel", "-c", help="Post the text to this channel.")
    ] = None,
    broadcast: Annotated[
        bool, typer.Option("--broadcast", "-b", help="Send the text to everyone.")
    ] = False,
    on_behalf_of: Annotated[
        str | None,
        typer.Option("--speak-as", help="Send as this agent, which you have taken over."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="What a running turn does with it: queue (leave the turn alone), steer (add this "
            "to the turn) or interrupt (end the turn).",
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", "-w", help="Wait for the answers of the agents it wakes."),
    ] = False,
    timeout: TimeoutOption = 300.0,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a message to participants, to a channel, or to everyone.

    With --wait the exit code is 1 if no agent answers, and Ctrl-C stops the agents' turns.
    """
    operation, args = _message(words, channel, broadcast)
    args |= _send_options(on_behalf_of, mode)
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
    """Send, report it, and wait up to `wait_s` seconds for the answers (None: do not wait)."""
    speaker = args.get("on_behalf_of", person)
    async with joined(target, person, cursor="latest") as client:
        people = {each.id for each in client.ready.participants}
        if "to" in args:
            channels = {channel.name for channel in client.ready.channels}
            args = {**args, "to": find_thread(args["to"], speaker, people, channels)}
        from hubbub.protocol.operations import SendResult

        # `cid` is not an argument of an operation: each call gets a new one.
        sent = SendResult.model_validate(await client.call(operation, cid=None, **args))
        if not as_json:
            _print_sent(sent, speaker, people, waits=wait_s is not None)
        if wait_s is None:
            if as_json:
                emit_json(sent)
            return
        answers = await wait_for_answers(client, sent, wait_s, quiet=as_json, names=True)
    finish(answers, as_json=as_json)


def _print_sent(sent: SendResult, speaker: str, known: Collection[str], *, waits: bool) -> None:
    """Print what became of the message. If it woke no agent, whoever waits reads that as the
    reason why there is no answer."""
    away = f"; away, gets it later: {', '.join(sent.absent)}" if sent.absent else ""
    lines = [f"{sent.id} sent as {speaker} in {label(sent.thread_id, speaker)}{away}"]
    lines += unresolved_notes(sent, known)
    if sent.queued or not waits:
        lines += delivery_notes(sent, SHELL)
    for line in lines:
        typer.echo(visible(line))


def _message(words: list[str], channel: str | None, broadcast: bool) -> tuple[str, dict[str, str]]:
    """The operation and its arguments for a command line. Raises `UserError`."""
    if channel is not None and broadcast:
        raise UserError("send takes --channel or --broadcast, not both")
    text = words if channel is not None or broadcast else words[1:]
    if text and not " ".join(text).strip():
        raise UserError("the message is empty")
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


def _send_options(on_behalf_of: str | None, mode: str | None) -> dict[str, str]:
    """The options of a message, as arguments. Raises `UserError`."""
    if mode is not None and mode not in _MODES:
        raise UserError(f"there is no mode {mode!r}{nearest(mode, _MODES)}")
    options = {"on_behalf_of": on_behalf_of, "mode": mode}
    return {name: value for name, value in options.items() if value is not None}
