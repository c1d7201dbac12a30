"""The program of a coding agent: its process, its connection and its sessions.

The program starts with the first turn that needs it, and again after it has exited. Its output is
bounded: the length of a line, lines that are not ACP, and bytes per step. A program that does not
end a cancelled prompt gets no more prompts, and is killed once no other prompt runs in it.
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
    LoadSessionResponse,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ResumeSessionResponse,
    SessionModeState,
    SessionNotification,
    TextContentBlock,
    ToolCallUpdate,
)
from acp.transports import default_environment
from pydantic import BaseModel, ValidationError

from hubbub.config.agents import AcpConfig
from hubbub.errors import HubbubError
from hubbub.interop.acp.permission import CANCELLED, asking_mode
from hubbub.logs import get_logger
from hubbub.waiting import cancel, done_within

__all__ = ["AcpProcess", "AcpProgram", "AcpSession", "Listener", "ProgramFailed", "Server", "probe"]

T = TypeVar("T")
Server: TypeAlias = HttpMcpServer | McpServerStdio
"""An MCP server for the program to connect to."""

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line of output."""
_MAX_NOISE = 20
"""Consecutive lines that are not protocol messages: some programs print a banner."""
_STDERR_TAIL = 2000
"""Bytes kept from the end of stderr."""
_CANCEL_S = 5.0
"""Seconds a program has to end a cancelled prompt."""
_END_S = 2.0
"""Seconds a program has to exit after its stdin is closed, before it is killed."""
_VERSION = acp.PROTOCOL_VERSION

log = get_logger(__name__)


class ProgramFailed(HubbubError):
    """The program could not run a prompt; the message has the reason."""


