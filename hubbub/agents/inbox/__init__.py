"""What an agent has in front of it: its threads, and the wakes that wait for a turn. Pure."""

from __future__ import annotations

from hubbub.agents.inbox.inbox import Inbox, Received
from hubbub.agents.inbox.plan import MOST_INCOMING, TurnPlan, Woken, by_person
from hubbub.agents.inbox.queue import StillOpen
from hubbub.agents.inbox.threads import KEPT_MESSAGES, KEPT_THREADS, Thread

__all__ = [
    "KEPT_MESSAGES",
    "KEPT_THREADS",
    "MOST_INCOMING",
    "Inbox",
    "Received",
    "StillOpen",
    "Thread",
    "TurnPlan",
    "Woken",
    "by_person",
]
