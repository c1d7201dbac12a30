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


def test_built_in_mods_are_registered_by_name() -> None:
    assert find_mod("moderation").kind is Moderation
    for name in known_mods():
        assert find_mod(name).kind.name == name


def test_a_config_lists_a_mod_by_name_or_with_settings() -> None:
    entries: list[Entry] = ["moderation", {"moderation": None}, {"moderation": {"max_length": 9}}]
    for entry, length in zip(entries, (None, None, 9), strict=True):
        (mod,) = load_mods([entry])
        assert isinstance(mod, Moderation)
        assert mod.config.max_length == length


@pytest.mark.behaviour("L-3")
def test_an_invalid_list_of_mods_is_reported_with_the_position() -> None:
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
    for entries, message in wrong:
        with pytest.raises(UserError) as caught:
            load_mods(entries)
        assert message in str(caught.value)


# Files ------------------------------------------------------------------------------------------

FILE = '''from hubbub.mods.api import Mod
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.operations import Done, Input


class Nothing(Input):
    """No arguments."""


class Waves(Mod):
    """Waves."""

    name = "waves"

    @operation()
    def wave(self, call: Calling, args: Nothing) -> Done:
        """Wave."""
        return Done()


class Loud(Mod):
    """Has an invalid name."""

    name = "Loud!"


class NoMod:
    name = "nomod"


value = 5
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with mods and other objects."""
    path = tmp_path / "own.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


@pytest.mark.behaviour("M-35")
def test_a_mod_is_loaded_from_a_file_and_anything_else_is_refused(file: str) -> None:
    waves = find_mod(f"{file}:Waves")
    assert (waves.kind.name, waves.origin) == ("waves", file)
    for name, message in (
        ("Wave", "there is no 'Wave' in it; did you mean Waves?"),
        ("NoMod", "is not a subclass of hubbub's Mod"),
        ("value", "is not a subclass of hubbub's Mod"),
        ("Loud", "needs a `name` of lower-case letters"),
    ):
        with pytest.raises(UserError) as caught:
            find_mod(f"{file}:{name}")
        assert message in str(caught.value)
    broken = Path(file).with_name("broken.py")
    for text in ("import no_such_module", "1 / 0", "class Waves(", "raise SystemExit"):
        broken.write_text(f"{text}\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"broken\.py"):
            find_mod(f"{broken}:Waves")


def test_only_built_in_and_allowed_mods_are_imported(file: str) -> None:
    Path(file).write_text("raise RuntimeError('imported')", encoding="utf-8")
    with pytest.raises(UserError, match=r"is not in network\.allow_mods.*add 'Waves' there"):
        find_mod(f"{file}:Waves", allowed=[])
    Path(file).write_text(FILE, encoding="utf-8")
    assert find_mod(f"{file}:Waves", allowed=["Waves"]).kind.name == "waves"
    assert find_mod("moderation", allowed=[]).kind is Moderation


# Together ---------------------------------------------------------------------------------------


class Base(Mod):
    """Required by another mod."""

    name = "base"


class Needs(Mod):
    """Requires another mod."""

    name = "needs"
    requires = ("base",)


class Against(Mod):
    """Conflicts with another mod."""

    name = "against"
    conflicts = ("base",)


class Under(Mod):
    """Shares a prefix of table names with another mod."""

    name = "base_more"


def test_required_mods_come_first_and_conflicting_mods_are_refused() -> None:
    check_compatible(Needs, [Base])
    with pytest.raises(UserError, match="'needs' needs 'base', which must be listed before it"):
        check_compatible(Needs, [])
    for one, other in (*permutations((Base, Against)), *permutations((Base, Under))):
        with pytest.raises(UserError, match="cannot be in one network"):
            check_compatible(one, [other])


def test_permissions_apply_only_to_existing_operations(file: str) -> None:
    settings: dict[str, JsonValue] = {"permissions": {"wave": "admin"}}
    network = NetworkFile(mods=[{f"{file}:Waves": settings}])
    assert [(op.name, op.permission) for op in operations_of(network)] == [("wave", "admin")]
    with pytest.raises(UserError) as caught:
        load_mods([{f"{file}:Waves": {"permissions": {"wvae": "admin"}}}])
    assert "mods.waves.permissions: there is no operation 'wvae'" in str(caught.value)
    assert "did you mean wave?" in str(caught.value)
