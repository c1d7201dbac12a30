"""`chat`, `ask` and `send`: a person's end of the network."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
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
from hubbub.people.figures import SHELL, delivery_notes
from hubbub.people.messages import attachment_words
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
"""The agent that is asked where none is named, if the network has one of this name."""
STOP_S = 5.0
"""Seconds that Ctrl-C waits for the turn to be stopped."""

TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", min=0.1, help="Seconds to wait for the answer; the turn goes on."),
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
            help="The agent (left out: the concierge, or the only agent that is here), then the "
            "text. Piped input is put below the text.",
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

    Exit code 1, with the reason, if there is none. Ctrl-C stops the agent's turn.
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
        from hubbub.protocol.operations import SendResult  # while the hub works

        sent = SendResult.model_validate(value)
        for line in delivery_notes(sent, SHELL):
            typer.echo(visible(line), err=True)
        if not agent.present:
            typer.echo(f"{agent.id} is away; waiting until it is here", err=True)
        answers = await wait_for_answers(client, sent, wait_s, quiet=as_json)
    finish(answers, as_json=as_json)


def _piped() -> str:
    """What comes through a pipe or from a file; empty where somebody types, or nothing is."""
    if sys.stdin is None:  # it was closed
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
    """Whom to ask, and what. Raises `UserError`."""
    agents = {each.id: each for each in people if each.kind == "agent"}
    if words and words[0].startswith("@"):  # in quotes, as it is typed in a chat
        words = [*words[0].split(maxsplit=1), *words[1:]]
    first, *rest = words or [""]
    name = first.removeprefix("@")
    named = name in agents and (bool(rest or piped) or first != name)
    if not named and first.startswith("@"):
        raise UserError(f"there is no agent {one_line(name)!r}{did_you_mean(name, agents)}")
    if name in agents and not named:
        raise UserError(f'say what to ask: hubbub ask {name} "what can you do?"')
    if not named and rest:
        _check_first(first, people, agents)
    said = " ".join(rest if named else words)
    text = "\n\n".join(part for part in (said.strip(), piped) if part)
    if not text:
        raise UserError('ask needs a text: hubbub ask "what can you do?"')
    return (agents[name] if named else _default(agents)), text


def _check_first(first: str, people: Sequence[Participant], agents: dict[str, Participant]) -> None:
    """Raise `UserError` for a first word that is nearly an agent's name, or another's."""
    if any(each.id == first and each.kind == "human" for each in people):
        raise UserError(f"{first} is a person: `hubbub send {first} …` writes to people")
    if " " not in first and (near := did_you_mean(first, agents)):
        raise UserError(f"there is no agent {first!r}{near} (put a text in quotes)")


def _default(agents: dict[str, Participant]) -> Participant:
    """Whom to ask if no agent is named. Raises `UserError`."""
    here = [each for each in agents.values() if each.present] or list(agents.values())
    if CONCIERGE in agents:
        return agents[CONCIERGE]
    if len(here) == 1:
        return here[0]
    if not here:
        raise UserError("this network has no agents")
    names = ", ".join(each.id for each in here)
    raise UserError(f"say which agent to ask, before the text: {names}")


# Waiting and printing, also for `send --wait` -----------------------------------------------------


async def wait_for_answers(
    client: Client, sent: SendResult, wait_s: float, *, quiet: bool = False, names: bool = False
) -> Answers:
    """Wait for the answers to a message, and print each as it comes, unless `quiet`; with `names`,
    after the name of its agent. When this is cancelled, as by Ctrl-C, the turns are stopped.
    Raises `typer.Exit` after `wait_s` seconds."""
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
            typer.echo(f"{who} may say more: {_where(client, sent)}", err=True)
            return answers
        typer.echo(
            f"no answer within {wait_s:g} s; {who} goes on: {_where(client, sent)}", err=True
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
    """Print what stands at the end. Raises `typer.Exit` if there was no answer."""
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
    """Writes answers to the output: whole, or as far as their model has written them."""

    def __init__(self, *, names: bool = False):
        self._names, self._written = names, ""

    def ignore(self, *_: object) -> None:
        """Nothing is to be printed."""

    def part(self, agent: str, text: str) -> None:
        """The model of `agent` has written this far."""
        self._go_on(self._named(agent, visible(text)))

    def whole(self, message: Message) -> None:
        """An answer is there."""
        self._go_on(self._named(message.sender_id, _body(message)))
        self._write("\n")
        self._written = ""

    def _named(self, agent: str, text: str) -> str:
        return f"{agent}: {text}" if self._names else text

    def _go_on(self, text: str) -> None:
        """What is new of a text that grows; what begins anew is written on a line of its own."""
        if self._written and not text.startswith(self._written):
            self._write("\n")
            self._written = ""
        self._write(text.removeprefix(self._written))
        self._written = text

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _body(message: Message) -> str:
    """A message as text, made safe, with its attachments below."""
    return "\n".join([visible(message.text), *map(attachment_words, message.attachments)])


def _where(client: Client, sent: SendResult) -> str:
    """Where an answer will stand that comes later."""
    thread = SHELL.name(label(sent.thread_id, client.participant))
    return f"`{SHELL(f'messages list --thread {thread}')}` shows what it says"


# Sending ------------------------------------------------------------------------------------------


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
            help="What happens to a turn that runs there: queue (it is not disturbed), steer (it "
            "reads this) or interrupt (it ends).",
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
    """Send a message: to participants, to a channel, or to everybody.

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
        from hubbub.protocol.operations import SendResult

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
    nobody = f"; there is no participant {', '.join(sent.unresolved)}" if sent.unresolved else ""
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
