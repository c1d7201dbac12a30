"""What the names that somebody types stand for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub.cli.chat.text import one_line
from hubbub.cli.naming import did_you_mean, find_thread
from hubbub.errors import UserError
from hubbub.protocol.control import Approval

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known

__all__ = ["Names"]


class Names:
    """Names in the network that a client knows. All methods raise `UserError`, which names the
    nearest one there is."""

    def __init__(self, known: Known):
        self._known = known

    def is_agent(self, name: str) -> bool:
        return name.lstrip("@") in self._agents()

    def _agents(self) -> list[str]:
        return [p.id for p in self._known.participants.values() if p.kind == "agent"]

    def agent(self, name: str) -> str:
        """The id of an agent."""
        agents = self._agents()
        if (found := name.lstrip("@")) in agents:
            return found
        raise UserError(f"there is no agent {one_line(name)!r}{did_you_mean(name, agents)}")

    def thread(self, name: str) -> str:
        """The canonical id of a thread."""
        known = self._known
        people = {*known.participants, known.me}
        return find_thread(name, known.me, people, known.channels)

    def approval(self, name: str, found: Sequence[Approval]) -> Approval:
        """An approval by its id, or by a part of it that is no other's."""
        exact = [approval for approval in found if approval.id == name]
        near = exact or [approval for approval in found if name in approval.id]
        if len(near) == 1:
            return near[0]
        ids = [approval.id for approval in found]
        if near:
            listed = ", ".join(approval.id for approval in near)
            raise UserError(f"{name!r} may be any of {listed}")
        raise UserError(f"no approval {one_line(name)!r} waits{did_you_mean(name, ids)}")
