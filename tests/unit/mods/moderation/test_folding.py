from __future__ import annotations

import pytest
from hypothesis import given

from hubbub.mods.api import PASS, Reject
from hubbub.mods.moderation.folding import caseless, folded, joined, plain, replaced
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.settings import ModerationConfig
from hubbub.protocol.messages import Draft
from tests.unit.protocol.drafts import hostile_text

pytestmark = pytest.mark.behaviour("M-240")


def is_refused(text: str, *words: str) -> bool:
    mod = Moderation(ModerationConfig(words=words))
    verdict = mod.on_message(Draft("ann", "human", "broadcast", "broadcast", text))
    assert verdict is PASS or isinstance(verdict, Reject)
    return verdict is not PASS


@pytest.mark.parametrize(
    "text",
    [
        "da\u200brn",  # a space without width
        "d\u00ada\u2060r\ufeffn",
        "ｄａｒｎ",  # full width
        "𝓭𝓪𝓻𝓷",  # styled
        "d̶a̶r̶n̶",  # struck through
        "dаrn",  # with a Cyrillic а
        "DАRN",  # and a large one
        "say dаrn. да",
    ],
)
def test_a_word_is_found_whatever_it_is_disguised_as(text: str) -> None:
    assert is_refused(text, "darn")


@pytest.mark.parametrize("text", ["сор в избе", "dárn", "ново да", "की", "darnе-ё"])
def test_another_word_is_another_word(text: str) -> None:
    assert not is_refused(text, "darn", "cop", "का", "hobo")


def test_words_of_any_language_can_be_named() -> None:
    assert is_refused("какой СОР в избе", "сор")
    assert is_refused("E\u0301TE\u0301 2024", "été")


def test_a_mask_covers_the_disguise_and_nothing_else() -> None:
    config = ModerationConfig(words=("darn",), on_word="mask")
    verdict = Moderation(config).on_message(
        Draft("ann", "human", "broadcast", "broadcast", "é da\u200brn! ｄａｒｎ")
    )
    assert getattr(verdict, "draft").content == "é *****! ****"  # noqa: B009


def test_places_that_overlap_are_one() -> None:
    assert joined([(4, 6), (0, 2), (1, 3), (3, 4), (5, 5)]) == [(0, 3), (3, 4), (4, 6)]
    assert replaced("abcdef", [(4, 6), (1, 3), (2, 3)], "-") == "a-d-"


@given(hostile_text())
def test_every_place_of_a_form_is_a_place_of_the_text(text: str) -> None:
    for form in (plain(text), caseless(plain(text)), folded(caseless(plain(text)))):
        assert len(form.origins) == len(form.text) + 1
        assert list(form.origins) == sorted(form.origins)
        assert form.origins[-1] == len(text)
