"""What the runtime gives a tool function that asks for it by the type of a parameter.

@tool(permission="write", idempotent=True)
def pay(amount: int, key: IdempotencyKey, stop: CancelToken) -> str:
    '''Pay an amount.'''

Models neither see nor fill these parameters.
"""

from __future__ import annotations

import threading
from typing import Annotated, get_args, get_origin

__all__ = ["CancelToken", "Cancelled", "IdempotencyKey", "given_kind"]


class IdempotencyKey(str):
    """A key that is the same whenever the same call of the same turn is made again.

    Hand it to the service that does the work, so that doing it twice does it once. A parameter may
    also be written `key: Annotated[str, IdempotencyKey]`.
    """

    __slots__ = ()


class Cancelled(Exception):
    """Raised by `CancelToken.check`: nobody waits for the result any more."""


class CancelToken:
    """Tells a plain function, which runs in a thread, that its call was given up.

    A thread cannot be ended from outside: without this a function runs on to its end, and what it
    returns is thrown away.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the call took too long, or its turn was stopped."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Give the call up: the runtime does."""
        self._event.set()

    def check(self) -> None:
        """Raise `Cancelled` if the call was given up."""
        if self.cancelled:
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until the call is given up. Returns whether it was."""
        return self._event.wait(seconds)


def given_kind(annotation: object) -> type[IdempotencyKey] | type[CancelToken] | None:
    """Which of the two an annotation asks for; None for an argument that a model fills."""
    kinds = [annotation]
    if get_origin(annotation) is Annotated:
        kinds += get_args(annotation)
    for kind in (IdempotencyKey, CancelToken):
        if any(found is kind for found in kinds):
            return kind
    return None
