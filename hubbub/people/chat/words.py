"""The words that only a chat has, and its help."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.errors import UserError
from hubbub.ids import parse_message_id
from hubbub.people.chat import slash
from hubbub.people.commands import Command, all_commands
from hubbub.people.names import names_in
from hubbub.people.shown import NoteLine, notes
from hubbub.protocol import thread_ids

if TYPE_CHECKING:
    from hubbub.people.chat.conversation import LineChat

__all__ = ["LOCAL", "ChatWord"]

SHORT = 40
"""Columns of a usage that others are aligned with in the list of commands."""


@dataclass(frozen=True)
class ChatWord:
    """A word that only a chat has. `do` raises `UserError`."""

    usage: str
    help: str
    do: Callable[[LineChat, str], None]


def _threads(chat: LineChat, rest: str) -> None:
    _nothing(rest.removeprefix("list"))
    chat.show(chat.session.lists())


def _who(chat: LineChat, rest: str) -> None:
    _nothing(rest)
    command, _ = slash.find("agents list", chat.session.offers, (), ())
    chat.ask(lambda: chat.perform(command, {}))


def _open(chat: LineChat, rest: str) -> None:
    if not rest:
        raise UserError("takes a number of /threads or the name of a thread")
    chat.switch(chat.session.find(rest))


def _direct(chat: LineChat, rest: str) -> None:
    # Completion puts a space after each name: `bob ,carol hi`.
    names, _, text = re.sub(r"^((?:\S+ +,)*\S+) +,(?=\S)", _joined, rest).partition(" ")
    found = names_in(names)
    if not found:
        raise UserError("takes a name, or several with commas")
    chat.switch(chat.session.direct(found))
    if text.strip():
        chat.say(text.strip())


def _joined(found: re.Match[str]) -> str:
    return re.sub(r" +,", ",", found[0])


def _reply(chat: LineChat, rest: str) -> None:
    message_id, _, text = rest.partition(" ")
    if parse_message_id(message_id) is None or not text.strip():
        raise UserError("takes a message's id and a text")
    chat.send(text.strip(), "reply", message_id=message_id)


def _more(chat: LineChat, rest: str) -> None:
    _nothing(rest)
    chat.ask(chat.more)


def _join(chat: LineChat, rest: str) -> None:
    name = _one_word(rest).lstrip("#")
    chat.ask(lambda: chat.enter("join_channel", name, "channel"))


def _create(chat: LineChat, rest: str) -> None:
    name = _one_word(rest).lstrip("#")
    chat.ask(lambda: chat.enter("create_channel", name, "name"))


def _leave(chat: LineChat, rest: str) -> None:
    if len(rest.split()) > 1:
        raise UserError("takes one channel, or nothing for the current one")
    channel, root = rest.lstrip("#"), thread_ids.root(chat.session.current)
    if not channel and not root.startswith("channel."):
        raise UserError("leaves channels, and this is none")
    chat.ask(lambda: chat.leave(channel or root.partition(".")[2]))


def _wait(chat: LineChat, rest: str) -> None:
    try:
        seconds = float(rest) if rest else 10.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise UserError("takes a number of seconds, at most 3600")
    chat.do(lambda: chat.wait(seconds))


def _nothing(rest: str) -> None:
    if rest:
        raise UserError("takes nothing after it")


def _one_word(rest: str) -> str:
    words = rest.split()
    if len(words) != 1:
        raise UserError("takes one name")
    return words[0]


# Help ---------------------------------------------------------------------------------------------


def _help(chat: LineChat, word: str) -> None:
    """What can be typed; of one word, in detail."""
    everything = (*all_commands(), *chat.status.others)
    there = list(slash.offered(everything, chat.session.offers))
    if word:
        word = word.lstrip("/").lower()
        chat.show(_help_of(word, there) or [NoteLine(f"there is no command {word!r}", "error")])
        return
    lines = [(each.usage, each.help) for each in LOCAL.values()]
    lines += [(slash.usage(command), command.short) for command in there]
    width = max(len(usage) for usage, _ in lines if len(usage) <= SHORT)
    chat.show([
        *notes(f"{usage:<{width}}  {about}" for usage, about in lines),
        NoteLine("the first word may be left out where one command only ends so: /claim t3"),
        NoteLine("anything else is said in the current thread; @name mentions somebody"),
        NoteLine("//text says /text; /help <word> says what a command takes"),
    ])  # fmt: skip


def _help_of(word: str, commands: list[Command]) -> list[NoteLine]:
    found = [NoteLine(f"{LOCAL[word].usage}: {LOCAL[word].help}")] if word in LOCAL else []
    for command in commands:
        if word in (command.path, command.word, command.path.partition(" ")[0]):
            found.append(NoteLine(f"{slash.usage(command)}: {command.help}"))
            if word in (command.path, command.word):
                options = (p for p in command.parameters if p.help)
                found += [NoteLine(f"    {p.option}  {p.help}") for p in options]
    return found


LOCAL: dict[str, ChatWord] = {
    "threads": ChatWord("/threads", "your threads, unread ones marked", _threads),
    "open": ChatWord(
        "/open <n or name>", "open a thread of that list, @someone or #channel", _open
    ),
    "dm": ChatWord("/dm <who>[,<who>] [text]", "talk to somebody, or to a group", _direct),
    "who": ChatWord("/who", "who is in the network, and what they do", _who),
    "reply": ChatWord(
        "/reply <m42> <text>", "reply under a message, in a thread of its own", _reply
    ),
    "more": ChatWord("/more", "older messages of this thread", _more),
    "join": ChatWord("/join <name>", "join a channel and open it", _join),
    "create": ChatWord("/create <name>", "create a channel and open it", _create),
    "leave": ChatWord("/leave [name]", "leave a channel, this one by default", _leave),
    "queue": ChatWord(
        "/queue <text>",
        "say it for the next turn, not the one that runs",
        lambda chat, text: chat.say(text, "queue"),
    ),
    "steer": ChatWord(
        "/steer <text>", "say it to the turn that runs", lambda chat, text: chat.say(text, "steer")
    ),
    "interrupt": ChatWord(
        "/interrupt <text>",
        "end the turn that runs and begin with this",
        lambda chat, text: chat.say(text, "interrupt"),
    ),
    "wait": ChatWord(
        "/wait [seconds]", "wait until somebody answers here (for scripts; 10 s)", _wait
    ),
    "help": ChatWord("/help [word]", "this list; or what a command takes", _help),
    "quit": ChatWord("/quit", "leave (Ctrl-D does too)", lambda chat, rest: None),
}
