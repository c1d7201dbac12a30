"""One running prompt: the program's work, and the approvals it waits for.

A turn can park while its prompt keeps waiting for a person in this process. After the decision the
turn continues with the same prompt (`resume`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from acp import RequestError
from acp.schema import PermissionOption, PromptResponse, RequestPermissionResponse, ToolCallUpdate
from pydantic import BaseModel, JsonValue

from hubbub.agents.tools.approval import Approved, Approver, Begun, Denied, Parked
from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.agents.tools.policy import PermissionMode
from hubbub.agents.turn.driver import StepCalls
from hubbub.agents.turn.loop import CallResult, RunTools
from hubbub.interop.acp.permission import CANCELLED, allow, question, reject, verdict_on
from hubbub.interop.acp.program import AcpSession, ProgramFailed
from hubbub.interop.acp.progress import Progress

__all__ = ["Prompting"]

T = TypeVar("T")

MAX_UPDATE_BYTES = 32 * 1024 * 1024
"""Bytes of a program's updates in one step."""
_MAX_WAITING = 16
"""Permission requests that can wait at once."""


class _PromptCancelled(Exception):
    """The prompt was cancelled while a call waited for a decision."""


@dataclass(eq=False)
class Prompting:
    """A session's listener while a prompt runs in it."""

    session: AcpSession
    progress: Progress
    mode: PermissionMode
    approver: Approver
    agent: str
    calls: StepCalls
    """Runs the network's tools, for the current run of the turn."""
    record: Callable[[], None]
    """Records changed steps, in the current run of the turn."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set on any change."""
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the prompt has ended or waits for a person."""
    pending_approvals: dict[str, None] = field(default_factory=dict)
    """The ids of pending approvals."""
    _task: asyncio.Task[PromptResponse] | None = None
    _resumed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_over: bool = False
    _fault: str | None = None
    _received: int = 0
    _step: int = 0
    _asking: int = 0

    # Called by the turn -------------------------------------------------------------------------

    def begin(self, texts: Sequence[str]) -> None:
        """Send the prompt to the program."""
        running = self.session.running
        self._task = asyncio.create_task(running.prompt(self.session, texts, self))
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[PromptResponse]) -> None:
        if not task.cancelled():
            task.exception()  # mark it as retrieved: `response` raises it
        self._notify_turn()

    def _notify_turn(self) -> None:
        self.changed.set()
        self.urgent.set()

    @property
    def response(self) -> PromptResponse | None:
        """The program's response; None while it works. Raises `ProgramFailed`."""
        if self._fault is not None:
            raise ProgramFailed(self._fault)
        if self._task is None or not self._task.done():
            return None
        return self._task.result()

    def resume(self, calls: StepCalls, record: Callable[[], None]) -> None:
        """Continue after a decision, with the `calls` and `record` of the resumed turn."""
        self.calls, self.record = calls, record
        self.progress.clock = calls.recorder.clock
        self._wake()
        if self._task is not None and self._task.done():
            self._notify_turn()

    def cancel(self) -> None:
        """Cancel the program's work because the turn has ended."""
        self._is_over = True
        self._wake()
        if self._task is not None:
            self.session.running.cancel(self.session, self._task)

    def _wake(self) -> None:
        self.pending_approvals.clear()
        self.urgent.clear()
        resumed, self._resumed = self._resumed, asyncio.Event()
        resumed.set()

    # Called by the program: the methods of `Listener` -------------------------------------------

    def on_update(self, update: BaseModel, size: int) -> None:
        if self._is_over or self._fault is not None:
            return
        self.progress.take(update)
        if self._step != self.progress.n:
            self._step, self._received = self.progress.n, 0
        self._received += size
        if self._received > MAX_UPDATE_BYTES:
            name = self.session.running.name
            self._fault = f"{name} sent more than {MAX_UPDATE_BYTES >> 20} MiB in one step"
            self.urgent.set()
        self.changed.set()

    async def permission(
        self, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> RequestPermissionResponse:
        """Never raises."""
        if self._is_over:
            return CANCELLED
        if self.progress.is_network(call):
            return allow(options)  # the network checks its own tools when they run
        verdict = verdict_on(self.mode, call.kind)
        if verdict == "ask" and self._asking >= _MAX_WAITING:
            self._note(f"{call.title}: refused, since {_MAX_WAITING} requests already wait")
            verdict = "reject"
        if verdict != "ask":
            return allow(options) if verdict == "allow" else reject(options)
        self._asking += 1
        try:
            return allow(options) if await self._approved(call) else reject(options)
        except _PromptCancelled:
            return CANCELLED
        finally:
            self._asking -= 1

    async def _approved(self, call: ToolCallUpdate) -> bool:
        """Ask people until the call is approved or denied; true if approved."""
        plan, name = self.calls.recorder.plan, self.progress.name_of(call)
        site = CallSite(plan.id, 0, 0, plan.thread_id, untrusted=True)
        for time in itertools.count(1):
            request = question(call, name, site, self.agent, time)
            try:
                verdict = await self._wait_decided(partial(self.approver.approve, request))
                match verdict:
                    case Approved(start=start, by=by):
                        if start is not None:
                            await start()
                        self._note(f"{by} approved: {request.description or request.tool}")
                        return True
                    case Begun():
                        continue  # that approval is used up: ask for another
                    case Denied(reason, error):
                        why = f" ({reason})" if reason else ""
                        self._note(f"{error}{why}: {request.description or request.tool}")
                        return False
            except ToolFailed as exc:
                if exc.error != "not_pending":  # otherwise another call used the approval
                    self._note(f"the approval request failed: {exc}")
                    return False
        raise AssertionError("count() does not end")

    def write(self, path: str, text: str) -> None:
        """Only in the workspace, and not in the mode `read_only`."""
        file = Path(path).resolve()
        if self._is_over or self.mode == "read_only" or not self.progress.is_in_workspace(file):
            raise RequestError.invalid_request({"details": f"{path} cannot be written"})
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        except OSError as exc:
            raise RequestError.internal_error({"details": f"{path}: {exc.strerror}"}) from exc

    async def network_call(self, name: str, arguments: dict[str, JsonValue]) -> CallResult:
        """Run a network tool for the program, as a call of the turn."""
        step, id = self.progress.network_call(name, arguments)
        self.record()  # before it runs: a recorded call does not run twice
        self.changed.set()
        call = next(call for call in step.calls if call.id == id)
        run = RunTools(step, (call,), again=False)
        try:
            result = await self._wait_decided(partial(self._run_tool, run))
        except _PromptCancelled:
            result = CallResult(id, "the turn has ended", "cancelled")
        self.progress.network_result(step.n, result)
        if result.untrusted:
            self.progress.read_untrusted(name)
        self.changed.set()
        return result

    async def _run_tool(self, run: RunTools) -> CallResult:
        (result,) = await self.calls.run(run)
        if result.parked is not None:
            raise Parked(*result.parked)
        return result

    async def _wait_decided(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat `attempt` after each decision until it no longer parks, and return its result.
        Raises `_PromptCancelled`."""
        while not self._is_over:
            resumed = self._resumed
            try:
                return await attempt()
            except Parked as exc:
                self.pending_approvals.update(dict.fromkeys(exc.approvals))
                self._notify_turn()
                await resumed.wait()
        raise _PromptCancelled

    def _note(self, text: str) -> None:
        self.progress.note(text)
        self.changed.set()
