"""Asks the hub for stories: of a message, and of all that one has set in motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.control import deeds, told
from hubbub.cli.control.told import Answer
from hubbub.cli.control.words import holds_back
from hubbub.errors import OperationError, UserError
from hubbub.ids import parse_interaction_id
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, Receipts, WakeExplanation
from hubbub.protocol.spending import BudgetState

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker
    from hubbub.cli.control.tree import Whole

__all__ = ["Stories"]

LOOKED = 50
"""Messages of an interaction that are looked at for agents that they did not wake."""
PAGES = 20
"""Pages of an interaction that are read."""
_HIDDEN = (ErrorCode.FORBIDDEN, ErrorCode.UNKNOWN_INTERACTION)


class Stories:
    """What has become of messages."""

    def __init__(self, asker: Asker):
        self._asker = asker

    async def why(self, deed: deeds.Why) -> Answer:
        """The story of a message; of one agent's part also why it woke or did not."""
        if deed.agent is None:
            message = await self._message(deed.message)
            receipts = await self._asker.ask(Receipts, "read_receipts", id=deed.message)
            return told.story(message, receipts)
        agent = self._asker.names.agent(deed.agent)
        explained = await self._asker.ask(
            WakeExplanation, "explain_wake", agent=agent, message_id=deed.message
        )
        try:
            receipts = await self._asker.ask(Receipts, "read_receipts", id=deed.message)
        except OperationError as exc:
            if exc.code not in (ErrorCode.UNKNOWN_MESSAGE, ErrorCode.FORBIDDEN):
                raise
            return told.explained(explained, None)  # why it woke is for owners, the rest is not
        return told.explained(explained, receipts)

    async def _message(self, message_id: str) -> Message | None:
        """A message, where this person may read it; what has become of it may be asked anyway."""
        try:
            return await self._asker.ask(Message, "read_message", id=message_id)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_MESSAGE:
                raise
            return None

    async def interaction(self, deed: deeds.Interaction) -> Answer:
        """Who caused what, and the budget."""
        from hubbub.cli.control.tree import Whole  # rich is needed by nothing else here

        whole = Whole(await self._interaction_id(deed.id))
        after: int | None = None
        for _ in range(PAGES):
            page = await self._asker.ask(
                InteractionPage, "read_interaction", id=whole.id, after=after
            )
            whole.add(page)
            after = page.upto
            if not page.more:
                break
        await self._kept_back(whole)
        try:
            whole.budget = await self._asker.ask(BudgetState, "read_budget", interaction=whole.id)
        except OperationError as exc:
            if exc.code not in _HIDDEN:
                raise
        return told.interaction(whole)

    async def _kept_back(self, whole: Whole) -> None:
        """Find out whom a limit or a person has kept asleep."""
        for message in whole.unwoken()[:LOOKED]:
            receipts = await self._asker.ask(Receipts, "read_receipts", id=message)
            kept = [r for r in receipts.receipts if not r.woken and holds_back(r.reason)]
            if kept:
                whole.kept[message] = kept

    async def _interaction_id(self, name: str | None) -> str:
        if name is not None:
            if parse_interaction_id(name) is not None:
                return name
            return (await self._asker.ask(Message, "read_message", id=name)).interaction_id
        last = (
            self._asker.known.thread(self._asker.known.current).last if self._asker.here else None
        )
        if last is None:
            raise UserError("name an interaction (i42) or a message of it (m42)")
        # One's own messages are noted before the hub tells them back.
        return (await self._asker.ask(Message, "read_message", id=last.id)).interaction_id
