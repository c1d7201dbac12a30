"""What the keys of a person in charge do in the full-screen client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.control.deeds import Approve, Deny
from hubbub.cli.full.charge import ApprovalScreen, ApprovalsScreen, StopScreen
from hubbub.cli.full.conversation_view import ConversationView
from hubbub.cli.full.lists import PeopleList
from hubbub.protocol import thread_ids

if TYPE_CHECKING:
    from hubbub.cli.full.screen import ChatScreen

__all__ = ["Acting"]


class Acting:
    """Approvals, stops and take-over by a key."""

    def __init__(self, screen: ChatScreen):
        self._screen = screen

    def approvals(self) -> None:
        """What waits for this person's word; a single one at once."""
        waiting = self._screen.state.charge.mine
        if not waiting:
            self._screen.tell("nothing waits for your approval")
        elif len(waiting) == 1:
            self.look_at(waiting[0].id)
        else:
            self._screen.app.push_screen(ApprovalsScreen(waiting), self.look_at)

    def look_at(self, approval_id: str | None) -> None:
        """Show an approval, to be decided."""
        state = self._screen.state
        if (found := state.charge.approvals.get(approval_id or "")) is not None:
            shown = state.shown(found.thread_id)
            self._screen.app.push_screen(ApprovalScreen(found, shown), self._decided)

    def _decided(self, deed: Approve | Deny | None) -> None:
        if deed is not None:
            self._screen.deeds.control(deed)

    def stop(self) -> None:
        """What can be stopped, and what can go on."""
        self._screen.app.push_screen(StopScreen(self._screen.state), self._chosen)

    def _chosen(self, line: str | None) -> None:
        if line is not None:
            self._screen.obey(line)

    def take_over(self) -> None:
        """Speak for an agent, or hand it back."""
        if (agent := self._agent_meant()) is None:
            self._screen.tell("select an agent, or a message of one: k")
        elif agent in self._screen.state.charge.spoken_for:
            self._screen.obey(f"/handback {agent}")
        else:
            self._screen.obey(f"/takeover {agent}")

    def _agent_meant(self) -> str | None:
        """The agent whose row or message is selected, or with whom this conversation is."""
        focused, state = self._screen.focused, self._screen.state
        message = self._screen.query_one(ConversationView).message()
        if isinstance(focused, PeopleList) and focused.highlighted_option is not None:
            name = focused.highlighted_option.id
        elif message is not None:
            name = message.sender_id
        else:
            others = [m for m in thread_ids.members_of(state.current) if m != state.me]
            name = others[0] if len(others) == 1 else None
        person = state.participants.get(name or "")
        return person.id if person is not None and person.kind == "agent" else None
