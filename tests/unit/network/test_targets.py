from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.targets import find_mentions, nearest, resolve_target
from hubbub.protocol.codes import ErrorCode
from tests.unit.protocol.drafts import hostile_text


class Names:
    """A directory of names."""

    def __init__(self, *names: str):
        self._names = frozenset(names)

    def knows(self, participant: str) -> bool:
        return participant in self._names

    def participants(self) -> Collection[str]:
        return self._names


EVERYBODY = Names("ann", "bob", "carol", "dave", *(f"bot-{n}" for n in range(9)))


@pytest.mark.behaviour("P-11")
def test_a_target_resolves_to_the_thread_of_a_person_group_or_thread() -> None:
    cases: list[tuple[str | list[str], str]] = [
        ("bob", "dm.ann.bob"),
        (["bob"], "dm.ann.bob"),
        (["carol", "bob"], "dm.ann.bob.carol"),
        (["bob", "ann"], "dm.ann.bob"),
        (["bob", "bob"], "dm.ann.bob"),
        ("dm.ann.bob", "dm.ann.bob"),
        ("dm.bob.ann", "dm.ann.bob"),
        ("direct_carol", "dm.ann.carol"),
        ("direct_bob", "dm.ann.bob"),
        ("direct_bob+carol", "dm.ann.bob.carol"),
        ("channel_general", "channel.general"),
        ("channel.general.t5", "channel.general.t5"),
        ("broadcast", "broadcast"),
        ([f"bot-{n}" for n in range(7)], "dm.ann." + ".".join(f"bot-{n}" for n in range(7))),
    ]
    for to, thread in cases:
        assert resolve_target(to, "ann", EVERYBODY) == thread


def test_an_unknown_target_is_an_error_with_the_nearest_name() -> None:
    cases: list[tuple[str | list[str], ErrorCode, str]] = [
        ("bobb", ErrorCode.UNKNOWN_PARTICIPANT, "did you mean bob?"),
        ("zzz", ErrorCode.UNKNOWN_PARTICIPANT, "'zzz'"),
        ("", ErrorCode.UNKNOWN_PARTICIPANT, "''"),
        ("direct_nobody", ErrorCode.UNKNOWN_PARTICIPANT, "'nobody'"),
        ("dm.ann.nobody", ErrorCode.UNKNOWN_PARTICIPANT, "'nobody'"),
        (["bob", "nobody"], ErrorCode.UNKNOWN_PARTICIPANT, "'nobody'"),
        ("ann", ErrorCode.BAD_REQUEST, "yourself"),
        (["ann"], ErrorCode.BAD_REQUEST, "yourself"),
        ("dm.ann.ann", ErrorCode.UNKNOWN_PARTICIPANT, "dm.ann.ann"),
        ([f"bot-{n}" for n in range(8)], ErrorCode.LIMIT, "at most 8"),
        ("x" * 3000, ErrorCode.UNKNOWN_PARTICIPANT, "…"),
        (["x" * 3000, "bob"], ErrorCode.UNKNOWN_PARTICIPANT, "…"),
    ]
    for to, code, hint in cases:
        with pytest.raises(OperationError) as caught:
            resolve_target(to, "ann", EVERYBODY)
        assert caught.value.code == code
        assert hint in caught.value.message
        assert len(caught.value.message) < 200


READERS = {"ann", "bob", "long-name", "x_"}


@pytest.mark.behaviour("P-16")
def test_readers_named_outside_code_are_mentioned() -> None:
    cases: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
        ("hi @ann", ("ann",), ()),
        ("@ann and @bob, @ann again", ("ann", "bob"), ()),
        ("(@ann) @bob! @bob's", ("ann", "bob"), ()),
        ("@ann: @bob.", ("ann", "bob"), ()),
        ("**@ann**", ("ann",), ()),
        ("@long-name- and @bob--", ("long-name", "bob"), ()),
        ("@x_ @x__", ("x_",), ()),
        ("@nobody", (), ("nobody",)),
        ("@ann @nobody @nobody @other", ("ann",), ("nobody", "other")),
        ("write to joe@bob.example and a/@ann", (), ()),
        ("@@ann ..@bob", (), ()),
        ("`@ann` and ``@bob``", (), ()),
        ("```\n@ann\n``` @bob", ("bob",), ()),
        ("``` @ann never ends", (), ()),
        ("a ` alone @ann", ("ann",), ()),
        ("`a\n@ann`", ("ann",), ()),
        ("@ANN", (), ("ANN",)),
        ("@", (), ()),
        ("@-", (), ("-",)),
        ("no names here", (), ()),
        ("äöü@ann", (), ()),
        ("@annä", ("ann",), ()),
    ]
    for text, ids, unresolved in cases:
        mentions = find_mentions(text, (), READERS)
        assert (mentions.ids, mentions.unresolved) == (ids, unresolved)


@given(hostile_text(200), st.lists(st.sampled_from(["@ann", "@bob", "\n", " "]), max_size=30))
def test_every_mention_in_any_text_is_a_reader_or_unresolved(text: str, fenced: list[str]) -> None:
    mentions = find_mentions(text, (), READERS)
    assert set(mentions.ids) <= READERS
    assert not set(mentions.unresolved) & READERS
    assert find_mentions(f"```{''.join(fenced)}```", (), READERS).ids == ()


@pytest.mark.behaviour("P-16")
def test_explicit_mentions_come_first_and_must_exist() -> None:
    assert find_mentions("@ann @bob", ("bob",), READERS).ids == ("bob", "ann")
    with pytest.raises(OperationError, match="did you mean bob") as caught:
        find_mentions("hi", ("bobb",), READERS)
    assert caught.value.code == ErrorCode.UNKNOWN_PARTICIPANT


def test_the_nearest_of_many_names_is_suggested() -> None:
    assert nearest("xyz", ["ann", "bob"]) == ""
    assert nearest("an", ["ann", "bob"]) == "; did you mean ann?"
    names = [f"{letter}{n:05d}-worker" for n in range(5000) for letter in "abcde"]
    assert nearest("c00042-wroker", names) == "; did you mean c00042-worker?"
    assert nearest("zzz", names) == ""
