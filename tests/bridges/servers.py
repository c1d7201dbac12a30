"""A real IRC server from the system's packages, and people who use it.

`python -m tests.bridges.servers` reports what is missing, and how to get it.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
from asyncio.subprocess import DEVNULL, STDOUT
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from irctokens.line import Line, tokenise

__all__ = ["IrcUser", "free_port", "irc_server", "needs_ngircd"]

NGIRCD = shutil.which("ngircd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
needs_ngircd = pytest.mark.skipif(
    NGIRCD is None, reason="no ngircd: the system's package of that name"
)
DEADLINE_S = 100.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def listening(port: int) -> None:
    """Waits until a server listens at the port."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def irc_server(folder: Path, port: int, options: str = "") -> AsyncIterator[int]:
    """The port of a running ngircd."""
    assert NGIRCD is not None
    user = pwd.getpwuid(os.getuid()).pw_name
    config = folder / "ngircd.conf"
    config.write_text(
        f"[Global]\nName = irc.example.org\nInfo = test\nPorts = {port}\nListen = 127.0.0.1\n"
        f"ServerUID = {user}\nServerGID = {os.getgid()}\n"
        f"[Limits]\nMaxConnectionsIP = 0\nMaxNickLength = 20\n{options}\n"
        "[Options]\nDNS = no\nIdent = no\nPAM = no\n"
    )
    process = await asyncio.create_subprocess_exec(
        NGIRCD, "--nodaemon", "--config", str(config), stdout=DEVNULL, stderr=STDOUT
    )
    try:
        await listening(port)
        yield port
    finally:
        process.kill()
        await process.wait()


class IrcUser:
    """A person in the channel #dev of an IRC server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer
        self.heard: list[Line] = []

    def send(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    def say(self, text: str) -> None:
        self.send(f"PRIVMSG #dev :{text}")

    async def until(self, condition: Callable[[Line], bool]) -> Line:
        """The next line for which the condition holds."""
        async with asyncio.timeout(DEADLINE_S):
            while raw := await self._reader.readline():
                line = tokenise(raw.rstrip(b"\r\n"))
                if line.command == "PING":
                    self.send(f"PONG {line.params[0]}")
                self.heard.append(line)
                if condition(line):
                    return line
        raise AssertionError("the server has closed the connection")

    async def hears(self, text: str) -> str:
        """Waits for a message that contains `text`; returns it after its sender and a colon."""
        line = await self.until(lambda each: each.command == "PRIVMSG" and text in each.params[1])
        return f"{line.hostmask.nickname}: {line.params[1]}"

    async def sees(self, nick: str) -> None:
        """Waits until the nick is in the channel."""

        def shows(line: Line) -> bool:
            if line.command == "JOIN":
                return line.hostmask.nickname == nick
            names = [name.lstrip("@+") for name in line.params[-1].split()]
            return line.command == "353" and nick in names

        self.send("NAMES #dev")
        await self.until(shows)


@asynccontextmanager
async def irc_user(port: int, nick: str, user: str = "person") -> AsyncIterator[IrcUser]:
    """A person who has joined #dev."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    person = IrcUser(reader, writer)
    try:
        person.send(f"NICK {nick}")
        person.send(f"USER {user} 0 * :{nick}")
        await person.until(lambda line: line.command in ("376", "422"))
        person.send("JOIN #dev")
        await person.until(lambda line: line.command == "366")
        yield person
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


if __name__ == "__main__":
    if NGIRCD is None:
        print("no ngircd, so the tests with IRC are skipped: apt-get install ngircd")
