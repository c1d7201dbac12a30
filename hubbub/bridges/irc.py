"""IRC: one connection for each participant, and one that hears.

IRC has no ids and no history. What was said while the bridge was away is not heard, and a line
whose confirmation was lost with a connection is said again.
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
"""The user name of all our connections: bridges do not listen to those of each other, so that
nothing goes round in circles."""
REGISTER_S, SILENCE_S = 30.0, 300.0
"""Seconds until a connection must be in its channels, and in which a server says something."""
MOST_LINES = 20
"""Lines of one message; what is longer is cut, for channels throw out who floods them."""
MOST_WAITING = 1000
"""Lines that were heard and are not stored yet; then nothing more is read."""
_LINE = 512 - 2 - 64
"""Bytes of a line, without its end and the host that the server adds."""
_FORMAT = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04[0-9A-Fa-f]{0,6}|[\x00-\x1f\x7f]")
_FOLDED = str.maketrans("[]\\~", "{}|^")
_REFUSED = {"403", "405", "465", "471", "473", "474", "475", "477"}
"""No channel, too many, banned from the server, full, by invitation, banned, key, registered."""


class IrcConfig(Section):
    server: str
    """host:port; 6697 is usual with TLS, 6667 without."""
    tls: bool = True
    """Whether the connection is encrypted, and the server proven by its certificate."""
    nick: str = Field("hubbub", pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,30}$")
    """The nick of the connection that hears."""
    password: SecretStr | None = None
    """The server's, or `account:password` where it takes those."""


class Irc(Chat):
    """An IRC server. Participants have nicks as they are called in the network, as far as those are
    free and short enough."""

    Config = IrcConfig

    def __init__(self, name: str, settings: IrcConfig, channels: Sequence[str]):
        super().__init__(name, settings, [folded(each) for each in channels])
        self._settings, self._backoff = settings, Backoff()
        self._heard: asyncio.Queue[Line] = asyncio.Queue(MOST_WAITING)
        self._observer = self._connection(settings.nick, self._heard.put)
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
        return f"{self._settings.server} takes connections"

    async def run(self, take: Take) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._observer.run())
            self._running.set()
            while True:
                for event in self._events(await self._heard.get()):
                    await take(event)

    async def show(self, agents: Sequence[str]) -> None:
        for agent in agents:
            await self._puppet(agent)

    async def say(self, message: Outgoing) -> None:
        lines = list(said(message))
        if not lines:
            raise ChatRefused("nothing of it can be shown")
        for line in lines:
            await self._say(message.author, folded(message.channel), line)

    async def _say(self, author: str, channel: str, line: str) -> None:
        """By the author's own connection, or by the one that hears where it has none."""
        puppet = await self._puppet(author)
        for speaker, words in ((puppet, line), (self._observer, f"<{author}> {line}")):
            if await speaker.settled():
                with suppress(ConnectionError):
                    return await speaker.say(channel, words)
        while True:
            await self._observer.joined.wait()
            with suppress(ConnectionError):
                return await self._observer.say(channel, f"<{author}> {line}")

    async def _puppet(self, participant: str) -> _Connection:
        puppet = self._puppets.get(participant)
        if puppet is None:
            await self._observer.joined.wait()  # that one knows how long nicks are
            await self._running.wait()
            assert self._tasks is not None
            own = self._puppets.get(participant)
            if own is not None:
                return own
            puppet = self._connection(nick_of(participant), self._answer_privately)
            puppet.longest = self._observer.longest
            self._puppets[participant] = puppet
            self._tasks.create_task(puppet.run())
        return puppet

    def _connection(self, nick: str, hear: _Hear) -> _Connection:
        return _Connection(self._settings, nick, self.channels, hear, self._backoff)

    async def _answer_privately(self, line: Line) -> None:
        """Somebody has written to a puppet alone, which no channel of the network hears."""
        own = {folded(puppet.nick): puppet for puppet in self._puppets.values()}
        puppet = own.get(folded(line.params[0])) if line.command == "PRIVMSG" else None
        if puppet is not None and line.source and not self._is_ours(line):
            where = ", ".join(self.channels)
            puppet.send("NOTICE", line.hostmask.nickname, f"I hear what is said in {where} only.")

    # What is heard --------------------------------------------------------------------------------

    def _is_ours(self, line: Line) -> bool:
        user = (line.hostmask.username or "").removeprefix("~")
        connections = (self._observer, *self._puppets.values())
        nick = folded(line.hostmask.nickname)
        return user == USER or nick in {folded(each.nick) for each in connections}

    def _events(self, line: Line) -> Iterator[Incoming]:
        if not line.source or self._is_ours(line):
            return
        nick = line.hostmask.nickname
        match line.command, line.params:
            case "PRIVMSG", [channel, text] if folded(channel) in self.channels:
                shown = _text(text)
                if shown is not None:
                    person = Person(folded(nick), nick)
                    text = self._addressed(shown)
                    yield IncomingMessage(uuid.uuid4().hex, person, folded(channel), text)
            case (("QUIT" | "NICK" | "PART"), _):
                yield PersonLeft(folded(nick))
            case "KICK", [_, kicked, *_]:
                yield PersonLeft(folded(kicked))

    def _addressed(self, text: str) -> str:
        """`calculator: 12 * 7` is what `@calculator 12 * 7` is here."""
        start = re.match(r"@?([^\s:,]+)[:,]\s+", text)
        nick = folded(start[1]) if start else None
        for id, puppet in self._puppets.items():
            if start and folded(puppet.nick) == nick:
                return f"@{id} {text[start.end() :]}"
        return text


