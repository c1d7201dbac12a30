"""How slash commands are written and read, whatever they do. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubbub.errors import UserError

__all__ = ["Spec", "one_word", "read", "without_rest"]

T = TypeVar("T")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Spec(Generic[T_co]):
    """A slash command: how it is written, what it does, and how its rest is read."""

    usage: str
    help: str
    read: Callable[[str], T_co]
    needs: str = ""
    """The operation without which there is no such command; empty: it is always there."""

    def is_among(self, offers: Collection[str]) -> bool:
        """Whether it is there where the hub offers these operations."""
        return not self.needs or self.needs in offers


def without_rest(made: Callable[[], T]) -> Callable[[str], T]:
    """Reads a command that takes nothing."""

    def read(rest: str) -> T:
        if rest:
            raise UserError("takes nothing after it")
        return made()

    return read


def one_word(made: Callable[[str], T]) -> Callable[[str], T]:
    """Reads a command that takes one name."""

    def read(rest: str) -> T:
        words = rest.split()
        if len(words) != 1:
            raise UserError("takes one name")
        return made(words[0])

    return read


def read(
    line: str,
    table: Mapping[str, Spec[T]],
    say: Callable[[str], S],
    offers: Collection[str] = (),
) -> T | S | None:
    """The command of `table` in a line, or what is to be said; None for an empty line. `offers` are
    the operations that the hub has.

    `//text` says `/text`. Raises `UserError` with one sentence that says what to write instead.
    """
    text = line.strip()
    if not text:
        return None
    if not text.startswith("/"):
        return say(text)
    if text.startswith("//"):
        return say(text[1:])
    word, _, rest = text[1:].partition(" ")
    spec = table.get(word.lower())
    if spec is not None and not spec.is_among(offers):
        raise UserError(_not_here(word, spec.needs))
    if spec is None:
        there = [name for name, one in table.items() if one.is_among(offers)]
        near = difflib.get_close_matches(word.lower(), there, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise UserError(f"there is no command /{word}; {hint}")
    try:
        return spec.read(rest.strip())
    except UserError as exc:
        raise UserError(f"/{word} {exc}: {spec.usage}") from None


def _not_here(word: str, operation: str) -> str:
    """Why there is no such command here, and what to do about it."""
    from hubbub.cli.missing import missing_mod, without  # imports all mods: for failures only

    mod = missing_mod(operation)
    why = f"the network offers no {operation}" if mod is None else without(mod)
    return f"/{word} is not to be had here: {why}"
