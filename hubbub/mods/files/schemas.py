"""Inputs and outputs of the mod `files`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.mods.fields import At, ListInput, id_pattern
from hubbub.mods.files.media_types import MEDIA_TYPE
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input, Tainted

CHUNK = 150 * 1024
"""Bytes of a file that one call carries: as base64 it fits into a frame."""

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
    """What the file is called, without any path."""
    size: Annotated[int, Field(ge=1, le=2**40)]
    """Bytes. An empty file says nothing, and is refused."""
    thread: ThreadRef | None = None
    """Who reads this thread may read the file; left out: nobody but you, until you attach it to a
    message or share it."""
    media_type: Annotated[str, Field(pattern=MEDIA_TYPE)] | None = None
    """For example `image/png`. What the name and the content say goes before it."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Checksum of the content in hexadecimal: what arrives otherwise is refused."""


class UploadChunk(UploadOf):
    offset: Bytes
    """Where in the file this part begins: where the last one has ended."""
    data: Annotated[str, Field(min_length=4, max_length=CHUNK * 4 // 3)]
    """The part, as base64; at most 153,600 bytes of the file."""


class WriteFile(Input):
    name: Name
    """What the file is called, for example `notes.md`."""
    text: Annotated[str, Field(min_length=1)]
    """What is in it."""
    thread: ThreadRef | None = None
    """Who reads this thread may read the file; left out: nobody but you, until you attach it to a
    message or share it."""
    outside: Tainted = False
    """Whether you have read something from outside the network before you wrote it."""


class ReadFile(FileOf):
    first_line: Line | None = None
    """Only from this line on."""
    last_line: Line | None = None
    """Only up to this line."""
    numbers: bool = True
    """Whether each line begins with its number."""


class DownloadChunk(FileOf):
    offset: Bytes = 0
    """Where the part begins."""


class ListFiles(ListInput):
    before: FileId | None = None


class ShareFile(FileOf):
    thread: ThreadRef
    """Who reads this thread may read the file from now on."""


class Upload(Model):
    upload: str
    """Names the upload in the calls that follow."""
    name: str
    size: int
    """Bytes in all."""
    received: int
    """Bytes that are here: the offset of the next part."""
    chunk: int = CHUNK
    """Bytes that one part has at most."""


class File(Model):
    id: str
    name: str
    media_type: str
    size: int
    """Bytes."""
    sha256: str
    thread: str | None = None
    """A thread of yours in which the file is."""
    uploaded_by: str
    at: At
    outside: bool = False
    """Whether its content came from outside the network."""
    lines: int = 0
    """Of its text, as `read_file` counts them; 0: there is none."""
    no_text: str = ""
    """Why there is none."""
    deleted_by: str | None = None
    """Who has deleted it: there is no content any more."""
    deleted_at: At | None = None


class Files(Model):
    files: tuple[File, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""


class FileText(Model):
    file: File
    text: str
    """With line numbers, if they were asked for. Long lines are broken."""
    first: int
    last: int
    """The last line that is here."""
    lines: int
    """Of the whole text."""
    more: bool
    """Whether there are lines after these: ask again with `first_line`."""
    cut: bool = False
    """Whether the file goes on after its last line here: only so much text is kept."""
    outside: bool = False
    """Whether the text came from outside the network."""


class FileChunk(Model):
    id: str
    offset: int
    size: int
    """Bytes of the whole file."""
    data: str
    """The part, as base64."""
    more: bool
    """Whether there are bytes after these."""
