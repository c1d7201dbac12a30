"""IRC, with one connection per participant and one that observes.

IRC has no ids and no history. Messages sent while the bridge is down are missed, and a line is sent
again if the connection was lost before its confirmation.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from irctokens.line import Line, build, tokenise
from pydantic import Field, SecretStr

from hubbub.bridges.chat import (
    Chat,
    ChatRefused,
    Incoming,
    IncomingMessage,
    Outgoing,
    Person,
    PersonLeft,
    Take,
)
from hubbub.client import Backoff
from hubbub.config.units import Section, parse_address
from hubbub.logs import get_logger

__all__ = ["Irc", "IrcConfig"]

log = get_logger(__name__)

USER = "hubbub"
"""The user name of all our connections. Bridges ignore each other's, which prevents loops."""
REGISTER_S, SILENCE_S = 30.0, 300.0
"""Seconds until a connection must be in its channels, and without a line from the server until it
is dropped."""
MAX_LINES = 20
"""Lines per message; the rest is cut, since servers disconnect clients that flood."""
MAX_WAITING = 1000
"""Lines received but not yet stored; at the limit, reading pauses."""
_LINE = 512 - 2 - 64
"""Bytes of a line, without its line break and the host that the server adds."""
_FORMAT = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04[0-9A-Fa-f]{0,6}|[\x00-\x1f\x7f]")
_FOLDED = str.maketrans("[]\\~", "{}|^")
_REFUSED = {"403", "405", "465", "471", "473", "474", "475", "477"}
"""No such channel, too many channels, banned from the server, channel full, invitation only, banned
from the channel, key required, registration required."""


class IrcConfig(Section):
    server: str
    """host:port; 6697 is usual with TLS, 6667 without."""
    tls: bool = True
    """Whether the connection is encrypted and the server's certificate verified."""
    nick: str = Field("hubbub", pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,30}$")
    """The nick of the observing connection."""
    password: SecretStr | None = None
    """The server's password, or `account:password` if it accepts that."""


class Irc(Chat):
    """An IRC server. A participant's nick is its id in the network, unless that is taken or too
    long."""

    Config = IrcConfig

    def __init__(self, name: str, settings: IrcConfig, channels: Sequence[str]):
        super().__init__(name, settings, [fold_case(each) for each in channels])
        self._settings, self._backoff = settings, Backoff()
        self._received: asyncio.Queue[Line] = asyncio.Queue(MAX_WAITING)
        self._observer = self._connection(settings.nick, self._received.put)
        self._puppets: dict[str, _Connection] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running = asyncio.Event()

    @property
    def title(self) -> str:
        return parse_address(self._settings.server).host

    async def probe(self) -> str:
        async with asyncio.timeout(REGISTER_S):
            _, writer = await _open(self._settings)
            writer.close()
        return f"{self._settings.server} accepts connections"

    async def run(self, take: Take) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._observer.run())
            self._running.set()
            while True:
                for event in self._events(await self._received.get()):
                    await take(event)

    async def show(self, agents: Sequence[str]) -> None:
        for agent in agents:
            await self._puppet(agent)

    async def say(self, message: Outgoing) -> None:
        lines = list(irc_lines(message))
        if not lines:
            raise ChatRefused("the message has no text to show")
        for line in lines:
            await self._say(message.author, fold_case(message.channel), line)

    async def _say(self, author: str, channel: str, line: str) -> None:
        """Send a line on the author's connection, or on the observing one if that fails."""
        puppet = await self._puppet(author)
        for connection, text in ((puppet, line), (self._observer, f"<{author}> {line}")):
            if await connection.wait_first_attempt():
                with suppress(ConnectionError):
                    return await connection.say(channel, text)
        while True:
            await self._observer.joined.wait()
            with suppress(ConnectionError):
                return await self._observer.say(channel, f"<{author}> {line}")

    async def _puppet(self, participant: str) -> _Connection:
        puppet = self._puppets.get(participant)
        if puppet is None:
            await self._observer.joined.wait()  # then it knows the maximum length of nicks
            await self._running.wait()
            assert self._tasks is not None
            other = self._puppets.get(participant)
            if other is not None:  # added while waiting
                return other
            puppet = self._connection(nick_of(participant), self._answer_private_message)
            puppet.max_nick = self._observer.max_nick
            self._puppets[participant] = puppet
            self._tasks.create_task(puppet.run())
        return puppet

    def _connection(self, nick: str, on_line: _OnLine) -> _Connection:
        return _Connection(self._settings, nick, self.channels, on_line, self._backoff)

    async def _answer_private_message(self, line: Line) -> None:
        """Answer a private message to a puppet: private messages are not bridged."""
        by_nick = {fold_case(puppet.nick): puppet for puppet in self._puppets.values()}
        puppet = by_nick.get(fold_case(line.params[0])) if line.command == "PRIVMSG" else None
        if puppet is not None and line.source and not self._is_ours(line):
            channels = ", ".join(self.channels)
            puppet.send("NOTICE", line.hostmask.nickname, f"I only read messages in {channels}.")

    # Incoming -------------------------------------------------------------------------------------

    def _is_ours(self, line: Line) -> bool:
        user = (line.hostmask.username or "").removeprefix("~")
        connections = (self._observer, *self._puppets.values())
        nick = fold_case(line.hostmask.nickname)
        return user == USER or nick in {fold_case(each.nick) for each in connections}

    def _events(self, line: Line) -> Iterator[Incoming]:
        if not line.source or self._is_ours(line):
            return
        nick = line.hostmask.nickname
        match line.command, line.params:
            case "PRIVMSG", [channel, text] if fold_case(channel) in self.channels:
                plain = _plain_text(text)
                if plain is not None:
                    person = Person(fold_case(nick), nick)
                    text = self._resolve_address(plain)
                    yield IncomingMessage(uuid.uuid4().hex, person, fold_case(channel), text)
            case (("QUIT" | "NICK" | "PART"), _):
                yield PersonLeft(fold_case(nick))
            case "KICK", [_, kicked, *_]:
                yield PersonLeft(fold_case(kicked))

    def _resolve_address(self, text: str) -> str:
        """`calculator: 12 * 7` becomes `@calculator 12 * 7`."""
        start = re.match(r"@?([^\s:,]+)[:,]\s+", text)
        nick = fold_case(start[1]) if start else None
        for id, puppet in self._puppets.items():
            if start and fold_case(puppet.nick) == nick:
                return f"@{id} {text[start.end() :]}"
        return text


