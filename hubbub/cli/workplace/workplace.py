"""Does what a person asks of the mods of a network: one implementation for chat and full screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.control.asker import Asker
from hubbub.cli.control.words import CHAT
from hubbub.cli.workplace import works
from hubbub.cli.workplace.boards import AtBoards, AtPolls
from hubbub.cli.workplace.carrying import Progress
from hubbub.cli.workplace.finding import Finding
from hubbub.cli.workplace.messages import Messages
from hubbub.cli.workplace.shelves import Shelves
from hubbub.cli.workplace.told import Told

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known
    from hubbub.client import Client

__all__ = ["Workplace"]


class Workplace:
    """What one person may do with what mods bring, and the words for what came of it."""

    def __init__(self, client: Client, known: Known, progress: Progress):
        """`progress` is told how far a file is on its way."""
        asker = Asker(client, known, CHAT, here=True)
        self._messages, self._finding = Messages(asker), Finding(asker)
        self._boards, self._polls = AtBoards(asker), AtPolls(asker)
        self._shelves = Shelves(asker, progress)

    async def do(self, work: works.Work) -> Told:
        """Do it. Raises `UserError`, `OperationError`."""
        if isinstance(work, works.OfMessages):
            return await self._messages.do(work)
        if isinstance(work, works.OfFinding):
            return await self._finding.do(work)
        if isinstance(work, works.OfBoards):
            return await self._boards.do(work)
        if isinstance(work, works.OfPolls):
            return await self._polls.do(work)
        return await self._shelves.do(work)
