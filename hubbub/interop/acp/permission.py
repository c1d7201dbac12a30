"""What a program asks permission for, as a question to people, and their word as its answer. Pure.

An approval is bound to what is to be done, and is used once: a program that asks for the same thing
again asks people again. It is named by its content, so that a program that was started anew in the
middle of a turn, and asks for the same thing, gets the word that was given before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    FileEditToolCallContent,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from pydantic import JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.approval import ApprovalRequest
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.policy import PermissionMode
from hubbub.interop.acp.progress import arguments_of, diff

__all__ = ["CANCELLED", "allow", "judged", "question", "reject"]

CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
"""The answer where the turn is over."""
_READING = frozenset({"read", "search", "think"})
_MOST_SHOWN = 20_000
"""Characters of one text of what is asked; of a longer one the rest is named by its hash."""
_MOST_LEVELS = 8


def judged(mode: PermissionMode, kind: str | None) -> Literal["allow", "reject", "ask"]:
    """What is done about a call of this kind that the program asks permission for."""
    if mode == "full":
        return "allow"
    if mode == "ask":
        return "ask"
    return "allow" if kind in _READING else "reject"


def question(
    call: ToolCallUpdate, name: str, site: CallSite, agent: str, time: int
) -> ApprovalRequest:
    """What people are asked, the `time`th time (from 1) that the program asks for it. `name` is
    what the call is recorded as.
    """
    title = reveal(call.title or "")[:500]
    arguments = _arguments(call)
    told = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()[:16]
    return ApprovalRequest(
        site,
        name,
        title,
        "write",
        arguments,
        f"{agent} asks before it does this",
        f"{digest}#{time}",
        {"type": "object", "const": arguments},  # the program takes a yes or a no, and no changes
    )


def _arguments(call: ToolCallUpdate) -> dict[str, JsonValue]:
    arguments = {k: _shown(v) for k, v in arguments_of(call.raw_input, call.title).items()}
    diffs: list[JsonValue] = [
        _shown(reveal(diff(part.path, part.old_text, part.new_text)))
        for part in call.content or ()
        if isinstance(part, FileEditToolCallContent)
    ]
    if diffs and "diff" not in arguments:
        arguments["diff"] = diffs[0] if len(diffs) == 1 else diffs
    return arguments


def _shown(value: JsonValue, levels: int = _MOST_LEVELS) -> JsonValue:
    """The value with long texts cut, in a way that tells two of them apart."""
    if isinstance(value, str) and len(value) > _MOST_SHOWN:
        digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
        more = len(value) - _MOST_SHOWN
        return f"{value[:_MOST_SHOWN]}… ({more} more characters; SHA-256 of all: {digest})"
    if isinstance(value, list | dict) and levels == 0:
        return _shown(json.dumps(value, sort_keys=True, ensure_ascii=False))
    if isinstance(value, list):
        return [_shown(item, levels - 1) for item in value]
    if isinstance(value, dict):
        return {key: _shown(item, levels - 1) for key, item in value.items()}
    return value


def allow(options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """Yes, for this once; where the program knows only yes for ever, that."""
    return _chosen(options, ("allow_once", "allow_always"))


def reject(options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """No, for this once if the program knows that."""
    return _chosen(options, ("reject_once", "reject_always"))


def _chosen(
    options: Sequence[PermissionOption], kinds: tuple[str, ...]
) -> RequestPermissionResponse:
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
    return CANCELLED
