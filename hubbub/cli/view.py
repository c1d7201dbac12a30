"""The output of `hubbub up`: a banner, then one line for each event; or JSON for programs.

This output ends up in scrollbacks and journals that many people can read. So for direct messages it
shows the sender and the recipient, and the text only on request.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    AgentStuck,
    GatewayUp,
    LifecycleEvent,
    MessageSeen,
    MessagesSeen,
    NetworkLeft,
    NetworkTaken,
    NetworkUp,
    NodeUp,
    StandingBy,
    Stopping,
)
from hubbub.app.process import Printer, configure_logging
from hubbub.cli.output import console, program
from hubbub.client.runfile import DEFAULT_ADDRESS
from hubbub.people.messages import colour_of, message_line
from hubbub.people.text import clip, counted, one_line, visible

if TYPE_CHECKING:
    from rich.text import Text

    from hubbub.protocol.messages import Message

__all__ = [
    "JsonView",
    "TerminalView",
    "event_line",
    "open_browser",
    "page_url",
    "view_of",
    "wants_browser",
]


# The network's page in the user's browser


_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""A wildcard address cannot be opened; the loopback address can."""
_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_WITH_DESKTOP = frozenset({"darwin", "win32", "cygwin"})


def page_url(url: str) -> str:
    """The URL of the page for a hub at `url` (ws://host:port), as seen from this machine."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    return f"http://{_EVERYWHERE.get(host, host)}:{port}/"


def wants_browser(env: Mapping[str, str], platform: str, tty: bool) -> bool:
    """Whether to open the page: at a terminal on a desktop, but not over SSH or in CI.

    `env` is the environment, `platform` is `sys.platform`, `tty` says whether the output is a
    terminal.
    """
    if not tty or _is_true(env.get("CI", "")) or any(env.get(name) for name in _REMOTE):
        return False
    return platform in _WITH_DESKTOP or any(env.get(name) for name in _SCREENS)


def _is_true(value: str) -> bool:
    return value.lower() not in ("", "0", "false", "no")


def open_browser(url: str) -> threading.Thread:
    """Open `url` in the user's browser; does nothing if there is none.

    Does not wait: `webbrowser` runs in a separate process without a terminal, since some browsers
    print or draw there, and out of reach of a Ctrl-C for this process. The returned thread is a
    daemon that reaps the process.
    """
    thread = threading.Thread(target=_open, args=(url,), name="browser", daemon=True)
    thread.start()
    return thread


def _open(url: str) -> None:
    # Isolated (-I), so that files in the user's folder cannot shadow modules of the library.
    command = [sys.executable, "-I", "-m", "webbrowser", url]
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
    except OSError:  # no process available; the terminal shows the link anyway
        return


MOST_COLUMNS = 160
"""Columns shown of a message's text; `hubbub messages list` shows all of it."""
MOST_A_SECOND = 20
"""Messages shown per second: more are unreadable, and each line costs time on the hub's loop."""
HEAD = (
    "id", "seq", "thread_id", "tseq", "sender_id", "sender_kind", "type", "recipients",
    "interaction_id", "cause_id", "hop", "sent_at",
)  # fmt: skip
"""The fields shown of a direct message: none that contains text by a participant."""
MOST_PEOPLE = 6
"""Up to this many people the banner shows each one's token command; beyond that, one for all."""
_TITLE = 10
"""Width of the title column in the banner."""
Write = Callable[[str], object]
"""Takes whole lines. Called on the hub's loop, so it must not block."""
Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after a delay in seconds."""


def _in_the_loop(seconds: float, work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, work)


class JsonView:
    """One JSON object per line, distinguished by `event`."""

    def __init__(self, write: Write, *, direct_texts: bool = False):
        self._write, self._direct_texts = write, direct_texts

    @staticmethod
    def gap(count: int) -> str:
        """The line that replaces `count` lines that were not read in time."""
        return json.dumps({"event": "left_out", "lines": count}) + "\n"

    def __call__(self, event: LifecycleEvent) -> None:
        if isinstance(event, MessagesSeen):
            for seen in event.messages:
                hidden = seen.direct and not self._direct_texts
                body = _head(seen) if hidden else seen.body.decode()
                self._write(f'{{"event": "message", "message": {body}}}\n')
        else:
            fields = asdict(event)
            value = {"event": fields.pop("event"), **fields}
            self._write(json.dumps(value, ensure_ascii=False) + "\n")


def _head(seen: MessageSeen) -> str:
    body = json.loads(seen.body)
    head = {name: body[name] for name in HEAD if name in body}
    return json.dumps({**head, "characters": len(seen.message.text)})


class TerminalView:
    """Plain lines, in colour where the terminal has any. Of many messages in one second, the first
    ones are shown and the others counted."""

    def __init__(
        self,
        write: Write,
        *,
        direct_texts: bool = False,
        clock: Callable[[], float] = time.monotonic,
        later: Later = _in_the_loop,
    ):
        self._write, self._console = write, console()
        self._direct_texts, self._clock, self._later = direct_texts, clock, later
        self._until, self._shown, self._left_out = 0.0, 0, 0

    @staticmethod
    def gap(count: int) -> str:
        """The line that replaces `count` lines that were not read in time."""
        return f"… {count} lines omitted because they were not read in time\n"

    def __call__(self, event: LifecycleEvent) -> None:
        if isinstance(event, MessagesSeen):
            for seen in event.messages[: self._room(len(event.messages))]:
                self._print(event_line(seen, direct_texts=self._direct_texts))
        else:
            self._print(event_line(event))

    def _room(self, count: int) -> int:
        """How many of `count` messages to show in this second; the rest are only counted."""
        now = self._clock()
        if now >= self._until:
            self._report_rest()
            self._until, self._shown = now + 1, 0
        room = min(count, MOST_A_SECOND - self._shown)
        self._shown += room
        if room < count:
            if not self._left_out:
                self._later(self._until - now, self._report_rest)
            self._left_out += count - room
        return room

    def _report_rest(self) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            more = "message" if left_out == 1 else "messages"
            self._write(f"… {left_out} more {more}; see `hubbub messages list`\n")

    def _print(self, line: Text | None) -> None:
        if line is None:
            return
        with self._console.capture() as printed:
            self._console.print(line)
        self._write(printed.get())


def event_line(event: LifecycleEvent | MessageSeen, *, direct_texts: bool = False) -> Text | None:
    """The line for an event or a message; None if there is nothing to show."""
    from rich.text import Text

    match event:
        case NetworkUp():
            return _banner(event)
        case MessageSeen():
            message = event.message
            hidden = event.direct and not direct_texts
            return message_line(message, _size(message) if hidden else _beginning(message))
        case AgentOutput(agents, stream, line):
            return _output(agents, stream, line)
        case AgentStarted() | MessagesSeen():
            return None
        case AgentDied(agents, code, retry_in_s):
            again = f"{_ended(code)}; restarts in {retry_in_s:g} s"
            return Text(f"{_names(agents)} {again}", style="yellow")
        case AgentGivenUp(agents, code, deaths):
            text = f"{_ended(code)} right after starting, {deaths} times in a row: gave up on it"
            hint = f"fix it, then run `hubbub agents restart {agents[0]}`"
            return Text(f"{_names(agents)} {text}; {hint}", style="bold red")
        case AgentStuck(agents):
            text = f"{_names(agents)} does not answer pings: killing and restarting its process"
            return Text(text, style="yellow")
        case GatewayUp(url, hubs):
            return Text(f"gateway at {url}, for the network at {' or '.join(hubs)}")
        case NodeUp(node, networks):
            count = counted(len(networks), "network", "networks")
            return Text(f"node {node} is up, for {count}", style="bold")
        case NetworkTaken(network, url):
            return Text(f"{network} runs here: {url}", style="green")
        case NetworkLeft(network, reason):
            return Text(f"{network} no longer runs here: {reason}", style="yellow")
        case StandingBy(reason):
            return Text(f"standing by: {reason}", style="dim")
        case Stopping():
            return Text("stopping …", style="dim")


def _size(message: Message) -> str:
    count = len(message.text)
    return f"({count} character{'' if count == 1 else 's'})"


def _beginning(message: Message) -> str:
    # Cut first: the text can be long, and only its beginning is shown.
    return clip(one_line(message.text[: 4 * MOST_COLUMNS]), MOST_COLUMNS)


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
    """Lines of title, command and explanation. For tokens, the command that prints them."""
    address = up.url.removeprefix("ws://")
    option = "" if address == DEFAULT_ADDRESS else f" --address {address}"
    if up.auth == "tokens":
        for n, (what, how) in enumerate(_tokens(up, option)):
            yield "" if n else "token", what, how
    yield "join", f"{program()} chat{option}", "in another terminal, as a person"
    yield "", up.url, "with any WebSocket client"
    yield "stop", "Ctrl-C", ""


def _tokens(up: NetworkUp, option: str) -> Iterator[tuple[str, str]]:
    """How people get their tokens: a command, and what it does."""
    if not up.humans:
        yield f"{program()} tokens add NAME{option}", "creates a token to join as NAME"
        return
    for name in up.humans if len(up.humans) <= MOST_PEOPLE else ("NAME",):
        yield f"{program()} tokens show {name}{option}", f"prints the token to join as {name}"


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
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"


@contextmanager
def view_of(*, as_json: bool, direct_texts: bool = False) -> Iterator[JsonView | TerminalView]:
    """Events go to stdout, log records to stderr; neither blocks on a slow reader."""
    shape = JsonView if as_json else TerminalView
    with Printer(sys.stderr, TerminalView.gap) as errors, Printer(sys.stdout, shape.gap) as printer:
        configure_logging(debug=bool(os.environ.get("HUBBUB_DEBUG")), printer=errors)
        yield shape(printer.write, direct_texts=direct_texts)
