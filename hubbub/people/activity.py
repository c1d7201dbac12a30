"""What others are doing at the moment, from their signals. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.people.text import clip, one_line
from hubbub.protocol.frames import Signal

__all__ = ["LASTS_S", "TYPING_S", "CurrentActivities", "Doing"]

LASTS_S = 900.0
"""Seconds after which an activity that nobody confirmed is taken for over. Long: an agent says when
it begins to ask its model, and that it is done; one that dies is told as absent."""
TYPING_S = 10.0
"""The same for typing, which nobody takes back."""
QUIET = frozenset({"", "idle", "done", "finished", "stopped", "off", "end", "ended"})
"""States that say: nothing any more."""
MOST = 40
"""Columns of one activity."""


@dataclass(frozen=True)
class Doing:
    """What somebody does, and since when (monotonic seconds)."""

    text: str
    thread_id: str | None
    since: float
    until: float
    turn: str | None = None
    """The turn in which an agent does it, where it says so."""


class CurrentActivities:
    """`activity` and `typing` signals until they end, are contradicted or grow old.

    An `activity` says in `data` what its sender does: text, or an object with `state` (and `tool`).
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], Doing] = {}

    def take(self, signal: Signal, now: float) -> None:
        """A signal arrived at `now` (monotonic seconds)."""
        if signal.sender is None or signal.type not in ("activity", "typing"):
            return
        typing = signal.type == "typing"
        key = (signal.sender, signal.thread_id)
        text = "typing" if typing else _doing(signal.data)
        if text in QUIET or signal.data is False:
            self._over(*key)
            return
        before = self._running.get(key)
        since = now - (signal.age_s or 0.0)
        if before is not None and before.text == text:
            since = min(since, before.since)
        until = now + (TYPING_S if typing else LASTS_S)
        turn = signal.data.get("turn") if isinstance(signal.data, dict) else None
        named = turn if isinstance(turn, str) else None
        self._running[key] = Doing(text, signal.thread_id, since, until, named)

    def over(self, sender: str, thread_id: str) -> None:
        """The sender has spoken in the thread."""
        self._running.pop((sender, thread_id), None)

    def left(self, sender: str) -> None:
        """The sender is gone."""
        self._running = {key: doing for key, doing in self._running.items() if key[0] != sender}

    def clear(self) -> None:
        """Nobody is heard any more: the connection is lost."""
        self._running.clear()

    def by_sender(self, time: float) -> dict[str, Doing]:
        """What each does who does something; what it does in a thread says more than that it works
        at all."""
        self._forget_old(time)
        everywhere_first = sorted(self._running.items(), key=lambda item: item[0][1] is not None)
        return {sender: doing for (sender, _), doing in everywhere_first}

    def in_thread(self, thread_id: str, time: float) -> dict[str, Doing]:
        """What each does who does something in a thread."""
        self._forget_old(time)
        running = self._running.items()
        return {sender: doing for (sender, where), doing in running if where == thread_id}

    def turns(self, thread_id: str) -> set[str]:
        """The turns in which agents work in a thread, as far as they say so."""
        running = self._running.values()
        return {doing.turn for doing in running if doing.turn and doing.thread_id == thread_id}

    def ended(self, turn: str) -> None:
        """A turn is over, whatever its agent says of it."""
        self._running = {key: doing for key, doing in self._running.items() if doing.turn != turn}

    def _forget_old(self, time: float) -> None:
        self._running = {key: value for key, value in self._running.items() if value.until > time}

    def now(self, time: float) -> list[str]:
        """Sentences such as `calculator is thinking`, one for each who does something."""
        return [
            f"{sender} is {doing.text}" for sender, doing in sorted(self.by_sender(time).items())
        ]

    def _over(self, sender: str, thread_id: str | None) -> None:
        if thread_id is None:
            self.left(sender)  # idle altogether
        else:
            self.over(sender, thread_id)


def _doing(data: JsonValue) -> str:
    if isinstance(data, str):
        return clip(one_line(data), MOST)
    if not isinstance(data, dict):
        return "thinking" if data else ""
    state = data.get("state")
    text = one_line(state) if isinstance(state, str) else "thinking"
    tool = data.get("tool")
    if text not in QUIET and isinstance(tool, str) and tool:
        text = f"{text} {one_line(tool)}"
    return clip(text, MOST)
