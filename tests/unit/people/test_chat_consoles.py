"""The two consoles: a pipe and a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from hubbub.client import Client
from hubbub.people.chat.console import Console, PipeConsole, Status
from hubbub.people.chat.conversation import run_chat
from hubbub.people.chat.terminal import ChatCompleter, TerminalConsole
from hubbub.people.shown import MessageLine, NoteLine
from hubbub.testing.network import LocalNetwork
from tests.unit.people.chatroom import DEADLINE_S
from tests.unit.people.chatting import new_session, posted


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)


async def lines_of(console: PipeConsole) -> list[str]:
    lines = []
    async with asyncio.timeout(DEADLINE_S):
        while (line := await console.read()) is not None:
            lines.append(line)
    return lines


async def test_lines_of_a_pipe_do_not_depend_on_how_it_is_chunked(pipe: tuple[int, int]) -> None:
    read, write = pipe
    console = PipeConsole(read, io.StringIO())
    reading = asyncio.create_task(lines_of(console))
    for part in (b"one\ntw", b"o\n\nthr", b"ee \xc3\xbc\nlast\xff"):
        os.write(write, part)
        await asyncio.sleep(0)
    os.close(write)
    assert await reading == ["one", "two", "", "three ü", "last\ufffd"]
    assert await lines_of(PipeConsole(read, io.StringIO())) == [], "empty input has no lines"


async def test_lines_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_bytes(b"one\ntwo\n")
    with path.open("rb") as file:
        assert await lines_of(PipeConsole(file.fileno(), io.StringIO())) == ["one", "two"]


async def test_reading_a_pipe_can_be_cancelled(pipe: tuple[int, int]) -> None:
    reading = asyncio.create_task(PipeConsole(pipe[0], io.StringIO()).read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    os.write(pipe[1], b"later\n")
    os.close(pipe[1])
    assert await lines_of(PipeConsole(pipe[0], io.StringIO())) == ["later"]


def test_output_to_a_pipe_is_plain_and_untruncated() -> None:
    out = io.StringIO()
    PipeConsole(0, out).show([NoteLine("x" * 300, "error"), MessageLine(posted(1, "\x1b[31mhi"))])
    first, second = out.getvalue().splitlines()
    assert first == "x" * 300
    assert second.endswith("bob: <U+001B>[31mhi")


async def test_a_closed_output_ends_the_input(pipe: tuple[int, int]) -> None:
    unread, out = os.pipe()
    os.close(unread)
    with os.fdopen(out, "w") as writer:
        console = PipeConsole(pipe[0], writer)
        reading = asyncio.create_task(console.read())
        await asyncio.sleep(0)
        console.show([NoteLine("to nobody")])
        console.show([NoteLine("to nobody again")])
        async with asyncio.timeout(DEADLINE_S):
            assert await reading is None
        with contextlib.suppress(BrokenPipeError):
            writer.close()
    os.close(pipe[1])


class Drawing(io.StringIO):
    """A buffer that signals its growth and answers queries for the cursor position."""

    def __init__(self, keys: PipeInput) -> None:
        super().__init__()
        self.grown = asyncio.Event()
        self._keys = keys

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        for _ in range(text.count("\x1b[6n")):
            self._keys.send_text("\x1b[1;1R")
        self.grown.set()
        return super().write(text)


class Screen:
    """A terminal that draws into a string."""

    def __init__(self, keys: PipeInput) -> None:
        self.keys = keys
        self._drawn = Drawing(keys)
        output = Vt100_Output(self._drawn, lambda: Size(rows=30, columns=100), term="xterm")
        self.console = TerminalConsole(input=keys, output=output)

    def types(self, text: str) -> None:
        self.keys.send_text(text)

    async def shows(self, text: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while text not in self._drawn.getvalue():
                self._drawn.grown.clear()
                await self._drawn.grown.wait()

    @property
    def drawn(self) -> str:
        return self._drawn.getvalue()


@asynccontextmanager
async def screen(network: LocalNetwork) -> AsyncIterator[Screen]:
    """Ann at a terminal, who presses Ctrl-D at the end of the block."""
    ann = await network.join("ann", "human")
    with create_pipe_input() as keys:
        screen = Screen(keys)
        console: Console = screen.console
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(run_chat(ann, console, opening="#general"))
            await screen.shows("#general")
            await screen.shows("town as ann")
            yield screen
            screen.types("\x03\x04")
            async with asyncio.timeout(DEADLINE_S):
                assert await running == 0


async def test_lines_are_typed_completed_and_sent(network: LocalNetwork) -> None:
    await network.join("bob", "human")
    async with screen(network) as ann:
        ann.types("hello there\r")
        await ann.shows("✓")
        ann.types("@bo")
        await ann.shows("human")  # in the menu
        ann.types("\thow are you\r")
        await ann.shows("@bob how are you")
        ann.types("/dm bo")
        await ann.shows("/dm bo")
        ann.types("\t,oops\x7f\x7f\x7f\x7f\x7f\r")
        await ann.shows("── @bob ──")
        ann.types("never mind\x03sent instead\r")
        await ann.shows("sent instead")
        ann.types("\x03")
    assert "never mind ✓" not in ann.drawn


def test_a_completion_ends_with_one_space() -> None:
    for before, after, completion in (
        ("hi @bo", "", "bob "),
        ("/dm bo", "", "bob "),
        ("/who", "", "who "),
        ("@bo", " x", "bob"),
    ):
        document = Document(before + after, len(before))
        offered = ChatCompleter(Status(new_session())).get_completions(document, CompleteEvent())
        assert [item.text for item in offered] == [completion]


async def test_messages_that_arrive_while_typing_do_not_disturb_line_or_terminal(
    network: LocalNetwork, bob: Client
) -> None:
    async with screen(network) as ann:
        ann.types("half a sen")
        await ann.shows("half a sen")
        await bob.call("post_to_channel", channel="general", text="\x1b[2J\x1b]0;owned\x07")
        await ann.shows("<U+001B>[2J<U+001B>]0;owned<U+0007>")
        ann.types("tence\r")
        await ann.shows("half a sentence")
        await ann.shows("✓")
        await bob.call("send_text_message", to="ann", text="\x1b]0;owned\x07\x9b2J")
        await ann.shows("unread: @bob 1")
        await bob.signal("activity", "channel.general", "typing away")
        await ann.shows("bob is typing away")
    assert "\x1b]0;owned" not in ann.drawn
    assert "\x9b" not in ann.drawn


async def test_no_color_disables_all_colours(
    network: LocalNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with screen(network) as ann:
        ann.types("hello\r")
        await ann.shows("✓")
    assert "\x1b[38" not in ann.drawn
    assert ";38;" not in ann.drawn
