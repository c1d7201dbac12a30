"""What an operation of a mod raises in place of an answer, by the reason."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["bad_request", "conflict", "forbidden", "not_found", "over_limit", "too_large"]


def _refusal(code: ErrorCode) -> Callable[..., OperationError]:
    def refusal(text: str, **details: object) -> OperationError:
        return OperationError(code, text, details=details)

    return refusal


bad_request = _refusal(ErrorCode.BAD_REQUEST)
"""The arguments are wrong."""
conflict = _refusal(ErrorCode.CONFLICT)
"""It was changed meanwhile, or is not in a state for that."""
forbidden = _refusal(ErrorCode.FORBIDDEN)
"""The caller may not do that."""
not_found = _refusal(ErrorCode.NOT_FOUND)
"""There is none, for the caller."""
over_limit = _refusal(ErrorCode.LIMIT)
"""There are as many as there may be."""
too_large = _refusal(ErrorCode.TOO_LARGE)
"""It has more bytes, characters or lines than it may."""
