"""One file that has come in: whether it may stay, and what it says."""

from __future__ import annotations

import codecs
import re
import subprocess
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hubbub.mods.files.archives import NoText, ReadLimits, check_stream, open_zip, text_of_office
from hubbub.mods.files.media_types import is_text_type

__all__ = ["LONGEST_LINE", "FileReading", "inspected", "text_of_html", "way_to_read"]

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
    """What a reader of the page sees, line by line; scripts and styles are left out."""
    pieces: list[str] = []
    at, end = 0, len(source)
    while at < end:
        start = source.find("<", at)
        pieces.append(_said(source[at : start if start >= 0 else end]))
        if start < 0:
            break
        at = _past(source, start, pieces)
    lines = (line.strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _past(source: str, start: int, pieces: list[str]) -> int:
    """Where the text goes on after what begins with `<` here."""
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


def _after(found: int, length: int, end: int) -> int:
    return end if found < 0 else found + length


def _said(text: str) -> str:
    return _BLANK.sub(" ", unescape(text)) if text else ""


WAIT_S = 20.0
"""Seconds that reading may take, whatever else the machine does."""
_WORKER = Path(__file__).with_name("pdf_worker.py")
_ENCRYPTED = 3


def text_of_pdf(path: Path, limits: ReadLimits) -> str:
    """Raises `NoText`."""
    if find_spec("pypdf") is None:
        raise NoText("to read PDF the hub needs pypdf: install hubbub[pdf]")
    command = [sys.executable, "-I", str(_WORKER), str(path.absolute()), str(limits.characters)]
    try:
        # No shell, nothing of the hub's environment, and nothing of what it prints is trusted.
        run = subprocess.run(command, capture_output=True, env={}, timeout=WAIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NoText("reading it takes too long") from None
    if run.returncode == _ENCRYPTED:
        raise NoText("it is encrypted")
    if run.returncode != 0:
        raise NoText("it could not be read")
    return run.stdout.decode(errors="replace")


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


class FileReading(NamedTuple):
    """What was read from a file."""

    text: str = ""
    lines: int = 0
    cut: bool = False
    """Whether there is more than was kept."""
    no_text: str = ""
    """Why nothing was."""


def way_to_read(media_type: str) -> str | None:
    """How text is read from files of a type; None: not at all."""
    return _WAYS.get(media_type) or ("plain" if is_text_type(media_type) else None)


def inspected(path: Path, media_type: str, limits: ReadLimits) -> FileReading:
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
    return FileReading("\n".join(lines), len(lines), cut)


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
