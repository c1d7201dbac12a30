"""The conditions that a config may name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hubbub.agents.prompt.builder import Condition
from hubbub.agents.prompt.context import PromptContext
from hubbub.config.prompting import CONDITIONS

__all__ = ["CONDITIONS_BY_NAME", "condition"]

_FINISH = "finish"
_DELEGATES = frozenset({"delegate", "send_text_message", "send_message"})


def _has_tools(context: PromptContext) -> bool:
    return any(tool.name != _FINISH for tool in context.tools)


def _can_delegate(context: PromptContext) -> bool:
    agents = any(other.kind == "agent" for other in context.participants)
    return agents and any(tool.name in _DELEGATES for tool in context.tools)


CONDITIONS_BY_NAME: Mapping[str, Condition] = MappingProxyType(
    {
        "always": lambda context: True,
        "asks_first": lambda context: context.permission_mode == "ask",
        "can_delegate": _can_delegate,
        "has_capabilities": lambda context: bool(context.capabilities),
        "has_mods": lambda context: bool(context.mods),
        "has_others": lambda context: bool(context.participants),
        "has_skills": lambda context: bool(context.skills),
        "has_state": lambda context: bool(context.state),
        "has_tools": _has_tools,
        "in_channel": lambda context: context.thread.startswith("channel_"),
        "in_direct_thread": lambda context: context.thread.startswith("direct_"),
        "is_auto": lambda context: context.mode == "auto",
        "is_interactive": lambda context: context.mode == "interactive",
        "never": lambda context: False,
        "read_only": lambda context: context.permission_mode == "read_only",
    }
)
"""What each means is told in `hubbub.config.prompting.CONDITIONS`."""

assert list(CONDITIONS_BY_NAME) == list(CONDITIONS), "the config's names are those of this table"


def condition(names: Sequence[str]) -> Condition | None:
    """One condition for all these names, of which each may begin with `not `; None for no names.

    Raises KeyError for a name that does not exist; a config has none.
    """
    if not names:
        return None
    tests = [_test(name) for name in names]
    return lambda context: all(test(context) for test in tests)


def _test(name: str) -> Condition:
    bare = name.removeprefix("not ").strip()
    found = CONDITIONS_BY_NAME[bare]
    return (lambda context: not found(context)) if name.startswith("not ") else found
