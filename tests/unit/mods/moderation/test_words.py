from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given

from hubbub.mods.api import PASS, Reject, Replace, Verdict
from hubbub.mods.moderation import Moderation, ModerationConfig
from hubbub.protocol.messages import Draft
from tests.unit.protocol.drafts import hostile_text

pytestmark = pytest.mark.behaviour("M-2")

DRAFT = Draft("ann", "human", "dm.ann.bob", "direct", "hello", recipients=("bob",))


def judge(
    text: str,
    *,
    words: tuple[str, ...] = (),
    max_length: int | None = None,
    on_word: Literal["reject", "mask"] = "reject",
) -> Verdict:
    config = ModerationConfig(words=words, max_length=max_length, on_word=on_word)
    return Moderation(config).on_message(replace(DRAFT, content=text))


def masked(text: str, *words: str) -> str:
    verdict = judge(text, words=words, on_word="mask")
    assert isinstance(verdict, Replace)
    assert isinstance(verdict.draft.content, str)
    return verdict.draft.content


def test_without_rules_everything_passes() -> None:
    assert judge("x" * 10**5) is PASS


@pytest.mark.parametrize(("length", "passes"), [(4, True), (5, True), (6, False)])
def test_a_text_may_be_as_long_as_the_limit(length: int, passes: bool) -> None:
    verdict = judge("x" * length, max_length=5)
    assert (verdict is PASS) == passes
    if not passes:
        assert verdict == Reject("a text has at most 5 characters, this one 6")


def test_a_representation_counts_like_a_text() -> None:
    mod = Moderation(ModerationConfig(max_length=3))
    draft = replace(DRAFT, content={"a": 1}, text_representation="long")
    assert isinstance(mod.on_message(draft), Reject)
    assert mod.on_message(replace(draft, text_representation=None)) is PASS


@pytest.mark.parametrize("text", ["darn", "Darn it", "oh, DARN!", "(darn)", "x\ndarn", "c++ rules"])
def test_a_forbidden_word_is_found_in_any_case(text: str) -> None:
    assert isinstance(judge(text, words=("darn", "c++")), Reject)


@pytest.mark.parametrize("text", ["darning", "undarn", "da rn", "c+", "dArné"])
def test_a_word_inside_another_is_not_that_word(text: str) -> None:
    assert judge(text, words=("darn", "c++")) is PASS


def test_a_masked_word_leaves_stars_of_its_length() -> None:
    assert masked("Darn, a darned DARN", "darn") == "****, a darned ****"


def test_the_longer_of_two_words_is_masked_whole() -> None:
    assert masked("darn it all", "darn", "darn it") == "******* all"


def test_a_word_is_masked_in_the_representation_too() -> None:
    mod = Moderation(ModerationConfig(words=("darn",), on_word="mask"))
    draft = replace(DRAFT, content={"darn": 1}, text_representation="darn")
    verdict = mod.on_message(draft)
    assert verdict == Replace(replace(draft, content={"****": 1}, text_representation="****"))


def test_the_hub_itself_is_not_moderated() -> None:
    mod = Moderation(ModerationConfig(words=("darn",), max_length=1))
    assert mod.on_message(replace(DRAFT, sender_kind="system", content="darn")) is PASS


@given(hostile_text())
def test_masking_keeps_the_length_and_removes_the_word(text: str) -> None:
    spoken = f"{text} darn {text}"
    kept = masked(spoken, "darn")
    assert len(kept) == len(spoken)
    assert judge(kept, words=("darn",)) is PASS
