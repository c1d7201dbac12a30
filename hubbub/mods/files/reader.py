"""Checks an uploaded file and extracts its text.

Office documents (XML in ZIP archives) that define XML entities are refused. Office programs do not
write any, and they can expand a few bytes to gigabytes or refer to files of this machine.
"""

from __future__ import annotations

import codecs
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from bz2 import BZ2File
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from gzip import GzipFile
from html import unescape
from importlib.util import find_spec
from itertools import chain
from lzma import LZMAError, LZMAFile
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from hubbub.mods.files.media_types import OFFICE, OPEN_DOCUMENT, is_text_type

__all__ = [
    "LONGEST_LINE",
    "FileReading",
    "FileRefused",
    "NoText",
    "ReadLimits",
    "extract_text",
    "text_of_html",
    "way_to_read",
]


class NoText(Exception):
    """The file is accepted but has no readable text, for the reason given."""


class FileRefused(Exception):
    """The file is malicious, for the reason given."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits on the extracted text and on the unpacked size."""

    characters: int
    """Maximum length of the text, which is then truncated."""
    unpacked: int
    """Maximum unpacked size in bytes."""
    ratio: int = 200
    """Maximum compression ratio, for unpacked sizes above `small`."""
    small: int = 10_000_000
    """Unpacked size in bytes up to which any ratio is allowed: uniform data compresses well."""
    entries: int = 5_000
    """Maximum number of files in an archive."""

    def check(self, packed: int, unpacked: int) -> None:
        """Raises `FileRefused` for a decompression bomb."""
        if unpacked > self.unpacked:
            raise FileRefused(f"it unpacks to more than {self.unpacked} bytes")
        if unpacked > self.small and unpacked > packed * self.ratio:
            raise FileRefused(f"it unpacks to more than {self.ratio} times its size")


_BLOCK = 1 << 16
_END = b"PK\x05\x06"
_END_RECORD = struct.Struct("<4s4H2LH")
_DIRECTORY = 2_000_000
"""Maximum size of an archive's directory in bytes, because it is read into memory."""


_STREAMS: dict[str, type[GzipFile | BZ2File | LZMAFile]] = {
    "application/gzip": GzipFile,
    "application/x-gzip": GzipFile,
    "application/x-bzip2": BZ2File,
    "application/x-bzip": BZ2File,
    "application/x-xz": LZMAFile,
}


def check_stream(path: Path, media_type: str, limits: ReadLimits) -> None:
    """Raises `FileRefused` if a compressed file is too large when unpacked. Damaged files are
    ignored, because they do no harm."""
    if media_type not in _STREAMS:
        return
    packed, size = path.stat().st_size, 0
    damaged = (zlib.error, LZMAError, OSError, EOFError, MemoryError)  # xz can request gigabytes
    with suppress(*damaged), _STREAMS[media_type](path) as file:
        while piece := file.read(_BLOCK):
            size += len(piece)
            limits.check(packed, size)


def open_zip(path: Path, limits: ReadLimits) -> zipfile.ZipFile:
    """Open an archive after checking its directory. Raises `FileRefused` for a bomb, `NoText` for a
    damaged archive."""
    _check_directory(path, limits)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError, OSError) as error:
        raise NoText("the archive is damaged") from error
    try:
        if len(archive.filelist) > limits.entries:
            raise FileRefused(f"it has more than {limits.entries} files")
        limits.check(path.stat().st_size, sum(each.file_size for each in archive.filelist))
    except BaseException:
        archive.close()
        raise
    return archive