# Text ---------------------------------------------------------------------------------------------


def fold_case(name: str) -> str:
    """A nick or channel with IRC's case folding, for comparison."""
    return name.lower().translate(_FOLDED)


def nick_of(participant: str) -> str:
    """The nick of a participant. A nick cannot begin with a digit or `-`."""
    return participant if participant[0].isalpha() or participant[0] == "_" else f"_{participant}"


def _plain_text(text: str) -> str | None:
    """The text without formatting; None for a message to programs (CTCP)."""
    if text.startswith("\x01"):
        action = re.match(r"\x01ACTION ([^\x01]*)", text)
        return None if action is None else f"*{_FORMAT.sub('', action[1])}*"
    return _FORMAT.sub("", text) or None


def irc_lines(message: Outgoing) -> Iterator[str]:
    """A message of the network as lines, with a prefix for a reply or an edit."""
    if message.change == "deleted":
        yield "(deleted a message)"
        return
    prefix = "(edited) " if message.change == "edited" else ""
    if message.parent is not None:
        quote = " ".join(message.parent.text.split())
        shortened = quote if len(quote) <= 40 else quote[:39] + "…"
        prefix += f"{message.parent.author}, “{shortened}”: "
    max_bytes = _LINE - len(f":{'n' * 31}!~{USER}@ PRIVMSG {message.channel} :<{message.author}> ")
    lines = [_FORMAT.sub(" ", line).rstrip() for line in (prefix + message.text).splitlines()]
    wrapped = [part for line in lines for part in wrap_line(line, max_bytes)]
    yield from wrapped[:MAX_LINES]
    if len(wrapped) > MAX_LINES:
        yield f"… ({len(wrapped) - MAX_LINES} more lines)"


