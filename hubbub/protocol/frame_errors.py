"""Error texts for invalid frames: which field is wrong, and the remedy."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import ErrorDetails

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.wording import shortened

__all__ = [
    "FrameError",
    "check_values",
    "flaw_of",
    "place_of",
    "reason_of",
    "sentence_of",
    "shown",
    "too_deep",
    "usable_ref",
]


class FrameError(OperationError):
    """A frame is refused. `ref` is that of the call, if one could be read."""

    def __init__(self, code: str, message: str, ref: str | None = None, field: str | None = None):
        super().__init__(code, message, details={"field": field} if field else None)
        self.ref = ref


def usable_ref(ref: object) -> str | None:
    """A call's ref, if it is valid to send back."""
    return ref if isinstance(ref, str) and 0 < len(ref) <= 64 and not flaw_of(ref) else None


def check_values(value: object, max_depth: int) -> None:
    """Raises `FrameError` for deep nesting, NUL and lone surrogates. Without recursion."""
    layer: list[object] = [value]
    for _ in range(max_depth):
        deeper: list[object] = []
        for item in layer:
            if isinstance(item, dict):
                deeper.extend(item.keys())
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif isinstance(item, str):
                _check_text(item)
        if not deeper:
            return
        layer = deeper
    if any(isinstance(item, dict | list) for item in layer):
        raise FrameError(ErrorCode.BAD_FRAME, too_deep(max_depth))
    for item in layer:
        if isinstance(item, str):
            _check_text(item)


def too_deep(max_depth: int) -> str:
    return f"JSON is nested deeper than {max_depth} levels"


def _check_text(text: str) -> None:
    flaw = flaw_of(text)
    if flaw is not None:
        raise FrameError(ErrorCode.BAD_FRAME, f"text contains {flaw}")


def flaw_of(text: str) -> str | None:
    """Why the text cannot be forwarded; None if it can."""
    if "\0" in text:
        return "the character NUL (\\u0000)"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    return None


def place_of(error: ErrorDetails, frame: object) -> str:
    """The field's path without the tags of union types."""
    path: list[str] = []
    loc = error["loc"]
    value: Any = frame  # JSON, checked before it is indexed
    for part in loc:
        if _holds(value, part):
            value = value[part]
        elif error["type"] != "missing" or part != loc[-1]:
            continue
        path.append(str(part))
    return ".".join(path)


def _holds(value: object, part: int | str) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, dict) and part in value


def sentence_of(error: ErrorDetails, place: str) -> str:
    if error["type"] == "extra_forbidden":
        return f"{place}: no such argument"
    message = error["msg"].replace("Tuple", "list").replace(" after validation", "")
    return f"{place}: {message[0].lower()}{message[1:]}"


def reason_of(error: ValueError) -> str:
    text = str(error)
    if text.startswith("Exceeds the limit"):  # the rest is a remedy for programmers
        return "a number has too many digits"
    return text


def shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(shortened(text, 64))