def _check_directory(path: Path, limits: ReadLimits) -> None:
    """Check the end record before the directory is read into memory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 65_557))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        raise NoText("the archive is damaged")
    _, _, _, _, entries, length, _, _ = _END_RECORD.unpack_from(tail, at)
    if entries == 0xFFFF or entries > limits.entries:
        raise FileRefused(f"it has more than {limits.entries} files")
    if length > _DIRECTORY:
        raise FileRefused(f"its directory has more than {_DIRECTORY} bytes")


def unpacked(archive: zipfile.ZipFile, name: str, limits: ReadLimits) -> Iterator[bytes]:
    """The content of a file in the archive, in pieces. The declared size is not trusted."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise NoText(f"it has no {name}") from None
    if info.flag_bits & 1:
        raise NoText("it is encrypted")
    size = 0
    try:
        with archive.open(info) as file:
            while piece := file.read(_BLOCK):
                size += len(piece)
                limits.check(info.compress_size, size)
                yield piece
    except (zipfile.BadZipFile, zlib.error, LZMAError, NotImplementedError, EOFError) as error:
        raise NoText("the archive is damaged") from error


MAX_XML = 16_000_000
"""Bytes that are parsed of the files of a document, at about 10 MB a second."""
_NUMBER = re.compile(r"(\d+)\.xml$")


class _TextLimitReached(Exception):
    """The limit on the text is reached."""


class _Collector:
    """Collects the text of some elements of an XML file, with newlines after others."""

    def __init__(
        self, room: int, text: frozenset[str], lines: frozenset[str], tabs: frozenset[str]
    ):
        self.pieces: list[str] = []
        self._room, self._text, self._lines, self._tabs = room, text, lines, tabs
        self._inside = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(" ")[2]
        self._inside += name in self._text
        if name in self._tabs:
            self._add("\t")

    def end(self, name: str) -> None:
        name = name.rpartition(" ")[2]
        self._inside -= name in self._text
        if name in self._lines:
            self._add("\n")

    def data(self, data: str) -> None:
        if self._inside:
            self._add(data)

    def _add(self, piece: str) -> None:
        self.pieces.append(piece)
        self._room -= len(piece)
        if self._room < 0:
            raise _TextLimitReached


def _parse(pieces: Iterator[bytes], collector: _Collector, most: int = MAX_XML) -> int:
    """Parse XML. Returns its size. Raises `FileRefused` for entities, `NoText`, and beyond `most`
    bytes `_TextLimitReached`."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.data
    data, complete = _read_pieces(pieces, most)
    try:
        # In one call: given a long tag in pieces, the parser rescans it for each piece.
        parser.Parse(data, complete)
    except expat.ExpatError as error:
        raise NoText("the document is damaged") from error
    if not complete:
        raise _TextLimitReached
    return len(data)


def _read_pieces(pieces: Iterator[bytes], most: int) -> tuple[bytes, bool]:
    """The first bytes of a file, and whether they are all."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > most:
            return bytes(data), False
    return bytes(data), True


def _refuse_doctype(*_: object) -> None:
    raise FileRefused("its XML defines entities")


_Texts = tuple[frozenset[str], frozenset[str], frozenset[str]]
_WORD: _Texts = (frozenset({"t"}), frozenset({"p", "br"}), frozenset({"tab"}))
_SLIDE: _Texts = (frozenset({"t"}), frozenset({"p", "br"}), frozenset())
_ODF: _Texts = (
    frozenset({"p", "h"}),
    frozenset({"p", "h", "line-break", "table-row"}),
    frozenset({"tab"}),
)


def _texts(
    archive: zipfile.ZipFile,
    names: list[str],
    make: Callable[[int], _Collector],
    limits: ReadLimits,
) -> Iterator[str]:
    """The text of these files of an archive. `make` creates a collector with a limit."""
    room, left = limits.characters, MAX_XML
    for name in names:
        collector = make(room)
        try:
            left -= _parse(unpacked(archive, name, limits), collector, left)
        except _TextLimitReached:
            yield from collector.pieces
            return
        room -= sum(map(len, collector.pieces))
        yield from chain(collector.pieces, "\n")


def _plain(names: Callable[[zipfile.ZipFile], list[str]], rules: _Texts) -> _Reader:
    return lambda archive, limits: _texts(
        archive, names(archive), lambda room: _Collector(room, *rules), limits
    )


_Reader = Callable[[zipfile.ZipFile, ReadLimits], Iterator[str]]


