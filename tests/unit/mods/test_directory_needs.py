"""Who rank a need."""

from __future__ import annotations

from hubbub.mods.directory.mod import WordMatch, keywords, queries, rank


def test_words_that_say_nothing_are_left_out_unless_there_are_no_others() -> None:
    assert keywords("Who can translate this for me?") == ["translate"]
    assert keywords("who can do it") == ["who", "can", "do", "it"]
    assert keywords("Déjà déjà") == ["deja"]
    assert len(keywords(" ".join(f"w{n}" for n in range(90)))) == 20


def test_each_word_is_asked_for_anywhere_and_among_skills() -> None:
    assert queries(["a", "b"]) == ['"a"', '"b"', '{name skills} : "a"', '{name skills} : "b"']


def test_rare_words_and_skills_count_for_more() -> None:
    words = ["common", "rare"]
    common = [WordMatch(0, who, strong=False) for who in ("ann", "bob", "cat")]
    found = rank(words, [*common, WordMatch(1, "dog", strong=False)], 4)
    assert [fit.participant for fit in found] == ["dog", "ann", "bob", "cat"]
    strong = rank(words, [*common, WordMatch(0, "cat", strong=True)], 4)
    assert [fit.participant for fit in strong] == ["cat", "ann", "bob"]
    assert strong[0].why == ("common",)


def test_nobody_fits_where_nothing_matches() -> None:
    assert rank(["a"], [], 0) == []
