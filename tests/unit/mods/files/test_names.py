"""Names of files: what is safe on any machine."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.files.media_types import LONGEST, checked_name, suffix_of


@pytest.mark.behaviour("M-116")
def test_names_that_people_give_are_kept() -> None:
    for name in (
        "plan.md", "Übersicht 2025 (final).docx", "résumé.pdf", "報告.txt", "👩\u200d🔬.png",
        ".gitignore", "a..b", "console.log", "x" * LONGEST,
    ):  # fmt: skip
        assert checked_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.behaviour("M-116")
def test_names_that_lead_elsewhere_or_deceive_are_refused() -> None:
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
        told = caught.value.message
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in told), name


@given(st.text(max_size=300))
@pytest.mark.behaviour("M-116")
def test_whatever_is_kept_stays_in_its_folder(name: str) -> None:
    try:
        kept = checked_name(name)
    except OperationError:
        return
    assert kept == checked_name(kept)
    assert not {"/", "\\", ":", "\0"} & {*kept, *unicodedata.normalize("NFKC", kept)}
    assert kept.strip(". ")
    assert len(kept.encode()) <= LONGEST * 3


def test_the_suffix_is_what_follows_the_last_dot() -> None:
    names = ("a.MD", "a.tar.gz", "README", ".gitignore", "a.")
    assert [suffix_of(name) for name in names] == [".md", ".gz", "", "", "."]
