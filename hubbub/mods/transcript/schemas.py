"""Inputs and outputs of the mod `transcript`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import id_pattern
from hubbub.protocol.messages import Model
from hubbub.protocol.operations import Input

MOST_LINES = 200
"""Maximum number of lines per import call."""

Format = Literal["markdown", "jsonl", "html"]


class ExportTranscript(Input):
    thread: Annotated[str, Field(min_length=1, max_length=700)] | None = None
    """Export a thread that you read."""
    interaction: Annotated[str, Field(pattern=id_pattern("i"))] | None = None
    """Or export an interaction (i42), as far as you can read it."""
    everything: bool = False
    """Or export everything in the network that you can read. For owners."""
    format: Format = "markdown"
    """markdown and html are for people; jsonl is complete and can be imported."""
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{1,18}$")] | None = None
    """Where to continue: `cursor` of the previous piece. Default: from the beginning."""


class ImportTranscript(Input):
    header: Annotated[str, Field(max_length=10_000)]
    """The first line of the file."""
    lines: Annotated[tuple[str, ...], Field(max_length=MOST_LINES, fail_fast=True)]
    """The next lines of the file, in order."""
    first: Annotated[int, Field(ge=2, le=2**53)] = 2
    """Number in the file of the first of these lines, for error messages."""


class Piece(Model):
    text: str
    """The next piece of the file."""
    messages: int
    """Number of messages in it."""
    untrusted: bool = False
    """Whether one of them carries content from outside the network."""
    cursor: str | None = None
    """Where to continue. Omitted if this is the last piece."""


class Imported(Model):
    imported: int
    """Number of lines that were imported as messages."""
    before: int
    """Number of lines that had been imported before."""
    skipped: int
    """Number of lines that are not imported: messages of mods in their own threads, and edits of
    messages that were not imported."""
