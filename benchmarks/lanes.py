"""The accounting of the load: what was sent, what has arrived where, and how long it took.

A lane is one sender with its receivers. A message is complete when every receiver has it and, where
the server answers, the sender has the answer too. Only then does the sender's window move on: with
a window of one, a message follows the completion of the one before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

__all__ = ["Lane", "Lost"]


class Lost(Exception):
    """Something sent did not arrive, came twice or came out of order: the figures are void."""


class Lane:
    """What one sender has sent and what came of it.

    `parts` is the number of arrivals that complete a message: one for each receiver, and one more
    for the answer if the server `answers`. `transmit(index)` puts message `index` on the wire.
    """

    def __init__(self, receivers: int, *, answers: bool, clock: Callable[[], float]):
        self.transmit: Callable[[int], None] = _nowhere
        self.receivers = receivers
        self.sent = 0
        self.done = 0
        self.running = False
        self.round_trips = array("d")
        """Seconds from sending to completion, in order of completion."""
        self.answer_times = array("d")
        """Seconds from sending to the server's answer."""
        self._parts = receivers + answers
        self._left: dict[int, int] = {}
        self._sent_at: dict[int, float] = {}
        self._arrived = [0] * receivers
        self._clock = clock

    def start(self, window: int) -> None:
        """Put `window` messages in flight and keep as many there until `stop`."""
        self.running = True
        for _ in range(window):
            self._send()

    def stop(self) -> None:
        """Send nothing more; what is in flight still completes."""
        self.running = False

    @property
    def in_flight(self) -> int:
        return len(self._left)

    def arrived(self, receiver: int, index: int) -> None:
        """Message `index` is at `receiver`. Raises `Lost` if it is not the next one there."""
        expected = self._arrived[receiver]
        if index != expected:
            raise Lost(f"receiver {receiver} got message {index} where {expected} was due")
        self._arrived[receiver] = expected + 1
        left = self._left[index]
        if left > 1:  # as nearly always in a fan-out, where a call more would be felt
            self._left[index] = left - 1
        else:
            self._complete(index)

    def answered(self, index: int) -> None:
        """The server has answered message `index`."""
        if index not in self._sent_at:
            raise Lost(f"message {index} was answered twice, or never sent")
        self.answer_times.append(self._clock() - self._sent_at[index])
        left = self._left[index]
        if left > 1:
            self._left[index] = left - 1
        else:
            self._complete(index)

    def verify(self) -> None:
        """Raises `Lost` unless everything that was sent has arrived everywhere."""
        if self._left:
            raise Lost(f"{len(self._left)} of {self.sent} messages never completed")
        if any(count != self.sent for count in self._arrived):
            raise Lost(f"sent {self.sent}, arrived {self._arrived}")

    def _send(self) -> None:
        index = self.sent
        self.sent = index + 1
        self._left[index] = self._parts
        self._sent_at[index] = self._clock()
        self.transmit(index)

    def _complete(self, index: int) -> None:
        del self._left[index]
        self.round_trips.append(self._clock() - self._sent_at.pop(index))
        self.done += 1
        if self.running:
            self._send()


def _nowhere(index: int) -> None:
    raise RuntimeError(f"message {index} has no wire to go out on")
