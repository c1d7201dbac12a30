"""A question, its answer, and its failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from hubbub.errors import HubbubError, OperationError
from hubbub.ids import new_ulid
from hubbub.interop.asking.conversations import Conversation
from hubbub.interop.asking.request import InboundRequest
from hubbub.protocol.external_tools import ExternalCall, call_in
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Receipt

__all__ = ["Question", "QuestionFailed"]

NOTICE_S = 2.0
"""Seconds to wait, after a turn, for the hub's notice about a missing answer."""
_PROCESS_ID, _NUMBERS = new_ulid(), count()
"""Name a question: a ULID for each would cost more than its two locks."""
_TAIL = 200
"""Characters used to match a truncated partial text with the text before it."""


class QuestionFailed(HubbubError):
    """There is no answer. `status` is an HTTP status."""

    def __init__(self, status: int, code: str, message: str, *, retry_after_s: float | None = None):
        """`retry_after_s`: seconds until the same request can succeed; None: not by retrying."""
        self.status, self.code, self.message, self.retry_after_s = (
            status,
            code,
            message,
            retry_after_s,
        )
        super().__init__(message)

    @classmethod
    def from_error(cls, error: HubbubError) -> QuestionFailed:
        if isinstance(error, QuestionFailed):
            return error
        if not isinstance(error, OperationError):
            return cls(503, "unavailable", f"the hub is unavailable: {error}", retry_after_s=1)
        retry = (error.retry_after_s or 1) if error.temporary else None
        return cls(_STATUS.get(error.code, 400), error.code, error.message, retry_after_s=retry)


_STATUS = {
    "auth_failed": 401,
    "forbidden": 403,
    "unknown_participant": 404,
    "unknown_thread": 404,
    "unknown_message": 404,
    "cid_conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "draining": 503,
    "store_unavailable": 503,
}


class Question:
    """A question, and its answer so far."""

    def __init__(self, request: InboundRequest, conversation: Conversation, idempotency_key: str):
        """`idempotency_key` is empty if the asker sent none."""
        self.request, self.conversation = request, conversation
        self.idempotency_key = idempotency_key
        self.key = idempotency_key or f"{_PROCESS_ID}{next(_NUMBERS)}"
        """Part of the cids of its messages, so that none is sent twice."""
        self.message: Message | None = None
        """The question in the log."""
        self.messages: list[Message] = []
        """The agent's messages in response."""
        self.written = ""
        """The text of the answer so far; it only grows."""
        self.state = ""
        """What the question waits for, as text; empty while the agent works."""
        self.approval = ""
        """The id of the latest approval that it waited for."""
        self.receipt: Receipt | None = None
        self.failure: QuestionFailed | None = None
        self.is_abandoned = False
        """Whether its turn is being stopped, as no caller waited for it."""
        self.done = asyncio.Event()
        self._partial = ""
        self._notice = asyncio.Event()
        self._reason = ""
        self._listeners = 0
        self._changed = asyncio.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """A context that counts one listener."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    @property
    def is_awaited(self) -> bool:
        """Whether there is a listener."""
        return self._listeners > 0

    @property
    def calls(self) -> list[ExternalCall]:
        """Tool calls for the asker to run."""
        return [call for message in self.messages if (call := call_in(message)) is not None]

    @property
    def text(self) -> str:
        """The whole answer."""
        texts = (m.text.strip() for m in self.messages if call_in(m) is None)
        return "\n\n".join(texts)

    @property
    def outcome(self) -> str | None:
        """The outcome of its turn."""
        return self.receipt.outcome if self.receipt is not None else None

    async def wait_changed(self, timeout_s: float) -> bool:
        """Wait for a change; false if there was none within `timeout_s` seconds."""
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        return changed.is_set()

    def notify(self) -> None:
        """Wake the listeners."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # Incoming -----------------------------------------------------------------------------------

    def add_message(self, message: Message) -> None:
        """Add a message of the agent; a repeated one is ignored."""
        if any(earlier.id == message.id for earlier in self.messages):
            return
        self.messages.append(message)
        if call_in(message) is None:
            self._write(message.text.strip())
            self._partial = ""
        self.state = ""
        self.notify()

    def update_partial(self, text: str) -> None:
        """Take the text that the agent's model has written so far."""
        text = text.lstrip()
        if text.startswith("…") and self._partial:  # truncated: only the end was sent
            at = text.rfind(self._partial[-_TAIL:])
            if at < 0:
                return
            text = self._partial + text[at + len(self._partial[-_TAIL:]) :]
        if text and text.startswith(self._partial):
            self._write(text)
            self._partial = text
            self.notify()

    def _write(self, text: str) -> None:
        """Bring `written` up to the current text of the message being written."""
        if self._partial and text.startswith(self._partial):
            self.written += text[len(self._partial) :]
        elif text != self._partial.strip():
            self.written += f"\n\n{text}" if self.written else text

    def handle_notice(self, message: Message) -> None:
        """Handle a notice about a missing answer, or about what the agent waits for."""
        id = self.message.id if self.message is not None else ""
        match message.content:
            case {"messages": list(about), **more} if id in about:
                self._reason = message.text
                self._notice.set()
                if more.get("code") == "agent_down":
                    self.fail(QuestionFailed(503, "down", message.text))
            case {"code": "approval", "approval": str(approval), **more} if (
                more.get("agent") == self.request.model or more.get("message") == id
            ):
                self.state, self.approval = message.text, approval
                self.notify()

    async def fail_silent(self) -> None:
        """Fail because the turn ended without an answer, with the reason from the hub's notice."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NOTICE_S):
                await self._notice.wait()
        outcome = self.outcome or "silent"
        reason = self._reason or f"{self.request.model} did not answer: {outcome.replace('_', ' ')}"
        status = 429 if outcome == "budget_exhausted" else 502
        self.fail(QuestionFailed(status, outcome, reason))

    def fail(self, failure: QuestionFailed) -> None:
        self.failure = failure
        self.finish()

    def finish(self) -> None:
        """The answer is complete."""
        self.done.set()
        self.notify()
