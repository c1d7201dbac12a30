"""What Ctrl-K finds: threads, people, channels, messages, and everything that a key does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

from hubbub.cli.full.groups import Row, groups
from hubbub.cli.full.keys import KEYS
from hubbub.cli.full.state import State
from hubbub.ids import parse_message_id

if TYPE_CHECKING:
    from hubbub.cli.full.screen import ChatScreen

__all__ = ["Place", "Places", "places"]

ASKING_S = 0.5
"""Seconds that the palette waits for the hub."""


@dataclass(frozen=True)
class Place:
    """Something to go to or to do."""

    title: str
    about: str
    line: str
    """As it would be typed, or `:action` for a key's."""


def places(state: State) -> Iterator[Place]:
    """Everything there is, unread threads first."""
    rows = [row for row in groups(state) if isinstance(row, Row)]
    for row in sorted(rows, key=lambda row: (not row.mentions, not row.unread)):
        new = f"{row.unread} new" if row.unread else "thread"
        yield Place(state.shown(row.thread_id), new, f"/open {row.thread_id}")
    for person in sorted(state.participants.values(), key=lambda p: (not p.present, p.id)):
        if person.id != state.me:
            yield Place(f"@{person.id}", person.card.description, f"/dm {person.id}")
    for name, channel in sorted(state.channels.items()):
        if not channel.joined:
            yield Place(f"join #{name}", channel.description, f"/join {name}")
    for key in KEYS:
        if key.where != "composer" and key.action != "palette":
            yield Place(key.help, key.shown, f":{key.action}")
    yield Place("change the colours", "/theme", "/theme")


class Places(Provider):
    """The places, as textual's palette wants them."""

    @property
    def _chat(self) -> ChatScreen:
        from hubbub.cli.full.screen import ChatScreen

        assert isinstance(self.screen, ChatScreen), "the palette opens above the chat"
        return self.screen

    async def startup(self) -> None:
        """Channels that others have made meanwhile; without a connection, those that are known."""
        asked = self._chat.engine.do(self._chat.engine.channels())
        await asyncio.wait({asked}, timeout=ASKING_S)

    async def discover(self) -> Hits:
        for place in places(self._chat.state):
            yield DiscoveryHit(place.title, self._goes_to(place.line), help=place.about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        if parse_message_id(query.strip()) is not None:
            go = self._goes_to(f"/go {query.strip()}")
            yield Hit(1, f"go to {query.strip()}", go, help="message")
        for place in places(self._chat.state):
            if (score := matcher.match(place.title)) > 0:
                found = matcher.highlight(place.title)
                yield Hit(score, found, self._goes_to(place.line), help=place.about)

    def _goes_to(self, line: str) -> Callable[[], None]:
        chat = self._chat
        return lambda: chat.obey(line)
