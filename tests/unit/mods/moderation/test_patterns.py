"""Regular expressions of users that would take long to read in."""

from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from hubbub.mods.moderation.patterns import compiled


@pytest.mark.behaviour("M-398")
@pytest.mark.parametrize(
    "pattern",
    [
        "(?:(?:a{70}){70}){70}",
        "(?x)(?:(?:a {70}) {70}) {70}",
        "(?x)(?:(?:a{70}) # so often\n{70}) # and so often\n {70}",
        r"(?x)[#](?:(?:\ {70}) {70}) {70}",
    ],
)
def test_counts_within_each_other_are_seen_through_blanks_and_comments(pattern: str) -> None:
    with pytest.raises(PydanticCustomError, match="counted repetitions"):
        compiled(pattern)


@pytest.mark.behaviour("M-398")
@pytest.mark.parametrize("pattern", ["a{70} {70}b", "(?x)a{70} b {70}", r"[#{70}]{70}", r"#{70}"])
def test_counts_beside_each_other_are_fine(pattern: str) -> None:
    assert compiled(pattern)
