from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.models import NetworkFile
from hubbub.errors import UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import check_compatible, find_mod, known_mods, load_mods, operations_of
from hubbub.mods.moderation.mod import Moderation

Entry = str | dict[str, dict[str, JsonValue] | None]


def test_the_built_in_mods_are_known_by_name() -> None:
    assert find_mod("moderation").kind is Moderation
    for name in known_mods():
        assert find_mod(name).kind.name == name


def test_a_mod_is_named_alone_or_with_its_settings() -> None:
    entries: list[Entry] = ["moderation", {"moderation": None}, {"moderation": {"max_length": 9}}]
    for entry, length in zip(entries, (None, None, 9), strict=True):
        (mod,) = load_mods([entry])
        assert isinstance(mod, Moderation)
        assert mod.config.max_length == length


@pytest.mark.behaviour("L-3")
def test_a_wrong_list_is_told_in_a_sentence_with_the_place() -> None:
    wrong: list[tuple[list[Entry], str]] = [
        (["moderatoin"], "mods: there is no mod 'moderatoin'; did you mean moderation?"),
        (["zzz"], "available: "),
        (["moderation", "moderation"], "listed twice"),
        (["moderation", {"moderation": None}], "listed twice"),
        ([{"moderation": {"max_lenght": 3}}], "mods.moderation.max_lenght"),
        ([{"moderation": {"max_length": 0}}], "mods.moderation.max_length"),
        ([{"moderation": {"on_word": "shout"}}], "mods.moderation.on_word"),
        ([{"moderation": {"words": [""]}}], "mods.moderation.words.0"),
    ]
    for entries, says in wrong:
        with pytest.raises(UserError) as caught:
            load_mods(entries)
        assert says in str(caught.value)


# Files ------------------------------------------------------------------------------------------

FILE = '''from hubbub.mods.api import Mod
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.operations import Done, Input


class Nothing(Input):
    """Nothing to say."""


class Waves(Mod):
    """Waves."""

    name = "waves"

    @operation()
    def wave(self, call: Calling, args: Nothing) -> Done:
        """Wave at somebody."""
        return Done()


class Loud(Mod):
    """Has a name that no mod can have."""

    name = "Loud!"


class NoMod:
    name = "nomod"


value = 5
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with mods, and what is none."""
    path = tmp_path / "own.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


@pytest.mark.behaviour("M-35")
def test_a_mod_is_found_in_a_file_and_what_is_none_is_told(file: str) -> None:
    found = find_mod(f"{file}:Waves")
    assert (found.kind.name, found.origin) == ("waves", file)
    for name, says in (
        ("Wave", "there is no 'Wave' in it; did you mean Waves?"),
        ("NoMod", "is not a subclass of hubbub's Mod"),
        ("value", "is not a subclass of hubbub's Mod"),
        ("Loud", "needs a `name` of lower-case letters"),
    ):
        with pytest.raises(UserError) as caught:
            find_mod(f"{file}:{name}")
        assert says in str(caught.value)
    for text in ("import no_such_module", "1 / 0", "class Waves(", "raise SystemExit"):
        Path(file).with_name("broken.py").write_text(f"{text}\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"broken\.py"):
            find_mod(f"{Path(file).with_name('broken.py')}:Waves")


def test_only_allowed_mods_are_imported_and_built_in_ones_are_always_allowed(file: str) -> None:
    Path(file).write_text("raise RuntimeError('imported')", encoding="utf-8")
    with pytest.raises(UserError, match=r"is not in network\.allow_mods.*add 'Waves' there"):
        find_mod(f"{file}:Waves", allowed=[])
    Path(file).write_text(FILE, encoding="utf-8")
    assert find_mod(f"{file}:Waves", allowed=["Waves"]).kind.name == "waves"
    assert find_mod("moderation", allowed=[]).kind is Moderation


# Together ---------------------------------------------------------------------------------------


class Base(Mod):
    """Stands first."""

    name = "base"


class Needs(Mod):
    """Needs another."""

    name = "needs"
    requires = ("base",)


class Against(Mod):
    """Cannot be with another."""

    name = "against"
    conflicts = ("base",)


class Under(Mod):
    """Its tables could be another's."""

    name = "base_more"


def test_what_a_mod_needs_stands_before_it_and_some_cannot_be_in_one_network() -> None:
    check_compatible(Needs, [Base])
    with pytest.raises(UserError, match="'needs' needs 'base', which must be listed before it"):
        check_compatible(Needs, [])
    for one, other in (*permutations((Base, Against)), *permutations((Base, Under))):
        with pytest.raises(UserError, match="cannot be in one network"):
            check_compatible(one, [other])


def test_permissions_are_given_to_operations_that_there_are(file: str) -> None:
    settings: dict[str, JsonValue] = {"permissions": {"wave": "admin"}}
    network = NetworkFile(mods=[{f"{file}:Waves": settings}])
    assert [(op.name, op.permission) for op in operations_of(network)] == [("wave", "admin")]
    with pytest.raises(UserError) as caught:
        load_mods([{f"{file}:Waves": {"permissions": {"wvae": "admin"}}}])
    assert "mods.waves.permissions: there is no operation 'wvae'" in str(caught.value)
    assert "did you mean wave?" in str(caught.value)
