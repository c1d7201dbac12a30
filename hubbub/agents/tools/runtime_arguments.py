"""Values that the runtime passes to a tool function that has a parameter of their type.

    @tool(permission="write", idempotent=True)
    def pay(amount: int, key: IdempotencyKey, stop: CancelToken) -> str:
        '''Pay an amount.'''

Models neither see nor fill in these parameters.
"""

from __future__ import annotations

import threading
from typing import Annotated, get_args, get_origin

__all__ = ["CancelToken", "Cancelled", "IdempotencyKey", "runtime_kind"]


class IdempotencyKey(str):
    """A key that stays the same whenever the same call of the same turn is repeated.

    Pass it to the service that does the work, so that repeating the call has no further effect. A
    parameter may also be written `key: Annotated[str, IdempotencyKey]`.
    """

    __slots__ = ()


class Cancelled(Exception):
    """Raised by `CancelToken.check`: the call was cancelled."""


class CancelToken:
    """Tells a plain function, which runs in a thread, that its call was cancelled.

    A thread cannot be stopped from outside: without this a function runs to its end, and its result
    is discarded.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the call timed out or its turn was stopped."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel the call; used by the runtime."""
        self._event.set()

    def check(self) -> None:
        """Raise `Cancelled` if the call was cancelled."""
        if self.cancelled:
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Sleep for so long, or until the call is cancelled. Returns whether it was."""
        return self._event.wait(seconds)


def runtime_kind(annotation: object) -> type[IdempotencyKey] | type[CancelToken] | None:
    """The type that an annotation asks for; None for an argument that a model fills in."""
    kinds = [annotation]
    if get_origin(annotation) is Annotated:
        kinds += get_args(annotation)
    for kind in (IdempotencyKey, CancelToken):
        if any(found is kind for found in kinds):
            return kind
    return None
