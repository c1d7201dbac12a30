"""Which version of a prompt a thread gets while a new one is rolled out. Pure."""

from __future__ import annotations

import hashlib

from hubbub.config.prompting import RolloutConfig

__all__ = ["position", "version_for"]


def version_for(
    pinned: str, rollout: RolloutConfig | None, agent: str, thread: str, prompt: str
) -> str:
    """The rolled-out version for its share of the threads, else the pinned one.

    A thread (canonical id) keeps what it gets as long as the share does not sink below it: who has
    the new version at 10 % has it at 20 %, too.
    """
    if rollout is None or position(agent, thread, prompt) >= rollout.share:
        return pinned
    return rollout.version


def position(agent: str, thread: str, prompt: str) -> float:
    """Where the thread stands among all threads: evenly spread over 0 <= position < 1."""
    digest = hashlib.sha256("\0".join((agent, thread, prompt)).encode()).digest()
    # 53 bits are what a float holds exactly; more would round some positions up to 1.
    return (int.from_bytes(digest[:8]) >> 11) / 2**53
