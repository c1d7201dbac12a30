"""Paths are relative to the file they stand in."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.paths import anchor_paths, split_spec
from hubbub.config.source import Document, Place


def anchored(data: dict[str, object], folder: Path) -> Document:
    document = Document(data=data, places={(): Place(folder / "net.yaml", 1)})  # type: ignore[arg-type]
    anchor_paths(document)
    return document


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("sqlite:x.db", "sqlite:/conf/x.db"),
        ("sqlite:../x.db", "sqlite:/x.db"),
        ("sqlite:/var/x.db", "sqlite:/var/x.db"),
        ("sqlite::memory:", "sqlite::memory:"),
        ("other:x", "other:x"),
    ],
)
def test_the_store_lies_beside_the_file(store: str, expected: str) -> None:
    data = anchored({"network": {"store": store, "name": "x.db"}}, Path("/conf")).data
    assert data == {"network": {"store": expected, "name": "x.db"}}


def test_the_parts_of_an_agent_that_are_paths_become_absolute() -> None:
    agent = {
        "class": "bots/calc.py:Calc",
        "template": "t.j2",
        "tools": ["read_thread", "tools.py:count"],
        "instruction": "./not/a/path",
        "settings": {"folder": "./notes", "up": ["../x"], "text": "notes"},
    }
    data = anchored({"agents": {"a": agent}, "mods": [{"m": {"file": "./f"}}]}, Path("/conf")).data
    assert data["agents"] == {
        "a": {
            "class": "/conf/bots/calc.py:Calc",
            "template": "/conf/t.j2",
            "tools": ["read_thread", "/conf/tools.py:count"],
            "instruction": "./not/a/path",
            "settings": {"folder": "/conf/notes", "up": ["/x"], "text": "notes"},
        }
    }
    assert data["mods"] == [{"m": {"file": "/conf/f"}}]


def test_mods_that_are_files_lie_beside_the_yaml() -> None:
    mods = ["moderation", "own/a.py:A", {"own/b.py:B": {"file": "./f", "word": "f"}}]
    assert anchored({"mods": mods}, Path("/conf")).data["mods"] == [
        "moderation",
        "/conf/own/a.py:A",
        {"/conf/own/b.py:B": {"file": "/conf/f", "word": "f"}},
    ]


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    data = anchored({"network": {"store": "sqlite:~/x.db"}}, Path("/conf")).data
    assert data == {"network": {"store": "sqlite:/home/ann/x.db"}}


def test_values_of_unexpected_types_stay_as_they_are() -> None:
    odd: dict[str, object] = {"network": 5, "agents": [{"class": 3}], "mods": None, "humans": "x"}
    assert anchored(dict(odd), Path("/conf")).data == odd


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("a.py:B", ("a.py", "B")),
        ("dir/a.py:b_c", ("dir/a.py", "b_c")),
        ("c:/dir/a.py:B", ("c:/dir/a.py", "B")),
        ("a.py", None),
        ("a:B", None),
        ("a.py:", None),
        ("a.py:B.C", None),
    ],
)
def test_a_spec_is_a_python_file_and_a_name(spec: str, expected: tuple[str, str] | None) -> None:
    assert split_spec(spec) == expected
