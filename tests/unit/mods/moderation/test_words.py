"""Words and links, found whatever they are disguised as."""

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


def judge(text: str, *words: str, **settings: Any) -> Any:
    config = ModerationConfig(words=words, **settings)
    return Moderation(config).on_message(DRAFT.replace(content=text))


def masked(text: str, *words: str) -> str:
    verdict = judge(text, *words, on_word="mask")
    assert isinstance(verdict, Replace)
    return str(verdict.draft.content)


@pytest.mark.behaviour("M-2")
def test_a_text_may_be_as_long_as_the_limit() -> None:
    assert judge("x" * 10**5) is PASS
    for length in (4, 5):
        assert judge("x" * length, max_length=5) is PASS
    long = Reject("the text has 6 characters; the limit is 5")
    assert judge("x" * 6, max_length=5) == long


@pytest.mark.behaviour("M-2", "M-240")
def test_a_word_is_found_whatever_it_is_disguised_as_and_not_inside_others() -> None:
    words = ("darn", "c++", "cop", "का", "hobo")
    for text in (
        *("darn", "Darn it", "oh, DARN!", "(darn)", "x\ndarn", "c++ rules"),
        "da\u200brn",  # a space without width
        "d\u00ada\u2060r\ufeffn",
        "ｄａｒｎ",  # full width
        "𝓭𝓪𝓻𝓷",  # styled
        "d̶a̶r̶n̶",  # struck through
        "dаrn",  # with a Cyrillic а
        "DАRN",  # and a large one
        "say dаrn. да",
    ):
        assert isinstance(judge(text, *words), Reject), text
    for text in (
        *("darning", "undarn", "da rn", "c+", "dArné"),
        *("сор в избе", "dárn", "ново да", "की", "darnе-ё"),
    ):
        assert judge(text, *words) is PASS, text
    assert judge("какой СОР в избе", "сор") is not PASS
    assert judge("E\u0301TE\u0301 2024", "été") is not PASS


@pytest.mark.behaviour("M-2", "M-240")
def test_a_mask_covers_the_word_and_its_disguise_in_all_texts_and_nothing_else() -> None:
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
    spoken = f"{text} darn {text}"
    kept = masked(spoken, "darn")
    assert len(kept) == len(spoken)
    assert judge(kept, "darn") is PASS
    for form in (plain(text), caseless(plain(text)), folded(caseless(plain(text)))):
        assert len(form.origins) == len(form.text) + 1
        assert list(form.origins) == sorted(form.origins)
        assert form.origins[-1] == len(text)
    for (start, end), _ in links(caseless(plain(text))):
        assert 0 <= start < end <= len(text)


def test_places_that_overlap_are_one() -> None:
    assert merge_spans([(4, 6), (0, 2), (1, 3), (3, 4), (5, 5)]) == [(0, 3), (3, 4), (4, 6)]
    assert replace_spans("abcdef", [(4, 6), (1, 3), (2, 3)], "-") == "a-d-"


# Links ------------------------------------------------------------------------------------------


def hosts(text: str) -> list[str]:
    return [host for _, host in links(caseless(plain(text)))]


@pytest.mark.behaviour("M-241")
def test_a_link_is_found_whatever_it_is_disguised_as() -> None:
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
    assert hosts("https://gооgle.com") == ["xn--ggle-55da.com"], "of another script"
    assert hosts("https://bücher.example") == ["xn--bcher-kva.example"]


@pytest.mark.behaviour("M-241")
def test_an_address_is_known_in_all_its_forms() -> None:
    for link in ("http://2130706433/", "http://0x7f.1", "http://127.1:80", "//127.0.0.1"):
        assert host_of(link) == "127.0.0.1", link
    for link in ("https://evil.org%2f.good.com", "https://[::zz]", "https://" + "a" * 70 + ".com"):
        assert host_of(link) == "", link
    assert host_of("http://[0:0::1]:80/x") == "::1"
    for wrong in ("", "a b.com", "http://x.org", "a/b"):
        with pytest.raises(ValidationError, match="expected a domain"):
            LinksConfig(deny=(wrong,))
