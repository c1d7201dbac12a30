"""The opencode used by tests: npm's in `.venv`, or the machine's own.

`python -m tests.e2e.support.opencode` installs it with npm, or reports in one line how to get it.
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
    """The path of an opencode that runs, None if there is none."""
    places = f"{_FOLDER / 'node_modules' / '.bin'}:{os.environ.get('PATH', '')}"
    path = shutil.which("opencode", path=places)
    if path is None:
        return None
    version = subprocess.run([path, "--version"], capture_output=True, check=False)
    return path if version.returncode == 0 else None


def install() -> None:
    """Installs it if npm is available."""
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
