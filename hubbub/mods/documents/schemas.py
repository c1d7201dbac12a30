"""Inputs and outputs of the mod `documents`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import BEYOND, At, Limit, Line, ListInput, id_pattern
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input, Untrusted

DocumentId = Annotated[str, Field(pattern=id_pattern("d"))]
Version = Annotated[int, Field(ge=1, le=2**31)]
LineNumber = Annotated[int, Field(ge=1, le=10**7)]
Note = Annotated[str, Field(max_length=500)]


class CreateDocument(Input):
    title: Annotated[str, Field(max_length=200, pattern=Line)]
    """The title, in one line."""
    text: str = ""
    """Markdown."""
    thread: ThreadRef
    """Participants who read this thread can read and change the document."""
    untrusted: Untrusted = False
    """Whether it carries content from outside the network."""


class ListDocuments(ListInput):
    before: DocumentId | None = None


class DocumentOf(Input):
    id: DocumentId
    """The document."""


class ReadDocument(DocumentOf):
    version: Version | None = None
    """The version to read. Default: the latest."""
    first: LineNumber | None = None
    """First line to return."""
    last: LineNumber | None = None
    """Last line to return."""
    numbers: bool = True
    """Whether each line starts with its number, which you need for edits."""


class LineEdit(Input):
    first: LineNumber
    """First line to replace. To insert before a line, give that line and set `last` to one less."""
    last: Annotated[int, Field(ge=0, le=10**7)]
    """Last line to replace."""
    text: str
    """The replacement. Empty deletes the lines."""


class ChangeDocument(DocumentOf):
    base_version: Version
    """The version that you read. Line numbers refer to it."""
    note: Note = ""
    """A short summary of the change and its reason, for the history."""
    untrusted: Untrusted = False
    """Whether it carries content from outside the network."""


class EditDocument(ChangeDocument):
    edits: Annotated[tuple[LineEdit, ...], Field(min_length=1, max_length=200, fail_fast=True)]
    """Must not overlap. All line numbers refer to `base_version`."""


class WriteDocument(ChangeDocument):
    text: str
    """The complete new text."""


class ReadHistory(DocumentOf):
    before: Version | None = None
    """Only versions before this one."""
    limit: Limit = 50
    """Maximum number of results."""


class DiffDocument(DocumentOf):
    old: Version
    """The earlier version."""
    new: Version | None = None
    """The later version. Default: the latest."""


class CommentOn(DocumentOf):
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """The comment."""
    line: LineNumber | None = None
    """A line of the latest version. Default: the comment is on the whole document."""
    untrusted: Untrusted = False
    """Whether it carries content from outside the network."""


class ReadComments(DocumentOf):
    resolved: bool = False
    """Whether to include resolved comments."""
    after: Annotated[int, Field(ge=0, le=BEYOND)] = 0
    """Only comments after the one with this id."""
    limit: Limit = 50
    """Maximum number of results."""


class ResolveComment(DocumentOf):
    comment: Annotated[int, Field(ge=1, le=BEYOND)]
    """The id of the comment."""


class Document(Model):
    id: str
    title: str
    thread_id: str
    version: int
    """The latest version."""
    created_by: str
    created_at: At
    untrusted: bool = False
    """Whether a version or comment was written with content from outside the network."""


class AboutDocument(Model):
    document: Document
    untrusted: bool = False
    """As in `document`."""


class Documents(Model):
    documents: tuple[Document, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""
    untrusted: bool = False
    """Whether one of them is."""


class DocumentText(AboutDocument):
    version: int
    """The version of `text`."""
    text: str
    """With line numbers, if requested."""
    first: int
    last: int
    """Last line in `text`. Long documents come in parts; continue with the next line."""
    lines: int
    """Number of lines in the whole document."""


class EditConflict(Model):
    """A range of lines that another participant has changed since `base_version`."""

    first: int
    """First line of the range in the latest version, as an edit would give it."""
    last: int
    """Last line of the range. One less than `first` if the range is empty now."""
    was: str
    """The text in `base_version`. Long texts end in "…"."""
    now: str
    """The text in the latest version."""
    yours: str
    """The text of your edit."""


class DocumentEdited(AboutDocument):
    """The result of an edit."""

    status: Literal["saved", "merged", "unchanged", "conflict"]
    """merged: combined with changes that others made elsewhere. conflict: nothing was saved."""
    version: int
    """The current version."""
    conflicts: tuple[EditConflict, ...] = ()
    """Only the first ones, if there are many."""
    advice: str = ""
    """What to do about the conflicts."""


class DocumentVersion(Model):
    version: int
    base: int
    """The version that its author edited."""
    author: str
    at: At
    note: str
    lines: int


class DocumentHistory(AboutDocument):
    versions: tuple[DocumentVersion, ...]
    """Latest first."""
    more: bool


class DocumentDiff(AboutDocument):
    old: int
    new: int
    diff: str
    """In unified format."""
    cut: bool
    """Whether `diff` was truncated."""


class Comment(Model):
    id: int
    version: int
    """The latest version when the comment was written."""
    line: int | None = None
    author: str
    at: At
    text: str
    resolved_by: str | None = None


class Comments(AboutDocument):
    comments: tuple[Comment, ...]
    """Oldest first."""
    more: bool
    """Whether there are later ones. To get them, call again with `after`."""
