"""The code of the pages about extending Hubbub works as they show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doc_pages import ROOT, blocks, example

pytestmark = pytest.mark.slow

PAGES = sorted(page.name for page in (ROOT / "docs/how-to/extend").glob("*.md"))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pristine copy of the package."""
    folder = tmp_path_factory.mktemp("extend")
    ignore = shutil.ignore_patterns("static")  # with bytecode, or each copy would be compiled
    shutil.copytree(ROOT / "hubbub", folder / "pristine" / "hubbub", ignore=ignore)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_following_the_page_gives_the_output_it_shows(copies: Path, name: str) -> None:
    folder, page = copies / name, f"docs/how-to/extend/{name}"
    shutil.copytree(copies / "pristine", folder)
    for block in blocks(ROOT / page):
        if block.name is not None:
            _write(folder / block.name, block.text)
        elif block.edited is not None:
            _edit(folder / block.edited, block.text)
    assert _run(folder, "try.py") == example(page, "shown.txt")
    if (folder / "test_mirrored.py").exists():
        options = ("-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "-p", "no:randomly")
        assert " passed" in _run(folder, "-m", "pytest", *options, "test_mirrored.py")


def test_each_page_has_at_most_120_lines() -> None:
    assert len(PAGES) == 5
    for name in PAGES:
        assert len((ROOT / "docs/how-to/extend" / name).read_text().splitlines()) <= 120, name


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _edit(file: Path, change: str) -> None:
    """Applies a diff without line numbers, whose context must be unique."""
    lines = change.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    text = file.read_text()
    assert text.count(before) == 1, (file.name, before)
    file.write_text(text.replace(before, after))


def _run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-P", *words] if words[0] == "-m" else [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
