"""What commands do in the full-screen client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets.option_list import Option

from hubbub.cli.chat import commands as chat
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.control.deeds import Deed
from hubbub.cli.full import commands as full
from hubbub.cli.full.charge import ChoiceScreen
from hubbub.cli.workplace import works
from hubbub.errors import UserError
from hubbub.ids import parse_message_id
from hubbub.protocol import thread_ids

if TYPE_CHECKING:
    from hubbub.cli.full.engine import Engine
    from hubbub.cli.full.screen import ChatScreen

__all__ = ["Deeds"]

BEGINNING = 60
"""Columns of a message that is to be deleted."""


class Deeds:
    """Obeys commands: those about the network through the engine, those about the screen there."""

    def __init__(self, screen: ChatScreen, engine: Engine):
        self._screen, self._engine = screen, engine

    def obey(self, line: str) -> None:
        """Do what a line says. Raises `UserError`."""
        command = full.parse(line, self._engine.state.offers)
        match command:
            case None:
                pass
            case chat.Say(text, mode):
                self._engine.say(text, mode=mode)
            case full.Theme(name):
                self._screen.change_theme(name)
            case full.GoTo(message_id):
                self._engine.do(self._screen.go_to(message_id))
            case full.Inbox():
                self._screen.action_inbox()
            case full.ShowTurn(turn_id):
                self._engine.do(self._screen.show_turn(turn_id))
            case full.Again():
                self._engine.again()
            case full.Drop():
                self._engine.drop()
            case _:
                self._chat(command)

    def _chat(self, command: chat.Command) -> None:
        """Commands that the line-based chat has too."""
        state, screen = self._engine.state, self._screen
        match command:
            case chat.Open(target):
                screen.open(state.find(target))
            case chat.Direct(names, text):
                screen.open(state.direct(names))
                if text:
                    self._engine.say(text)
            case chat.ToChannel(name):
                screen.open(state.channel(name))
            case chat.ReplyTo(message_id, text):
                self._engine.say(text, thread_id=state.find(message_id))
            case chat.Help():
                screen.action_help()
            case chat.Quit():
                screen.action_leave()
            case chat.Join(name):
                self._engine.do(self._engine.join(name))
            case chat.Create(name):
                self._engine.do(self._engine.create(name))
            case chat.Leave(name):
                self._engine.do(self._engine.leave(name or self._channel()))
            case chat.Say() | chat.Threads() | chat.Who() | chat.More() | chat.Wait():
                raise UserError("this command is for the line-based chat")
            case works.Delete(message, False):
                self._engine.do(self._about_to_delete(message))
            case _ if isinstance(command, works.Work):
                self._engine.do(self._work(command))
            case _:
                self.control(command)

    async def _work(self, work: works.Work) -> None:
        """What a person asks of mods."""
        told = await self._engine.work(work)
        if told.done:
            for note in told.notes:
                self._screen.tell(note.text)
        else:
            self._screen.show_notes(told.notes)

    async def _about_to_delete(self, message_id: str) -> None:
        """Ask once more."""
        message = await self._engine.message(message_id)
        said = clip(one_line(message.text), BEGINNING)
        options = [
            Option(Text(f"Keep {message.id}"), id="no"),
            Option(Text(f"Delete it for everybody: {said}"), id="yes"),
        ]
        asked = ChoiceScreen("Delete", options, "Enter chooses, Esc keeps it")

        def chosen(answer: str | None) -> None:
            if answer == "yes":
                self._engine.do(self._work(works.Delete(message_id, sure=True)))

        self._screen.app.push_screen(asked, chosen)

    def control(self, deed: Deed) -> None:
        """What a person in charge asks for."""
        self._engine.do(self._control(deed))

    async def _control(self, deed: Deed) -> None:
        """What a person in charge asks for: a word when it is done, a list above everything."""
        answer = await self._engine.control.do(deed)
        if answer.good:
            for line in answer.lines:
                self._screen.tell(line)
        else:
            self._screen.show_answer(answer.lines)

    def _channel(self) -> str:
        root = thread_ids.root(self._engine.state.current)
        if not root.startswith("channel."):
            raise UserError("this is no channel; /leave <name> leaves one")
        return root.partition(".")[2]


def is_message_id(text: str) -> bool:
    """Whether `text` is the id of a message."""
    return parse_message_id(text) is not None
