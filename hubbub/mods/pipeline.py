"""The pipeline: each message passes the mods in their order before the hub routes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, Pass, Reject, Replace
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft

__all__ = ["Pipeline"]


class Pipeline:
    """The mods of a network, in the order of its YAML."""

    def __init__(self, mods: Sequence[Mod] = ()):
        self.mods = tuple(mods)
        # A mod that keeps the hook of the base class has nothing to say about messages.
        self._hooks = [
            (mod.name, mod.on_message) for mod in mods if type(mod).on_message is not Mod.on_message
        ]

    @property
    def judges(self) -> bool:
        """Whether there is a mod that may change or reject messages."""
        return bool(self._hooks)

    def run(self, draft: Draft) -> Draft:
        """The draft as the mods leave it. Raises `OperationError` when one of them rejects it."""
        for name, hook in self._hooks:
            verdict = hook(draft)
            if verdict is PASS:
                continue
            match verdict:
                case Pass():
                    pass
                case Replace(replacement):
                    _check_replacement(name, draft, replacement)
                    draft = replacement
                case Reject(reason):
                    raise OperationError(
                        ErrorCode.REJECTED, f"{name}: {reason}", details={"mod": name}
                    )
                case _:
                    assert_never(verdict)
        return draft


def _check_replacement(mod: str, old: Draft, new: Draft) -> None:
    if _fixed(old) != _fixed(new):
        raise OperationError(
            ErrorCode.INTERNAL, f"the mod {mod} tried to change a message's sender or thread"
        )


def _fixed(draft: Draft) -> tuple[object, ...]:
    """What no mod may change."""
    who = (draft.sender_id, draft.sender_kind, draft.spoken_by)
    return (*who, draft.thread_id, draft.type, draft.recipients, draft.request)