# Text ---------------------------------------------------------------------------------------------


def folded(name: str) -> str:
    """Nicks and channels that are the same for IRC are equal then."""
    return name.lower().translate(_FOLDED)


def nick_of(participant: str) -> str:
    """The nick of a participant: no nick begins with a digit or `-`."""
    return participant if participant[0].isalpha() or participant[0] == "_" else f"_{participant}"


def _text(text: str) -> str | None:
    """Without colours; None: for programs, not for people."""
    if text.startswith("\x01"):
        action = re.match(r"\x01ACTION ([^\x01]*)", text)
        return None if action is None else f"*{_FORMAT.sub('', action[1])}*"
    return _FORMAT.sub("", text) or None


def said(message: Outgoing) -> Iterator[str]:
    """The lines of a message of the network: with whom it answers, and what it changes."""
    if message.change == "deleted":
        yield "(has deleted a message)"
        return
    begin = "(edited) " if message.change == "edited" else ""
    if message.parent is not None:
        first = " ".join(message.parent.text.split())
        shortened = first if len(first) <= 40 else first[:39] + "…"
        begin += f"{message.parent.author}, “{shortened}”: "
    room = _LINE - len(f":{'n' * 31}!~{USER}@ PRIVMSG {message.channel} :<{message.author}> ")
    lines = [_FORMAT.sub(" ", line).rstrip() for line in (begin + message.text).splitlines()]
    pieces = [piece for line in lines for piece in wrapped(line, room)]
    yield from pieces[:MOST_LINES]
    if len(pieces) > MOST_LINES:
        yield f"… ({len(pieces) - MOST_LINES} more lines)"


