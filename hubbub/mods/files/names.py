"""Names of files: what may be called so on any machine that the file is downloaded to. Pure.

No name ever becomes a path here: contents lie under their checksums. The rules keep those safe who
save a file under the name that they are shown.
"""

from __future__ import annotations

import re
import unicodedata

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["LONGEST", "checked_name", "suffix_of"]

LONGEST = 255
"""Bytes of a name in UTF-8: what common file systems take."""

_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
"""What Windows takes for a device, whatever follows after a dot."""
_FORBIDDEN = frozenset('/\\:*?"<>|')
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but part of how words and emoji are written."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that a reader does not see, or that turn the text around."""


def checked_name(name: str) -> str:
    """The name in its composed form (NFC). Raises `OperationError` for one that is not safe."""
    why = _wrong(name)
    if why is not None:
        raise OperationError(ErrorCode.BAD_REQUEST, f"name: {why}")
    return unicodedata.normalize("NFC", name)


def _wrong(name: str) -> str | None:
    if len(name) > LONGEST or len(name.encode(errors="replace")) > LONGEST:
        return f"at most {LONGEST} bytes"
    for character in name:
        if character not in _JOINERS and unicodedata.category(character) in _UNSEEN:
            return f"the character U+{ord(character):04X} cannot be seen, or hides others"
    # What looks like a separator to whoever simplifies the name later is one here, too.
    plain = unicodedata.normalize("NFKC", name)
    if plain.strip(". ") == "":
        return "a name needs more than dots and spaces"
    for character in plain:
        if character in _FORBIDDEN:
            return f"only the file's own name, without a path: {character!r} cannot be in it"
    if name != name.strip() or plain != plain.strip() or plain.endswith("."):
        return "it may not begin or end with a space, nor end with a dot"
    if _DEVICES.fullmatch(plain.partition(".")[0].rstrip()):
        return f"{plain[:20]!r} is a device on some machines; call it something else"
    return None


def suffix_of(name: str) -> str:
    """What a name ends with, in lower case: `.md`; empty without one."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""
