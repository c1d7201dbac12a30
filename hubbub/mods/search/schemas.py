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
    """Words that must all occur, "a phrase" in quotes, -word to exclude a word, prefix* to match
    the beginning of a word. Case and accents are ignored."""
    thread: ThreadRef | None = None
    """Only this thread and its reply threads. You must be able to read it."""
    by: Name | None = None
    """Only messages, documents and files by this participant."""
    after: Time | None = None
    """Only items from this time on, such as 2026-03-01 or 2026-03-01T12:00. Default zone: UTC."""
    before: Time | None = None
    """Only items before this time."""
    kinds: Annotated[tuple[Findable, ...], Field(max_length=3, fail_fast=True)] = ()
    """What to search: messages, documents, files. Default: everything."""
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    """Maximum number of hits."""
    cursor: Annotated[str, Field(max_length=100, pattern=r"^$|^[0-9]{1,18}(\.[0-9]{1,9}){3}$")] = ""
    """For the next page: `cursor` of the previous result."""


class FoundItem(Model):
    """A message, document or file."""

    kind: Findable
    id: str
    """Id of the message (as for read_message), document or file."""
    thread_id: str
    """Its thread."""
    by: str
    at: AwareDatetime
    snippet: str
    """An excerpt around the match. Read the whole item before you rely on it."""
    title: str = ""
    """Set for a document or file."""
    untrusted: bool = False
    """Whether it carries content from outside the network."""


class SearchHits(Model):
    hits: tuple[FoundItem, ...]
    """Best match first."""
    more: bool
    """Whether there is a next page. To get it, call again with `cursor`."""
    cursor: str = ""
    indexing: bool = False
    """Whether older messages are still being indexed and may be missing."""
    note: str = ""
    """What could not be searched, if anything."""
    untrusted: bool = False
    """Whether one of the hits carries content from outside the network."""
