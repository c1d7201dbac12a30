"""What could come next while a person in charge types a command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hubbub.cli.control.reading import SCOPES

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known
    from hubbub.protocol.messages import Message

__all__ = ["choices"]

Choice = tuple[str, str]
"""A word and what is to be known of it."""
_SCOPES_SAY = {
    "turn": "the turn that runs here",
    "thread": "this thread, until it is resumed",
    "agent": "an agent, until it is resumed",
    "all": "everything, until it is resumed",
}


def choices(command: str, words: list[str], known: Known) -> Iterable[Choice]:
    """The words that may follow the `words` typed after `command`; empty for other commands."""
    match command, words:
        case ("stop", []):
            return ((scope, _SCOPES_SAY[scope]) for scope in SCOPES)
        case ("stop", ["turn"]):
            return _turns(known)
        case ("resume", []):
            return ((scope, _SCOPES_SAY[scope]) for scope in SCOPES if scope != "turn")
        case ("stop", ["agent"]) | ("takeover", []) | ("spending", []):
            return _agents(known)
        case ("stop", ["thread"]):
            return ((known.shown(thread), "") for thread in known.threads)
        case ("resume", ["agent" | "thread" as scope]):
            stops = (stop for stop in known.charge.stops if stop.scope == scope and stop.target)
            return ((_target(known, stop.target or ""), stop.reason) for stop in stops)
        case ("breaker", []):
            return [("list", "those that are latched"), ("release", "let one go on")]
        case ("breaker", ["release"]):
            return ((known.shown(one.thread_id), "") for one in known.charge.latched)
        case ("approve" | "deny", []):
            waiting = known.charge.approvals.values()
            return ((one.id, f"{one.agent} asks to run {one.tool}") for one in waiting)
        case ("approvals" | "requests", []):
            return [("all", "those that are over, too")]
        case ("handback" | "as", []):
            return ((agent, "you speak for it") for agent in known.charge.spoken_for)
        case ("why", []):
            return _messages(known)
        case ("why", [_]):
            return _agents(known)
        case ("interaction", []):
            found = ((m.interaction_id, m.text) for m in _latest(known) if m.hop or m.cause_id)
            return dict(found).items()
    return ()


def _target(known: Known, target: str) -> str:
    return known.shown(target) if target in known.threads else target


def _agents(known: Known) -> Iterator[Choice]:
    agents = (p for p in known.participants.values() if p.kind == "agent")
    for agent in sorted(agents, key=lambda p: (not p.present, p.id)):
        yield agent.id, agent.card.description


def _turns(known: Known) -> Iterator[Choice]:
    for turn in sorted(known.activities.turns(known.current)):
        yield turn, "runs here"


def _messages(known: Known) -> Iterator[Choice]:
    for message in _latest(known):
        yield message.id, f"{message.sender_id}: {message.text}"


def _latest(known: Known) -> Iterator[Message]:
    return reversed(list(known.thread(known.current).messages.values()))
