"""The text of a PDF, read by another process with limits, if pypdf is installed (extra `pdf`)."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hubbub.mods.files.reading.words import Limits, NoText

__all__ = ["text_of_pdf"]

WAIT_S = 20.0
"""Seconds that reading may take, whatever else the machine does."""
_WORKER = Path(__file__).with_name("pdf_worker.py")
_ENCRYPTED = 3


def text_of_pdf(path: Path, limits: Limits) -> str:
    """Raises `NoText`."""
    if find_spec("pypdf") is None:
        raise NoText("to read PDF the hub needs pypdf: install hubbub[pdf]")
    command = [sys.executable, "-I", str(_WORKER), str(path.absolute()), str(limits.characters)]
    try:
        # No shell, nothing of the hub's environment, and nothing of what it prints is trusted.
        run = subprocess.run(command, capture_output=True, env={}, timeout=WAIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NoText("reading it takes too long") from None
    if run.returncode == _ENCRYPTED:
        raise NoText("it is encrypted")
    if run.returncode != 0:
        raise NoText("it could not be read")
    return run.stdout.decode(errors="replace")
