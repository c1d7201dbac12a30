"""A database that has seen much: what a page must cope with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from hubbub.client import Client
from hubbub.config.models import ChannelConfig, Limits, NetworkConfig, NetworkFile
from hubbub.testing.network import LocalNetwork

__all__ = ["CHANNEL", "seed"]

CHANNEL = "general"
START = 1_760_000_000.0
"""The first message's time, in October 2025."""
STEP_S = 600.0
"""How much later each batch of messages is sent."""
BATCH = 50
"""Messages in flight at once, and with the same time."""
_SPEAKERS = ("ann", "bob", "cyd")
_TEXTS = (
    "Short.",
    "What do you think of **number {n}**? I would rather wait for the figures of this week, since "
    "those of the last one were made before the change and say little about what people see.",
    "- first\n- second with `code`\n- third, see https://example.org/{n}",
    "```python\ndef answer(question: str) -> int:\n    return {n}  # always\n```",
    "@{other} can you look into {n}?\n\nIt has *two* paragraphs, and a [link](https://example.org).",
    "> quoted {n}\n\nYes.",
)


class _SteppingClock:
    """Each look is ten minutes later, so that the seeded days lie behind each other."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> float:
        self._now += STEP_S
        return self._now

    def monotonic(self) -> float:
        return self._now


async def seed(database: Path, *, messages: int = 10_000, threads: int = 200) -> None:
    """Fill a new database: `messages` in the channel `general`, of ann, bob and cyd, and `threads`
    direct threads of ann with p000, p001, ..., each with one message.

    Through a real hub, in bulk; 10,000 messages take about two seconds.
    """
    limits = Limits(calls_per_second=1e9, burst=10**9)
    file = NetworkFile(
        network=NetworkConfig(auth="open", limits=limits), channels={CHANNEL: ChannelConfig()}
    )
    async with LocalNetwork(file, store=f"sqlite:{database}", clock=_SteppingClock()) as network:
        people = [await network.join(name, "human") for name in _SPEAKERS]
        await _talk(people, messages)
        for n in range(threads):
            async with Client(network.transport(), f"p{n:03}", "human") as person:
                await person.call("send_text_message", to="ann", text=f"Hello ann, {n} here.")


async def _talk(people: list[Client], count: int) -> None:
    texts = _texts(count)
    for start in range(0, count, BATCH):
        posted = [
            people[n % len(people)].post("post_to_channel", channel=CHANNEL, text=next(texts))
            for n in range(start, min(start + BATCH, count))
        ]
        await asyncio.gather(*posted)


def _texts(count: int) -> Iterator[str]:
    for n in range(count):
        yield _TEXTS[n % len(_TEXTS)].replace("{n}", str(n)).replace("{other}", _SPEAKERS[n % 3])
