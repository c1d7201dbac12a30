"""Starts agents as forks of one process that has imported what they need.

Nearly all that a new agent process does is import; most of its memory is what it imported. A fork
has both already, and shares the memory. Only on Linux: elsewhere libraries of the system do not
survive a fork.

The forking process has no threads and loads no code of users. It and the launcher exchange one
packet for each start, which carries the file descriptors of the agent, and one for each end.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import selectors
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from hubbub.app.lifeline import VARIABLE, end_with_parent

__all__ = ["ForkServer", "ForkedProcess", "available", "serve"]

_PACKET = 212_992
"""Most bytes of a packet: the kernel's limit, and more than an environment variable can have."""
_FDS = 3
"""Of the output, of the errors, and of the launcher's lifeline."""
_PR_SET_NAME = 15


def available() -> bool:
    """Whether this system can run a fork server: a Linux that tells of the end of a process."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a sandbox
        return False
    return True


class ForkedProcess:
    """A process that a fork server started, with the methods of asyncio's `Process`."""

    def __init__(self, pid: int):
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self.returncode

    def terminate(self) -> None:
        with suppress(ProcessLookupError):  # it has ended, and was not reported yet
            if self.returncode is None:
                os.kill(self.pid, signal.SIGTERM)

    def ended(self, code: int) -> None:
        self.returncode = code
        self._ended.set()


class ForkServer:
    """The launcher's side. The process starts when the context is entered, and ends with it.

    If it dies, its forks are killed, so that none runs that nobody supervises.
    """

    def __init__(self, modules: Sequence[str]):
        self._modules = modules
        self._forks: dict[int, ForkedProcess] = {}
        self._one_at_a_time = asyncio.Lock()
        self._answer: asyncio.Future[ForkedProcess] | None = None

    async def __aenter__(self) -> Self:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hubbub.cli.agent_process"),
                *("--fork", str(theirs.fileno()), *self._modules),
                stdin=DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # a Ctrl-C in the terminal does not reach it
            )
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._read)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._close()
        with suppress(ProcessLookupError):
            self._process.terminate()  # it may still import
        await self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdout: int,
        stderr: int,
        lifeline: int,
    ) -> ForkedProcess:
        """Fork an agent process. `environment` is added to this process's own.

        Raises `ConnectionError` if the server has died, and `OSError` if it cannot fork.
        """
        request = json.dumps({"arguments": arguments, "environment": environment}).encode()
        async with self._one_at_a_time:
            if self._control.fileno() < 0:
                raise ConnectionResetError("the fork server has ended")
            self._answer = asyncio.get_running_loop().create_future()
            try:
                socket.send_fds(self._control, [request], [stdout, stderr, lifeline])
                return await self._answer
            finally:
                self._answer = None

    def _read(self) -> None:
        while True:
            try:
                packet = self._control.recv(_PACKET)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if not packet:
                self._close()
                return
            self._handle(**json.loads(packet))

    def _handle(self, pid: int = 0, code: int | None = None, error: int = 0) -> None:
        if code is not None:
            self._forks.pop(pid).ended(code)
            return
        waiting = self._answer if self._answer is not None and not self._answer.done() else None
        if error:
            if waiting is not None:
                waiting.set_exception(OSError(error, os.strerror(error)))
            return
        self._forks[pid] = fork = ForkedProcess(pid)
        if waiting is None:
            fork.terminate()
        else:
            waiting.set_result(fork)

    def _close(self) -> None:
        if self._control.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the fork server has ended"))
        for fork in self._forks.values():
            with suppress(ProcessLookupError):
                os.killpg(fork.pid, signal.SIGKILL)
            fork.ended(-signal.SIGKILL)


def serve(control: socket.socket) -> Sequence[str] | None:
    """The server's side: fork for each request, until the launcher has ended.

    Returns None then; and in each fork what it is to run: arguments of `hubbub.cli.agent_process`.
    """
    forks: dict[int, int] = {}
    """Process ids by the file descriptor that tells of their end."""
    with control, selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in forks:
                    selector.unregister(key.fd)
                    _, status = os.waitpid(pid := forks.pop(key.fd), 0)
                    os.close(key.fd)
                    _tell(control, pid=pid, code=os.waitstatus_to_exitcode(status))
                    continue
                packet, fds, _, _ = socket.recv_fds(control, _PACKET, _FDS)
                if not packet:
                    return None
                try:
                    pid = os.fork()
                except OSError as exc:
                    _tell(control, error=exc.errno or 0)
                else:
                    if pid == 0:
                        for fd in forks:
                            os.close(fd)
                        return _begin(fds, **json.loads(packet))
                    forks[ends := os.pidfd_open(pid)] = pid
                    selector.register(ends, selectors.EVENT_READ)
                    _tell(control, pid=pid)
                for fd in fds:
                    os.close(fd)


def _tell(control: socket.socket, **answer: int) -> None:
    with suppress(ConnectionError):  # the launcher has ended, as the next packet tells
        control.send(json.dumps(answer).encode())


def _begin(
    fds: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str]
) -> Sequence[str]:
    """Become an agent's process, with a session, a name, outputs and an environment of its own."""
    end_with_parent()
    os.setsid()
    *outputs, lifeline = fds
    for to, fd in enumerate(outputs, 1):
        os.dup2(fd, to)
        os.close(fd)
    os.environ |= environment
    os.environ[VARIABLE] = str(lifeline)
    sys.argv[1:] = arguments
    _, *names = arguments
    ctypes.CDLL(None).prctl(_PR_SET_NAME, " ".join(names).encode())  # for top, which shows 15 bytes
    return arguments
