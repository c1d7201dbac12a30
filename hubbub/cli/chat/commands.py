"""What a person types: text for the current thread, or a command that starts with a slash. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

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
    "Threads",
    "ToChannel",
    "Wait",
    "Who",
    "join_names",
    "parse",
]


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
class Spec:
    """A slash command: how it is written, what it does, and how its rest is read."""

    usage: str
    help: str
    read: Callable[[str], Command]


def _nothing(made: Callable[[], Command]) -> Callable[[str], Command]:
    def read(rest: str) -> Command:
        if rest:
            raise UserError("takes nothing after it")
        return made()

    return read


def _name(made: Callable[[str], Command]) -> Callable[[str], Command]:
    def read(rest: str) -> Command:
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


COMMANDS: dict[str, Spec] = {
    "threads": Spec("/threads", "list your threads, unread ones marked", _nothing(Threads)),
    "open": Spec("/open <n or name>", "open a thread of that list, @someone or #channel", _open),
    "dm": Spec("/dm <who>[,<who>] [text]", "talk to somebody directly, or to a group", _direct),
    "channel": Spec("/channel <name>", "open a channel", _name(lambda n: ToChannel(n.lstrip("#")))),
    "join": Spec(
        "/join <name>", "join a channel and open it", _name(lambda n: Join(n.lstrip("#")))
    ),
    "create": Spec(
        "/create <name>", "create a channel and open it", _name(lambda n: Create(n.lstrip("#")))
    ),
    "leave": Spec("/leave [name]", "leave a channel, the current one by default", _leave),
    "who": Spec("/who", "list who is here and what they can do", _nothing(Who)),
    "reply": Spec("/reply <m42> <text>", "reply under a message, in a thread of its own", _reply),
    "more": Spec("/more", "show older messages of this thread", _nothing(More)),
    "wait": Spec("/wait [seconds]", "wait until somebody answers here (for scripts; 10 s)", _wait),
    "help": Spec("/help", "this list", _nothing(Help)),
    "quit": Spec("/quit", "leave (Ctrl-D does too)", _nothing(Quit)),
}


def parse(line: str) -> Command | None:
    """The command in a line; None for an empty one.

    `//text` says `/text`. Raises `UserError` with one sentence that says what to write instead.
    """
    text = line.strip()
    if not text:
        return None
    if not text.startswith("/"):
        return Say(text)
    if text.startswith("//"):
        return Say(text[1:])
    word, _, rest = text[1:].partition(" ")
    spec = COMMANDS.get(word.lower())
    if spec is None:
        near = difflib.get_close_matches(word.lower(), COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise UserError(f"there is no command /{word}; {hint}")
    try:
        return spec.read(rest.strip())
    except UserError as exc:
        raise UserError(f"/{word} {exc}: {spec.usage}") from None
