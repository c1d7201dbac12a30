"""`files` against a running network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import NETWORK, Command, running

YAML = f"{NETWORK}\nmods: [files]\n"
BIG = bytes(range(256)) * 1500


@pytest.mark.behaviour("M-127")
def test_files_are_brought_listed_and_fetched_in_a_shell(home: Path, hubbub: Command) -> None:
    (home / "plan.md").write_text("# Plan")
    (home / "data.bin").write_bytes(BIG)
    with running(YAML, home):
        put = hubbub("files", "put", "plan.md", "data.bin", "-t", "#general", "--text", "look")
        assert put.out == (
            "f1 plan.md: 6 bytes, text/markdown\n"
            f"f2 data.bin: {len(BIG)} bytes, application/octet-stream\n"
        )
        lines = hubbub("files", "list", "--as", "bob").out.splitlines()
        assert [line.split()[:5] for line in lines[1:]] == [
            ["f2", "data.bin", "application/octet-stream", str(len(BIG)), "ann"],
            ["f1", "plan.md", "text/markdown", "6", "ann"],
        ]
        assert lines[1].endswith("#general")
        page = hubbub("files", "list", "--limit", "1")
        assert page.out.endswith("there are earlier ones: --before f2\n")
        some = hubbub("files", "list", "--before", "f2", "-t", "#general", "--json").json()
        assert isinstance(some, dict)
        assert [file["id"] for file in some["files"]] == ["f1"]  # type: ignore[union-attr, index, call-overload]
        (home / "there").mkdir()
        got = hubbub("files", "get", "f2", "there", "--as", "bob")
        assert (got.code, got.out) == (0, f"{Path('there') / 'data.bin'}\n")
        assert (home / "there" / "data.bin").read_bytes() == BIG
        assert "look" in hubbub("log").out


@pytest.mark.behaviour("M-127")
def test_what_is_wrong_with_a_file_is_one_sentence_and_leaves_nothing(
    home: Path, hubbub: Command
) -> None:
    (home / "plan.md").write_text("# Plan")
    (home / ".hidden.md").write_text("# Hidden")
    (home / "empty.md").touch()
    with running(YAML, home):
        for args, words in (
            (("put", "none.md"), "none.md: there is no such file"),
            (("put", "empty.md"), "empty.md: the file is empty"),
            (("put", "plan.md", "--text", "x"), "--text needs --thread"),
            (("put", "plan.md", "-t", "#nowhere"), "nowhere"),
            (("get", "f1"), "there is no file f1 for you"),
        ):
            ran = hubbub("files", *args)
            assert (ran.code, ran.out) == (2, "")
            assert words in ran.err
        hubbub("files", "put", "plan.md")
        before = sorted(path.name for path in home.iterdir())
        taken = hubbub("files", "get", "f1")
        assert (taken.code, "plan.md is there already" in taken.err) == (2, True)
        assert hubbub("files", "get", "f1", "--force").out == "plan.md\n"
        assert hubbub("files", "put", ".hidden.md").out.startswith("f2 .hidden.md")
        assert "would be hidden there" in hubbub("files", "get", "f2").err
        assert "no such folder" in hubbub("files", "get", "f1", "none/x.md").err
        assert hubbub("files", "get", "f1", "--as", "bob").code == 2
        assert sorted(path.name for path in home.iterdir()) == before
