"""Calls: operations that sessions request, run and answered.

checks (rate, permission) -> the operation's handler -> answer
                              a message, or records: the answer follows the commit
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Coroutine
from typing import Any

from msgspec.json import encode as encode_json
from pydantic import BaseModel

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.operation import Commit, Operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.records import Record
from hubbub.network.service import Registry
from hubbub.network.session import Session
from hubbub.protocol.codec import Call
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft
from hubbub.protocol.plain import PlainSpeech

__all__ = ["CallDispatcher", "call_digest"]

log = get_logger(__name__)


class CallDispatcher:
    """Runs the operations of one hub."""

    def __init__(self, kernel: Kernel, registry: Registry):
        self._operations, self._limits = registry.by_name, kernel.limits
        self._metrics, self._writes, self._spawn = kernel.metrics, kernel.writes, kernel.spawn
        self._monotonic = kernel.clock.monotonic

    def take(self, session: Session, call: Call) -> None:
        """Run an operation and send its answer."""
        caller = session.caller
        assert caller is not None, "the state table allows calls only after `ready`"
        self._metrics.calls += 1
        operation = self._operations[call.name]
        try:
            wait = caller.bucket.take(self._monotonic(), operation.cost)
            if wait:
                session.count_over_rate()
                raise self._over_rate(wait)
            if session.bad_frames or session.calls_over_rate:
                session.count_good_call()
            if operation.permission == "admin":
                caller.require_owner()
        except OperationError as error:
            self._refuse(session, caller, call, operation, error)
            return
        if session.behind is not None and operation.permission != "read":
            session.behind.append(call)
        else:
            self._run(session, caller, call, operation)

    def refuse_draining(self, session: Session, call: Call) -> None:
        """Refuse a call while the hub is stopping."""
        error = OperationError(
            ErrorCode.DRAINING, "the hub is stopping; reconnect", temporary=True, retry_after_s=1
        )
        session.failed(call.ref, error)

    def _over_rate(self, wait: float) -> OperationError:
        return OperationError(
            ErrorCode.RATE_LIMITED,
            f"at most {self._limits.calls_per_second:g} calls a second",
            temporary=True,
            retry_after_s=round(wait, 3),
        )

    def _run(self, session: Session, caller: Caller, call: Call, operation: Operation) -> None:
        try:
            if operation.is_async:
                later: Coroutine[Any, Any, None] | None = self._call_async(
                    session, caller, call, operation
                )
            else:
                outcome = operation.handler(caller, call.args)
                later = self._conclude(session, caller, call, operation, outcome)
        except OperationError as error:
            self._refuse(session, caller, call, operation, error)
        except Exception as error:
            log.exception("operation failed", operation=operation.name)
            session.failed(call.ref, error)
        else:
            if later is not None and operation.permission == "read":
                self._spawn(session.read(later))
            elif later is not None:
                session.behind = deque()
                self._spawn(self._in_order(session, caller, later))

    async def _in_order(
        self, session: Session, caller: Caller, write: Coroutine[Any, Any, None]
    ) -> None:
        """Finish a write that must read first, then run the writes that the session sent
        meanwhile."""
        try:
            await write
        finally:
            behind, session.behind = session.behind or deque(), None
            while behind and session.behind is None:
                call = behind.popleft()
                self._run(session, caller, call, self._operations[call.name])
            if session.behind is not None:
                session.behind.extend(behind)

    async def _call_async(
        self, session: Session, caller: Caller, call: Call, operation: Operation
    ) -> None:
        try:
            outcome = await operation.handler(caller, call.args)
            later = self._conclude(session, caller, call, operation, outcome)
            if later is not None:
                await later
        except OperationError as error:
            self._refuse(session, caller, call, operation, error)
        except StoreUnavailable as error:
            session.failed(call.ref, error)
        except Exception as error:
            log.exception("operation failed", operation=operation.name)
            session.failed(call.ref, error)

    def _conclude(
        self,
        session: Session,
        caller: Caller,
        call: Call,
        operation: Operation,
        outcome: BaseModel | Draft | Commit[Record],
    ) -> Coroutine[Any, Any, None] | None:
        """Write and answer a handler's outcome; returns the remaining work, if any."""
        ref, cid = call.ref, call.cid
        if isinstance(outcome, Draft):
            digest = None if cid is None else call_digest(call)
            return self._writes.submit(Entry(outcome, session, ref, cid=cid, digest=digest))
        if isinstance(outcome, Commit):
            keep = cid is not None and not operation.idempotent
            settle = (caller.participant, cid or "", call_digest(call)) if keep else None

            def done(answer: BaseModel | Exception) -> None:
                if not isinstance(answer, BaseModel):
                    self._refuse(session, caller, call, operation, answer)
                    return
                try:
                    session.result(ref, answer.model_dump_json(exclude_none=True).encode())
                except Exception as error:  # a mod's answer can contain values that JSON has not
                    log.exception("operation failed", operation=operation.name)
                    session.failed(ref, error)

            self._writes.commit(outcome, done, settle)
        else:
            session.result(ref, outcome.model_dump_json(exclude_none=True).encode())
        return None

    def _refuse(
        self,
        session: Session,
        caller: Caller,
        call: Call,
        operation: Operation,
        error: Exception,
    ) -> None:
        """Answer with an error, unless this repeats a write that succeeded before."""
        if call.cid is None or operation.permission == "read" or _is_temporary(error):
            session.failed(call.ref, error)
            return
        digest = call_digest(call)
        self._writes.answer_repeat(
            caller.participant, call.cid, digest, session, call.ref, otherwise=error
        )


def call_digest(call: Call) -> int:
    """A checksum of the call, equal for a repetition; it guards against mistakes, not attacks."""
    args = call.args
    if isinstance(args, PlainSpeech):
        asked = encode_json(args)
    else:
        asked = args.__pydantic_serializer__.to_json(args, exclude_defaults=True)
    return zlib.crc32(asked, len(call.name))


def _is_temporary(error: Exception) -> bool:
    return isinstance(error, StoreUnavailable) or (
        isinstance(error, OperationError) and error.temporary
    )
