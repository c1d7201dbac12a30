"""The librarian: answers from a folder of Markdown and from what was said in the network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from archive import PUBLIC, Archive, Hit, readable
from markdown_pages import Fact, find_fact, read_folder, words_of
from phrasing import plain_question, unaddressed, without_name

from hubbub import Agent, Message
from hubbub.protocol import thread_ids

__all__ = ["Librarian", "render"]

PAGE = 100
"""Messages of one thread that are read back after a start."""
_SAID = re.compile(r"\b(?:say|says|said|write|wrote|mention|mentioned|tell|told)\b", re.IGNORECASE)


class Librarian(Agent):
    """`settings.folder` has the Markdown pages (`./` in YAML is the folder of the YAML file).

    It remembers what people say in channels and broadcasts, and what a person tells it directly,
    and gives it back only where everybody who reads the answer could read the original.
    """

    async def on_start(self) -> None:
        self._archive = Archive()
        self._places: set[str] = set()
        self._facts: tuple[Fact, ...] = ()
        self._read_pages(Path(__file__).parent / str(self.settings.get("folder", "../knowledge")))
        for thread in await self.threads():
            for message in await self.read_thread(thread.id, limit=PAGE):
                self._remember(message)

    async def on_direct(self, message: Message) -> str | None:
        answer = await self._answer(message)
        self._remember(message)
        return answer

    async def on_mention(self, message: Message) -> str | None:
        return await self._answer(message)

    async def on_channel_message(self, message: Message) -> None:
        self._remember(message)

    async def on_broadcast(self, message: Message) -> None:
        self._remember(message)

    # Remembering ------------------------------------------------------------------------------

    def _read_pages(self, folder: Path) -> None:
        page = read_folder(folder)
        self._facts = page.facts
        for n, passage in enumerate(page.passages):
            source = f"{passage.source} › {passage.heading}"
            self._archive.add(
                f"{passage.source}#{n}", PUBLIC, source, passage.text, passage.heading
            )

    def _remember(self, message: Message) -> None:
        """Take in what a person stated. Questions would only be found by their own like, and what
        an agent asks may be somebody else's words."""
        question = message.text.rstrip().endswith("?") or f"@{self.name}" in message.text
        if message.sender_kind != "human" or question:
            return
        place = thread_ids.root(message.thread_id)
        self._places.add(place)
        shown = PUBLIC if place == thread_ids.BROADCAST else place
        source = f"{message.sender_id} in {thread_ids.relative(message.thread_id, self.name)}"
        self._archive.add(
            message.id, shown, f"{source}, {message.id}", message.text, sender=message.sender_id
        )

    # Answering --------------------------------------------------------------------------------

    async def _answer(self, message: Message) -> str:
        question = plain_question(without_name(message.text, self.name))
        if not words_of(question) or question.lower() == "help":
            return self._help()
        fact = find_fact(self._facts, question)
        if fact is not None:
            return f"{fact} [{fact.source} › {fact.heading}]"
        places = await self._readable_places(message)
        return render(question, self._archive.search(question, places, self._sender(question)))

    def _help(self) -> str:
        """What can be asked, with examples from the pages."""
        first = {fact.heading: fact for fact in reversed(self._facts)}
        examples = [f"the {f.attribute.lower()} of {f.subject}" for f in first.values()][-3:]
        return (
            f"I look things up in my pages{_such_as(examples)}, and in what was said here: "
            "“what did ann say about the budget?”"
        )

    def _sender(self, question: str) -> str | None:
        """Whose words are asked for: `what did ann say about the budget?`"""
        if not _SAID.search(question):
            return None
        names = {sender.casefold(): sender for sender in self._archive.senders()}
        return next(
            (names[w] for w in re.findall(r"[\w-]+", question.casefold()) if w in names), None
        )

    async def _readable_places(self, message: Message) -> list[str]:
        """The threads that everybody who will see the answer may read.

        An agent may pass on what it is told, so an answer to an agent is meant for everybody.
        """
        members = {p: thread_ids.members_of(p) for p in self._places if p.startswith("dm.")}
        channels = {c.name: c.members for c in await self.channels()}
        members |= {thread_ids.channel(name): ids for name, ids in channels.items()}
        thread = thread_ids.root(message.thread_id)
        if thread == thread_ids.BROADCAST or message.sender_kind != "human":
            audience = {p.id for p in await self.participants() if p.kind != "service"}
        else:
            audience = set(members.get(thread, thread_ids.members_of(thread)))
        return readable(self._places, audience - {self.name}, members)


def _such_as(examples: Sequence[str]) -> str:
    return f" ({', '.join(examples)})" if examples else ""


def render(question: str, hits: Sequence[Hit]) -> str:
    """What was found, with its sources; or that nothing was. A quotation wakes nobody."""
    if not hits:
        return f"I found nothing about “{unaddressed(question)}”."
    found = [f"{unaddressed(hit.snippet)} [{hit.source}]" for hit in hits]
    if len(found) == 1:
        return found[0]
    lines = [f"{n}. {hit}" for n, hit in enumerate(found, 1)]
    return "\n".join(["I found:", *lines])
