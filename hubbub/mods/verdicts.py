"""What a mod's verdict makes of a draft, and whether it may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from hubbub.errors import OperationError
from hubbub.mods.api import Mod, Pass, Reject, Replace, Verdict
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Attachment, Draft, Quote

__all__ = ["Rejected", "after", "hide", "show"]


class _Shown(Draft):
    """A draft while mods look at it: it cannot be changed, but replaced as any other.

    Drafts become and cease to be one where they are, which costs less than a look at all fields.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **fields: Any) -> Draft:  # type: ignore[misc]  # a plain one
        # Any: what `dataclasses.replace` and `copy` hand over.
        return Draft(*args, **fields) if args or fields else Draft.__new__(Draft)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: hooks change no draft in place; answer Replace")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name}: hooks change no draft in place; answer Replace")


def show(draft: Draft) -> None:
    """Nobody can change it until `hide`."""
    object.__setattr__(draft, "__class__", _Shown)


def hide(draft: Draft) -> None:
    """It is the hub's own again."""
    object.__setattr__(draft, "__class__", Draft)


class Rejected(Exception):
    """A mod rejects a message, as it may: no failure."""

    def __init__(self, error: OperationError):
        self.error = error


def after(mod: Mod, draft: Draft, verdict: Verdict) -> Draft:
    """Raises `Rejected`, and `TypeError` or `ValueError` for what is no verdict."""
    match verdict:
        case Pass():
            return draft
        case Replace(replacement):
            _check_replacement(draft, replacement)
            return replacement
        case Reject(reason):
            told = f"{mod.name}: {reason}"
            raise Rejected(OperationError(ErrorCode.REJECTED, told, details={"mod": mod.name}))
        case _:
            # No `assert_never`: a mod that nobody has type-checked may answer anything.
            raise TypeError(f"a verdict is Pass, Replace or Reject, not {verdict!r:.100}")


_FREE = (
    "content",
    "text_representation",
    "quote",
    "attachments",
    "mentions",
    "unresolved",
    "notes",
)
"""What a mod may change of a draft; it may also mark one as from outside the network."""


def _check_replacement(old: Draft, new: Draft) -> None:
    if new is old:
        return
    if not isinstance(new, Draft):
        raise TypeError(f"Replace needs a Draft, not {new!r:.100}")
    kept = {name: getattr(new, name) for name in _FREE}
    marked = old.outside or new.outside is True  # what is from outside stays so
    if replace(old, **kept, outside=marked) != new:
        raise ValueError("on_message replaced a message's sender, thread or recipients")
    _check_types(new)
    to_json(list(kept.values()))  # raises ValueError for what cannot be written down


def _check_types(new: Draft) -> None:
    """Raises `TypeError` for what the log could not keep: nobody may have type-checked the mod."""
    one = {"text_representation": (new.text_representation, str), "quote": (new.quote, Quote)}
    for name, (value, kind) in one.items():
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__} or None, not {value!r:.100}")
    many = {"mentions": str, "unresolved": str, "notes": str, "attachments": Attachment}
    for name, kind in many.items():
        values = getattr(new, name)
        if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
            raise TypeError(f"{name} must be a tuple of {kind.__name__}, not {values!r:.100}")
