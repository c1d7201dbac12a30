"""`ask`: a question to an agent, and its answer; for people and for scripts."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

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
from hubbub.cli.operations import complete_agent
from hubbub.cli.output import JsonFlag, emit_json
from hubbub.client import Client
from hubbub.errors import UserError
from hubbub.people.answers import Answers
from hubbub.people.figures import SHELL, delivery_notes
from hubbub.people.messages import attachment_words
from hubbub.people.names import did_you_mean, label
from hubbub.people.text import one_line, visible
from hubbub.protocol.messages import Message, Participant
from hubbub.protocol.operations import SendResult

__all__ = ["AnswerPrinter", "TimeoutOption", "finish", "register", "wait_for_answers"]

CONCIERGE = "concierge"
"""The agent that is asked where none is named, if the network has one of this name."""
STOP_S = 5.0
"""Seconds that Ctrl-C waits for the turn to be stopped."""

TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", min=0.1, help="Seconds to wait for the answer; the turn goes on."),
]


def register(app: typer.Typer, word: str) -> None:
    app.command()(ask)


def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT] TEXT…",
            help="The agent (left out: the concierge, or the only agent that is here), then the "
            "text. What comes through a pipe is put below the text.",
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
        sent = SendResult.model_validate(value)
        for line in delivery_notes(sent, SHELL):
            typer.echo(visible(line), err=True)
        if not agent.present:
            typer.echo(f"{agent.id} is away; waiting until it is here", err=True)
        answers = await wait_for_answers(client, sent, wait_s, quiet=as_json)
    finish(answers, as_json=as_json)


def _piped() -> str:
    """What comes through a pipe or from a file; empty where somebody types, or nothing is."""
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
    """Whom to ask where nobody is named. Raises `UserError`."""
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
