"""Names and types of files."""

from __future__ import annotations

import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.files.media_types import (
    LONGEST,
    OCTETS,
    checked_name,
    is_accepted,
    suffix_of,
    true_type,
)


@pytest.mark.behaviour("M-116")
def test_ordinary_file_names_are_accepted() -> None:
    for name in (
        "plan.md", "Übersicht 2025 (final).docx", "résumé.pdf", "報告.txt", "👩\u200d🔬.png",
        ".gitignore", "a..b", "console.log", "x" * LONGEST,
    ):  # fmt: skip
        assert checked_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.behaviour("M-116")
def test_unsafe_or_deceptive_file_names_are_refused() -> None:
    for name in (
        "../x", "../../etc/passwd", "/etc/passwd", "a/b", "a/", "..", ".", " ", "...", ". .",
        "..\\x", "\\\\host\\share", "C:\\x", "C:x", "x:stream",
        "a|b", "what?", "a*", 'a"b', "<a>",
        "x\x00.png", "x\n.png", "x\r", "\x1b[2Jx", "x\x7f", "x\x85y",
        "exe.\u202egnp", "\u2066x", "a\u200bb", "\ufeffx", "a\u2028b", "\ud800x", "\ue000x",
        "\uff0e\uff0e\uff0fx", "a\uff0fb", "a\uff3cb", "\u2025", "a\uff1ab", "\u2024\u2024",
        "con", "CON.txt", "nul.md", "Aux", "com1.log", "LPT9", "com¹", "conin$", "CON .txt",
        " x", "x ", "x.", "x\u3000", "x\uff0e",
        "x" * (LONGEST + 1), "ü" * 128, "x" * 1000,
    ):  # fmt: skip
        with pytest.raises(OperationError, match="name: ") as caught:
            checked_name(name)
        assert caught.value.code == "bad_request"
        message = caught.value.message
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in message), name


@given(st.text(max_size=300))
@pytest.mark.behaviour("M-116")
def test_an_accepted_name_stays_in_its_folder(name: str) -> None:
    try:
        accepted = checked_name(name)
    except OperationError:
        return
    assert accepted == checked_name(accepted)
    assert not {"/", "\\", ":", "\0"} & {*accepted, *unicodedata.normalize("NFKC", accepted)}
    assert accepted.strip(". ")
    assert len(accepted.encode()) <= LONGEST * 3


def test_a_suffix_starts_at_the_last_dot() -> None:
    names = ("a.MD", "a.tar.gz", "README", ".gitignore", "a.")
    assert [suffix_of(name) for name in names] == [".md", ".gz", "", "", "."]


PNG = b"\x89PNG\r\n\x1a\n\x00\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF"
ELF = b"\x7fELF\x02\x01\x01\x00"
EXE = b"MZ\x90\x00\x03\x00\x00"
HTML = b"<!DOCTYPE html><script>alert(1)</script>"
ZIP = b"PK\x03\x04\x14\x00\x00\x00"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.behaviour("M-117")
def test_the_content_decides_the_media_type() -> None:
    for name, claimed, head, expected in (
        ("a.png", None, PNG, "image/png"),
        ("a.png", "text/html", PNG, "image/png"),
        ("a.png", None, JPEG, "image/jpeg"),
        ("a.png", None, b"\x00\x01\x02", OCTETS),
        ("a", None, PNG, "image/png"),
        ("a.docx", None, ZIP, DOCX),
        ("a.pdf", None, b"%PDF-1.4 all of it is text", "application/pdf"),
        ("a.md", None, b"# Plan", "text/markdown"),
        ("a.md", "image/png", b"# Plan", "text/markdown"),
        ("a.md", None, b"<h1>Plan</h1>", "text/markdown"),
        ("a.txt", None, b"MZ is a text", "text/plain"),
        ("a.txt", None, b"BM, too", "text/plain"),
        ("a.txt", None, PNG, "image/png"),
        ("a.txt", None, b"\x00\x01\x02", OCTETS),
        ("a.csv", None, "Größe;1".encode("cp1252"), "text/csv"),
        ("a.txt", None, "hi".encode("utf-16"), "text/plain"),
        ("a.unknown", None, b"hello", "text/plain"),
        ("a.unknown", "application/x-own", b"\x00\x01", "application/x-own"),
        ("a.exe", None, EXE, "application/vnd.microsoft.portable-executable"),
        ("a", None, ELF, "application/x-elf"),
        ("a.mov", None, b"\x00\x00\x00\x14ftypqt  ", "video/quicktime"),
        ("a.svg", None, b"<svg xmlns='x'/>", "image/svg+xml"),
        ("a.json", None, b"{}", "application/json"),
    ):
        assert true_type(name, claimed, head) == expected, (name, claimed, head)


@pytest.mark.behaviour("M-117")
def test_content_that_contradicts_its_name_is_refused() -> None:
    for name, claimed, head in (
        ("a.png", None, ELF),
        ("a.png", None, EXE),
        ("a.png", None, HTML),
        ("a.png", None, b"#!/bin/sh\nrm -rf x"),
        ("a.pdf", None, HTML),
        ("a.txt", None, ELF),
        ("a.docx", None, EXE),
        ("a", "image/png", ELF),
        ("a", "image/png", HTML),
        ("a.exe", None, b"just a text"),
    ):
        with pytest.raises(OperationError, match=r"the content of .* is") as caught:
            true_type(name, claimed, head)
        assert caught.value.code == "rejected"


@given(st.sampled_from(["a.png", "a.md", "a.docx", "a", "a.exe"]), st.binary(max_size=300))
def test_any_content_has_a_media_type_or_is_refused(name: str, head: bytes) -> None:
    with suppress(OperationError):
        assert "/" in true_type(name, None, head)


@pytest.mark.behaviour("M-117")
def test_only_the_configured_types_of_files_are_accepted() -> None:
    rules: list[tuple[list[str], str, str, bool]] = [
        ([], "a.exe", OCTETS, True),
        (["image/*"], "a.png", "image/png", True),
        (["image/*"], "a.md", "text/markdown", False),
        ([".md"], "a.md", "text/markdown", True),
        ([".md"], "a.MD", "text/markdown", True),
        ([".png"], "a.png", "image/jpeg", False),
        ([".own"], "a.own", OCTETS, True),
        (["text/markdown"], "a.markdown", "text/markdown", True),
    ]
    for types, name, media_type, accepted in rules:
        assert is_accepted(types, name, media_type) is accepted, (types, name)
