"""The user message of a turn, with fewer messages of the history where not all have room. Pure.

What goes first, each time the oldest message of a thread:

1. of other threads all but the last three messages, from the least recently active thread on
2. those threads as a whole, in the same order
3. of the incoming thread all but the last three
4. (`rest`) these, too: only when nothing else is left

The incoming messages always stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hubbub.agents.inbox import Thread, TurnPlan
from hubbub.agents.prompt.render import ConversationTemplate, ThreadView, select_history
from hubbub.config.agents import History
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = ["Conversation", "first_that_fits"]

_RECENT = 3


class Conversation:
    """What a turn's user message shows, and may leave out."""

    def __init__(
        self,
        template: ConversationTemplate,
        threads: Mapping[str, ThreadView],
        incoming_thread_id: str,
        incoming: Sequence[Message],
        omitted: int = 0,
    ):
        """`threads` by relative id, the most recently active first, as `incoming_thread_id` is."""
        self._template, self._shorter = template, template.beside()
        self._threads, self._incoming_thread = threads, incoming_thread_id
        self._incoming, self._omitted = incoming, omitted
        self._order: list[str] | None = None
        self._texts: dict[int, str] = {}

    @classmethod
    def of(
        cls,
        template: ConversationTemplate,
        threads: Iterable[Thread],
        turn: TurnPlan,
        me: str,
        rules: History,
    ) -> Conversation:
        """What the prompt of `turn` shows the agent `me`."""
        views = select_history(threads, turn, me, rules)
        incoming = thread_ids.relative(turn.thread_id, me)
        return cls(template, views, incoming, turn.shown, turn.omitted)

    @property
    def text(self) -> str:
        """All of it."""
        return self.without(0)

    @property
    def in_thread(self) -> Sequence[Message]:
        """What the turn shows of the thread that woke the agent, before anything is left out."""
        view = self._threads.get(self._incoming_thread)
        return [*(view.messages if view is not None else ()), *self._incoming]

    @property
    def messages(self) -> int:
        """How many messages of the history may be left out in all."""
        return sum(len(view.messages) for view in self._threads.values())

    @property
    def spare(self) -> int:
        """How many of them go before anything else does."""
        recent = self._threads.get(self._incoming_thread)
        return self.messages - (min(_RECENT, len(recent.messages)) if recent else 0)

    def without(self, n: int) -> str:
        """The message without the first `n` of those that may be left out."""
        if n not in self._texts:
            template = self._shorter if n else self._template
            shown = self._left(n) if n else self._threads
            thread, incoming = self._incoming_thread, self._incoming
            self._texts[n] = template.render(shown, thread, incoming, self._omitted)
        return self._texts[n]

    def _left(self, n: int) -> dict[str, ThreadView]:
        if n >= self.messages:
            return {}
        gone = Counter(self._going()[:n])
        views = (ThreadView(id, view.messages[gone[id] :]) for id, view in self._threads.items())
        return {view.id: view for view in views if view.messages}

    def _going(self) -> list[str]:
        """The threads of the messages that go, in order."""
        if self._order is None:
            self._order = list(self._in_order())
        return self._order

    def _in_order(self) -> Iterator[str]:
        others = {
            id: len(view.messages)
            for id, view in reversed(list(self._threads.items()))
            if id != self._incoming_thread
        }
        for id, held in others.items():
            yield from [id] * (held - _RECENT)
        for id, held in others.items():
            yield from [id] * min(held, _RECENT)
        if self._incoming_thread in self._threads:
            view = self._threads[self._incoming_thread]
            yield from [self._incoming_thread] * len(view.messages)


def first_that_fits(cost: Callable[[int], int], room: int, low: int, high: int) -> int:
    """The smallest n from `low` to `high` with `cost(n) <= room`; `high` if there is none.

    `cost` is taken to fall steadily, so that a few looks find it.
    """
    top, bottom = cost(low), cost(high)
    if top <= room or low == high:
        return low
    if bottom > room:
        return high
    # cost(low) does not fit, cost(high) does: guess by proportion, then close in
    while high - low > 1:
        part = (top - room) / max(top - bottom, 1)
        guess = min(max(low + round(part * (high - low)), low + 1), high - 1)
        found = cost(guess)
        if found <= room:
            high, bottom = guess, found
        else:
            low, top = guess, found
    return high
