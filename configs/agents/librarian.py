"""The librarian: answers from a folder of Markdown and from the network's messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from archive import PUBLIC, Archive, Hit, readable
from manners import WELCOME, is_greeting, is_question, is_thanks, of_another_agent
from markdown_pages import Fact, find_fact, read_folder, words_of
from phrasing import plain_question, split_target, unaddressed, without_name

from hubbub import Agent, Message
from hubbub.protocol import thread_ids

__all__ = ["Librarian", "render", "states", "tells"]

PAGE = 100
"""Messages per thread to read after a start."""
UNKNOWN = "I don't know that; I know about"
NOTED = "Noted. Ask me about it here, whenever you need it."
_VERB = re.compile(
    r"\b(?:is|are|was|were|am|has|have|had|will|must|can)\b|[.!]\s*\Z", re.IGNORECASE
)
_ADDRESSEE = re.compile(r"\A\s*@([A-Za-z0-9_-]+)")
_SAID = re.compile(r"\b(?:say|says|said|write|wrote|mention|mentioned|tell|told)\b", re.IGNORECASE)


class Librarian(Agent):
    """Answers from the Markdown pages in `settings.folder` and from messages.

    `./` in `folder` is the folder of the YAML file. The librarian remembers people's messages in
    channels, in broadcasts and to itself, and quotes them only where every reader of the answer
    could read the original.
    """

    async def on_start(self) -> None:
        self._archive = Archive()
        self._places: set[str] = set()
        self._keys: dict[str, set[str]] = {}  # interaction -> ids of remembered messages
        self._facts: tuple[Fact, ...] = ()
        self._topics: tuple[str, ...] = ()
        self._agents = {p.id for p in await self.participants() if p.kind == "agent"}
        self._read_pages(Path(__file__).parent / str(self.settings.get("folder", "../knowledge")))
        for thread in await self.threads():
            for message in await self.read_thread(thread.id, limit=PAGE):
                if message.type != "direct" or tells(message.text):
                    self._remember(message)

    async def on_direct(self, message: Message) -> str | None:
        if of_another_agent(message, self.name):
            return None
        answer = await self._answer(message)
        if message.sender_kind == "human" and tells(message.text):
            self._remember(message)
            return NOTED if answer.startswith(UNKNOWN) else answer
        return answer  # a fragment is a question, not a statement

    async def on_mention(self, message: Message) -> str | None:
        return await self._answer(message)

    async def on_channel_message(self, message: Message) -> None:
        self._remember(message)

    async def on_broadcast(self, message: Message) -> None:
        self._remember(message)

    # Remembering ------------------------------------------------------------------------------

    def _read_pages(self, folder: Path) -> None:
        page = read_folder(folder)
        self._facts, self._topics = page.facts, page.topics
        for n, passage in enumerate(page.passages):
            source = f"{passage.source} › {passage.heading}"
            self._archive.add(
                f"{passage.source}#{n}", PUBLIC, source, passage.text, passage.heading
            )

    def _remember(self, message: Message) -> None:
        """Remember a person's statement, unless it is addressed to an agent. Questions would match
        only similar questions, and an agent's question may quote someone else."""
        if message.sender_kind != "human" or not states(message.text) or self._is_order(message):
            return
        place = thread_ids.root(message.thread_id)
        self._places.add(place)
        shown = PUBLIC if place == thread_ids.BROADCAST else place
        self._keys.setdefault(message.interaction_id, set()).add(message.id)
        source = f"{message.sender_id} in {thread_ids.relative(message.thread_id, self.name)}"
        self._archive.add(
            message.id, shown, f"{source}, {message.id}", message.text, sender=message.sender_id
        )

    def _is_order(self, message: Message) -> bool:
        """Whether the message is addressed to an agent, this one or another."""
        addressee = _ADDRESSEE.match(message.text)
        to_me = f"@{self.name}" in message.text
        return to_me or (addressee is not None and addressee[1] in self._agents)

    # Answering --------------------------------------------------------------------------------

    async def _answer(self, message: Message) -> str:
        question = plain_question(without_name(message.text, self.name))
        if is_thanks(without_name(message.text, self.name)):
            return WELCOME
        if not words_of(question) or question.lower() == "help" or is_greeting(message.text):
            return self._help()
        fact = find_fact(self._facts, question) or find_fact(self._facts, split_target(question)[0])
        if fact is not None:
            return f"{fact} [{fact.source} › {fact.heading}]"
        return render(await self._search(question, message), self._topics)

    async def _search(self, question: str, message: Message) -> list[Hit]:
        """Search for the question, without the messages that led to it."""
        asking = {message.id, *self._keys.get(message.interaction_id, ())}
        if message.quote is not None:
            asking.add(message.quote.message_id)
        places = await self._readable_places(message)
        return self._archive.search(question, places, self._sender(question), without=asking)

    def _help(self) -> str:
        """A help text with examples from the pages."""
        first = {fact.heading: fact for fact in reversed(self._facts)}
        examples = [f"the {f.attribute.lower()} of {f.subject}" for f in first.values()][-3:]
        return (
            f"I look things up in my pages{_such_as(examples)}, and in what was said here: "
            "“what did ann say about the budget?”"
        )

    def _sender(self, question: str) -> str | None:
        """The sender named in a question such as `what did ann say about the budget?`"""
        if not _SAID.search(question):
            return None
        names = {sender.casefold(): sender for sender in self._archive.senders()}
        return next(
            (names[w] for w in re.findall(r"[\w-]+", question.casefold()) if w in names), None
        )

    async def _readable_places(self, message: Message) -> list[str]:
        """The threads that everyone who will see the answer can read.

        An agent may forward the answer, so an answer to an agent counts as visible to everyone.
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


def states(text: str) -> bool:
    """Whether `text` is a statement worth finding: no question, no small talk."""
    small_talk = is_thanks(text) or is_greeting(text) or len(set(words_of(text))) < 2
    return not small_talk and not is_question(text)


def tells(text: str) -> bool:
    """Whether `text`, sent to the librarian, is a sentence to remember."""
    return states(text) and _VERB.search(text) is not None


def render(hits: Sequence[Hit], topics: Sequence[str]) -> str:
    """The hits with their sources, or the known topics. Mentions in quotations wake no one."""
    if not hits:
        known = [*topics, "what people said here"]
        return f"{UNKNOWN}: {' · '.join(known)}."
    quotations = [f"{unaddressed(hit.snippet)} [{hit.source}]" for hit in hits]
    if len(quotations) == 1:
        return quotations[0]
    lines = [f"{n}. {quotation}" for n, quotation in enumerate(quotations, 1)]
    return "\n".join(["I found:", *lines])
