"""Every failure that Hubbub raises, as one tree.

    HubbubError
    ├── UserError                 what the user wrote is wrong; exit code 2
    │   ├── ConfigError           a config file: path, line, what was expected
    │   └── StoreVersionError     the database was written by another version
    ├── OperationError            the hub refused a call; carries a wire code
    ├── ConnectionLost            the socket ended; carries the close code
    ├── StoreUnavailable          the disk said no; trying again later may help
    │   └── LogDamaged            what is there cannot be proven whole: it is not shown
    ├── RequestFailed             work that was asked of another agent has no result
    └── ModelError                a model endpoint failed for good
        ├── ToolsRefused          it takes no tools, or no `tool_choice`
        ├── FormRefused           it does not hold answers to a schema
        └── BudgetExhausted       it was not asked: a budget is used up

Wire errors are data: `OperationError` is what an `error` frame says, on both sides of the socket.
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
    """The root: catching it catches everything Hubbub raises on purpose."""


class UserError(HubbubError):
    """The user's input is wrong. The text is one sentence that says where and what to do."""


class ConfigError(UserError):
    """A config file cannot be used.

    `path` and `line` (from 1) say where; `line` is None when the whole file is meant. `loc` has the
    keys and indexes that lead to the value, where they are known.
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

    `code` is one of `hubbub.protocol.codes.ErrorCode` (mods may add their own), `temporary` says
    whether the same call may succeed later, `details` is JSON that a program can act on.
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
    """The connection ended before the answer came. `code` is the WebSocket close code."""

    def __init__(self, code: int, reason: str = ""):
        self.code, self.reason = code, reason
        super().__init__(f"connection closed with {code}{f' ({reason})' if reason else ''}")


class StoreUnavailable(HubbubError):
    """The store could not commit (disk full, I/O error). Nothing of the batch was kept."""


class LogDamaged(StoreUnavailable):
    """An entry of the log is missing or is not what was written; `seq` is its position."""

    def __init__(self, seq: int, message: str):
        self.seq = seq
        super().__init__(message)


class RequestFailed(HubbubError):
    """Work that was asked of another agent has come to nothing.

    `request` is its id (m42), `outcome` a code such as `timeout`, `stopped`, `no_report` or
    `reported`, `reason` what was said about it, by the agent or by the hub.
    """

    def __init__(self, request: str, outcome: str, reason: str):
        self.request, self.outcome, self.reason = request, outcome, reason
        super().__init__(f"{outcome}: {reason}")


class ModelError(HubbubError):
    """A model endpoint failed and retrying will not help, or no longer."""


class ToolsRefused(ModelError):
    """The endpoint does not take a request with tools: another dialect may do without them."""


class FormRefused(ModelError):
    """The endpoint does not take a request that says what its answer must be."""


class BudgetExhausted(ModelError):
    """The model was not asked: the hub says that a budget is used up. The text names it."""
