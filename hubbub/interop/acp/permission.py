"""Turns a program's permission requests into approvals, and decisions into its answers. Pure.

An approval is bound to the exact call and is used once: when a program asks for the same thing
again, people are asked again. Its key is derived from its content, so that a program restarted in
the middle of a turn gets the decision already given for the same request.
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
    SessionModeState,
    ToolCallUpdate,
)
from pydantic import JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.approval import ApprovalRequest
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.policy import PermissionMode
from hubbub.interop.acp.progress import arguments_of, diff

__all__ = ["CANCELLED", "allow", "asking_mode", "question", "reject", "verdict_on"]

CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
"""The answer after the turn has ended."""
_READING = frozenset({"read", "search", "think"})
_MAX_SHOWN = 20_000
"""Characters shown of one string; a longer one is cut and identified by its hash."""
_MAX_LEVELS = 8


def verdict_on(mode: PermissionMode, kind: str | None) -> Literal["allow", "reject", "ask"]:
    """The verdict on a permission request for a call of this kind."""
    if mode == "full":
        return "allow"
    if mode == "ask":
        return "ask"
    return "allow" if kind in _READING else "reject"


def asking_mode(modes: SessionModeState) -> str:
    """The current mode; for Claude Code's `auto`, in which a model permits calls, its `default`."""
    offered = {mode.id for mode in modes.available_modes}
    is_auto = modes.current_mode_id == "auto" and "default" in offered
    return "default" if is_auto else modes.current_mode_id


def question(
    call: ToolCallUpdate, name: str, site: CallSite, agent: str, time: int
) -> ApprovalRequest:
    """The approval request for a call recorded as `name`. `time` counts equal requests from 1."""
    title = reveal(call.title or "")[:500]
    arguments = _arguments(call)
    content = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:16]
    return ApprovalRequest(
        site,
        name,
        title,
        "write",
        arguments,
        f"{agent} asks before it does this",
        f"{digest}#{time}",
        {"type": "object", "const": arguments},  # the program accepts no changed arguments
    )


def _arguments(call: ToolCallUpdate) -> dict[str, JsonValue]:
    arguments = {k: _shortened(v) for k, v in arguments_of(call.raw_input, call.title).items()}
    diffs: list[JsonValue] = [
        _shortened(reveal(diff(part.path, part.old_text, part.new_text)))
        for part in call.content or ()
        if isinstance(part, FileEditToolCallContent)
    ]
    if diffs and "diff" not in arguments:
        arguments["diff"] = diffs[0] if len(diffs) == 1 else diffs
    return arguments


def _shortened(value: JsonValue, levels: int = _MAX_LEVELS) -> JsonValue:
    """The value with long strings cut. A hash keeps different ones distinct."""
    if isinstance(value, str) and len(value) > _MAX_SHOWN:
        digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
        more = len(value) - _MAX_SHOWN
        return f"{value[:_MAX_SHOWN]}… ({more} more characters; SHA-256 of all: {digest})"
    if isinstance(value, list | dict) and levels == 0:
        return _shortened(json.dumps(value, sort_keys=True, ensure_ascii=False))
    if isinstance(value, list):
        return [_shortened(item, levels - 1) for item in value]
    if isinstance(value, dict):
        return {key: _shortened(item, levels - 1) for key, item in value.items()}
    return value


def allow(options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """Allow this once, or always if the program offers nothing else."""
    return _choose(options, ("allow_once", "allow_always"))


def reject(options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """Reject this once, or always if the program offers nothing else."""
    return _choose(options, ("reject_once", "reject_always"))


def _choose(
    options: Sequence[PermissionOption], kinds: tuple[str, ...]
) -> RequestPermissionResponse:
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
    return CANCELLED
