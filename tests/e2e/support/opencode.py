"""The opencode that tests talk to: the machine's own, or npm's in `.venv`.

`python -m tests.e2e.support.opencode` has npm install it, where there is npm, and otherwise says in
one line how to get it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["MISSING", "find", "install"]

PACKAGE = "opencode-ai@1.18.33"
MISSING = "no opencode: `npm install -g opencode-ai`; the tests with it are skipped"
_FOLDER = Path(sys.prefix) / "opencode"
_TIMEOUT_S = 300


def find() -> str | None:
    """Path of an opencode that runs here, None if there is none."""
    places = f"{_FOLDER / 'node_modules' / '.bin'}:{os.environ.get('PATH', '')}"
    found = shutil.which("opencode", path=places)
    works = (
        found
        and not subprocess.run([found, "--version"], capture_output=True, check=False).returncode
    )
    return found if works else None


def install() -> None:
    """See to it that there is one, if npm is there."""
    if find() is None and (npm := shutil.which("npm")):
        command = [npm, "install", "--silent", "--no-fund", "--prefix", str(_FOLDER), PACKAGE]
        try:
            subprocess.run(command, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"npm install {PACKAGE} took over {_TIMEOUT_S} s\n")
    if find() is None:
        sys.stderr.write(f"{MISSING}\n")


if __name__ == "__main__":
    install()
