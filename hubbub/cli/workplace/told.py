"""What came of it, as notes for a person. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hubbub.cli.chat.lines import Note
from hubbub.cli.control.words import aligned
from hubbub.protocol.operations import SendResult

__all__ = ["Told", "done", "size_words", "table", "text_lines"]


@dataclass(frozen=True)
class Told:
    """What came of a work. The notes may carry text of others as it is: showing makes it safe."""

    notes: Sequence[Note]
    done: bool = False
    """Whether something has been done, not only told."""
    spoken: SendResult | None = None


def done(*lines: str) -> Told:
    """It is done; a line says what stands there now."""
    return Told([Note(line, "good") for line in lines], done=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Note]:
    """Columns below a heading."""
    first, *others = aligned(head, rows)
    return [Note(first, cut=True), *(Note(line, "plain", cut=True) for line in others)]


def text_lines(text: str) -> list[Note]:
    """A text as notes, one a line, indented: nothing in it can pass for a message."""
    return [Note(f"  {line}", "plain") for line in text.rstrip("\n").split("\n")]


def size_words(size: int) -> str:
    """`812 bytes`, `1.2 kB`, `25.0 MB`."""
    for unit, letters in ((1_000_000, "MB"), (1000, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {letters}"
    return f"{size} byte{'' if size == 1 else 's'}"
