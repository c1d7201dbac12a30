from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.models import NetworkFile
from hubbub.errors import UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import check_company, find_mod, known_mods, load_mods, operations_of
from hubbub.mods.moderation import Moderation

Entry = str | dict[str, dict[str, JsonValue] | None]


def test_the_built_in_mods_are_known_by_name() -> None:
    assert find_mod("moderation").kind is Moderation
    for name in known_mods():
        assert find_mod(name).kind.name == name


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


def test_a_mod_is_found_in_a_file(file: str) -> None:
    found = find_mod(f"{file}:Waves")
    assert (found.kind.name, found.origin) == ("waves", file)


@pytest.mark.behaviour("M-35")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Wave", "there is no 'Wave' in it; did you mean Waves?"),
        ("NoMod", "is no class that derives from hubbub's Mod"),
        ("value", "is no class that derives from hubbub's Mod"),
        ("Loud", "needs a `name` of lower-case letters"),
    ],
)
def test_what_is_no_mod_is_told(file: str, name: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        find_mod(f"{file}:{name}")
    assert says in str(caught.value)


@pytest.mark.behaviour("M-35")
@pytest.mark.parametrize(
    "text", ["import no_such_module", "1 / 0", "class Waves(", "raise SystemExit"]
)
def test_a_file_that_cannot_be_imported_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"broken\.py"):
        find_mod(f"{path}:Waves")


def test_only_allowed_mods_are_imported_and_built_in_ones_are_always_allowed(file: str) -> None:
    Path(file).write_text("raise RuntimeError('imported')", encoding="utf-8")
    with pytest.raises(UserError, match=r"is not among network\.allow_mods.*add 'Waves' there"):
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


def test_what_a_mod_needs_stands_before_it() -> None:
    check_company(Needs, [Base])
    with pytest.raises(UserError, match="'needs' needs 'base', which must stand before it"):
        check_company(Needs, [])


@pytest.mark.parametrize("pair", [(Base, Against), (Against, Base), (Base, Under), (Under, Base)])
def test_some_cannot_be_in_one_network_in_either_order(pair: tuple[type[Mod], type[Mod]]) -> None:
    one, other = pair
    with pytest.raises(UserError, match="cannot be in one network"):
        check_company(one, [other])


def test_permissions_are_given_to_operations_that_there_are(file: str) -> None:
    settings: dict[str, JsonValue] = {"permissions": {"wave": "admin"}}
    network = NetworkFile(mods=[{f"{file}:Waves": settings}])
    assert [(op.name, op.permission) for op in operations_of(network)] == [("wave", "admin")]
    with pytest.raises(UserError) as caught:
        load_mods([{f"{file}:Waves": {"permissions": {"wvae": "admin"}}}])
    assert "mods.waves.permissions: it has no operation 'wvae'" in str(caught.value)
    assert "did you mean wave?" in str(caught.value)
