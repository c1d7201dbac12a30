"""The numbered scripts of a mod's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.errors import UserError
from hubbub.mods.api import Mod
from hubbub.mods.tables import scripts_of, table_prefix

pytestmark = pytest.mark.behaviour("M-21")


def mod(folder: Path | str) -> type[Mod]:
    class Polls(Mod):
        """Asks."""

        name = "polls"
        migrations = str(folder)

    return Polls


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(f"-- {name}", encoding="utf-8")


def test_scripts_are_found_by_their_numbers(tmp_path: Path) -> None:
    put(tmp_path, "0002_votes.sql", "0001_polls.sql", "README.md", "__init__.py")
    assert list(scripts_of(mod(tmp_path)).items()) == [
        (1, "-- 0001_polls.sql"),
        (2, "-- 0002_votes.sql"),
    ]


def test_a_folder_is_looked_for_beside_the_module_of_the_class() -> None:
    with pytest.raises(UserError) as caught:
        scripts_of(mod("no_such_tables"))
    missing = Path(__file__).parent / "no_such_tables"
    assert str(caught.value) == f"the mod polls has no folder {missing}; its `migrations` names it"


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("0002_votes.sql",),
        ("0001_polls.sql", "0003_more.sql"),
        ("1_polls.sql",),
        ("0000_polls.sql", "0001_votes.sql"),
        ("0001_polls.sql", "0001_votes.sql"),
    ],
    ids=" ".join,
)
def test_numbers_begin_at_1_and_have_no_gaps(tmp_path: Path, names: tuple[str, ...]) -> None:
    put(tmp_path, *names)
    with pytest.raises(UserError, match=r"the mod polls: .* needs scripts 0001_name\.sql"):
        scripts_of(mod(tmp_path))


def test_a_mod_without_tables_has_no_scripts() -> None:
    assert scripts_of(Mod) == {}


@pytest.mark.parametrize(("name", "prefix"), [("polls", "polls_"), ("to-do", "to_do_")])
def test_all_names_of_a_mods_tables_begin_with_its_own(name: str, prefix: str) -> None:
    assert table_prefix(name) == prefix
