"""One prompt under way: what the program does in it, and what in it waits for a person.

The turn that has begun a prompt may stop to wait for a person while the prompt goes on to wait in
this process; when people have decided, the turn goes on with the same prompt (`go_on`).
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
from hubbub.interop.acp.permission import CANCELLED, allow, judged, question, reject
from hubbub.interop.acp.program import AcpSession, ProgramFailed
from hubbub.interop.acp.progress import Progress

__all__ = ["Prompting"]

T = TypeVar("T")

MOST_SAID = 32 * 1024 * 1024
"""Bytes of a program's updates in one step."""
_MOST_WAITING = 16
"""Requests for permission that wait at a time."""


class _PromptCancelled(Exception):
    """The prompt was cancelled while somebody in it waited."""


@dataclass(eq=False)
class Prompting:
    """The listener of a session while its prompt runs."""

    session: AcpSession
    progress: Progress
    mode: PermissionMode
    approver: Approver
    agent: str
    calls: StepCalls
    """Runs the network's tools, for the turn as it stands."""
    record: Callable[[], None]
    """Records what is new of the steps, in the turn as it stands."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Something has happened that the turn should look at."""
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    """It has ended, or waits for a person."""
    waits_for: dict[str, None] = field(default_factory=dict)
    """The ids of the approvals that it waits for."""
    _task: asyncio.Task[PromptResponse] | None = None
    _again: asyncio.Event = field(default_factory=asyncio.Event)
    _over: bool = False
    _fault: str | None = None
    _said: int = 0
    _step: int = 0
    _asking: int = 0

    # As the turn sees it ------------------------------------------------------------------------

    def begin(self, texts: Sequence[str]) -> None:
        """Give the program its prompt."""
        running = self.session.running
        self._task = asyncio.create_task(running.prompt(self.session, texts, self))
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[PromptResponse]) -> None:
        if not task.cancelled():
            task.exception()  # whoever looks at the response sees it
        self._call_for_attention()

    def _call_for_attention(self) -> None:
        self.news.set()
        self.urgent.set()

    @property
    def response(self) -> PromptResponse | None:
        """What the program ends with; None while it works. Raises `ProgramFailed`."""
        if self._fault is not None:
            raise ProgramFailed(self._fault)
        if self._task is None or not self._task.done():
            return None
        return self._task.result()

    def go_on(self, calls: StepCalls, record: Callable[[], None]) -> None:
        """People have decided something: the turn goes on, with these."""
        self.calls, self.record = calls, record
        self.progress.clock = calls.recorder.clock
        self._wake()
        if self._task is not None and self._task.done():
            self._call_for_attention()

    def cancel(self) -> None:
        """The turn is over: so is what the program does for it."""
        self._over = True
        self._wake()
        if self._task is not None:
            self.session.running.cancel(self.session, self._task)

    def _wake(self) -> None:
        self.waits_for.clear()
        self.urgent.clear()
        again, self._again = self._again, asyncio.Event()
        again.set()

    # As the program does ------------------------------------------------------------------------

    def heard(self, update: BaseModel, size: int) -> None:
        """As `Listener.heard`."""
        if self._over or self._fault is not None:
            return
        self.progress.take(update)
        if self._step != self.progress.n:
            self._step, self._said = self.progress.n, 0
        self._said += size
        if self._said > MOST_SAID:
            name = self.session.running.name
            self._fault = f"{name} has sent more than {MOST_SAID >> 20} MiB in one step"
            self.urgent.set()
        self.news.set()

    async def permission(
        self, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> RequestPermissionResponse:
        """As `Listener.permission`. Never raises."""
        if self._over:
            return CANCELLED
        if self.progress.is_network(call):
            return allow(options)  # the network itself says whether it may run
        verdict = judged(self.mode, call.kind)
        if verdict == "ask" and self._asking >= _MOST_WAITING:
            self._note(f"{call.title}: refused, since {_MOST_WAITING} others wait for a person")
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
        """Whether a person has approved just this call."""
        plan, name = self.calls.recorder.plan, self.progress.name_of(call)
        site = CallSite(plan.id, 0, 0, plan.thread_id, untrusted=True)
        for time in itertools.count(1):
            asked = question(call, name, site, self.agent, time)
            try:
                verdict = await self._decided(partial(self.approver.approve, asked))
                match verdict:
                    case Approved(start=start, by=by):
                        if start is not None:
                            await start()
                        self._note(f"{by} has approved: {asked.description or asked.tool}")
                        return True
                    case Begun():
                        continue  # that word has been used: ask for another
                    case Denied(reason, error):
                        why = f" ({reason})" if reason else ""
                        self._note(f"{error}{why}: {asked.description or asked.tool}")
                        return False
            except ToolFailed as exc:
                if exc.error != "not_pending":  # else somebody else has used it meanwhile
                    self._note(f"nobody was asked: {exc}")
                    return False
        raise AssertionError("counting does not end")

    def write(self, path: str, text: str) -> None:
        """As `Listener.write`: in the workspace only, and not for a program that only reads."""
        place = Path(path).resolve()
        if self._over or self.mode == "read_only" or not self.progress.holds(place):
            raise RequestError.invalid_request({"details": f"{path} may not be written"})
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        except OSError as exc:
            raise RequestError.internal_error({"details": f"{path}: {exc.strerror}"}) from exc

    async def network_call(self, name: str, arguments: dict[str, JsonValue]) -> CallResult:
        """Run a tool of the network for the program, as a call of the turn."""
        step, id = self.progress.network_call(name, arguments)
        self.record()  # before it runs: what is on record does not run twice
        self.news.set()
        call = next(call for call in step.calls if call.id == id)
        run = RunTools(step, (call,), again=False)
        try:
            result = await self._decided(partial(self._ran, run))
        except _PromptCancelled:
            result = CallResult(id, "the turn is over", "cancelled")
        self.progress.network_result(step.n, result)
        if result.untrusted:
            self.progress.outside.append(name)
        self.news.set()
        return result

    async def _ran(self, run: RunTools) -> CallResult:
        (result,) = await self.calls.run(run)
        if result.parked is not None:
            raise Parked(*result.parked)
        return result

    async def _decided(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What comes of it when it waits for no person any more. Raises `_PromptCancelled`."""
        while not self._over:
            again = self._again
            try:
                return await attempt()
            except Parked as exc:
                self.waits_for.update(dict.fromkeys(exc.approvals))
                self._call_for_attention()
                await again.wait()
        raise _PromptCancelled

    def _note(self, text: str) -> None:
        self.progress.note(text)
        self.news.set()
