"""Disguised words and links."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from hubbub.mods.api import PASS, Reject, Replace
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import LinksConfig, ModerationConfig
from hubbub.mods.moderation.text import (
    caseless,
    folded,
    host_of,
    links,
    merge_spans,
    plain,
    replace_spans,
)
from hubbub.protocol.messages import Draft
from tests.unit.protocol.drafts import hostile_text

DRAFT = Draft("ann", "human", "dm.ann.bob", "direct", "hello", recipients=("bob",))


def moderate(text: str, *words: str, **settings: Any) -> Any:
    config = ModerationConfig(words=words, **settings)
    return Moderation(config).on_message(DRAFT.replace(content=text))


def masked(text: str, *words: str) -> str:
    verdict = moderate(text, *words, on_word="mask")
    assert isinstance(verdict, Replace)
    return str(verdict.draft.content)


@pytest.mark.behaviour("M-2")
def test_a_text_longer_than_the_limit_is_rejected() -> None:
    assert moderate("x" * 10**5) is PASS
    for length in (4, 5):
        assert moderate("x" * length, max_length=5) is PASS
    long = Reject("the text has 6 characters; the limit is 5")
    assert moderate("x" * 6, max_length=5) == long


@pytest.mark.behaviour("M-2", "M-240")
def test_a_disguised_word_is_detected_but_not_inside_another_word() -> None:
    words = ("darn", "c++", "cop", "का", "hobo")
    for text in (
        *("darn", "Darn it", "oh, DARN!", "(darn)", "x\ndarn", "c++ rules"),
        "da\u200brn",  # zero-width space
        "d\u00ada\u2060r\ufeffn",
        "ｄａｒｎ",  # full width
        "𝓭𝓪𝓻𝓷",  # styled
        "d̶a̶r̶n̶",  # struck through
        "dаrn",  # Cyrillic а
        "DАRN",  # Cyrillic capital А
        "say dаrn. да",
    ):
        assert isinstance(moderate(text, *words), Reject), text
    for text in (
        *("darning", "undarn", "da rn", "c+", "dArné"),
        *("сор в избе", "dárn", "ново да", "की", "darnе-ё"),
    ):
        assert moderate(text, *words) is PASS, text
    assert moderate("какой СОР в избе", "сор") is not PASS
    assert moderate("E\u0301TE\u0301 2024", "été") is not PASS


@pytest.mark.behaviour("M-2", "M-240")
def test_a_mask_covers_exactly_the_disguised_word_in_every_text() -> None:
    assert masked("Darn, a darned DARN", "darn") == "****, a darned ****"
    assert masked("darn it all", "darn", "darn it") == "******* all"
    assert masked("é da\u200brn! ｄａｒｎ", "darn") == "é *****! ****"
    mod = Moderation(ModerationConfig(words=("darn",), on_word="mask", max_length=4))
    draft = DRAFT.replace(content={"darn": 1}, text_representation="darn")
    changed = draft.replace(content={"****": 1}, text_representation="****")
    assert mod.on_message(draft) == Replace(changed)
    assert isinstance(mod.on_message(draft.replace(text_representation="longer")), Reject)
    assert mod.on_message(draft.replace(sender_kind="system")) is PASS


@pytest.mark.behaviour("M-2", "M-240")
@given(hostile_text())
def test_masking_keeps_the_length_and_removes_the_word(text: str) -> None:
    message = f"{text} darn {text}"
    masked_text = masked(message, "darn")
    assert len(masked_text) == len(message)
    assert moderate(masked_text, "darn") is PASS
    for form in (plain(text), caseless(plain(text)), folded(caseless(plain(text)))):
        assert len(form.origins) == len(form.text) + 1
        assert list(form.origins) == sorted(form.origins)
        assert form.origins[-1] == len(text)
    for (start, end), _ in links(caseless(plain(text))):
        assert 0 <= start < end <= len(text)


@pytest.mark.behaviour("M-240")
def test_a_letter_with_very_many_accents_is_read_in_linear_time() -> None:
    accents = "\u0301\u0327" * 500_000  # quadratic time would be hours
    assert plain(f"e{accents} darn").text == "ȩ darn"


def test_overlapping_spans_are_merged() -> None:
    assert merge_spans([(4, 6), (0, 2), (1, 3), (3, 4), (5, 5)]) == [(0, 3), (3, 4), (4, 6)]
    assert replace_spans("abcdef", [(4, 6), (1, 3), (2, 3)], "-") == "a-d-"


# Links ------------------------------------------------------------------------------------------


def hosts(text: str) -> list[str]:
    return [host for _, host in links(caseless(plain(text)))]


@pytest.mark.behaviour("M-241")
def test_a_disguised_link_is_detected() -> None:
    for text in (
        "https://evil.com",
        "see HTTPS://EVIL.COM/path?x#y.",
        "http://user:pass@evil.com:8080/",
        "https://good.org@evil.com/",
        "https:\\\\evil.com\\x",
        "https:evil.com",
        "https:///evil.com",
        "ftp://evil.com",
        "https://evil%2ecom/",
        "https://evil。com/",
        "https://ｅｖｉｌ．ｃｏｍ/",
        "https://ev\u200bil.com",
        "https://evil.com./",
        "[a](//evil.com/x)",
        "<a href='//evil.com'>",
        "www.evil.com",
        "go to evil.com now",
        "evil.com/path",
        "evil.com:443",
        "(evil.com)",
    ):
        assert [host.removeprefix("www.") for host in hosts(text)] == ["evil.com"], text
    for text in (
        "main.py and a.b", "ann@evil.com", "e.g. this", "1.5 or 2.0", "// a comment", "a//b",
        "12:30",
    ):  # fmt: skip
        assert hosts(text) == [], text
    assert hosts("https://gооgle.com") == ["xn--ggle-55da.com"], "Cyrillic о"
    assert hosts("https://bücher.example") == ["xn--bcher-kva.example"]


@pytest.mark.behaviour("M-241")
def test_a_host_is_recognized_in_every_notation() -> None:
    for link in ("http://2130706433/", "http://0x7f.1", "http://127.1:80", "//127.0.0.1"):
        assert host_of(link) == "127.0.0.1", link
    for link in ("https://evil.org%2f.good.com", "https://[::zz]", "https://" + "a" * 70 + ".com"):
        assert host_of(link) == "", link
    assert host_of("http://[0:0::1]:80/x") == "::1"
    for wrong in ("", "a b.com", "http://x.org", "a/b"):
        with pytest.raises(ValidationError, match="expected a domain"):
            LinksConfig(deny=(wrong,))
