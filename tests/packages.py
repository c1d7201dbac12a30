"""Installation of Debian packages for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["apt_get"]


def apt_get(*arguments: str, timeout: float, cwd: Path | None = None) -> None:
    """Runs apt-get, up to the timeout in seconds; reports a failure on stderr without raising."""
    timeouts = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]
    timeouts += ["-o", "DPkg::Lock::Timeout=60"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            ["apt-get", "-qq", *timeouts, *arguments],
            env=environment, cwd=cwd, timeout=timeout, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"apt-get {arguments[0]} took over {timeout:g} s\n")
        return
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no output"]
        sys.stderr.write(f"apt-get {arguments[0]} failed: {last[0]}\n")
