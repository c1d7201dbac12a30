"""The page on writing a mod, followed step by step."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doc_pages import ROOT, blocks

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "how-to" / "write-a-mod.md"
COMMANDS = {
    "hubbub": [sys.executable, "-m", "hubbub"],
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
}


def run(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ran = subprocess.run(
        [*COMMANDS[program], *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.mark.behaviour("M-31", "M-34")
def test_following_the_page_yields_a_working_mod(tmp_path: Path) -> None:
    outputs: dict[str, str] = {}
    for block in blocks(PAGE):
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            outputs.update((line, run(line, tmp_path)) for line in block.text.splitlines())
    assert "2 passed" in outputs["pytest mods"]
    about = outputs["hubbub mods show mods/thanks.py:Thanks"]
    assert "Counts how often each participant is thanked." in about
    assert "thanks_count" in about
    assert "The word to count." in about
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 120
