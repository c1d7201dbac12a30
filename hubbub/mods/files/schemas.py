"""Inputs and outputs of the mod `files`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.mods.fields import At, ListInput, id_pattern
from hubbub.mods.files.media_types import MEDIA_TYPE
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input, Untrusted

CHUNK = 150 * 1024
"""Bytes of a file per call. Encoded as base64, they fit into a frame."""

FileId = Annotated[str, Field(pattern=id_pattern("f"))]
UploadId = Annotated[str, Field(pattern=r"^u[0-9a-f]{16}$")]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Bytes = Annotated[int, Field(ge=0, le=2**40)]
Line = Annotated[int, Field(ge=1, le=10**9)]


class FileOf(Input):
    id: FileId
    """The file, for example `f12`."""


class UploadOf(Input):
    upload: UploadId
    """The upload."""


class BeginUpload(Input):
    name: Name
    """File name, without a path."""
    size: Annotated[int, Field(ge=1, le=2**40)]
    """Size in bytes. Empty files are refused."""
    thread: ThreadRef | None = None
    """Participants who read this thread can read the file. Default: only you, until you attach it
    to a message or share it."""
    media_type: Annotated[str, Field(pattern=MEDIA_TYPE)] | None = None
    """For example `image/png`. The type detected from name and content takes precedence."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Checksum of the content in hexadecimal. Content that does not match it is refused."""


class UploadChunk(UploadOf):
    offset: Bytes
    """Offset of this part in the file, in bytes: the end of the previous part."""
    data: Annotated[str, Field(min_length=4, max_length=CHUNK * 4 // 3)]
    """This part as base64, at most 153,600 bytes of the file."""


class WriteFile(Input):
    name: Name
    """File name, for example `notes.md`."""
    text: Annotated[str, Field(min_length=1)]
    """The content."""
    thread: ThreadRef | None = None
    """Participants who read this thread can read the file. Default: only you, until you attach it
    to a message or share it."""
    untrusted: Untrusted = False
    """Whether you read content from outside the network before writing it."""


class ReadFile(FileOf):
    first_line: Line | None = None
    """First line to return."""
    last_line: Line | None = None
    """Last line to return."""
    numbers: bool = True
    """Whether each line starts with its number."""


class DownloadChunk(FileOf):
    offset: Bytes = 0
    """Offset of the part, in bytes."""


class ListFiles(ListInput):
    before: FileId | None = None


class ShareFile(FileOf):
    thread: ThreadRef
    """The thread whose readers can read the file from now on."""


class Upload(Model):
    upload: str
    """Id of the upload, for the following calls."""
    name: str
    size: int
    """Total size in bytes."""
    received: int
    """Bytes received so far, which is the offset of the next part."""
    chunk: int = CHUNK
    """Maximum size of a part in bytes."""


class File(Model):
    id: str
    name: str
    media_type: str
    size: int
    """Size in bytes."""
    sha256: str
    thread: str | None = None
    """A thread that you read and that has the file."""
    uploaded_by: str
    at: At
    untrusted: bool = False
    """Whether its content comes from outside the network."""
    lines: int = 0
    """Number of lines of text, as `read_file` counts them. 0 if there is no text."""
    no_text: str = ""
    """Why there is no text, if there is none."""
    deleted_by: str | None = None
    """The participant who deleted the file. Its content is gone."""
    deleted_at: At | None = None


class Files(Model):
    files: tuple[File, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""


class FileText(Model):
    file: File
    text: str
    """With line numbers, if requested. Long lines are wrapped."""
    first: int
    last: int
    """Last line in `text`."""
    lines: int
    """Number of lines in the whole text."""
    more: bool
    """Whether there are more lines. To get them, call again with `first_line`."""
    cut: bool = False
    """Whether the file is longer than its stored text, which is limited in size."""
    untrusted: bool = False
    """Whether the text comes from outside the network."""


class FileChunk(Model):
    id: str
    offset: int
    size: int
    """Size of the whole file in bytes."""
    data: str
    """The part as base64."""
    more: bool
    """Whether the file continues after this part."""
