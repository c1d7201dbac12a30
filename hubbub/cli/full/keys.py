"""All keys in one table, which the bindings and the help screen are made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["KEYS", "Key", "Where", "action_of", "begins", "of", "sequence"]

Where = Literal["everywhere", "outside", "composer"]
"""Outside: while nothing is being written."""


@dataclass(frozen=True)
class Key:
    """A key and what it does."""

    press: str
    """textual's names, with commas between alternatives and a space inside a sequence."""
    shown: str
    action: str
    help: str
    where: Where = "everywhere"


KEYS = (
    Key("ctrl+k", "Ctrl-K", "palette", "go to a thread or a person, or do something"),
    Key("alt+up", "Alt-Up", "neighbour(-1)", "previous thread"),
    Key("alt+down", "Alt-Down", "neighbour(1)", "next thread"),
    Key("alt+shift+up", "Alt-Shift-Up", "unread(-1)", "previous unread thread"),
    Key("alt+shift+down", "Alt-Shift-Down", "unread(1)", "next unread thread"),
    Key("pageup", "PageUp", "scroll(-1)", "scroll up; older messages are fetched"),
    Key("pagedown", "PageDown", "scroll(1)", "scroll down"),
    Key("escape", "Esc", "back", "close a panel, leave the composer or a reply thread"),
    Key("f1", "F1", "help", "this help"),
    Key("f2", "F2", "approvals", "tool calls that wait for your word: approve, change, deny"),
    Key("f4", "F4", "stop", "stop this turn, this thread, an agent or everything; or resume"),
    Key("ctrl+q", "Ctrl-Q", "leave", "leave the network"),
    Key("n", "n", "compose", "write", "outside"),
    Key("j,down", "j", "select(1)", "select the next message", "outside"),
    Key("k,up", "k", "select(-1)", "select the previous message", "outside"),
    Key("r", "r", "reply", "reply under the selected message, in a thread of its own", "outside"),
    Key("q", "q", "quote", "quote the selected message", "outside"),
    Key("i,enter", "i", "inspect", "look into the message and the turn behind it", "outside"),
    Key(
        "t", "t", "take_over", "speak for the agent of what is selected, or hand it back", "outside"
    ),
    Key("c", "c", "copy_link", "copy the link of the selected message", "outside"),
    Key("u", "u", "mark_unread", "mark as unread from the selected message on", "outside"),
    Key("N,shift+n", "N", "jump_new", "jump to what is new", "outside"),
    Key("G,end", "G", "to_end", "jump to the end", "outside"),
    Key("g i", "g i", "inbox", "inbox: approvals, mentions and unread threads", "outside"),
    Key("question_mark", "?", "help", "this help", "outside"),
    Key("left_square_bracket", "[", "toggle_left", "show or hide threads and people", "outside"),
    Key("right_square_bracket", "]", "toggle_right", "show or hide the details", "outside"),
    Key("enter", "Enter", "submit", "send", "composer"),
    Key("ctrl+j,shift+enter,alt+enter", "Ctrl-J", "newline", "begin a new line", "composer"),
    Key(
        "tab",
        "Tab",
        "complete",
        "take the completion (@ people, / commands), else go on",
        "composer",
    ),
    Key("ctrl+d", "Ctrl-D", "leave_empty", "leave, when nothing is written", "composer"),
)


def of(place: Where) -> Iterable[Key]:
    """The keys of a place, sequences left out."""
    return [key for key in KEYS if key.where == place and " " not in key.press]


def action_of(place: Where, press: str) -> str | None:
    """What a key does in a place."""
    return next((key.action for key in of(place) if press in key.press.split(",")), None)


def sequence(first: str, second: str) -> str | None:
    """The action of two keys pressed one after the other."""
    return next((key.action for key in KEYS if key.press == f"{first} {second}"), None)


def begins(press: str) -> bool:
    """Whether a key begins a sequence."""
    return any(key.press.startswith(f"{press} ") for key in KEYS)
