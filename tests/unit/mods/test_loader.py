from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import known_mods, load_mods
from hubbub.mods.moderation import Moderation

Entry = str | dict[str, dict[str, JsonValue] | None]


def test_the_built_in_mods_are_known_by_name() -> None:
    known = known_mods()
    assert known["moderation"] is Moderation
    assert all(issubclass(mod, Mod) and mod.name == name for name, mod in known.items())


@pytest.mark.parametrize(
    "entry", ["moderation", {"moderation": None}, {"moderation": {"max_length": 9}}]
)
def test_a_mod_is_named_alone_or_with_its_settings(entry: Entry) -> None:
    (mod,) = load_mods([entry])
    assert isinstance(mod, Moderation)
    assert mod.config.max_length in (None, 9)


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["moderatoin"], "mods: there is no mod 'moderatoin'; did you mean moderation?"),
        (["zzz"], "there are: "),
        (["moderation", "moderation"], "listed twice"),
        (["moderation", {"moderation": None}], "listed twice"),
        ([{"moderation": {"max_lenght": 3}}], "mods.moderation.max_lenght"),
        ([{"moderation": {"max_length": 0}}], "mods.moderation.max_length"),
        ([{"moderation": {"on_word": "shout"}}], "mods.moderation.on_word"),
        ([{"moderation": {"words": [""]}}], "mods.moderation.words.0"),
    ],
)
def test_a_wrong_list_is_told_in_a_sentence_with_the_place(entries: list[Entry], says: str) -> None:
    with pytest.raises(UserError) as caught:
        load_mods(entries)
    assert says in str(caught.value)