def _numbered(archive: zipfile.ZipFile, prefix: str) -> list[str]:
    """The files `prefix1.xml`, `prefix2.xml` and so on of an archive, in order."""
    numbered = [
        (int(number[1]), name)
        for name in archive.namelist()
        if name.startswith(prefix) and (number := _NUMBER.search(name))
    ]
    return [name for _, name in sorted(numbered)]


class _SharedStrings(_Collector):
    """The texts of a workbook that cells refer to by number."""

    def __init__(self, room: int):
        super().__init__(room, frozenset({"t"}), frozenset(), frozenset())
        self.texts: list[str] = []

    def end(self, name: str) -> None:
        super().end(name)
        if name.endswith(" si"):
            self.texts.append(" ".join("".join(self.pieces).split("\n")))
            self.pieces = []


class _Cells(_Collector):
    """The cells of a sheet, row by row, with shared texts looked up."""

    def __init__(self, room: int, shared: list[str]):
        super().__init__(room, frozenset({"v", "t"}), frozenset({"row"}), frozenset())
        self._shared, self._is_shared = shared, False
        self._value: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        super().start(name, attributes)
        if name.endswith(" c"):
            self._is_shared, self._value = attributes.get("t") == "s", []

    def data(self, data: str) -> None:
        if self._inside:
            self._value.append(data)

    def end(self, name: str) -> None:
        if name.endswith(" c"):
            value = "".join(self._value)
            if self._is_shared and value.isdecimal() and int(value[:9]) < len(self._shared):
                value = self._shared[int(value[:9])]
            self._add(f"{value}\t")
        super().end(name)


def _sheets(archive: zipfile.ZipFile, limits: ReadLimits) -> Iterator[str]:
    shared = _SharedStrings(limits.characters)
    if "xl/sharedStrings.xml" in archive.namelist():
        # Cells that refer to strings beyond the limit show a number.
        with suppress(_TextLimitReached):
            _parse(unpacked(archive, "xl/sharedStrings.xml", limits), shared)
    names = _numbered(archive, "xl/worksheets/sheet")
    return _texts(archive, names, lambda room: _Cells(room, shared.texts), limits)


READERS: dict[str, _Reader] = {
    "docx": _plain(lambda _: ["word/document.xml"], _WORD),
    "pptx": _plain(lambda archive: _numbered(archive, "ppt/slides/slide"), _SLIDE),
    "xlsx": _sheets,
    "odf": _plain(lambda _: ["content.xml"], _ODF),
}


def text_of_office(path: Path, how: str, limits: ReadLimits) -> str:
    """The text of a document. Raises `NoText` and `FileRefused`."""
    with open_zip(path, limits) as archive:
        return "".join(READERS[how](archive, limits))


_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_UNREAD = {
    name: re.compile(rf"</{name}\b", re.IGNORECASE)
    for name in ("script", "style", "template", "noscript", "svg", "iframe", "object")
}
_LINES = frozenset(
    {
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li"),
        *("main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul"),
    }
)
_BLANK = re.compile(r"[ \t\r\n\f\u00a0]+")


