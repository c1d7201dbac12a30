"""Inputs and outputs of the mod `documents`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import BEYOND, At, Limit, Line, ListInput, id_pattern
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input

DocumentId = Annotated[str, Field(pattern=id_pattern("d"))]
Version = Annotated[int, Field(ge=1, le=2**31)]
LineNumber = Annotated[int, Field(ge=1, le=10**7)]
Note = Annotated[str, Field(max_length=500)]


class CreateDocument(Input):
    title: Annotated[str, Field(max_length=200, pattern=Line)]
    """What it is called, in one line."""
    text: str = ""
    """Markdown."""
    thread: ThreadRef
    """Who reads this thread may read and change the document."""


class ListDocuments(ListInput):
    before: DocumentId | None = None


class DocumentOf(Input):
    id: DocumentId
    """The document."""


class ReadDocument(DocumentOf):
    version: Version | None = None
    """An earlier one; left out: the latest."""
    first: LineNumber | None = None
    """Only from this line on."""
    last: LineNumber | None = None
    """Only up to this line."""
    numbers: bool = True
    """Whether each line begins with its number, as edits need it."""


class LineEdit(Input):
    first: LineNumber
    """The first line to replace. To insert before a line: that line, with `last` one less."""
    last: Annotated[int, Field(ge=0, le=10**7)]
    """The last line to replace."""
    text: str
    """What stands there afterwards; empty: the lines go."""


class ChangeDocument(DocumentOf):
    base_version: Version
    """The version that you have read; line numbers are those of it."""
    note: Note = ""
    """What was changed and why, in a few words, for the history."""


class EditDocument(ChangeDocument):
    edits: Annotated[tuple[LineEdit, ...], Field(min_length=1, max_length=200, fail_fast=True)]
    """They may not overlap; all numbers are those of `base_version`."""


class WriteDocument(ChangeDocument):
    text: str
    """The whole text."""


class ReadHistory(DocumentOf):
    before: Version | None = None
    """Only earlier versions than this."""
    limit: Limit = 50
    """How many at most."""


class DiffDocument(DocumentOf):
    old: Version
    """The earlier version."""
    new: Version | None = None
    """Left out: the latest."""


class CommentOn(DocumentOf):
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """The comment."""
    line: LineNumber | None = None
    """Of the latest version; left out: the whole document."""


class ReadComments(DocumentOf):
    resolved: bool = False
    """Resolved ones, too."""
    after: Annotated[int, Field(ge=0, le=BEYOND)] = 0
    """Only comments after this one."""
    limit: Limit = 50
    """How many at most."""


class ResolveComment(DocumentOf):
    comment: Annotated[int, Field(ge=1, le=BEYOND)]
    """Its number."""


class Document(Model):
    id: str
    title: str
    thread_id: str
    version: int
    """The latest."""
    created_by: str
    created_at: At


class Documents(Model):
    documents: tuple[Document, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""


class DocumentText(Model):
    document: Document
    version: int
    """The one that was read."""
    text: str
    """With line numbers, if they were asked for."""
    first: int
    last: int
    """The last line that is here. Long texts come in parts: go on with the line after it."""
    lines: int
    """Of the whole text."""


class Conflicting(Model):
    """A place that somebody else has changed since `base_version`."""

    first: int
    """Its first line in the latest version, as an edit of it names the place."""
    last: int
    """Its last line; one less than `first` where nothing stands there now."""
    was: str
    """What stood there in `base_version`. Long texts end in "…"."""
    now: str
    yours: str


class DocumentEdited(Model):
    """What became of an edit."""

    status: Literal["saved", "merged", "unchanged", "conflict"]
    """merged: others had changed other places, and both are in it. conflict: nothing was saved."""
    document: Document
    version: int
    """The version that stands now."""
    conflicts: tuple[Conflicting, ...] = ()
    """The first of them, if they are many."""
    advice: str = ""
    """What to do about it."""


class DocumentVersion(Model):
    version: int
    base: int
    """The version that its author had read."""
    author: str
    at: At
    note: str
    lines: int


class DocumentHistory(Model):
    document: Document
    versions: tuple[DocumentVersion, ...]
    """Latest first."""
    more: bool


class DocumentDiff(Model):
    document: Document
    old: int
    new: int
    diff: str
    """Unified."""
    cut: bool
    """Whether it was longer than this."""


class Comment(Model):
    id: int
    version: int
    """The latest when it was written."""
    line: int | None = None
    author: str
    at: At
    text: str
    resolved_by: str | None = None


class Comments(Model):
    document: Document
    comments: tuple[Comment, ...]
    """Oldest first."""
    more: bool
    """Whether there are later ones: ask again with `after`."""
