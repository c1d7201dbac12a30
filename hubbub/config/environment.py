"""`${NAME}` and `${NAME:-default}` in the texts of a config; `$${` is a literal `${`.

A default may hold references of its own (`${A:-${B:-x}}`), and braces that come in pairs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["MissingVariable", "expand", "refers"]

_OPEN = "${"
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_MOST_LEVELS = 8
"""References inside the default of another one."""
_SHOWN = 60


class MissingVariable(Exception):
    """A variable that is not set and has no default, or a reference that is none.

    The text is the sentence for the user.
    """


def refers(text: str) -> bool:
    """Whether `text` contains anything to expand."""
    return _OPEN in text


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references replaced. As in a shell, `:-` also stands in for an empty value,
    and a default is looked at only where it is needed. Raises MissingVariable.
    """
    return _expand(text, environ, _MOST_LEVELS)


def _expand(text: str, environ: Mapping[str, str], levels: int) -> str:
    if not levels:
        raise MissingVariable(f"'{_cut(text)}': references stand too deep in each other's defaults")
    pieces: list[str] = []
    at = 0
    while (start := text.find(_OPEN, at)) >= 0:
        if text.startswith("$", start - 1) and start > at:
            pieces += text[at : start - 1], _OPEN
            at = start + len(_OPEN)
            continue
        end = _closing(text, start)
        pieces += text[at:start], _value(text[start + len(_OPEN) : end], environ, levels)
        at = end + 1
    return "".join((*pieces, text[at:]))


def _closing(text: str, start: int) -> int:
    """Where the brace of the reference that begins at `start` is closed. Raises MissingVariable."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    raise MissingVariable(
        f"'{_cut(text[start:])}' is never closed: write ${{NAME}} or ${{NAME:-default}} "
        "($${ for the characters themselves)"
    )


def _value(body: str, environ: Mapping[str, str], levels: int) -> str:
    parts = _BODY.fullmatch(body)
    if parts is None:
        raise MissingVariable(
            f"'{_cut(f'${{{body}}}')}' is no reference to a variable: write ${{NAME}} or "
            "${NAME:-default} ($${ for the characters themselves)"
        )
    name, default = parts["name"], parts["default"]
    found = environ.get(name)
    if default is not None:
        return found or _expand(default, environ, levels - 1)
    if found is None:
        raise MissingVariable(
            f"the environment variable {name} is not set: set it, or give a default with "
            f"${{{name}:-default}}"
        )
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
