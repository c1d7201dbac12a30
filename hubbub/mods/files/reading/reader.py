"""One file that has come in: whether it may stay, and what it says."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import NamedTuple

from hubbub.mods.files.kinds import is_text_type
from hubbub.mods.files.reading.markup import text_of_html
from hubbub.mods.files.reading.office import text_of_office
from hubbub.mods.files.reading.packed import check_stream, open_zip
from hubbub.mods.files.reading.pdf import text_of_pdf
from hubbub.mods.files.reading.words import Limits, NoText

__all__ = ["LONGEST_LINE", "Reading", "inspected", "way_to_read"]

LONGEST_LINE = 2_000
"""Characters; longer lines are broken, so that each part of a text fits into an answer."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
_WAYS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    "application/pdf": "pdf",
    "application/vnd.oasis.opendocument.text": "odf",
    "application/vnd.oasis.opendocument.spreadsheet": "odf",
    "application/vnd.oasis.opendocument.presentation": "odf",
}
_ZIPS = frozenset({"application/zip", "application/epub+zip", "application/java-archive"})
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029\x85\x0c]")


class Reading(NamedTuple):
    """What was read from a file."""

    text: str
    lines: int
    cut: bool
    """Whether there is more than was kept."""


def way_to_read(media_type: str) -> str | None:
    """How text is read from files of a type; None: not at all."""
    return _WAYS.get(media_type) or ("plain" if is_text_type(media_type) else None)


def inspected(path: Path, media_type: str, limits: Limits) -> Reading:
    """What the file says. Raises `Refused` for one that must not stay, `NoText`."""
    check_stream(path, media_type, limits)
    if media_type in _ZIPS:
        open_zip(path, limits).close()
    how = way_to_read(media_type)
    if how is None:
        raise NoText(f"no text can be read from {media_type}")
    if how in ("plain", "html"):
        text, cut = _decoded(path, limits.characters)
        if how == "html":
            text = text_of_html(text)
    else:
        text = text_of_pdf(path, limits) if how == "pdf" else text_of_office(path, how, limits)
        cut = len(text) > limits.characters
    lines = _lines(text[: limits.characters])
    if not any(lines):
        raise NoText("there is no text in it")
    return Reading("\n".join(lines), len(lines), cut)


def _decoded(path: Path, characters: int) -> tuple[str, bool]:
    """The beginning of a text file, and whether it goes on."""
    with path.open("rb") as file:
        data = file.read(characters * 4 + 4)
        goes_on = bool(file.read(1))
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", errors="replace")
    else:
        try:
            # A character that the end cuts in two is no error.
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(data)
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
    return text, goes_on or len(text) > characters


def _lines(text: str) -> list[str]:
    """Without what cannot be seen, and no line too long."""
    clean = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text)).rstrip()
    lines: list[str] = []
    for line in clean.split("\n"):
        lines += [line[at : at + LONGEST_LINE] for at in range(0, max(len(line), 1), LONGEST_LINE)]
    return lines
