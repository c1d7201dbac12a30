"""Deleting folders, including those that `shutil.rmtree` fails on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hubbub.agents.tools.sandbox.process import remove

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is sandboxed there")


def test_files_folders_and_links_are_deleted_but_not_the_targets_of_links(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    kept.mkdir()
    (kept / "file").touch()
    (gone / "a" / "b").mkdir(parents=True)
    (gone / "a" / "b" / "file").touch()
    (gone / "a" / "link").symlink_to(kept)
    (gone / "dangling").symlink_to("nowhere")
    os.mkfifo(gone / "pipe")
    remove(str(gone))
    assert not gone.exists()
    assert (kept / "file").exists()
    remove(str(tmp_path / "missing"))


def test_folders_without_permissions_are_deleted(tmp_path: Path) -> None:
    inner = tmp_path / "shut" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    for folder in (inner, inner.parent):
        folder.chmod(0)
    remove(str(inner.parent))
    assert not inner.parent.exists()


def test_deeply_nested_folders_are_deleted(tmp_path: Path) -> None:
    before, top = os.getcwd(), tmp_path / "deep"
    top.mkdir()
    os.chdir(top)
    try:
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        Path("bottom").touch()
    finally:
        os.chdir(before)
    remove(str(top))
    assert not top.exists()
