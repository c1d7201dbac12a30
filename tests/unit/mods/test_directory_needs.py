"""Ranking of participants for a described need."""

from __future__ import annotations

from hubbub.mods.directory.mod import WordMatch, keywords, queries, rank


def test_filler_words_are_dropped_unless_there_are_no_others() -> None:
    assert keywords("Who can translate this for me?") == ["translate"]
    assert keywords("who can do it") == ["who", "can", "do", "it"]
    assert keywords("Déjà déjà") == ["deja"]
    assert len(keywords(" ".join(f"w{n}" for n in range(90)))) == 20


def test_each_word_is_searched_everywhere_and_among_skills() -> None:
    assert queries(["a", "b"]) == ['"a"', '"b"', '{name skills} : "a"', '{name skills} : "b"']


def test_matches_of_rare_words_and_skills_rank_first() -> None:
    words = ["common", "rare"]
    common = [WordMatch(0, who, strong=False) for who in ("ann", "bob", "cat")]
    rare = rank(words, [*common, WordMatch(1, "dog", strong=False)], 4)
    assert [fit.participant for fit in rare] == ["dog", "ann", "bob", "cat"]
    strong = rank(words, [*common, WordMatch(0, "cat", strong=True)], 4)
    assert [fit.participant for fit in strong] == ["cat", "ann", "bob"]
    assert strong[0].why == ("common",)
    assert rank(["a"], [], 0) == []
