"""Inputs and outputs of the mod `search`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from hubbub.mods.fields import Time
from hubbub.mods.text_search import LONGEST_QUERY, Findable
from hubbub.protocol.messages import Model, Name, ThreadRef
from hubbub.protocol.operations import Input


class SearchFor(Input):
    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    """Words that must all be there, "a phrase" in quotes, -word for what must not be there, begin*
    for words that begin so. Case and accents do not matter."""
    thread: ThreadRef | None = None
    """Only in this thread of yours and the replies in it."""
    by: Name | None = None
    """Only what this participant has said, written or brought."""
    after: Time | None = None
    """Only from this time on, such as 2026-03-01 or 2026-03-01T12:00; UTC if no zone is given."""
    before: Time | None = None
    """Only before this time."""
    kinds: Annotated[tuple[Findable, ...], Field(max_length=3, fail_fast=True)] = ()
    """What to look for: messages, documents, files; left out: everything."""
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    """How many hits at most."""
    cursor: Annotated[str, Field(max_length=100, pattern=r"^$|^[0-9]{1,18}(\.[0-9]{1,9}){3}$")] = ""
    """For the next page: what the answer before gave."""


class FoundItem(Model):
    """A message, document or file."""

    kind: Findable
    id: str
    """Of the message, as for read_message; of the document or file."""
    thread_id: str
    """The thread that it belongs to."""
    by: str
    at: AwareDatetime
    snippet: str
    """The place where the words stand. Read the whole before you rely on it."""
    title: str = ""
    """Of a document or file."""
    outside: bool = False
    """Whether it carries content from outside the network."""


class SearchHits(Model):
    hits: tuple[FoundItem, ...]
    """The best first."""
    more: bool
    """Whether there is a next page: ask again with `cursor`."""
    cursor: str = ""
    indexing: bool = False
    """Whether earlier messages are still being indexed, and may be missing."""
    note: str = ""
    """What could not be searched, if anything."""
    outside: bool = False
    """Whether one of the hits carries content from outside the network."""