def wrap_line(line: str, max_bytes: int) -> Iterator[str]:
    """Parts of at most `max_bytes` bytes, cut at spaces if possible."""
    while len(line.encode()) > max_bytes:
        head = line.encode()[:max_bytes].decode(errors="ignore")
        cut = head.rfind(" ", len(head) // 2)
        yield head if cut < 0 else head[:cut]
        line = line[len(head) if cut < 0 else cut + 1 :]
    if line.strip():
        yield line


# A connection -------------------------------------------------------------------------------------

_OnLine = Callable[[Line], Awaitable[None]]


async def _open(config: IrcConfig) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = parse_address(config.server)
    return await asyncio.open_connection(host, port, ssl=config.tls or None)


class _Connection:
    """One nick in all channels, connected while `run` runs.

    nick      the nick at the server
    max_nick  maximum characters of a nick
    joined    set while it is in all channels
    """

    def __init__(
        self,
        config: IrcConfig,
        nick: str,
        channels: Sequence[str],
        on_line: _OnLine,
        backoff: Backoff,
    ):
        self.nick = self._wanted = nick
        self.max_nick = 30
        self.joined, self._attempted = asyncio.Event(), asyncio.Event()
        self._config, self._channels, self._on_line = config, channels, on_line
        self._backoff = backoff
        self._missing: set[str] = set()
        self._registered = False
        self._deadline: asyncio.Timeout | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._pings = 0

    async def wait_first_attempt(self) -> bool:
        """Wait for the first attempt to connect; true if it is in its channels now."""
        await self._attempted.wait()
        return self.joined.is_set()

    async def say(self, channel: str, line: str) -> None:
        """Send a line and wait until the server has processed it. With one line at a time in
        flight, servers do not see a flood. Raises `ConnectionError`."""
        if not self.joined.is_set():
            raise ConnectionResetError("not connected")
        self._pings += 1
        token = f"hubbub-{self._pings}"
        self._pongs[token] = asyncio.get_running_loop().create_future()
        try:
            self.send("PRIVMSG", channel, line)
            self.send("PING", token)
            await self._pongs[token]
        finally:
            del self._pongs[token]

    def send(self, command: str, *params: str) -> None:
        if self._writer is not None:
            line = build(command, list(params)).format()
            self._writer.write(line.encode() + b"\r\n")

    async def run(self) -> None:
        """Stay connected until cancelled."""
        attempt = 0
        while True:
            try:
                await self._connect()
            except (OSError, TimeoutError, asyncio.LimitOverrunError, ValueError) as error:
                log.warning(
                    "no IRC connection",
                    server=self._config.server,
                    nick=self._wanted,
                    why=getattr(error, "strerror", None) or str(error) or "too slow",
                )
            attempt = 0 if self.joined.is_set() else attempt + 1
            self._reset()
            self._attempted.set()
            await self._backoff.sleep(self._backoff.delay(attempt))

    def _reset(self) -> None:
        self.joined.clear()
        self._writer, self._registered = None, False
        for pong in self._pongs.values():
            if not pong.done():
                pong.set_exception(ConnectionResetError("the connection was lost"))

    async def _connect(self) -> None:
        """One connection, to its end."""
        self.nick, self._missing = self._wanted[: self.max_nick], set(self._channels)
        async with asyncio.timeout(REGISTER_S) as self._deadline:
            reader, self._writer = await _open(self._config)
            try:
                if self._config.password is not None:
                    self.send("PASS", self._config.password.get_secret_value())
                self.send("NICK", self.nick)
                self.send("USER", USER, "0", "*", f"{self._wanted} by Hubbub")
                while raw := await reader.readline():
                    if self.joined.is_set():
                        self._extend_deadline(SILENCE_S)
                    with suppress(IndexError):  # a blank line
                        await self._handle(tokenise(raw.rstrip(b"\r\n")))
            finally:
                writer, self._writer = self._writer, None
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    def _extend_deadline(self, seconds: float) -> None:
        assert self._deadline is not None
        self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _handle(self, line: Line) -> None:
        params = line.params
        match line.command:
            case "PING":
                self.send("PONG", *params)
            case "PONG":
                pong = self._pongs.get(params[-1])
                if pong is not None and not pong.done():
                    pong.set_result(None)
            case "001":
                self.nick, self._registered = params[0], True
            case "005":
                for token in params:
                    if token.startswith("NICKLEN="):
                        self.max_nick = int(token.partition("=")[2])
            case "376" | "422":  # end of the welcome messages
                for channel in self._channels:
                    self.send("JOIN", channel)
            case "366":
                self._missing.discard(fold_case(params[1]))
                if not self._missing:
                    self.joined.set()
                    self._attempted.set()
                    self._extend_deadline(SILENCE_S)
            case "432" | "433" | "436" if not self._registered:
                self._try_next_nick(taken=line.command != "432")
            case "404":
                log.warning("an IRC channel refused a line", nick=self.nick, why=params[-1])
            case "ERROR":
                raise ConnectionAbortedError(params[-1])
            case refused if refused in _REFUSED:
                raise ConnectionRefusedError(" ".join(params[1:]))
            case "KICK" if fold_case(params[1]) == fold_case(self.nick):
                raise ConnectionAbortedError(f"kicked from {params[0]}")
            case "NICK" if line.source and fold_case(line.hostmask.nickname) == fold_case(
                self.nick
            ):
                self.nick = params[0]
            case _:
                await self._on_line(line)

    def _try_next_nick(self, *, taken: bool) -> None:
        """Try `calculator_` after `calculator`, and a shorter nick if the server refused its
        length."""
        if not taken and len(self.nick) > 9:
            self.max_nick = 9
        tail = "_" * (len(self.nick) - len(self.nick.rstrip("_")) + 1) if taken else ""
        if len(tail) > 4:
            raise ConnectionRefusedError(f"the nick {self._wanted} is in use")
        self.nick = self._wanted.rstrip("_")[: self.max_nick - len(tail)] + tail
        self.send("NICK", self.nick)
