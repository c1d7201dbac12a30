"""`mods list | show | new | reload`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import NETWORK, Command, running

LATER = '''from hubbub.mods.api import Mod


class Later(Mod):
    """Comes later."""

    name = "later"
'''


@pytest.fixture
def later(home: Path) -> Path:
    """A mod in a file."""
    path = home / "own" / "later.py"
    path.parent.mkdir()
    path.write_text(LATER, encoding="utf-8")
    return path


def write(home: Path, mods: str) -> None:
    (home / "hubbub.yaml").write_text(f"network: {{name: town}}\nmods: {mods}\n", encoding="utf-8")


# list -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-30")
@pytest.mark.parametrize("turned", [False, True])
def test_mods_are_listed_in_the_order_of_the_yaml(
    home: Path, later: Path, hubbub: Command, turned: bool
) -> None:
    names = ["moderation", "own/later.py:Later"]
    names = names[::-1] if turned else names
    write(home, f"[{', '.join(names)}]")
    listed = hubbub("mods", "list", "--json").json()
    assert isinstance(listed, list)
    found = [(row["order"], row["name"]) for row in listed if isinstance(row, dict)]
    ordered = ["moderation", "later"][:: -1 if turned else 1]
    assert found[:2] == [("1", ordered[0]), ("2", ordered[1])]
    assert {order for order, _ in found[2:]} <= {""}
    assert "documents" in [name for _, name in found[2:]]


def test_a_listed_file_is_shown_with_its_place_and_what_it_does(
    home: Path, later: Path, hubbub: Command
) -> None:
    write(home, "[own/later.py:Later]")
    line = hubbub("mods", "list").out.splitlines()[1]
    assert line.split() == ["1", "later", "own/later.py", "Comes", "later."]


def test_without_a_config_those_that_could_be_named_are_listed(hubbub: Command) -> None:
    listed = hubbub("mods", "list").out
    assert "moderation" in listed
    assert "built in" in listed


def test_a_config_that_names_no_mod_is_told_with_the_nearest(home: Path, hubbub: Command) -> None:
    write(home, "[moderatoin]")
    ran = hubbub("mods", "list")
    assert ran.code == 2
    assert "hubbub.yaml:2: unknown mod 'moderatoin'; did you mean 'moderation'?" in ran.err
    assert "does not exist" in hubbub("mods", "list", "--config", "none.yaml").err


# show -------------------------------------------------------------------------------------------


def test_a_mod_is_shown_with_its_settings_and_operations(hubbub: Command) -> None:
    shown = hubbub("mods", "show", "moderation").out
    assert shown.startswith("moderation (built in)")
    assert "max_length" in shown
    assert "Characters of a text" in shown
    told = hubbub("mods", "show", "documents", "--json").json()
    assert isinstance(told, dict)
    assert told["name"] == "documents"
    operations = told["operations"]
    assert isinstance(operations, list)
    assert operations


def test_a_file_is_shown_too(later: Path, hubbub: Command) -> None:
    assert "Comes later." in hubbub("mods", "show", "own/later.py:Later").out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("moderatoin", "there is no mod 'moderatoin'; did you mean moderation?"),
        ("own/later.py:Latre", "there is no 'Latre' in it; did you mean Later?"),
        ("own/never.py:Never", "this file does not exist"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_sentence(
    later: Path, hubbub: Command, name: str, says: str
) -> None:
    ran = hubbub("mods", "show", name)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


# new --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.behaviour("M-31")
@pytest.mark.timeout(120)
def test_a_new_mod_passes_its_own_test_and_can_be_named(home: Path, hubbub: Command) -> None:
    wrote = hubbub("mods", "new", "kind_words").out
    assert "mods/kind_words.py:KindWords" in wrote
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mods"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
    write(home, "[mods/kind_words.py:KindWords: {word: bravo}]")
    assert "kind_words" in hubbub("mods", "list").out


@pytest.mark.parametrize("rule", ["check", "format"])
def test_what_is_written_is_clean(home: Path, hubbub: Command, rule: str) -> None:
    hubbub("mods", "new", "kind_words")
    how = ["check", "--select", "E,F,I,B,UP"] if rule == "check" else ["format", "--check"]
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", *how, "--isolated", "--no-cache", "mods"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_files_that_are_there_are_kept(home: Path, hubbub: Command) -> None:
    hubbub("mods", "new", "thanks", "extra")
    (home / "extra" / "thanks.py").write_text("mine", encoding="utf-8")
    ran = hubbub("mods", "new", "thanks", "extra")
    assert ran.code == 2
    assert (home / "extra" / "thanks.py").read_text() == "mine"
    assert hubbub("mods", "new", "thanks", "extra", "--force").code == 0


@pytest.mark.parametrize("name", ["Thanks", "2x", "a-b", "class", "moderation", "ünlaut", "a" * 40])
def test_names_that_no_mod_can_have_are_refused(home: Path, hubbub: Command, name: str) -> None:
    ran = hubbub("mods", "new", name)
    assert (ran.code, ran.out) == (2, "")
    assert not (home / "mods").exists()


# reload -----------------------------------------------------------------------------------------


RUNS = f"{NETWORK}mods:\n  - moderation: {{max_length: 9}}\n"


@pytest.mark.behaviour("M-32")
def test_reloaded_settings_hold_at_once_and_wrong_ones_change_nothing(
    home: Path, hubbub: Command
) -> None:
    with running(RUNS, home):
        long = ("send", "broadcast", "a long sentence", "--as", "ann")
        yaml = home / "town.yaml"
        assert hubbub(*long).code != 0
        yaml.write_text(RUNS.replace("9", "0"), encoding="utf-8")
        wrong = hubbub("mods", "reload", "--config", "town.yaml")
        assert wrong.code == 2
        assert "max_length" in wrong.err
        assert hubbub(*long).code != 0
        yaml.write_text(RUNS.replace("9", "90"), encoding="utf-8")
        told = hubbub("mods", "reload", "--config", "town.yaml", "--json").json()
        assert told == [{"name": "moderation", "outcome": "reloaded"}]
        assert hubbub(*long).code == 0, hubbub(*long).err


def test_mods_that_come_or_go_wait_for_the_next_start(home: Path, hubbub: Command) -> None:
    with running(RUNS, home):
        (home / "town.yaml").write_text(f"{NETWORK}mods: [documents]\n", encoding="utf-8")
        lines = hubbub("mods", "reload", "--config", "town.yaml").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["documents", "moderation"]
        assert "starts anew" in lines[1]
        assert "no longer" in lines[2]


def test_without_a_running_network_there_is_nothing_to_reload(home: Path, hubbub: Command) -> None:
    write(home, "[moderation]")
    ran = hubbub("mods", "reload")
    assert ran.code != 0
    assert ran.err.startswith("hubbub: ")
