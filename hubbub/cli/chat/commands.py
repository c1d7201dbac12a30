"""What a person types: text for the current thread, or a command that starts with a slash. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubbub.errors import UserError
from hubbub.ids import parse_message_id

__all__ = [
    "COMMANDS",
    "Command",
    "Create",
    "Direct",
    "Help",
    "Join",
    "Leave",
    "More",
    "Open",
    "Quit",
    "ReplyTo",
    "Say",
    "Spec",
    "Threads",
    "ToChannel",
    "Wait",
    "Who",
    "join_names",
    "one_word",
    "parse",
    "read",
    "without_rest",
]


T = TypeVar("T")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)
_SPACED_COMMA = re.compile(r"^(\S+) +,(?=\S)")


@dataclass(frozen=True)
class Say:
    """Text for the current thread."""

    text: str


@dataclass(frozen=True)
class Threads:
    pass


@dataclass(frozen=True)
class Open:
    target: str
    """A number of the last list, a thread's id, @participant or #channel."""


@dataclass(frozen=True)
class Direct:
    names: tuple[str, ...]
    text: str = ""
    """Sent at once, if there is any."""


@dataclass(frozen=True)
class ToChannel:
    name: str


@dataclass(frozen=True)
class Join:
    name: str


@dataclass(frozen=True)
class Create:
    name: str


@dataclass(frozen=True)
class Leave:
    name: str | None
    """None: the current channel."""


@dataclass(frozen=True)
class Who:
    pass


@dataclass(frozen=True)
class ReplyTo:
    message_id: str
    text: str


@dataclass(frozen=True)
class More:
    pass


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Help:
    pass


@dataclass(frozen=True)
class Quit:
    pass


Command = (
    Say
    | Threads
    | Open
    | Direct
    | ToChannel
    | Join
    | Create
    | Leave
    | Who
    | ReplyTo
    | More
    | Wait
    | Help
    | Quit
)


@dataclass(frozen=True)
class Spec(Generic[T_co]):
    """A slash command: how it is written, what it does, and how its rest is read."""

    usage: str
    help: str
    read: Callable[[str], T_co]


def without_rest(made: Callable[[], T]) -> Callable[[str], T]:
    """Reads a command that takes nothing."""

    def read(rest: str) -> T:
        if rest:
            raise UserError("takes nothing after it")
        return made()

    return read


def one_word(made: Callable[[str], T]) -> Callable[[str], T]:
    """Reads a command that takes one name."""

    def read(rest: str) -> T:
        words = rest.split()
        if len(words) != 1:
            raise UserError("takes one name")
        return made(words[0])

    return read


def _open(rest: str) -> Command:
    if not rest:
        raise UserError("takes a number of /threads or the name of a thread")
    return Open(rest)


def _direct(rest: str) -> Command:
    names, _, text = join_names(rest).partition(" ")
    found = tuple(dict.fromkeys(n for n in (name.lstrip("@") for name in names.split(",")) if n))
    if not found:
        raise UserError("takes a name, or several with commas")
    return Direct(found, text.strip())


def join_names(rest: str) -> str:
    """`bob ,carol hi` as `bob,carol hi`: completion puts a space after each name."""
    while (joined := _SPACED_COMMA.sub(r"\1,", rest, count=1)) != rest:
        rest = joined
    return rest


def _leave(rest: str) -> Command:
    if len(rest.split()) > 1:
        raise UserError("takes one channel, or nothing for the current one")
    return Leave(rest.lstrip("#") or None)


def _reply(rest: str) -> Command:
    message_id, _, text = rest.partition(" ")
    if parse_message_id(message_id) is None or not text.strip():
        raise UserError("takes a message's id and a text")
    return ReplyTo(message_id, text.strip())


def _wait(rest: str) -> Command:
    try:
        seconds = float(rest) if rest else 10.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise UserError("takes a number of seconds, at most 3600")
    return Wait(seconds)


COMMANDS: dict[str, Spec[Command]] = {
    "threads": Spec("/threads", "list your threads, unread ones marked", without_rest(Threads)),
    "open": Spec("/open <n or name>", "open a thread of that list, @someone or #channel", _open),
    "dm": Spec("/dm <who>[,<who>] [text]", "talk to somebody directly, or to a group", _direct),
    "channel": Spec(
        "/channel <name>", "open a channel", one_word(lambda n: ToChannel(n.lstrip("#")))
    ),
    "join": Spec(
        "/join <name>", "join a channel and open it", one_word(lambda n: Join(n.lstrip("#")))
    ),
    "create": Spec(
        "/create <name>", "create a channel and open it", one_word(lambda n: Create(n.lstrip("#")))
    ),
    "leave": Spec("/leave [name]", "leave a channel, the current one by default", _leave),
    "who": Spec("/who", "list who is here and what they can do", without_rest(Who)),
    "reply": Spec("/reply <m42> <text>", "reply under a message, in a thread of its own", _reply),
    "more": Spec("/more", "show older messages of this thread", without_rest(More)),
    "wait": Spec("/wait [seconds]", "wait until somebody answers here (for scripts; 10 s)", _wait),
    "help": Spec("/help", "this list", without_rest(Help)),
    "quit": Spec("/quit", "leave (Ctrl-D does too)", without_rest(Quit)),
}


def parse(line: str) -> Command | None:
    """The command in a line of the line-based chat, as `read` reads it."""
    return read(line, COMMANDS, Say)


def read(line: str, table: Mapping[str, Spec[T]], say: Callable[[str], S]) -> T | S | None:
    """The command of `table` in a line, or what is to be said; None for an empty line.

    `//text` says `/text`. Raises `UserError` with one sentence that says what to write instead.
    """
    text = line.strip()
    if not text:
        return None
    if not text.startswith("/"):
        return say(text)
    if text.startswith("//"):
        return say(text[1:])
    word, _, rest = text[1:].partition(" ")
    spec = table.get(word.lower())
    if spec is None:
        near = difflib.get_close_matches(word.lower(), table, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise UserError(f"there is no command /{word}; {hint}")
    try:
        return spec.read(rest.strip())
    except UserError as exc:
        raise UserError(f"/{word} {exc}: {spec.usage}") from None
