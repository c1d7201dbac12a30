"""`${NAME}` and `${NAME:-default}` in the texts of a config; `$${` is a literal `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["MissingVariable", "expand", "refers"]

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)\}")
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class MissingVariable(Exception):
    """A variable that is not set and has no default, or a reference that is none.

    The text is the sentence for the user.
    """


def refers(text: str) -> bool:
    """Whether `text` contains anything to expand."""
    return _REFERENCE.search(text) is not None


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references replaced. As in a shell, `:-` also stands in for an empty value.

    Raises MissingVariable.
    """

    def value(match: re.Match[str]) -> str:
        body = match["body"]
        if body is None:
            return "${"
        parts = _BODY.fullmatch(body)
        if parts is None:
            raise MissingVariable(
                f"'${{{body}}}' is no reference to a variable: write ${{NAME}} or "
                "${NAME:-default} ($${ for the characters themselves)"
            )
        return _lookup(parts["name"], parts["default"], environ)

    return _REFERENCE.sub(value, text)


def _lookup(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    found = environ.get(name)
    if default is not None:
        return found or default
    if found is None:
        raise MissingVariable(
            f"the environment variable {name} is not set: set it, or give a default with "
            f"${{{name}:-default}}"
        )
    return found
