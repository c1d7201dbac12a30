"""What others are doing at the moment, from their signals. Pure."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.cli.chat.text import clip, one_line
from hubbub.protocol.frames import Signal

__all__ = ["Activities"]

LASTS_S = 30.0
"""Seconds after which an activity that nobody confirmed is taken for over."""
QUIET = frozenset({"", "idle", "done", "finished", "stopped", "off", "end", "ended"})
"""States that say: nothing any more."""
MOST = 40
"""Columns of one activity."""


class Activities:
    """`activity` and `typing` signals until they end, are contradicted or grow old.

    An `activity` says in `data` what its sender does: text, or an object with `state` (and `tool`).
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], tuple[str, float]] = {}

    def take(self, signal: Signal, now: float) -> None:
        """A signal arrived at `now` (monotonic seconds)."""
        if signal.sender is None or signal.type not in ("activity", "typing"):
            return
        doing = "typing" if signal.type == "typing" else _doing(signal.data)
        if doing in QUIET or signal.data is False:
            self._running.pop((signal.sender, signal.thread_id), None)
        else:
            self._running[signal.sender, signal.thread_id] = (doing, now + LASTS_S)

    def over(self, sender: str, thread_id: str) -> None:
        """The sender has spoken in the thread."""
        self._running.pop((sender, thread_id), None)

    def left(self, sender: str) -> None:
        """The sender is gone."""
        self._running = {key: doing for key, doing in self._running.items() if key[0] != sender}

    def now(self, time: float) -> list[str]:
        """Sentences such as `calculator is thinking`, one for each who does something."""
        self._running = {key: value for key, value in self._running.items() if value[1] > time}
        doing = {sender: text for (sender, _), (text, _) in self._running.items()}
        return [f"{sender} is {text}" for sender, text in sorted(doing.items())]


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
