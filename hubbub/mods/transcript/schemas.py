"""Inputs and outputs of the mod `transcript`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import id_pattern
from hubbub.protocol.messages import Model
from hubbub.protocol.operations import Input

MOST_LINES = 200
"""Lines that one call imports."""

Format = Literal["markdown", "jsonl", "html"]


class ExportTranscript(Input):
    thread: Annotated[str, Field(min_length=1, max_length=700)] | None = None
    """A thread that you read."""
    interaction: Annotated[str, Field(pattern=id_pattern("i"))] | None = None
    """Or what one message has set in motion (i42), as far as you may read it."""
    everything: bool = False
    """Or all that you may read of the network; for owners."""
    format: Format = "markdown"
    """markdown and html are for people; jsonl has everything, and can be imported."""
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{1,18}$")] | None = None
    """Where to go on: what the piece before has told. Left out: from the beginning."""


class ImportTranscript(Input):
    header: Annotated[str, Field(max_length=10_000)]
    """The first line of the file."""
    lines: Annotated[tuple[str, ...], Field(max_length=MOST_LINES, fail_fast=True)]
    """The next lines of the file, in their order."""
    first: Annotated[int, Field(ge=2, le=2**53)] = 2
    """The number that the first of these lines has in the file, for errors."""


class Piece(Model):
    text: str
    """The next piece of the file."""
    messages: int
    """How many messages are in it."""
    outside: bool = False
    """Whether one of them carries content from outside the network."""
    cursor: str | None = None
    """Where to go on; left out: this was the last piece."""


class Imported(Model):
    imported: int
    """Lines that are messages of this network now."""
    before: int
    """Lines that were so before."""
    skipped: int
    """Lines that are not taken over: what mods had to say in their own threads, and edits of
    messages that were not imported."""
