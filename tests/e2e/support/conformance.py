"""The Model Context Protocol's own conformance suite, where npm can be had.

`python -m tests.e2e.support.conformance` has npm install it into `.venv`, with a Node that it runs
on, and otherwise says in one line what is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["MISSING", "command", "install"]

PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")
MISSING = "no conformance suite of MCP: it needs npm; the tests with it are skipped"
_FOLDER = Path(sys.prefix) / "mcp-conformance"
_TIMEOUT_S = 300


def command() -> list[str] | None:
    """What runs the suite, None if it is not there."""
    node = _FOLDER / "node_modules" / "node" / "bin" / "node"
    suite = _FOLDER / "node_modules" / ".bin" / "conformance"
    return [str(node), str(suite)] if node.exists() and suite.exists() else None


def install() -> None:
    """See to it that it is there, if npm is."""
    if command() is None and (npm := shutil.which("npm")):
        _FOLDER.mkdir(exist_ok=True)
        # Some versions of npm run no scripts of packages unasked; this one fetches the Node.
        words = ["install", "--silent", "--no-fund", "--foreground-scripts", "--prefix"]
        try:
            subprocess.run(
                [npm, *words, str(_FOLDER), *PACKAGES],
                timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"npm install took over {_TIMEOUT_S} s\n")
    if command() is None:
        sys.stderr.write(f"{MISSING}\n")


if __name__ == "__main__":
    install()
