"""What `hubbub up` shows: a banner, then what happens, one line each; or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from hubbub.app.browser import page_url
from hubbub.app.happenings import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    Happening,
    MessageSeen,
    NetworkUp,
    Stopping,
)
from hubbub.cli.chat.colours import colour_of
from hubbub.cli.chat.text import visible
from hubbub.cli.messages import message_line
from hubbub.cli.output import console, program
from hubbub.client.runfile import DEFAULT_ADDRESS

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["JsonView", "TerminalView", "happening_line"]

MOST = (6, 400)
"""Lines and columns of a message that are shown; `hubbub log` shows all of it."""
MOST_PEOPLE = 6
"""People for each of whom the banner says how to get in; with more, it is said once."""
_TITLE = 10
"""Columns before what a line of the banner says."""
Write = Callable[[str], object]
"""Takes whole lines. It is called in the hub's loop and must not block."""


class JsonView:
    """One JSON object per line, told apart by `event`."""

    def __init__(self, write: Write):
        self._write = write

    @staticmethod
    def gap(count: int) -> str:
        """The line in place of `count` others that nobody read in time."""
        return json.dumps({"event": "left_out", "lines": count}) + "\n"

    def __call__(self, happening: Happening) -> None:
        if isinstance(happening, MessageSeen):
            body = happening.message.model_dump(mode="json")
            value = {"event": happening.event, "message": body}
        else:
            fields = asdict(happening)
            value = {"event": fields.pop("event"), **fields}
        self._write(json.dumps(value, ensure_ascii=False) + "\n")


class TerminalView:
    """Plain lines, in colour where the terminal has any."""

    def __init__(self, write: Write):
        self._write, self._console = write, console()

    @staticmethod
    def gap(count: int) -> str:
        """The line in place of `count` others that nobody read in time."""
        return f"… {count} lines are left out here: nobody read them in time\n"

    def __call__(self, happening: Happening) -> None:
        line = happening_line(happening)
        if line is not None:
            with self._console.capture() as printed:
                self._console.print(line)
            self._write(printed.get())


def happening_line(happening: Happening) -> Text | None:
    """How a happening reads; None for what nobody needs to see."""
    from rich.text import Text

    match happening:
        case NetworkUp():
            return _banner(happening)
        case MessageSeen(message):
            return message_line(message, MOST)
        case AgentOutput(agents, stream, line):
            return _output(agents, stream, line)
        case AgentStarted():
            return None
        case AgentDied(agents, code, retry_in_s):
            again = f"{_ended(code)}; starts again in {retry_in_s:g} s"
            return Text(f"{_names(agents)} {again}", style="yellow")
        case AgentGivenUp(agents, code, deaths):
            text = f"{_ended(code)}, the {deaths}th time in a row right after its start: left alone"
            hint = "mend it, then start the network again"
            return Text(f"{_names(agents)} {text}; {hint}", style="bold red")
        case Stopping():
            return Text("stopping …", style="dim")


def _banner(up: NetworkUp) -> Text:
    from rich.text import Text

    text = Text()
    text.append("hubbub ", style="bold")
    text.append(f"{up.network}\n", style="bold green")
    text.append(f"  {'page':<{_TITLE}}", style="dim")
    text.append(page_url(up.url), style="bold underline")
    text.append("  open it in a browser and join\n", style="dim")
    for title, names in (("agents", up.agents), ("people", up.humans), ("channels", up.channels)):
        if names:
            text.append(f"  {title:<{_TITLE}}", style="dim")
            for name in names:
                text.append(f"{name}  ", style=colour_of(name) if title != "channels" else "")
            text.append("\n")
    for title, what, how in _ways_in(up):
        text.append(f"  {title:<{_TITLE}}", style="dim")
        text.append(f"{what:<38}  ")
        text.append(f"{how}\n", style="dim")
    return text


def _ways_in(up: NetworkUp) -> Iterator[tuple[str, str, str]]:
    """Lines of title, command and explanation. Tokens are named by the command that shows them."""
    address = up.url.removeprefix("ws://")
    option = "" if address == DEFAULT_ADDRESS else f" --address {address}"
    if up.auth == "tokens":
        for n, (what, how) in enumerate(_tokens(up, option)):
            yield "" if n else "token", what, how
    yield "join", f"{program()} chat{option}", "in another terminal, as a person"
    yield "", up.url, "with any WebSocket client"
    yield "stop", "Ctrl-C", ""


def _tokens(up: NetworkUp, option: str) -> Iterator[tuple[str, str]]:
    """How people come by what they have to enter on the page: a command, and what it does."""
    if not up.humans:
        yield f"{program()} token add NAME{option}", "makes the token to join as NAME with"
        return
    for name in up.humans if len(up.humans) <= MOST_PEOPLE else ("NAME",):
        yield f"{program()} token show {name}{option}", f"shows the token to join as {name} with"


def _output(agents: tuple[str, ...], stream: str, line: str) -> Text:
    from rich.text import Text

    text = Text()
    name = _names(agents)
    text.append(f"{name} ", style=colour_of(agents[0]))
    text.append("! " if stream == "stderr" else "| ", style="dim")
    text.append(visible(line), style="dim")
    return text


def _names(agents: tuple[str, ...]) -> str:
    return "+".join(agents)


def _ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
