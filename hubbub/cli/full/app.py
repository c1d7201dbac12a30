"""The full-screen client as a textual application."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import Provider
from textual.screen import Screen

from hubbub.cli.full.palette import Places
from hubbub.cli.full.screen import ChatScreen
from hubbub.client import Client
from hubbub.clock import Clock

__all__ = ["FullScreenChat"]


class FullScreenChat(App[int]):
    """One person's client. The client has joined already; the result is an exit code."""

    TITLE = "hubbub"
    CSS_PATH = "style.tcss"
    COMMANDS: ClassVar[set[type[Provider]]] = {Places}  # type: ignore[assignment]
    COMMAND_PALETTE_BINDING = "ctrl+k"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        client: Client,
        *,
        opening: str | None = None,
        zone: tzinfo | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`opening` names the thread to begin in, as /open does; `zone` None is the machine's."""
        super().__init__()
        self.title = f"hubbub {client.network}"
        self.chat = ChatScreen(client, zone, opening, clock)

    def get_default_screen(self) -> ChatScreen:
        return self.chat

    async def action_quit(self) -> None:
        """Ctrl-Q anywhere."""
        self.chat.action_leave()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Textual's own are in the way of threads and people."""
        return ()