def text_of_html(source: str) -> str:
    """The visible text of a page in lines, without scripts and styles."""
    pieces: list[str] = []
    at, end = 0, len(source)
    while at < end:
        start = source.find("<", at)
        pieces.append(_unescaped(source[at : start if start >= 0 else end]))
        if start < 0:
            break
        at = _skip_markup(source, start, pieces)
    lines = (line.strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _skip_markup(source: str, start: int, pieces: list[str]) -> int:
    """The position after the markup that starts with `<` at `start`."""
    end = len(source)
    if source.startswith("<!--", start):
        return _after(source.find("-->", start + 4), 3, end)
    tag = _TAG.match(source, start)
    if tag is None:
        if source.startswith(("<!", "<?"), start):
            return _after(source.find(">", start), 1, end)
        pieces.append("<")
        return start + 1
    name = tag[2].lower()
    if name in _UNREAD and not tag[1]:
        closing = _UNREAD[name].search(source, tag.end())
        return end if closing is None else _after(source.find(">", closing.end()), 1, end)
    if name in _LINES:
        pieces.append("\n- " if name == "li" and not tag[1] else "\n")
    elif name in ("td", "th"):
        pieces.append("\t" if tag[1] else "")
    return _after(source.find(">", tag.end()), 1, end)


def _after(position: int, length: int, end: int) -> int:
    return end if position < 0 else position + length


def _unescaped(text: str) -> str:
    return _BLANK.sub(" ", unescape(text)) if text else ""


WAIT_S = 20.0
"""Timeout in seconds for reading a PDF."""
_WORKER = Path(__file__).with_name("pdf_worker.py")
_ENCRYPTED = 3


def text_of_pdf(path: Path, limits: ReadLimits) -> str:
    """The text of a PDF. Raises `NoText`."""
    if find_spec("pypdf") is None:
        raise NoText("the hub needs pypdf to read PDF; install hubbub[pdf]")
    command = [sys.executable, "-I", str(_WORKER), str(path.absolute()), str(limits.characters)]
    try:
        # No shell and an empty environment. The output is not trusted.
        run = subprocess.run(command, capture_output=True, env={}, timeout=WAIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NoText("reading it took too long") from None
    if run.returncode == _ENCRYPTED:
        raise NoText("it is encrypted")
    if run.returncode != 0:
        raise NoText("it could not be read")
    return run.stdout.decode(errors="replace")


LONGEST_LINE = 2_000
"""Characters. Longer lines are wrapped, so that any line fits into an answer."""

_WAYS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    f"{OFFICE}.wordprocessingml.document": "docx",
    f"{OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{OFFICE}.presentationml.presentation": "pptx",
    **{f"{OPEN_DOCUMENT}.{kind}": "odf" for kind in ("text", "spreadsheet", "presentation")},
}
_ZIPS = frozenset({"application/zip", "application/epub+zip", "application/java-archive"})
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029\x85\x0c]")


class FileReading(NamedTuple):
    """The text extracted from a file."""

    text: str = ""
    lines: int = 0
    cut: bool = False
    """Whether the text was truncated."""
    no_text: str = ""
    """Why there is no text."""


def way_to_read(media_type: str) -> str | None:
    """The method to extract text from files of a type. None if there is none."""
    return _WAYS.get(media_type) or ("plain" if is_text_type(media_type) else None)


def extract_text(path: Path, media_type: str, limits: ReadLimits) -> FileReading:
    """Check a file and extract its text. Raises `FileRefused` for a malicious file, `NoText`."""
    check_stream(path, media_type, limits)
    if media_type in _ZIPS:
        open_zip(path, limits).close()
    how = way_to_read(media_type)
    if how is None:
        raise NoText(f"text cannot be extracted from {media_type}")
    if how in ("plain", "html"):
        text, cut = _decoded(path, limits.characters)
        if how == "html":
            text = text_of_html(text)
    else:
        text = text_of_pdf(path, limits) if how == "pdf" else text_of_office(path, how, limits)
        cut = len(text) > limits.characters
    lines = _lines(text[: limits.characters])
    if not any(lines):
        raise NoText("it has no text")
    return FileReading("\n".join(lines), len(lines), cut)


def _decoded(path: Path, characters: int) -> tuple[str, bool]:
    """The beginning of a text file, and whether it was truncated."""
    with path.open("rb") as file:
        data = file.read(characters * 4 + 4)
        truncated = bool(file.read(1))
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", errors="replace")
    else:
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(data)  # can end in half a one
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
    return text, truncated or len(text) > characters


def _lines(text: str) -> list[str]:
    """The lines without invisible characters, wrapped at `LONGEST_LINE`."""
    clean = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text)).rstrip()
    lines: list[str] = []
    for line in clean.split("\n"):
        lines += [line[at : at + LONGEST_LINE] for at in range(0, max(len(line), 1), LONGEST_LINE)]
    return lines
