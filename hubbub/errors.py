"""Every failure that Hubbub raises, as one tree.

    HubbubError
    ├── UserError                 the user's input is wrong; exit code 2
    │   ├── ConfigError           in a config file: path, line, what was expected
    │   └── StoreVersionError     the database was written by another version
    ├── OperationError            the hub refused a call; carries a wire code
    ├── ConnectionLost            the socket ended; carries the close code
    ├── StoreUnavailable          the disk refused; retrying later may help
    │   └── LogDamaged            a log entry is damaged or missing
    ├── RequestFailed             a request to another agent has no result
    └── ModelError                a model endpoint failed for good
        ├── ToolsRefused          it does not support tools, or `tool_choice`
        ├── FormRefused           it does not support answers by a schema
        └── BudgetExhausted       the model was not called: a budget is used up

Wire errors are data: `OperationError` has the content of an `error` frame, on both ends of the
socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = [
    "BudgetExhausted",
    "ConfigError",
    "ConnectionLost",
    "FormRefused",
    "HubbubError",
    "LogDamaged",
    "ModelError",
    "OperationError",
    "RequestFailed",
    "StoreUnavailable",
    "StoreVersionError",
    "ToolsRefused",
    "UserError",
]


class HubbubError(Exception):
    """The base of all errors that Hubbub raises on purpose."""


class UserError(HubbubError):
    """The user's input is wrong. The text is one sentence with the place and the remedy."""


class ConfigError(UserError):
    """A config file cannot be used.

    `path` and `line` (from 1) locate the error; `line` is None for the whole file. `loc` has the
    path of keys and indexes to the value, if known.
    """

    def __init__(
        self,
        message: str,
        path: Path | str | None = None,
        line: int | None = None,
        loc: tuple[str | int, ...] = (),
    ):
        self.message, self.path, self.line, self.loc = message, path, line, loc
        place = f"{path}:{line}: " if path and line else f"{path}: " if path else ""
        super().__init__(place + message)


class StoreVersionError(UserError):
    """The database's schema is newer than this program, or is not Hubbub's."""


class OperationError(HubbubError):
    """A call that the hub refused.

    `code` is one of `hubbub.protocol.codes.ErrorCode` (mods can add their own), `temporary` is
    whether the same call may succeed later, `details` is JSON for programs.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        temporary: bool = False,
        retry_after_s: float | None = None,
        details: Mapping[str, object] | None = None,
    ):
        self.code, self.message, self.temporary = str(code), message, temporary
        self.retry_after_s, self.details = retry_after_s, dict(details or {})
        super().__init__(f"{self.code}: {message}")


class ConnectionLost(HubbubError):
    """The connection ended before the answer arrived. `code` is the WebSocket close code."""

    def __init__(self, code: int, reason: str = ""):
        self.code, self.reason = code, reason
        super().__init__(f"connection closed with {code}{f' ({reason})' if reason else ''}")


class StoreUnavailable(HubbubError):
    """The store could not commit (disk full, I/O error). Nothing of the batch was written."""


class LogDamaged(StoreUnavailable):
    """An entry of the log is missing or damaged; `seq` is its position, and `notice` the hub's
    message (as JSON) that takes its place in lists, if its thread is known."""

    def __init__(self, seq: int, message: str, notice: bytes | None = None):
        self.seq, self.notice = seq, notice
        super().__init__(message)


class RequestFailed(HubbubError):
    """A request to another agent failed.

    `request` is its id (m42), `outcome` a code such as `timeout`, `stopped`, `no_report` or
    `reported`, `reason` the explanation of the agent or the hub.
    """

    def __init__(self, request: str, outcome: str, reason: str):
        self.request, self.outcome, self.reason = request, outcome, reason
        super().__init__(f"{outcome}: {reason}")


class ModelError(HubbubError):
    """A model endpoint failed, and retrying does not help any more."""


class ToolsRefused(ModelError):
    """The endpoint does not accept requests with tools; another dialect may not need them."""


class FormRefused(ModelError):
    """The endpoint does not accept requests with a schema for the answer."""


class BudgetExhausted(ModelError):
    """The model was not called, as a budget is used up. The text names it."""
