"""The program of a coding agent: its process, its connection, and the sessions in it.

A program is started when the first turn needs it, and again when it has ended. What one says is
bounded: lines, lines that are no ACP, and how much of it there is in one step of a turn. One that
does not end a prompt that was cancelled gets no more prompts, and is killed as soon as no other
prompt runs in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import acp
from acp.client import ClientSideConnection
from acp.schema import (
    ClientCapabilities,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    SessionNotification,
    TextContentBlock,
    ToolCallUpdate,
)
from acp.transports import default_environment
from pydantic import BaseModel, ValidationError

from hubbub.config.agents import AcpConfig
from hubbub.errors import HubbubError
from hubbub.interop.acp.permission import CANCELLED
from hubbub.logs import get_logger
from hubbub.waiting import done_within

__all__ = ["AcpProcess", "AcpProgram", "AcpSession", "Listener", "ProgramFailed", "Server", "probe"]

T = TypeVar("T")
Server: TypeAlias = HttpMcpServer | McpServerStdio
"""An MCP server that the program is to connect to."""

MOST_LINE = 16 * 1024 * 1024
"""Bytes of one line of a program."""
_MOST_NOISE = 20
"""Lines in a row that are no message of the protocol: some programs print a banner."""
_LAST_WORDS = 2000
"""Bytes of stderr that are kept, from its end."""
_CANCEL_S = 5.0
"""Seconds that a program has for ending a prompt that was cancelled."""
_END_S = 2.0
"""Seconds that it has for ending itself, when its stdin is closed, before it is killed."""
_VERSION = acp.PROTOCOL_VERSION

log = get_logger(__name__)


class ProgramFailed(HubbubError):
    """The program cannot do what a turn wants of it; the message says why."""


class Listener(Protocol):
    """Who hears what a program says in a session while a prompt runs there."""

    def heard(self, update: BaseModel, size: int) -> None:
        """An update, of so many bytes."""
        ...

    async def permission(
        self, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> RequestPermissionResponse:
        """The answer to what the program asks permission for."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a file for the program. Raises `acp.RequestError`."""
        ...


class _StdioPipe:
    """The program's stdin and stdout, as the library's connection wants them (`Transport`).

    Updates are handed over here, in their order; the library gets the rest. Between two messages
    the loop goes round: who says much gets no more of it than others.
    """

    def __init__(self, process: asyncio.subprocess.Process, hear: Callable[[Any, int], None]):
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._hear = process.stdin, process.stdout, hear
        self.fault: str | None = None
        """Why it is not listened to any more."""

    async def send(self, message: dict[str, Any]) -> None:
        if self._in.is_closing():
            raise ConnectionError("closed")
        self._in.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._in.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is no update; None at the end."""
        noise = 0
        while self.fault is None:
            await asyncio.sleep(0)
            try:
                line = await self._out.readline()
            except ValueError:
                self.fault = f"it has written a line of more than {MOST_LINE >> 20} MiB"
                break
            if not line:
                break
            message = _message(line)
            if message is None or not self._handed_over(message, len(line)):
                noise = noise + 1 if message is None else 0
                if noise > _MOST_NOISE:
                    words = line.decode(errors="replace").strip()[:80]
                    self.fault = f"what it writes is not the Agent Client Protocol: {words!r}"
                continue
            return message
        return None

    def _handed_over(self, message: dict[str, Any], size: int) -> bool:
        """Whether the library is to have it; an update is heard here."""
        if message.get("method") != "session/update" or "id" in message:
            return True
        self._hear(message.get("params"), size)
        return False

    async def close(self) -> None:
        self._in.close()


def _message(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(eq=False)
class AcpSession:
    """One session of a program that runs."""

    id: str
    running: AcpProcess
    listener: Listener | None = None
    """Who hears it; None: no prompt runs."""
    key: str = ""
    """By which the program's MCP client says which session it is of."""
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def usable(self) -> bool:
        """Whether it can have another prompt."""
        return self.running.usable

    async def idle(self) -> None:
        """Wait for a prompt that was cancelled to end, but no longer than it may take."""
        if self.listener is not None:
            await done_within(self._idle.wait(), 2 * _CANCEL_S)

    @contextlib.contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """Within, a prompt runs."""
        self.listener = listener
        self._idle.clear()
        try:
            yield
        finally:
            self.listener = None
            self._idle.set()


class _Client:
    """What the program may ask of its client."""

    def __init__(self, running: AcpProcess):
        self._running = running

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **meta: Any,  # of the program's own
    ) -> RequestPermissionResponse:
        listener = self._running.listener(session_id)
        return CANCELLED if listener is None else await listener.permission(tool_call, options)

    async def write_text_file(
        self,
        session_id: str,
        path: str,
        content: str,
        **meta: Any,  # of the program's own
    ) -> None:
        """Some programs hand over what they are about to write, whatever their client offers."""
        listener = self._running.listener(session_id)
        if listener is None:
            raise acp.RequestError.invalid_request({"details": "no prompt runs in this session"})
        listener.write(path, content)


