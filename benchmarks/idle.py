"""Mods that have every hook and do nothing in it: `idle.py:Idle0` to `Idle9`, for a hub's YAML."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.mods.api import PASS, Mod, Verdict
from hubbub.mods.operation import Statement
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


class Idle0(Idle):
    name = "idle0"


class Idle1(Idle):
    name = "idle1"


class Idle2(Idle):
    name = "idle2"


class Idle3(Idle):
    name = "idle3"


class Idle4(Idle):
    name = "idle4"


class Idle5(Idle):
    name = "idle5"


class Idle6(Idle):
    name = "idle6"


class Idle7(Idle):
    name = "idle7"


class Idle8(Idle):
    name = "idle8"


class Idle9(Idle):
    name = "idle9"


KINDS: Sequence[type[Idle]] = (
    Idle0,
    Idle1,
    Idle2,
    Idle3,
    Idle4,
    Idle5,
    Idle6,
    Idle7,
    Idle8,
    Idle9,
)
"""A network has no two mods of one name."""
