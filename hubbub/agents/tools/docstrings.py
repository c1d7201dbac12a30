"""What a function's docstring says of it and of its parameters (Google, NumPy or Sphinx style)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable

__all__ = ["describe"]

_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?)\s*:?\Z")
_UNDERLINE = re.compile(r"-{3,}\Z")
_GOOGLE = re.compile(r"\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)\Z")
_NUMPY = re.compile(r"(\w+)\s*(?::.*)?\Z")
_SPHINX = re.compile(r":param\s+(?:[\w\[\], |]+\s+)?(\w+)\s*:\s*(.*)\Z")


def describe(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """The description (all up to the first section, as one line each paragraph) and, by name, what
    is said of the parameters.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    head = list(_head(lines))
    paragraphs = "\n".join(head).strip().split("\n\n")
    description = "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
    return description, _parameters(lines[len(head) :])


def _head(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        if _SECTION.match(line) or line.startswith(":"):
            return
        yield line


def _parameters(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    section, indent = "", 0
    for line in lines:
        if _SECTION.match(line):
            section, current = line.rstrip(" :"), None
            continue
        named = _named(line, section, indent)
        if named is not None:
            current = found.setdefault(named[0], [])
            current.append(named[1])
            indent = len(line) - len(line.lstrip())
        elif current is not None and line[:1].isspace():
            current.append(line.strip())
        elif line.strip():
            current = None
    return {name: " ".join(" ".join(text).split()) for name, text in found.items()}


def _named(line: str, section: str, indent: int) -> tuple[str, str] | None:
    """The parameter that a line begins to describe, and the beginning of the description."""
    sphinx = _SPHINX.match(line)
    if sphinx:
        return sphinx[1], sphinx[2]
    if section not in ("Args", "Arguments", "Parameters") or _UNDERLINE.match(line):
        return None
    google = _GOOGLE.match(line)
    if google and (not indent or len(line) - len(line.lstrip()) <= indent):
        return google[1], google[2]
    numpy = _NUMPY.match(line) if section == "Parameters" else None
    return (numpy[1], "") if numpy else None