def wrapped(line: str, room: int) -> Iterator[str]:
    """Pieces of at most `room` bytes, cut at spaces where there are some."""
    while len(line.encode()) > room:
        head = line.encode()[:room].decode(errors="ignore")
        cut = head.rfind(" ", len(head) // 2)
        yield head if cut < 0 else head[:cut]
        line = line[len(head) if cut < 0 else cut + 1 :]
    if line.strip():
        yield line


# A connection -------------------------------------------------------------------------------------

_Hear = Callable[[Line], Awaitable[None]]


async def _open(config: IrcConfig) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = parse_address(config.server)
    return await asyncio.open_connection(host, port, ssl=config.tls or None)


class _Connection:
    """One nick, in all channels, for as long as `run` does.

    nick     as the server has it
    longest  characters of a nick
    joined   whether it is in all channels
    """

    def __init__(
        self,
        config: IrcConfig,
        nick: str,
        channels: Sequence[str],
        hear: _Hear,
        backoff: Backoff,
    ):
        self.nick = self._wanted = nick
        self.longest = 30
        self.joined, self._settled = asyncio.Event(), asyncio.Event()
        self._config, self._channels, self._hear = config, channels, hear
        self._backoff = backoff
        self._missing: set[str] = set()
        self._registered = False
        self._deadline: asyncio.Timeout | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._pings = 0

    async def settled(self) -> bool:
        """Wait for the first attempt; whether it is in its channels now."""
        await self._settled.wait()
        return self.joined.is_set()

    async def say(self, channel: str, line: str) -> None:
        """Returns when the server has taken it. So there are never two lines on their way, and no
        server has a reason to throw it out. Raises `ConnectionError`."""
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
        """Be connected until cancelled."""
        attempt = 0
        while True:
            try:
                await self._connect()
            except (OSError, TimeoutError, asyncio.LimitOverrunError, ValueError) as error:
                log.warning("no IRC connection", nick=self._wanted, why=str(error) or "too slow")
            attempt = 0 if self.joined.is_set() else attempt + 1
            self._lost()
            self._settled.set()
            await self._backoff.sleep(self._backoff.delay(attempt))

    def _lost(self) -> None:
        self.joined.clear()
        self._writer, self._registered = None, False
        for pong in self._pongs.values():
            if not pong.done():
                pong.set_exception(ConnectionResetError("the connection was lost"))

    async def _connect(self) -> None:
        """One connection, to its end."""
        self.nick, self._missing = self._wanted[: self.longest], set(self._channels)
        async with asyncio.timeout(REGISTER_S) as self._deadline:
            reader, self._writer = await _open(self._config)
            try:
                if self._config.password is not None:
                    self.send("PASS", self._config.password.get_secret_value())
                self.send("NICK", self.nick)
                self.send("USER", USER, "0", "*", f"{self._wanted} by Hubbub")
                while raw := await reader.readline():
                    if self.joined.is_set():
                        self._wait(SILENCE_S)
                    with suppress(IndexError):  # nothing but spaces
                        await self._take(tokenise(raw.rstrip(b"\r\n")))
            finally:
                writer, self._writer = self._writer, None
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    def _wait(self, seconds: float) -> None:
        assert self._deadline is not None
        self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _take(self, line: Line) -> None:
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
                        self.longest = int(token.partition("=")[2])
            case "376" | "422":  # all that a server says first is said
                for channel in self._channels:
                    self.send("JOIN", channel)
            case "366":
                self._missing.discard(folded(params[1]))
                if not self._missing:
                    self.joined.set()
                    self._settled.set()
                    self._wait(SILENCE_S)
            case "432" | "433" | "436" if not self._registered:
                self._other_nick(taken=line.command != "432")
            case "404":
                log.warning("an IRC channel takes no lines", nick=self.nick, why=params[-1])
            case "ERROR":
                raise ConnectionAbortedError(params[-1])
            case refused if refused in _REFUSED:
                raise ConnectionRefusedError(" ".join(params[1:]))
            case "KICK" if folded(params[1]) == folded(self.nick):
                raise ConnectionAbortedError(f"kicked from {params[0]}")
            case "NICK" if line.source and folded(line.hostmask.nickname) == folded(self.nick):
                self.nick = params[0]
            case _:
                await self._hear(line)

    def _other_nick(self, *, taken: bool) -> None:
        """Of `calculator` first `calculator_` is tried, and for servers of few characters the
        beginning of it."""
        if not taken and len(self.nick) > 9:
            self.longest = 9
        tail = "_" * (len(self.nick) - len(self.nick.rstrip("_")) + 1) if taken else ""
        if len(tail) > 4:
            raise ConnectionRefusedError(f"the nick {self._wanted} is in use")
        self.nick = self._wanted.rstrip("_")[: self.longest - len(tail)] + tail
        self.send("NICK", self.nick)
