"""What a person types: text for the current thread, or a command that starts with a slash. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from hubbub.cli.chat.specs import Spec, one_word, read, without_rest
from hubbub.cli.control.deeds import Deed
from hubbub.cli.control.reading import DEEDS
from hubbub.cli.workplace.reading import WORKS
from hubbub.cli.workplace.works import Work
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
    "Mode",
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


Mode = Literal["queue", "steer", "interrupt"]
_SPACED_COMMA = re.compile(r"^(\S+) +,(?=\S)")


@dataclass(frozen=True)
class Say:
    """Text for the current thread."""

    text: str
    mode: Mode | None = None
    """What becomes of a turn that runs there; None: as the agent's config says."""


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
    | Deed
    | Work
)


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


def _mode(mode: Mode) -> Callable[[str], Command]:
    """Reads a text and what becomes of a turn that runs."""

    def read(rest: str) -> Command:
        if not rest:
            raise UserError("takes a text")
        return Say(rest, mode)

    return read


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
    "queue": Spec(
        "/queue <text>", "say it for the next turn, not the one that runs", _mode("queue")
    ),
    "steer": Spec("/steer <text>", "say it to the turn that runs", _mode("steer")),
    "interrupt": Spec(
        "/interrupt <text>", "end the turn that runs and begin with this", _mode("interrupt")
    ),
    **DEEDS,
    **WORKS,
}


def parse(line: str, offers: Collection[str] = ()) -> Command | None:
    """The command in a line of the line-based chat, as `read` reads it."""
    return read(line, COMMANDS, Say, offers)