class Listener(Protocol):
    """Handles a session's updates and requests while a prompt runs."""

    def on_update(self, update: BaseModel, size: int) -> None:
        """Handle an update of `size` bytes."""
        ...

    async def permission(
        self, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> RequestPermissionResponse:
        """The answer to a permission request."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a file for the program. Raises `acp.RequestError`."""
        ...


class _StdioPipe:
    """The program's stdin and stdout as the library's `Transport`.

    Updates are handled here, in order; the library gets all other messages. Between two messages
    the event loop runs other tasks, so that a verbose program does not starve them.
    """

    def __init__(self, process: asyncio.subprocess.Process, hear: Callable[[Any, int], None]):
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._on_update = process.stdin, process.stdout, hear
        self.error: str | None = None
        """Why its output is no longer read."""

    async def send(self, message: dict[str, Any]) -> None:
        if self._in.is_closing():
            raise ConnectionError("closed")
        self._in.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._in.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is not an update; None at the end."""
        noise = 0
        while self.error is None:
            await asyncio.sleep(0)
            try:
                line = await self._out.readline()
            except ValueError:
                self.error = f"it wrote a line of more than {MAX_LINE >> 20} MiB"
                break
            if not line:
                break
            message = _message(line)
            if message is None or not self._is_for_library(message, len(line)):
                noise = noise + 1 if message is None else 0
                if noise > _MAX_NOISE:
                    start = line.decode(errors="replace").strip()[:80]
                    self.error = f"its output is not the Agent Client Protocol: {start!r}"
                continue
            return message
        return None

    def _is_for_library(self, message: dict[str, Any], size: int) -> bool:
        """Handle an update; true for any other message."""
        if message.get("method") != "session/update" or "id" in message:
            return True
        self._on_update(message.get("params"), size)
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
    """One session of a running program."""

    id: str
    running: AcpProcess
    listener: Listener | None = None
    """None while no prompt runs."""
    key: str = ""
    """With it, the program's MCP client identifies the session."""
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_usable(self) -> bool:
        """Whether it can take another prompt."""
        return self.running.is_usable

    async def wait_idle(self) -> None:
        """Wait for a cancelled prompt to end, up to `2 * _CANCEL_S` seconds."""
        if self.listener is not None:
            await done_within(self._idle.wait(), 2 * _CANCEL_S)

    @contextlib.contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """A context in which a prompt runs."""
        self.listener = listener
        self._idle.clear()
        try:
            yield
        finally:
            self.listener = None
            self._idle.set()


class _Client:
    """The requests that the program can make."""

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
        """Some programs request writes even though no such capability is announced."""
        listener = self._running.listener(session_id)
        if listener is None:
            raise acp.RequestError.invalid_request({"details": "no prompt runs in this session"})
        listener.write(path, content)


@dataclass(eq=False)
class AcpProcess:
    """One process of a program."""

    name: str
    process: asyncio.subprocess.Process
    config: AcpConfig
    sessions: dict[str, AcpSession] = field(default_factory=dict)
    about: InitializeResponse = field(init=False)
    """The program's description of itself."""
    is_retired: bool = False
    """Whether it gets no more prompts."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _stderr_tail: bytes = b""

    def __post_init__(self) -> None:
        self._pipe = _StdioPipe(self.process, self._on_update)
        client: Any = _Client(self)  # only part of the library's protocol: no terminals
        self._connection = ClientSideConnection(client, self._pipe)
        self._spawn(self._forward_stderr())

    @classmethod
    async def start(cls, config: AcpConfig) -> AcpProcess:
        """Start and initialize the program. Raises `ProgramFailed`."""
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
                limit=MAX_LINE,
            )
        except OSError as exc:
            raise ProgramFailed(f"{name} cannot be started: {exc.strerror or exc}") from exc
        running = cls(name, process, config)
        try:
            await running._initialize()
        except BaseException:
            await running.end()
            raise
        log.info("program started", program=name, process=process.pid)
        return running

    async def _initialize(self) -> None:
        capabilities = ClientCapabilities()  # no files or terminals: the program has its own
        info = Implementation(name="hubbub", version=version("hubbub"))
        self.about = await self._request(
            self._connection.initialize(_VERSION, capabilities, info), "starting"
        )
        if self.about.protocol_version != _VERSION:
            theirs = self.about.protocol_version
            raise ProgramFailed(f"{self.name} speaks version {theirs} of ACP, not {_VERSION}")
        if self.config.login is not None:
            await self._request(self._connection.authenticate(self.config.login), "logging in")

    # Sessions -----------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        return not self.is_retired and self._pipe.error is None and self.process.returncode is None

    @property
    def can_resume_sessions(self) -> bool:
        """Whether a session can continue after the program was restarted."""
        capabilities = self.about.agent_capabilities
        if capabilities is None:
            return False
        sessions = capabilities.session_capabilities
        return bool(capabilities.load_session or (sessions and sessions.resume))

    async def session(
        self, cwd: str, servers: Sequence[Server], saved: str | None
    ) -> tuple[AcpSession, bool]:
        """The `saved` session and True if the program still has it, otherwise a new session and
        False. Raises `ProgramFailed`.
        """
        if saved is not None and self.can_resume_sessions:
            try:
                return await self._resume_session(cwd, servers, saved), True
            except ProgramFailed as exc:
                if not self.is_usable:
                    raise
                log.warning("session lost; opening a new one", program=self.name, reason=str(exc))
        supported = self._supported_servers(servers)
        creation = self._connection.new_session(cwd, mcp_servers=supported)
        new = await self._request(creation, "opening a session")
        if new.modes and asking_mode(new.modes) != new.modes.current_mode_id:
            await self._set_mode(new.session_id, new.modes)
        return self._add_session(new.session_id), False

    async def _resume_session(self, cwd: str, servers: Sequence[Server], id: str) -> AcpSession:
        session, mcp = self._add_session(id), self._supported_servers(servers)
        capabilities = self.about.agent_capabilities
        sessions = capabilities.session_capabilities if capabilities else None
        request: Awaitable[LoadSessionResponse | ResumeSessionResponse]
        if sessions and sessions.resume:
            request = self._connection.resume_session(id, cwd, mcp_servers=mcp)
        else:
            request = self._connection.load_session(cwd, id, mcp_servers=mcp)
        modes = (await self._request(request, "loading a session")).modes
        if modes:  # Gemini CLI sends the rest of the history after this answer and before the next
            await self._set_mode(id, modes)
        return session

    async def _set_mode(self, session: str, modes: SessionModeState) -> None:
        change = self._connection.set_session_mode(session, asking_mode(modes))
        await self._request(change, "setting the mode of a session")

    def _add_session(self, id: str) -> AcpSession:
        session = self.sessions[id] = AcpSession(id, self)
        return session

    def _supported_servers(self, servers: Sequence[Server]) -> list[Any]:
        """The servers that the program can connect to."""
        capabilities = self.about.agent_capabilities
        mcp = capabilities.mcp_capabilities if capabilities else None
        for server in servers:
            if isinstance(server, HttpMcpServer) and not (mcp and mcp.http):
                log.warning("program supports no MCP server by URL", server=server.name)
        return [s for s in servers if isinstance(s, McpServerStdio) or (mcp and mcp.http)]

    async def prompt(
        self, session: AcpSession, texts: Sequence[str], listener: Listener
    ) -> PromptResponse:
        """Send a prompt and wait for its response. Raises `ProgramFailed`."""
        blocks: list[Any] = [TextContentBlock(type="text", text=text) for text in texts]
        try:
            with session.listening(listener):
                return await self._wait_answer(self._connection.prompt(session.id, blocks))
        finally:
            self._kill_if_retired()

    def cancel(self, session: AcpSession, prompt: asyncio.Task[PromptResponse]) -> None:
        """Cancel a session's prompt. If it does not end in time, the process is retired."""
        if not prompt.done():
            self._spawn(self._cancel(session, prompt))

    async def _cancel(self, session: AcpSession, prompt: asyncio.Task[PromptResponse]) -> None:
        with contextlib.suppress(ConnectionError):
            await done_within(self._connection.cancel(session.id), _CANCEL_S)
        await asyncio.wait({prompt}, timeout=_CANCEL_S)
        if not prompt.done():
            log.warning("program does not end a cancelled prompt", program=self.name)
            self.is_retired = True
            prompt.cancel()

    def _kill_if_retired(self) -> None:
        if self.is_retired and not any(s.listener for s in self.sessions.values()):
            self.kill()

    # Output -------------------------------------------------------------------------------------

    def listener(self, session_id: str) -> Listener | None:
        session = self.sessions.get(session_id)
        return session.listener if session is not None else None

    def _on_update(self, params: Any, size: int) -> None:  # any JSON
        try:
            notification = SessionNotification.model_validate(params)
        except ValidationError:
            return  # invalid, or of a later version
        listener = self.listener(notification.session_id)
        if listener is not None:
            listener.on_update(notification.update, size)

    async def _forward_stderr(self) -> None:
        """Copy the program's stderr to this process's stderr."""
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(4096):
            self._stderr_tail = (self._stderr_tail + chunk)[-_STDERR_TAIL:]
            with contextlib.suppress(OSError):
                os.write(2, chunk)

    async def _request(self, request: Awaitable[T], what: str) -> T:
        """The answer, within the config's `start_timeout`. Raises `ProgramFailed`."""
        try:
            async with asyncio.timeout(self.config.start_timeout) as limit:
                return await self._wait_answer(request)
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"{self.name}: {what} takes more than {self.config.start_timeout:g} s"
            raise ProgramFailed(reason) from None

    async def _wait_answer(self, request: Awaitable[T]) -> T:
        try:
            return await request
        except acp.RequestError as exc:
            raise ProgramFailed(f"{self.name} refuses: {self._refusal(exc)}") from exc
        except ValidationError as exc:
            reason = "its answer is not valid in the Agent Client Protocol"
            raise ProgramFailed(f"{self.name}: {reason}") from exc
        except (ConnectionError, RuntimeError) as exc:
            raise ProgramFailed(await self._disconnect_reason()) from exc

    def _refusal(self, exc: acp.RequestError) -> str:
        data = exc.data  # the reason is in `message` of it for Codex
        details = (data.get("details") or data.get("message")) if isinstance(data, dict) else data
        reason = f"{exc}: {details}" if isinstance(details, str) else str(exc)
        if exc.code == acp.RequestError.auth_required().code:
            methods = self.about.auth_methods or ()
            choices = ", ".join(f"`{m.id}` ({m.description or m.name})" for m in methods)
            reason += f"; log in with the program itself, or by `acp.login`: {choices}"
        return reason[:500]

    async def _disconnect_reason(self) -> str:
        """Why the connection was lost."""
        if self._pipe.error is not None:
            return f"{self.name} was disconnected: {self._pipe.error}"
        await done_within(self.process.wait(), _END_S)
        code = self.process.returncode
        if code is None:
            return f"{self.name} closed its stdout"
        status = f"signal {-code}" if code < 0 else f"exit code {code}"
        lines = self._stderr_tail.decode(errors="replace").strip().splitlines()
        last_line = f": {lines[-1][:300]}" if lines else ""
        return f"{self.name} exited ({status}){last_line}"

    # The end ------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:  # a coroutine
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def kill(self) -> None:
        """Kill the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Close the connection, give the process time to exit, and kill the rest."""
        self.is_retired = True
        await self._connection.close()
        if self.process.returncode is None:
            await done_within(self.process.wait(), _END_S)
        self.kill()
        await self.process.wait()
        await cancel(*self._tasks)


async def probe(config: AcpConfig) -> str:
    """Start and end the program, and return its description of itself as a sentence. Raises
    `ProgramFailed`.
    """
    running = await AcpProcess.start(config)
    await running.end()
    info = running.about.agent_info
    who = f"{info.name} {info.version}" if info is not None else running.name
    keeps = "keeps" if running.can_resume_sessions else "forgets"
    return f"{who} speaks ACP {running.about.protocol_version} and {keeps} its sessions"


class AcpProgram:
    """A context that keeps a program running: `running` starts it when needed."""

    def __init__(self, config: AcpConfig):
        self.config = config
        self._processes: list[AcpProcess] = []
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> AcpProgram:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(process.end() for process in self._processes))

    async def running(self) -> AcpProcess:
        """The running process, started if there is none. Raises `ProgramFailed`."""
        async with self._starting:
            for process in [process for process in self._processes if not process.is_usable]:
                if not any(s.listener for s in process.sessions.values()):
                    self._processes.remove(process)
                    await process.end()
            is_usable = next((process for process in self._processes if process.is_usable), None)
            if is_usable is None:
                is_usable = await AcpProcess.start(self.config)
                self._processes.append(is_usable)
            return is_usable
