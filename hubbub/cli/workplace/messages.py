"""Reactions, edits, and what becomes of threads: what is asked, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hubbub.cli.chat.lines import Note
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.control.words import CHAT, kept_back, moment
from hubbub.cli.workplace import works
from hubbub.cli.workplace.amending import amendment_words
from hubbub.cli.workplace.reacted import Under
from hubbub.cli.workplace.told import Told, done
from hubbub.mods.edits.schemas import MessageVersion, MessageVersions
from hubbub.mods.threads.schemas import ThreadChoice, ThreadState
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker

__all__ = ["Messages", "version_notes"]

BEGINNING = 80
"""Columns of a message that is to be deleted."""


class Messages:
    """Reacts, edits, deletes; titles, resolves and mutes the open thread."""

    def __init__(self, asker: Asker):
        self._asker = asker

    async def do(self, work: works.OfMessages) -> Told:
        """Do it. Raises `OperationError`."""
        match work:
            case works.React(message, emoji):
                return await self._react(message, emoji)
            case works.Edit(message, text):
                sent = await self._asker.ask(
                    SendResult, "edit_message", message_id=message, text=text
                )
                return self._amended(sent)
            case works.Delete(message, sure):
                if not sure:
                    return await self._about_to_delete(message)
                sent = await self._asker.ask(SendResult, "delete_message", message_id=message)
                return self._amended(sent)
            case works.History(message):
                found = await self._asker.ask(
                    MessageVersions, "message_history", message_id=message
                )
                return Told(version_notes(found))
            case works.Title() | works.Resolve() | works.Mute():
                return await self._thread(work)
            case _:
                assert_never(work)

    async def _react(self, message: str, emoji: str) -> Told:
        under = await self._asker.ask(Under, "toggle_reaction", message_id=message, emoji=emoji)
        self._asker.known.reacted.learn([under])
        return Told([Note(f"{under.message_id}: {under.words or 'no reactions'}")], done=True)

    async def _message(self, id: str) -> Message:
        """A message as it is shown now."""
        return await self._asker.ask(Message, "read_message", id=id)

    async def _about_to_delete(self, id: str) -> Told:
        message = await self._message(id)
        said = clip(one_line(message.text), BEGINNING)
        return Told([Note(f"{message.id} {message.sender_id}: {said}"),
                     Note(f"/delete {message.id} yes deletes it for everybody")])  # fmt: skip

    def _amended(self, sent: SendResult) -> Told:
        """What one has done oneself does not come back but in the answer."""
        self._asker.known.note(sent.message)
        lines = (amendment_words(sent.message), *kept_back(sent, CHAT))
        return Told([Note(line) for line in lines], done=True)

    async def _thread(self, work: works.Title | works.Resolve | works.Mute) -> Told:
        """About the open thread."""
        asker, thread = self._asker, self._asker.known.current
        shown = asker.shown(thread)
        match work:
            case works.Title(text):
                state = await asker.ask(ThreadState, "set_thread_title", thread=thread, title=text)
                called = f"is called: {one_line(state.title)}" if state.title else "has no title"
                return done(f"{shown} {called}")
            case works.Resolve(resolved):
                name = "resolve_thread" if resolved else "reopen_thread"
                await asker.ask(ThreadState, name, thread=thread)
                return done(f"{shown} is {'resolved' if resolved else 'open again'}")
            case works.Mute(muted):
                name = "mute_thread" if muted else "unmute_thread"
                choice = await asker.ask(ThreadChoice, name, thread=thread)
                above = choice.chosen_in
                where = "" if above in (None, thread) else f", as {asker.shown(above)} is"
                return done(f"{shown} is {'muted' if choice.muted else 'not muted'}{where}")
            case _:
                assert_never(work)


def version_notes(found: MessageVersions) -> list[Note]:
    """What a message said from when to when, oldest first."""
    notes = [Note("there are earlier versions")] if found.more else []
    for each in found.versions:
        notes += [Note(_version_head(each)), *_version_text(each)]
    return notes


def _version_head(version: MessageVersion) -> str:
    by = version.by if version.spoken_by is None else f"{version.spoken_by} as {version.by}"
    return f"{version.kind} by {one_line(by)}, {moment(version.at)}"


def _version_text(version: MessageVersion) -> list[Note]:
    return [] if version.kind == "deleted" else [Note(f"  {version.text.rstrip()}", "plain")]
