"""Mods that have every hook and do nothing in it: `idle.py:Idle0` to `Idle9`, for a hub's YAML."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.mods.api import PASS, Mod, Verdict
from hubbub.mods.rows import Statement
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.turns import Turn

__all__ = ["KINDS", "Idle"]


class Idle(Mod):
    """Hears everything, and says nothing."""

    def on_message(self, draft: Draft) -> Verdict:
        return PASS

    async def on_references(self, draft: Draft) -> Verdict:
        return PASS

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        return ()

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return ()

    def on_join(self, participant: str) -> None:
        pass

    def on_leave(self, participant: str) -> None:
        pass

    def on_turn(self, turn: Turn) -> None:
        pass

    def on_timer(self, key: str) -> None:
        pass

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages


KINDS: Sequence[type[Idle]] = [
    type(f"Idle{n}", (Idle,), {"name": f"idle{n}", "__module__": __name__}) for n in range(10)
]
"""A network has no two mods of one name."""

globals().update({kind.__name__: kind for kind in KINDS})
