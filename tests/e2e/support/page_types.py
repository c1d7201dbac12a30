"""TypeScript's errors in the page's modules, for `make check`.

Skips third-party code in `static/vendor`, and `static/sdk`, which is checked with its package.
Without TypeScript, which `make test-npm` installs, nothing is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.support.node import TYPESCRIPT

__all__ = ["problems"]

_WEB = Path(__file__).parents[3] / "hubbub" / "web"
_OTHERS = re.compile(r"static/(vendor|sdk)/|\s")
_TIMEOUT_S = 300


def problems() -> list[str]:
    """One line per error."""
    tsc = TYPESCRIPT.modules / "typescript" / "bin" / "tsc"
    ran = subprocess.run(
        [str(TYPESCRIPT.node), str(tsc), "--project", "jsconfig.json", "--pretty", "false"],
        cwd=_WEB, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 1, 2), ran.stderr
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 or lines, ran.stderr
    return [line for line in lines if not _OTHERS.match(line)]


if __name__ == "__main__":
    lines = problems() if TYPESCRIPT.there() else []
    sys.stdout.write("".join(f"hubbub/web/{line}\n" for line in lines))
    sys.exit(1 if lines else 0)
