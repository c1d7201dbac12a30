"""Reading prompt files, and describing their errors."""

from __future__ import annotations

from pathlib import Path

from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError

__all__ = ["NEEDS_TOO_MUCH", "NESTED_TOO_DEEP", "line_in", "prompt_text", "read_prompt_file"]

NEEDS_TOO_MUCH = "it needs too much memory, or calls itself without end"
"""The error of a template that raises `MemoryError` or `RecursionError`."""
NESTED_TOO_DEEP = "it is nested too deep"
"""The same while it is compiled."""


def read_prompt_file(path: Path) -> str:
    """The text. Raises OSError, also for anything but a regular file (reading a pipe could block
    forever), and UnicodeDecodeError if it is not UTF-8.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is no file")
    return path.read_text(encoding="utf-8-sig")


def prompt_text(path: Path, what: str) -> str:
    """The same. Raises `ConfigError`, which calls the file `what`."""
    try:
        return read_prompt_file(path)
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{what} cannot be read: {exc}", shown_path(path)) from exc


def line_in(exc: BaseException, path: Path) -> int | None:
    """The last line of the template in the exception's traceback."""
    line, trace = None, exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
