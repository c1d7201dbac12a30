"""The numbered migrations of a mod's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.errors import UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import scripts_of, table_prefix

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


def test_migrations_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    put(tmp_path, "0002_votes.sql", "0001_polls.sql", "README.md", "__init__.py")
    assert list(scripts_of(mod(tmp_path)).items()) == [
        (1, "-- 0001_polls.sql"),
        (2, "-- 0002_votes.sql"),
    ]


def test_a_missing_migrations_folder_is_reported_relative_to_the_mod() -> None:
    with pytest.raises(UserError) as caught:
        scripts_of(mod("no_such_tables"))
    missing = Path(__file__).parent / "no_such_tables"
    assert (
        str(caught.value)
        == f"the mod polls: there is no folder {missing}, which `migrations` names"
    )


def test_migrations_are_numbered_from_1_without_gaps(tmp_path: Path) -> None:
    for n, names in enumerate(
        (
            (),
            ("0002_votes.sql",),
            ("0001_polls.sql", "0003_more.sql"),
            ("1_polls.sql",),
            ("0000_polls.sql", "0001_votes.sql"),
            ("0001_polls.sql", "0001_votes.sql"),
        )
    ):
        folder = tmp_path / str(n)
        folder.mkdir()
        put(folder, *names)
        with pytest.raises(UserError, match=r"the mod polls: .* needs scripts 0001_name\.sql"):
            scripts_of(mod(folder))


def test_the_tables_of_a_mod_are_prefixed_with_its_name() -> None:
    assert scripts_of(Mod) == {}
    assert [table_prefix(name) for name in ("polls", "to-do")] == ["polls_", "to_do_"]
