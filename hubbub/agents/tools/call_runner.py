"""Runs one tool call, from the model's arguments to its result.

lookup           disabled, forbidden and absent tools do not exist
arguments        validated by the tool's JSON Schema
permission       allow, refuse, or ask the approver, whose changes are validated as well
repetition       a call that may have run before a crash runs again only if it is idempotent; for a
                 call that a person approved, the record shows whether it had started
run              within its timeout; retried if it is idempotent and the failure is temporary
result           cut to its budget
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.tokens import TokenCounter, TokenEstimate
from hubbub.agents.tools.approval import ApprovalRequest, Approved, Approver, Begun, Denied, Parked
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed, UntrustedText
from hubbub.agents.tools.policy import (
    Allow,
    NeedsApproval,
    PermissionMode,
    Refuse,
    Retry,
    ToolOverrides,
    decide,
)
from hubbub.agents.tools.registry import ToolEntry, ToolRegistry
from hubbub.agents.tools.results import DEFAULT_BUDGET, fit_result
from hubbub.agents.turn.chat import changed_call
from hubbub.agents.turn.loop import CallResult, failure
from hubbub.agents.turn.steps import TurnClock
from hubbub.errors import ConnectionLost
from hubbub.logs import get_logger
from hubbub.protocol.turns import ChangedCall, ToolCallRecord
from hubbub.user_code import contained, describe_error

if TYPE_CHECKING:
    from hubbub.agents.tools.validation import ArgumentCheck

__all__ = ["SELECT_OVER", "ArgumentChecks", "CallRunner", "Perform", "ToolPolicy", "perform"]

# An agent's tool policy: the operator's settings for all its tools.


Perform = Callable[[Tool, Mapping[str, JsonValue], CallSite], Awaitable[str]]
"""Carries out a permitted call and returns its result, like `Tool.run`."""

SELECT_OVER = 24
"""Up to this many tools are all described; if there are more, the model picks first."""


async def perform(tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
    return await tool.run(arguments, site)


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Settings for all tools of an agent, unless a tool overrides them."""

    timeout: float = 60.0
    """Seconds per attempt."""
    mode: PermissionMode = "full"
    disabled: frozenset[str] = frozenset()
    """Names of tools that do not exist for this agent."""
    overrides: Mapping[str, ToolOverrides] = field(default_factory=lambda: MappingProxyType({}))
    """The operator's settings for single tools, by name."""
    budget: int = DEFAULT_BUDGET
    """Maximum tokens of a result."""
    counter: TokenCounter = field(default_factory=TokenEstimate)
    approver: Approver | None = None
    """Decides on calls that need approval; None: they are refused."""
    select_over: int = SELECT_OVER
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Sleeps for the given seconds between two attempts."""
    perform: Perform = perform
    """Carries out calls that have passed all checks; a dry run replaces it."""


log = get_logger(__name__)

_NEVER_RETRIED = frozenset({"invalid_arguments", "unknown_tool"})
"""Errors after which the same call would fail in the same way."""
_MIN_ERROR_TOKENS = 200
"""Minimum tokens for an error message."""


class ArgumentChecks:
    """Validators of tools' arguments, created on first use and cached."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[Mapping[str, JsonValue], ArgumentCheck]] = {}

    def of(self, spec: ToolSpec) -> ArgumentCheck:
        """Raises `ToolFailed` when the tool's schema is invalid."""
        from hubbub.agents.tools.validation import ArgumentCheck  # a slow import

        schema, check = self._cache.get(spec.name, (None, None))
        if check is None or schema is not spec.parameters:
            try:
                check = ArgumentCheck(spec.parameters)
            except ValueError as exc:
                raise ToolFailed(f"{spec.name} has {exc}", error="invalid_schema") from exc
            self._cache[spec.name] = spec.parameters, check
        return check


@dataclass(frozen=True, slots=True)
class _PermittedCall:
    """A permitted call: its arguments, and what must happen before it runs."""

    arguments: Mapping[str, JsonValue]
    changed: ChangedCall | None = None
    start: Callable[[], Awaitable[None]] | None = None
    interrupted: bool = False
    """It may have run before, and must not run twice."""

    async def begin(self) -> None:
        """Record that the call starts. Raises `ToolFailed` if it must not run."""
        if self.interrupted:
            raise _interrupted_error()
        if self.start is not None:
            await self.start()


