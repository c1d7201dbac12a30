"""Loads Python code named in a config (`agents/calculator.py:Calculator`), and checks extras."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal, TypeVar

from hubbub.errors import ConfigError
from hubbub.user_code import describe_error
from hubbub.wording import did_you_mean

__all__ = ["construct", "line_in", "load_attribute", "load_module", "missing_extra"]

Instance = TypeVar("Instance")
_EXTRAS = {
    "a2a": ("a2a",),
    "acp": ("acp", "mcp"),
    "irc": ("irctokens",),
    "mcp": ("mcp",),
    "otel": ("opentelemetry.sdk",),
}
"""Extras of the installation, and the modules they provide."""


def load_attribute(place: str, base: Path) -> object:
    """The object named by `file.py:name`, with the file relative to the folder `base`.

    Raises `ConfigError` if the file does not exist, raises while it is imported (with the line in
    that file), or has no such name (with the nearest one).
    """
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise ConfigError(f"{place!r} is not of the form file.py:name")
    path = (base / file).resolve()
    module = load_module(path)
    try:
        return getattr(module, name)
    except AttributeError:
        own = [
            n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        ]
        hint = did_you_mean(name, own)
        raise ConfigError(f"there is no {name!r} in it{hint}", path) from None


def load_module(path: Path) -> ModuleType:
    """Import a file, once per process. Its folder becomes importable, so that it can be split up,
    but files there never shadow other modules.

    Raises `ConfigError` as `load_attribute`.
    """
    name = "hubbub_file_" + re.sub(r"\W", "_", str(path))
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise ConfigError(f"this file does not exist{_nearby(path)}", path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError("this is not a Python file (its name must end in .py)", path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as exc:  # a user's file can raise anything
        del sys.modules[name]
        raise ConfigError(
            f"importing it raises {_describe(exc)}", path, line_in(exc, path)
        ) from exc
    return module


def construct(class_: type[Instance]) -> Instance:
    """An instance, created without arguments.

    Raises `ConfigError`, with the line in the class's file, if `__init__` raises anything.
    """
    try:
        return class_()
    except (Exception, SystemExit) as exc:  # a user's class can raise anything
        path = Path(inspect.getfile(class_))
        line = line_in(exc, path) or _first_line(class_.__init__, path)
        raise ConfigError(f"{class_.__name__}() raises {_describe(exc)}", path, line) from exc


def _describe(exc: BaseException) -> str:
    if isinstance(exc, SyntaxError):
        return f"{type(exc).__name__}: {exc.msg}"
    return describe_error(exc)


def line_in(exc: BaseException, path: Path) -> int | None:
    """The line of the file where the exception was raised or passed through."""
    if isinstance(exc, SyntaxError) and exc.filename == str(path):
        return exc.lineno
    frames = traceback.extract_tb(exc.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == str(path)), None)


def _first_line(function: object, path: Path) -> int | None:
    """The first line of a function in that file; None if it is not in that file."""
    code = getattr(function, "__code__", None)  # absent in C functions
    if isinstance(code, CodeType) and code.co_filename == str(path):
        return code.co_firstlineno
    return None


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (nor does the folder {path.parent.name})"
    files = [p.name for p in path.parent.glob("*.py")]
    return did_you_mean(path.name, files)


def missing_extra(extra: Literal["a2a", "acp", "irc", "mcp", "otel"]) -> str | None:
    """A sentence on how to install the extra, or None if it is installed."""
    with suppress(ModuleNotFoundError):  # a parent package can be missing, too
        if all(importlib.util.find_spec(module) for module in _EXTRAS[extra]):
            return None
    return (
        f"`{extra}` needs an extra: pip install 'hubbub[{extra}]' "
        f"(in a checkout: pip install -e '.[{extra}]')"
    )
