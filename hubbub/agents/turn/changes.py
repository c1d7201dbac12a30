"""What people have changed of calls that they approved, in words for models and people. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.protocol.turns import ChangedCall, ToolCallRecord

__all__ = ["changed_call", "told_changes", "told_result"]

_MOST = 1000
"""Characters of a value that are told."""
_MOST_NAMES = 20
_NOT_GIVEN, _LEFT_OUT = "(not given)", "(left out)"


def changed_call(
    asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue], by: str
) -> ChangedCall | None:
    """What the person made of the arguments that were asked for; None: nothing else."""
    names = tuple(n for n in {**asked, **final} if not _same(n, asked, final))
    return ChangedCall(by=by, arguments=dict(final), names=names) if names else None


def _same(name: str, asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue]) -> bool:
    # In Python 1, 1.0 and True are equal; as arguments they are not.
    return (name in asked) == (name in final) and _json(asked.get(name)) == _json(final.get(name))


def told_changes(call: ToolCallRecord) -> str:
    """Who changed what of the call before it ran; empty if it ran as the model gave it."""
    changed = call.changed
    if changed is None:
        return ""
    asked = call.arguments if isinstance(call.arguments, dict) else {}
    told = [
        f"{name}: {_shown(name, asked, _NOT_GIVEN)} -> {_shown(name, changed.arguments, _LEFT_OUT)}"
        for name in changed.names[:_MOST_NAMES]
    ]
    more = len(changed.names) - len(told)
    told += [f"{more} more"] if more else []
    return reveal(f"approved by {changed.by} with changes: {', '.join(told)}")


def told_result(call: ToolCallRecord) -> str:
    """What a model is told of a call that has run: its result, and before that what a person has
    changed.
    """
    return "\n".join(filter(None, (told_changes(call), call.result)))


def _shown(name: str, arguments: Mapping[str, JsonValue], absent: str) -> str:
    if name not in arguments:
        return absent
    text = _json(arguments[name])
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text)} characters)"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