class CallRunner:
    """Runs single calls of the tools in `registry`."""

    def __init__(
        self, registry: ToolRegistry, tool_policy: ToolPolicy, checks: ArgumentChecks | None = None
    ):
        self._registry, self._tool_policy = registry, tool_policy
        self._checks = checks or ArgumentChecks()

    async def run(
        self, call: ToolCallRecord, site: CallSite, clock: TurnClock, *, again: bool
    ) -> CallResult:
        """Run a call; exceptions of the tool become results. `again`: the call may have run before.
        The result of a call that waits for a person's approval has only the approvals' ids.
        """
        at = clock.ms
        attempts = 0
        error: str | None = None
        untrusted = False
        changed: ChangedCall | None = None
        budget = self._tool_policy.budget
        try:
            entry = self._entry(call.name)
            budget = entry.budget or budget
            permitted = await self._admit(entry, call, site, again)
            changed = permitted.changed
            await permitted.begin()
            retry = entry.retry if entry.tool.idempotent else Retry(attempts=1)
            while True:
                attempts += 1
                untrusted = entry.untrusted
                try:
                    result = await self._attempt(entry, permitted.arguments, site)
                    untrusted = untrusted or isinstance(result, UntrustedText)
                    text = self._fit(result, budget)
                    break
                except ToolFailed as exc:
                    if attempts >= retry.attempts or not _is_temporary(exc, retry):
                        raise
                    log.info("retrying a tool", tool=call.name, error=exc.error, n=attempts)
                await self._tool_policy.pause(retry.pause(attempts))
        except ToolFailed as exc:
            error, untrusted = exc.error, untrusted or exc.untrusted
            message = self._fit(exc.message, max(budget, _MIN_ERROR_TOKENS))
            text = failure(exc.error, message, retry=exc.retry, near=exc.near)
        except Parked as exc:
            return CallResult(call.id, "", at_ms=at, parked=exc.approvals)
        duration, attempts = clock.since(at), max(attempts, 1)
        return CallResult(call.id, text, error, at, duration, attempts, untrusted, changed=changed)

    def _fit(self, text: str, budget: int) -> str:
        return fit_result(text, budget, self._tool_policy.counter)

    # Checks --------------------------------------------------------------------------------------

    def _entry(self, name: str) -> ToolEntry:
        entry = self._registry.get(name)
        if entry is None:
            near = self._registry.near(name)
            raise ToolFailed(f"there is no tool {name!r}", error="unknown_tool", near=near)
        if entry.absent is not None:
            raise ToolFailed(entry.absent, error="tool_absent")
        return entry

    async def _admit(
        self, entry: ToolEntry, call: ToolCallRecord, site: CallSite, again: bool
    ) -> _PermittedCall:
        """The permitted call. Raises `ToolFailed` if it must not run."""
        decision = decide(entry, self._tool_policy.mode, untrusted=site.untrusted)
        can_ask = isinstance(decision, NeedsApproval) and self._tool_policy.approver is not None
        interrupted = again and not entry.tool.idempotent
        if interrupted and not can_ask:
            raise _interrupted_error()
        assert isinstance(call.arguments, dict), "the loop runs no call that does not parse"
        arguments = self._check(entry, call.arguments)
        match decision:
            case Allow():
                return _PermittedCall(arguments)
            case Refuse(reason):
                raise ToolFailed(reason, error="forbidden")
            case NeedsApproval(reason):
                does, schema = entry.tool.spec.description, entry.tool.spec.parameters
                request = ApprovalRequest(
                    site, entry.name, does, entry.permission, arguments, reason, call.id, schema
                )
                return await self._approved(entry, request, interrupted)
            case _:
                assert_never(decision)

    def _check(self, entry: ToolEntry, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return self._checks.of(entry.tool.spec).check(arguments)

    async def _approved(
        self, entry: ToolEntry, request: ApprovalRequest, interrupted: bool
    ) -> _PermittedCall:
        """`interrupted`: the call may have run before, and must not run twice."""
        approver = self._tool_policy.approver
        if approver is None:
            raise ToolFailed(f"{request.reason}; {_NO_APPROVER}", error="needs_approval")
        verdict = await approver.approve(request)
        match verdict:
            case Approved(final, start, by):
                arguments = self._check(entry, final)
                changed = changed_call(request.arguments, arguments, by)
                # Without `start`, the call may have started before.
                interrupted = interrupted and start is None
                return _PermittedCall(arguments, changed, start, interrupted)
            case Begun(final, by):
                can_repeat = entry.tool.idempotent
                arguments = self._check(entry, final) if can_repeat else dict(final)
                changed = changed_call(request.arguments, arguments, by)
                return _PermittedCall(arguments, changed, interrupted=not can_repeat)
            case Denied(why, error):
                raise ToolFailed(
                    f"{_REFUSALS[error]}: {why}" if why else _REFUSALS[error], error=error
                )
            case _:
                assert_never(verdict)

    # Running ------------------------------------------------------------------------------------

    async def _attempt(
        self, entry: ToolEntry, arguments: Mapping[str, JsonValue], site: CallSite
    ) -> str:
        timeout = entry.timeout or self._tool_policy.timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                with contained():  # a copy, so that the tool cannot change the record
                    copied = copy.deepcopy(dict(arguments))
                    return await self._tool_policy.perform(entry.tool, copied, site)
        except (ToolFailed, Parked):
            raise
        except ConnectionLost as exc:
            raise ToolFailed(str(exc), error="connection_lost") from exc
        except TimeoutError as exc:
            if not limit.expired():  # raised by the tool itself
                raise _tool_error(entry, exc) from exc
            message = f"no result after {timeout:g} s; what it does may still take effect"
            raise ToolFailed(message, error="timeout", retry=entry.tool.idempotent) from exc
        except Exception as exc:
            raise _tool_error(entry, exc) from exc


_UNKNOWN = (
    "the process stopped while this ran: it may or may not have taken effect; "
    "find out before you call it again"
)
_REFUSALS = {
    "denied": "a person refused this call, so it did not run",
    "expired": "this call was not approved in time, so it did not run",
    "cancelled": "the approval of this call was cancelled, so it did not run",
}
_NO_APPROVER = "it cannot be approved here, so it did not run; do without it, or say you need it"


def _interrupted_error() -> ToolFailed:
    return ToolFailed(_UNKNOWN, error="interrupted")


def _is_temporary(exc: ToolFailed, retry: Retry) -> bool:
    """Whether the same call may succeed a little later."""
    if exc.error == "timeout" and not retry.timeouts:
        return False
    return exc.retry and exc.error not in _NEVER_RETRIED


def _tool_error(entry: ToolEntry, exc: Exception) -> ToolFailed:
    log.warning("tool failed", tool=entry.name, exc_info=exc)
    return ToolFailed(describe_error(exc), error="tool_failed")
