"""Slash commands of the full-screen client: those of the line-based chat that make sense where
everything is in sight, and its own. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hubbub.cli.chat import commands as chat
from hubbub.cli.chat.commands import Spec, one_word, without_rest
from hubbub.cli.control.reading import DEEDS
from hubbub.cli.workplace.reading import WORKS
from hubbub.errors import UserError
from hubbub.ids import parse_message_id

__all__ = ["COMMANDS", "Again", "Command", "Drop", "GoTo", "Inbox", "ShowTurn", "Theme", "parse"]


@dataclass(frozen=True)
class Theme:
    name: str
    """Empty: choose from a list."""


@dataclass(frozen=True)
class GoTo:
    message_id: str


@dataclass(frozen=True)
class Inbox:
    pass


@dataclass(frozen=True)
class ShowTurn:
    turn_id: str


@dataclass(frozen=True)
class Again:
    pass


@dataclass(frozen=True)
class Drop:
    pass


Command = chat.Command | Theme | GoTo | Inbox | ShowTurn | Again | Drop


def _theme(rest: str) -> Command:
    return Theme(rest)


def _go(rest: str) -> Command:
    if parse_message_id(rest) is None:
        raise UserError("takes a message's id")
    return GoTo(rest)


_SHARED = ("open", "dm", "channel", "join", "create", "leave", "reply", "help", "quit")
_LATER = ("queue", "steer", "interrupt", *DEEDS, *WORKS)

COMMANDS: dict[str, Spec[Command]] = {
    **{name: spec for name, spec in chat.COMMANDS.items() if name in _SHARED},
    "go": Spec("/go <m42>", "go to a message", _go),
    "inbox": Spec("/inbox", "approvals, mentions and unread threads", without_rest(Inbox)),
    "turn": Spec("/turn <concierge-m42>", "look into a turn of an agent", one_word(ShowTurn)),
    "again": Spec("/again", "try once more to send what was refused", without_rest(Again)),
    "drop": Spec("/drop", "give up what was refused", without_rest(Drop)),
    "theme": Spec("/theme [name]", "change the colours; without a name, choose", _theme),
    **{name: chat.COMMANDS[name] for name in _LATER},
}


def parse(line: str, offers: Collection[str] = ()) -> Command | None:
    """The command in a text; None for an empty one. `offers` are the operations that the hub has.
    Raises `UserError`."""
    return chat.read(line, COMMANDS, chat.Say, offers)
