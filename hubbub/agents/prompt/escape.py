"""Escapes participants' text in prompts: it can neither close an element nor contain invisible
characters.

There are three cases; an XML parser undoes the first two by itself:

* `& < > " '` are written as entities.
* Invisible characters (carriage return, bidi marks, zero-width and other format characters, C1
  controls, private "tag" letters) are written as references: `&#x202E;`.
* Characters that XML cannot carry at all (NUL and most C0 controls, lone surrogates, U+FFFE,
  U+FFFF) are written in a visible form, `⟦U+0000⟧`. Where a text contains that form literally,
  its bracket is written the same way (`⟦U+27E6⟧U+0000⟧`), so nothing is lost: `unreveal`
  undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

__all__ = ["Escaped", "escaped", "in_parts", "reveal", "unreveal"]

_FORM = r"U\+[0-9A-F]{4,6}⟧"
_IMPOSSIBLE = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|⟦(?={_FORM})")
_UNSEEN = re.compile(
    "[\r\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_REVEALED = re.compile(rf"⟦({_FORM[:-1]})⟧")
_THREAD_END = "</thread>\n"
_MOST_PARTS = 256
_START = 64
"""Characters by which an earlier part is found; the id of its thread is among them."""


def reveal(text: str) -> str:
    """`text` with all characters that XML cannot carry in their visible form."""
    return _IMPOSSIBLE.sub(lambda m: f"⟦U+{ord(m[0]):04X}⟧", text)


def unreveal(text: str) -> str:
    """Undo `reveal`."""
    return _REVEALED.sub(lambda m: chr(int(m[1][2:], 16)), text)


class Escaped:
    """Text that is already escaped for XML: a template does not escape it again.

    Like `markupsafe.Markup`, but not a string, so a prompt of 200 KB is not copied by every
    operation.
    """

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __html__(self) -> str:
        return self.text

    __str__ = __html__


def escaped(text: str) -> Escaped:
    """`text` as the content of an element or of a quoted attribute."""
    safe = escape(text)
    # Only then may it have invisible characters, which is rare.
    if not text.replace("\n", "").isprintable() or "⟦" in text:
        safe = _UNSEEN.sub(lambda m: f"&#x{ord(m[0]):X};", reveal(safe))
    return Escaped(safe)


def in_parts(prompt: str, earlier: Iterable[str] = ()) -> list[str]:
    """A prompt split after each thread of its conversation: most parts recur in the next prompt.
    Escaped text cannot contain the separator.

    Parts that are among the `earlier` ones are the same objects: they are not copied, and finding
    them in a dictionary does not read them again, as their hash is known.
    """
    known = {part[:_START]: part for part in earlier if part.endswith(_THREAD_END)}
    parts, at = list[str](), 0
    while len(parts) < _MOST_PARTS:
        part = known.get(prompt[at : at + _START])
        if part is None or not prompt.startswith(part, at):
            end = prompt.find(_THREAD_END, at)
            if end < 0:
                break
            part = prompt[at : end + len(_THREAD_END)]
        parts.append(part)
        at += len(part)
    return [*parts, prompt[at:]] if at < len(prompt) else parts
