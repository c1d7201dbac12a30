"""Reading prompt files and templates, and describing their errors."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, TemplateError, TemplateSyntaxError, nodes

from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError

__all__ = [
    "TEMPLATE_ERRORS",
    "parse_alone",
    "parse_error",
    "prompt_text",
    "read_prompt_file",
    "render_error",
]


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


TEMPLATE_ERRORS = (
    TemplateError, TypeError, ValueError, ArithmeticError, LookupError, MemoryError, RecursionError,
)  # fmt: skip
"""What compiling or rendering a template may raise."""


def parse_alone(env: Environment, source: str, path: Path, what: str) -> nodes.Template:
    """The syntax tree of a template. Raises `ConfigError` if it does not parse or uses other
    files."""
    try:
        tree = env.parse(source, filename=str(path))
    except TEMPLATE_ERRORS as exc:
        raise parse_error(exc, path, what) from exc
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        problem = f"{what} stands alone: it includes no other files"
        raise ConfigError(problem, shown_path(path), node.lineno)
    return tree


def parse_error(exc: Exception, path: Path, what: str) -> ConfigError:
    """The error of a template that does not compile, with file and line."""
    deep = isinstance(exc, MemoryError | RecursionError)
    line = exc.lineno if isinstance(exc, TemplateSyntaxError) else None
    why = "it is nested too deep" if deep else getattr(exc, "message", str(exc))
    return ConfigError(f"{what} does not parse: {why}", shown_path(path), line)


def render_error(exc: Exception, path: Path, what: str) -> ConfigError:
    """The error of a template that does not render, with file and line."""
    endless = isinstance(exc, MemoryError | RecursionError)
    why = "it needs too much memory, or calls itself without end" if endless else str(exc)
    return ConfigError(f"{what} fails: {why}", shown_path(path), _line_in(exc, path))


def _line_in(exc: BaseException, path: Path) -> int | None:
    """The last line of the template in the exception's traceback."""
    line, trace = None, exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
