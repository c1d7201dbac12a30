"""Reading prompt files and templates, and describing their errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jinja2 import TemplateError, TemplateSyntaxError

from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError

__all__ = ["prompt_text", "read_prompt_file", "template_compiles", "template_renders"]


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


@contextmanager
def template_compiles(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of a template that is compiled into `ConfigError` with file and line."""
    try:
        yield
    except TemplateSyntaxError as exc:
        problem = f"{what} does not parse: {exc.message}"
        raise ConfigError(problem, shown_path(path), exc.lineno) from exc
    except (MemoryError, RecursionError) as exc:
        problem = f"{what} does not parse: it is nested too deep"
        raise ConfigError(problem, shown_path(path)) from exc


@contextmanager
def template_renders(path: Path, what: str) -> Iterator[None]:
    """The same for a template that is rendered."""
    try:
        yield
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as exc:
        raise ConfigError(f"{what} fails: {exc}", shown_path(path), _line_in(exc, path)) from exc
    except (MemoryError, RecursionError) as exc:
        problem = f"{what} fails: it needs too much memory, or calls itself without end"
        raise ConfigError(problem, shown_path(path), _line_in(exc, path)) from exc


def _line_in(exc: BaseException, path: Path) -> int | None:
    """The last line of the template in the exception's traceback."""
    line, trace = None, exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
