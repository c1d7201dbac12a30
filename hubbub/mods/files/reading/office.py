"""The text of office documents: XML in ZIP archives.

A document that defines entities is refused: no office program writes any, and they are how a few
bytes of XML become gigabytes, or name files of the machine that reads them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from xml.parsers import expat

from hubbub.mods.files.reading.packed import open_zip, unpacked
from hubbub.mods.files.reading.words import Limits, NoText, Refused

__all__ = ["READERS", "text_of_office"]

MOST_XML = 16_000_000
"""Bytes of one file of a document that are looked at."""
_NUMBER = re.compile(r"(\d+)\.xml$")


class _Enough(Exception):
    """As much text as is kept."""


class _Collector:
    """The text between some elements of an XML file, with line ends after others."""

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
            raise _Enough


def _parse(pieces: Iterator[bytes], collector: _Collector) -> None:
    """Raises `Refused` for entities, `NoText` for what is no XML, `_Enough`."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.data
    data, whole = _first(pieces)
    try:
        # At once: a parser that is fed a long tag piece by piece begins anew with each of them.
        parser.Parse(data, whole)
    except expat.ExpatError as error:
        raise NoText("the document is damaged") from error
    if not whole:
        raise _Enough


def _first(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """As much of a file as is parsed, and whether that is all."""
    taken = bytearray()
    for piece in pieces:
        taken += piece
        if len(taken) > MOST_XML:
            return bytes(taken), False
    return bytes(taken), True


def _refuse_doctype(*_: object) -> None:
    raise Refused("its XML defines entities")


_Texts = tuple[frozenset[str], frozenset[str], frozenset[str]]
_WORD: _Texts = (frozenset({"t"}), frozenset({"p", "br"}), frozenset({"tab"}))
_SLIDE: _Texts = (frozenset({"t"}), frozenset({"p", "br"}), frozenset())
_ODF: _Texts = (
    frozenset({"p", "h"}),
    frozenset({"p", "h", "line-break", "table-row"}),
    frozenset({"tab"}),
)


def _plain(names: Callable[[zipfile.ZipFile], list[str]], rules: _Texts) -> _Reader:
    def read(archive: zipfile.ZipFile, limits: Limits) -> Iterator[str]:
        room = limits.characters
        for name in names(archive):
            collector = _Collector(room, *rules)
            try:
                _parse(unpacked(archive, name, limits), collector)
            except _Enough:
                yield from collector.pieces
                return
            room -= sum(map(len, collector.pieces))
            yield from chain(collector.pieces, "\n")

    return read


_Reader = Callable[[zipfile.ZipFile, Limits], Iterator[str]]


def _numbered(archive: zipfile.ZipFile, prefix: str) -> list[str]:
    """The files `prefix1.xml`, `prefix2.xml` of an archive, in this order."""
    found = [
        (int(number[1]), name)
        for name in archive.namelist()
        if name.startswith(prefix) and (number := _NUMBER.search(name))
    ]
    return [name for _, name in sorted(found)]


class _Shared(_Collector):
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


def _sheets(archive: zipfile.ZipFile, limits: Limits) -> Iterator[str]:
    shared = _Shared(limits.characters)
    if "xl/sharedStrings.xml" in archive.namelist():
        with suppress(_Enough):  # cells that refer to later ones show their number
            _parse(unpacked(archive, "xl/sharedStrings.xml", limits), shared)
    room = limits.characters
    for name in _numbered(archive, "xl/worksheets/sheet"):
        cells = _Cells(room, shared.texts)
        try:
            _parse(unpacked(archive, name, limits), cells)
        except _Enough:
            yield from cells.pieces
            return
        room -= sum(map(len, cells.pieces))
        yield from chain(cells.pieces, "\n")


READERS: dict[str, _Reader] = {
    "docx": _plain(lambda _: ["word/document.xml"], _WORD),
    "pptx": _plain(lambda archive: _numbered(archive, "ppt/slides/slide"), _SLIDE),
    "xlsx": _sheets,
    "odf": _plain(lambda _: ["content.xml"], _ODF),
}


def text_of_office(path: Path, how: str, limits: Limits) -> str:
    """The text of a document. Raises `NoText` and `Refused`."""
    with open_zip(path, limits) as archive:
        return "".join(READERS[how](archive, limits))
