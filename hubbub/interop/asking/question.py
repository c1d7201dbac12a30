"""A question, what comes of it, and how it fails."""

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

__all__ = ["Failed", "Question"]

NOTICE_S = 2.0
"""Seconds that the hub may take, after a turn, to say why there is no answer."""
_LIFE, _NUMBERS = new_ulid(), count()
"""Of this process, and of its questions: a fresh ULID for each costs more than its two locks."""
_TAIL = 200
"""Characters by which the rest of a text is found of which only the end is told."""


class Failed(HubbubError):
    """There is no answer: as the door tells it."""

    def __init__(self, status: int, code: str, message: str, *, again_s: float | None = None):
        """`again_s`: seconds after which the same request may succeed; None: never by itself."""
        self.status, self.code, self.message, self.again_s = status, code, message, again_s
        super().__init__(message)

    @classmethod
    def of(cls, error: HubbubError) -> Failed:
        """What the hub refuses."""
        if isinstance(error, Failed):
            return error
        if not isinstance(error, OperationError):
            return cls(503, "unavailable", f"the hub is not there: {error}", again_s=1)
        again = (error.retry_after_s or 1) if error.temporary else None
        return cls(_STATUS.get(error.code, 400), error.code, error.message, again_s=again)


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
    """A question, and its answer as far as it is there; those who listen are told of changes."""

    def __init__(self, asked: InboundRequest, conversation: Conversation, once: str):
        """`once`: a key under which it is asked once, if the asker has given one."""
        self.asked, self.conversation, self.once = asked, conversation, once
        self.key = once or f"{_LIFE}{next(_NUMBERS)}"
        """Names its messages, so that none is sent twice."""
        self.message: Message | None = None
        """As it stands in the log."""
        self.messages: list[Message] = []
        """What the agent has said because of it."""
        self.written = ""
        """The answer as far as it is told: it only grows."""
        self.state = ""
        """What it waits for, in words; empty: for the agent's work."""
        self.approval = ""
        """The approval that it waits for, or has last waited for."""
        self.receipt: Receipt | None = None
        self.failure: Failed | None = None
        self.over = asyncio.Event()
        self._partial = ""
        self._notice = asyncio.Event()
        self._why = ""
        self._listeners = 0
        self._news = asyncio.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within, somebody waits for it."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for it."""
        return self._listeners > 0

    @property
    def calls(self) -> list[ExternalCall]:
        """Those that the asker shall run."""
        return [call for message in self.messages if (call := call_in(message)) is not None]

    @property
    def text(self) -> str:
        """The whole answer."""
        texts = (m.text.strip() for m in self.messages if call_in(m) is None)
        return "\n\n".join(texts)

    @property
    def outcome(self) -> str | None:
        """How its turn ended."""
        return self.receipt.outcome if self.receipt is not None else None

    async def changed(self, within_s: float) -> bool:
        """Wait until something is new; false: nothing was within so many seconds."""
        news = self._news
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await news.wait()
        return news.is_set()

    def told(self) -> None:
        """Something is new."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    # What arrives -------------------------------------------------------------------------------

    def take(self, message: Message) -> None:
        """The agent has said something."""
        if any(known.id == message.id for known in self.messages):
            return
        self.messages.append(message)
        if call_in(message) is None:
            self._write(message.text.strip())
            self._partial = ""
        self.state = ""
        self.told()

    def take_partial(self, text: str) -> None:
        """The agent's model has written this far."""
        text = text.lstrip()
        if text.startswith("…") and self._partial:  # only its end is told
            at = text.rfind(self._partial[-_TAIL:])
            if at < 0:
                return
            text = self._partial + text[at + len(self._partial[-_TAIL:]) :]
        if text and text.startswith(self._partial):
            self._write(text)
            self._partial = text
            self.told()

    def _write(self, text: str) -> None:
        """The message that is being written reads like this now."""
        if self._partial and text.startswith(self._partial):
            self.written += text[len(self._partial) :]
        elif text != self._partial.strip():
            self.written += f"\n\n{text}" if self.written else text

    def take_notice(self, message: Message) -> None:
        """The hub says why there is no answer, or what the agent waits for."""
        id = self.message.id if self.message is not None else ""
        match message.content:
            case {"messages": list(about)} if id in about:
                self._why = message.text
                self._notice.set()
            case {"code": "approval", "agent": self.asked.model, "approval": str(approval)}:
                self.state, self.approval = message.text, approval
                self.told()

    async def silent(self) -> None:
        """It is over without an answer: say why."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NOTICE_S):
                await self._notice.wait()
        outcome = self.outcome or "silent"
        why = self._why or f"{self.asked.model} has not answered: {outcome.replace('_', ' ')}"
        status = 429 if outcome == "budget_exhausted" else 502
        self.fail(Failed(status, outcome, why))

    def fail(self, failure: Failed) -> None:
        """There is no answer."""
        self.failure = failure
        self.finish()

    def finish(self) -> None:
        """Nothing more comes."""
        self.over.set()
        self.told()
