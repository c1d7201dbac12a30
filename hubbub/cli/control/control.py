"""Does what a person in charge asks for: one implementation for shell, chat and full screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hubbub.cli.chat.text import one_line
from hubbub.cli.control import deeds, told
from hubbub.cli.control.asker import Asker
from hubbub.cli.control.halting import Halting
from hubbub.cli.control.state import decided_words, takeover_words
from hubbub.cli.control.stories import Stories
from hubbub.cli.control.told import Answer
from hubbub.cli.control.words import Typed, kept_back
from hubbub.errors import UserError
from hubbub.protocol import thread_ids
from hubbub.protocol.control import (
    Approval,
    Approvals,
    Breakers,
    Requests,
    Stops,
    Takeover,
    Takeovers,
)
from hubbub.protocol.operations import Done, SendResult
from hubbub.protocol.spending import Spending

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known
    from hubbub.client import Client

__all__ = ["Control"]


class Control:
    """What one person may ask of the network, and the words for what came of it."""

    def __init__(self, client: Client, known: Known, typed: Typed, *, here: bool):
        """`here`: whether this person has a thread open, which is meant where none is named."""
        self._asker = Asker(client, known, typed, here=here)
        self._halting, self._stories = Halting(self._asker), Stories(self._asker)

    async def do(self, deed: deeds.Deed) -> Answer:
        """Do it. Raises `UserError` for names that do not exist, else `OperationError`."""
        match deed:
            case deeds.Stop() | deeds.Resume() | deeds.Release():
                return await self._halting.do(deed)
            case deeds.Approve() | deeds.Deny():
                return await self._decide(deed)
            case deeds.TakeOver() | deeds.HandBack() | deeds.SpeakAs():
                return await self._speak(deed)
            case (
                deeds.Stops()
                | deeds.Breakers()
                | deeds.Approvals()
                | deeds.Spending()
                | deeds.Requests()
            ):
                return await self._list(deed)
            case deeds.Why():
                return await self._stories.why(deed)
            case deeds.Interaction():
                return await self._stories.interaction(deed)
            case _:
                assert_never(deed)

    # Approvals --------------------------------------------------------------------------------

    async def approval(self, name: str) -> Approval:
        """The pending approval that somebody means, as the hub has it now."""
        found = await self._asker.ask(Approvals, "list_approvals", state="pending", limit=200)
        try:
            return self._asker.names.approval(name, found.approvals)
        except UserError:
            found = await self._asker.ask(Approvals, "list_approvals", state="all", limit=200)
            over = [each for each in found.approvals if name and name in each.id]
            if len(over) != 1 or over[0].state == "pending":
                raise
        raise UserError(f"nothing to decide: {decided_words(over[0])}")

    async def _decide(self, deed: deeds.Approve | deeds.Deny) -> Answer:
        charge = self._asker.known.charge
        seen = charge.approvals.get(deed.name)
        asked = seen if seen is not None else await self.approval(deed.name)
        known_before = asked.id in charge.approvals
        if isinstance(deed, deeds.Deny):
            done = await self._asker.ask(Approval, "deny", id=asked.id, reason=deed.reason)
        else:
            done = await self._asker.ask(
                Approval, "approve", id=asked.id, hash=asked.hash, arguments=deed.arguments
            )
        told_by_signal = known_before and not charge.note(done)
        return told.decided(done, heard=told_by_signal)

    # Take-over --------------------------------------------------------------------------------

    async def _speak(self, deed: deeds.TakeOver | deeds.HandBack | deeds.SpeakAs) -> Answer:
        match deed:
            case deeds.TakeOver(agent, minutes):
                name = self._asker.names.agent(agent)
                held = await self._asker.ask(Takeover, "take_over", agent=name, minutes=minutes)
                return told.good(
                    held, takeover_words(held, self._asker.known.me, self._asker.typed)
                )
            case deeds.HandBack(agent):
                name = self._asker.names.agent(agent) if agent else await self._only_takeover()
                if name not in [held.agent for held in await self._takeovers()]:
                    return told.good({"handed_back": name}, f"nobody speaks for {name}")
                heard = self._asker.known.charge.tells_end("takeover", name)
                await self._asker.ask(Done, "hand_back", agent=name)
                line = f"{name} speaks for itself again"
                return told.good({"handed_back": name}, line, heard=heard)
            case deeds.SpeakAs(agent, text):
                name = self._asker.names.agent(agent)
                operation, where = self._asker.known.way_to(self._asker.known.current)
                sent = await self._asker.ask(
                    SendResult, operation, text=text, speak_as=name, **where
                )
                line = f"{sent.id} said as {name} in {self._asker.shown(sent.thread_id)}"
                if not self._in(sent.thread_id):
                    line += f": {one_line(text)}"  # the hub brings it to the thread's members only
                return Answer(sent, [line, *kept_back(sent, self._asker.typed)], good=True)

    def _in(self, thread: str) -> bool:
        """Whether what is said in a thread reaches this person."""
        top = thread_ids.root(thread)
        return not top.startswith("dm.") or self._asker.known.me in thread_ids.members_of(top)

    async def _takeovers(self) -> tuple[Takeover, ...]:
        return (await self._asker.ask(Takeovers, "list_takeovers")).takeovers

    async def _only_takeover(self) -> str:
        mine = [held.agent for held in await self._takeovers() if held.by == self._asker.known.me]
        if len(mine) != 1:
            raise UserError(f"name one of {', '.join(mine)}" if mine else "you speak for no agent")
        return mine[0]

    # Lists ------------------------------------------------------------------------------------

    async def _list(
        self,
        deed: deeds.Stops | deeds.Breakers | deeds.Approvals | deeds.Spending | deeds.Requests,
    ) -> Answer:
        shown, typed = self._asker.shown, self._asker.typed
        match deed:
            case deeds.Stops():
                stops = await self._asker.ask(Stops, "list_stops")
                latched = await self._asker.ask(Breakers, "list_breakers")
                held = await self._asker.ask(Takeovers, "list_takeovers")
                return told.stops(stops, latched, held, self._asker.known.me, shown, typed)
            case deeds.Breakers():
                return told.breakers(await self._asker.ask(Breakers, "list_breakers"), shown, typed)
            case deeds.Approvals(everything):
                state = "all" if everything else "pending"
                found = await self._asker.ask(Approvals, "list_approvals", state=state)
                return told.approvals(found, shown, typed)
            case deeds.Requests(everything):
                state = "all" if everything else "open"
                return told.requests(
                    await self._asker.ask(Requests, "list_requests", state=state), shown
                )
            case deeds.Spending(agent, thread, days):
                agent = self._asker.names.agent(agent) if agent else None
                thread = self._asker.names.thread(thread) if thread else None
                spent = await self._asker.ask(
                    Spending, "read_spending", agent=agent, thread=thread, days=days
                )
                return told.spending(spent, shown)