@dataclass(eq=False)
class AcpProcess:
    """One life of a program."""

    name: str
    process: asyncio.subprocess.Process
    config: AcpConfig
    sessions: dict[str, AcpSession] = field(default_factory=dict)
    about: InitializeResponse = field(init=False)
    """What the program has said of itself."""
    retired: bool = False
    """It gets no more prompts."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _last_words: bytes = b""

    def __post_init__(self) -> None:
        self._pipe = _StdioPipe(self.process, self._hear)
        client: Any = _Client(self)  # it has less than the library's protocol: no terminals
        self._connection = ClientSideConnection(client, self._pipe)
        self._spawn(self._errors())

    @classmethod
    async def start(cls, config: AcpConfig) -> AcpProcess:
        """Start the program and greet it. Raises `ProgramFailed`."""
        name = Path(config.command[0]).name
        try:
            process = await asyncio.create_subprocess_exec(
                *config.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=config.cwd,
                env={**default_environment(), **config.env},
                start_new_session=True,
                limit=MOST_LINE,
            )
        except OSError as exc:
            raise ProgramFailed(f"{name} cannot be started: {exc.strerror or exc}") from exc
        running = cls(name, process, config)
        try:
            await running._greet()
        except BaseException:
            await running.end()
            raise
        log.info("program is there", program=name, process=process.pid)
        return running

    async def _greet(self) -> None:
        capabilities = ClientCapabilities()  # no files, no terminals: it has its own
        info = Implementation(name="hubbub", version=version("hubbub"))
        self.about = await self._asked(
            self._connection.initialize(_VERSION, capabilities, info), "starting"
        )
        if self.about.protocol_version != _VERSION:
            theirs = self.about.protocol_version
            raise ProgramFailed(f"{self.name} speaks version {theirs} of ACP, and not {_VERSION}")
        if self.config.login is not None:
            await self._asked(self._connection.authenticate(self.config.login), "logging in")

    # Sessions -----------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        return not self.retired and self._pipe.fault is None and self.process.returncode is None

    @property
    def keeps_sessions(self) -> bool:
        """Whether a session can go on after the program was started anew."""
        capabilities = self.about.agent_capabilities
        if capabilities is None:
            return False
        sessions = capabilities.session_capabilities
        return bool(capabilities.load_session or (sessions and sessions.resume))

    async def session(
        self, cwd: str, servers: Sequence[Server], known: str | None
    ) -> tuple[AcpSession, bool]:
        """A session, and whether it remembers: the `known` one if the program still has it, else a
        new one. Raises `ProgramFailed`.
        """
        if known is not None and self.keeps_sessions:
            try:
                return await self._loaded(cwd, servers, known), True
            except ProgramFailed as exc:
                if not self.usable:
                    raise
                log.warning("session is begun anew", program=self.name, reason=str(exc))
        given = self._given(servers)
        new = self._connection.new_session(cwd, mcp_servers=given)
        id = (await self._asked(new, "beginning a session")).session_id
        return self._opened(id), False

    async def _loaded(self, cwd: str, servers: Sequence[Server], id: str) -> AcpSession:
        session, given = self._opened(id), self._given(servers)
        capabilities = self.about.agent_capabilities
        sessions = capabilities.session_capabilities if capabilities else None
        what = "loading a session"
        if sessions and sessions.resume:
            await self._asked(self._connection.resume_session(id, cwd, mcp_servers=given), what)
        else:
            await self._asked(self._connection.load_session(cwd, id, mcp_servers=given), what)
        return session

    def _opened(self, id: str) -> AcpSession:
        session = self.sessions[id] = AcpSession(id, self)
        return session

    def _given(self, servers: Sequence[Server]) -> list[Any]:
        """Those that it can connect to."""
        capabilities = self.about.agent_capabilities
        mcp = capabilities.mcp_capabilities if capabilities else None
        for server in servers:
            if isinstance(server, HttpMcpServer) and not (mcp and mcp.http):
                log.warning("program takes no MCP server by URL", server=server.name)
        return [s for s in servers if isinstance(s, McpServerStdio) or (mcp and mcp.http)]

    async def prompt(
        self, session: AcpSession, texts: Sequence[str], listener: Listener
    ) -> PromptResponse:
        """Give it a prompt, and wait until it is done with it. Raises `ProgramFailed`."""
        blocks: list[Any] = [TextContentBlock(type="text", text=text) for text in texts]
        try:
            with session.heard_by(listener):
                return await self._answered(self._connection.prompt(session.id, blocks))
        finally:
            self._kill_if_retired()

    def cancel(self, session: AcpSession, prompt: asyncio.Task[PromptResponse]) -> None:
        """End what runs in a session. One that goes on all the same is left behind."""
        if not prompt.done():
            self._spawn(self._cancel(session, prompt))

    async def _cancel(self, session: AcpSession, prompt: asyncio.Task[PromptResponse]) -> None:
        with contextlib.suppress(ConnectionError):
            await done_within(self._connection.cancel(session.id), _CANCEL_S)
        await asyncio.wait({prompt}, timeout=_CANCEL_S)
        if not prompt.done():
            log.warning("program does not end a cancelled prompt", program=self.name)
            self.retired = True
            prompt.cancel()

    def _kill_if_retired(self) -> None:
        if self.retired and not any(s.listener for s in self.sessions.values()):
            self.kill()

    # What it says -------------------------------------------------------------------------------

    def listener(self, session: str) -> Listener | None:
        """Who hears the session."""
        found = self.sessions.get(session)
        return found.listener if found is not None else None

    def _hear(self, params: Any, size: int) -> None:  # any JSON
        try:
            said = SessionNotification.model_validate(params)
        except ValidationError:
            return  # of a later version, or none at all
        listener = self.listener(said.session_id)
        if listener is not None:
            listener.heard(said.update, size)

    async def _errors(self) -> None:
        """What it says besides goes where this process's own log goes."""
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(4096):
            self._last_words = (self._last_words + piece)[-_LAST_WORDS:]
            with contextlib.suppress(OSError):
                os.write(2, piece)

    async def _asked(self, request: Awaitable[T], what: str) -> T:
        """The answer, within the time that the config gives. Raises `ProgramFailed`."""
        try:
            async with asyncio.timeout(self.config.start_timeout) as limit:
                return await self._answered(request)
        except TimeoutError:
            if not limit.expired():
                raise
            words = f"{self.name}: {what} takes more than {self.config.start_timeout:g} s"
            raise ProgramFailed(words) from None

    async def _answered(self, request: Awaitable[T]) -> T:
        try:
            return await request
        except acp.RequestError as exc:
            raise ProgramFailed(f"{self.name} refuses: {self._refusal(exc)}") from exc
        except ValidationError as exc:
            what = "its answer is none of the Agent Client Protocol"
            raise ProgramFailed(f"{self.name}: {what}") from exc
        except (ConnectionError, RuntimeError) as exc:
            raise ProgramFailed(await self._why()) from exc

    def _refusal(self, exc: acp.RequestError) -> str:
        details = exc.data.get("details") if isinstance(exc.data, dict) else exc.data
        told = f"{exc}: {details}" if isinstance(details, str) else str(exc)
        if exc.code == acp.RequestError.auth_required().code:
            ways = [f"`{m.id}` ({m.description or m.name})" for m in self.about.auth_methods or ()]
            told += f"; log in with the program itself, or by `acp.login`: {', '.join(ways)}"
        return told[:500]

    async def _why(self) -> str:
        """Why there is no connection any more."""
        if self._pipe.fault is not None:
            return f"{self.name} is not listened to any more: {self._pipe.fault}"
        await done_within(self.process.wait(), _END_S)
        code = self.process.returncode
        if code is None:
            return f"{self.name} has closed its stdout"
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        lines = self._last_words.decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:300]}" if lines else ""
        return f"{self.name} has ended ({ended}){said}"

    # The end ------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:  # a coroutine
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def kill(self) -> None:
        """End it, with all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Let it end by itself, and kill what is left of it."""
        self.retired = True
        await self._connection.close()
        if self.process.returncode is None:
            await done_within(self.process.wait(), _END_S)
        self.kill()
        await self.process.wait()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def probe(config: AcpConfig) -> str:
    """Start the program, and end it again. What it says of itself, as a sentence. Raises
    `ProgramFailed`.
    """
    running = await AcpProcess.start(config)
    await running.end()
    info = running.about.agent_info
    who = f"{info.name} {info.version}" if info is not None else running.name
    keeps = "keeps" if running.keeps_sessions else "forgets"
    return f"{who} speaks ACP {running.about.protocol_version} and {keeps} its sessions"


class AcpProgram:
    """Keeps a program running: a context, in which `running` is there when it is needed."""

    def __init__(self, config: AcpConfig):
        self.config = config
        self._lives: list[AcpProcess] = []
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> AcpProgram:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(life.end() for life in self._lives))

    async def running(self) -> AcpProcess:
        """The program as it runs now, started if it does not. Raises `ProgramFailed`."""
        async with self._starting:
            for life in [life for life in self._lives if not life.usable]:
                if not any(s.listener for s in life.sessions.values()):
                    self._lives.remove(life)
                    await life.end()
            usable = next((life for life in self._lives if life.usable), None)
            if usable is None:
                usable = await AcpProcess.start(self.config)
                self._lives.append(usable)
            return usable
