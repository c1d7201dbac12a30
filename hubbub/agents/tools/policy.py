"""The tool gate's rule: may this tool run in this permission mode? Pure.

mode        reading tools   tools that write or administer   tools that speak in the network
read_only   run             are refused                      run
ask         run             need approval                    run
full        run             run                              run

confirm     in a turn that has read something from outside     in any other turn
false       as the mode says                                   as the mode says
tainted     needs approval                                     as the mode says
true        needs approval                                     needs approval

What the mode refuses is refused, `confirm` or not. Speaking is not an
effect on the world outside: an agent that may not even answer would be of no use to anybody. What
an agent remembers is one: it is in all its later prompts, and others may have put it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, assert_never

from hubbub.agents.tools.base import Confirm
from hubbub.protocol.messages import Permission

__all__ = [
    "Allow",
    "Decision",
    "Judged",
    "NeedsApproval",
    "PermissionMode",
    "Refuse",
    "decide",
    "told",
]

PermissionMode = Literal["read_only", "ask", "full"]


class Judged(Protocol):
    """What the decision depends on."""

    @property
    def name(self) -> str: ...
    @property
    def permission(self) -> Permission: ...
    @property
    def confirm(self) -> Confirm: ...
    @property
    def speaks(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call may not run, whoever asks."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """The call may run when a person has said so."""

    reason: str


Decision = Allow | Refuse | NeedsApproval


def decide(tool: Judged, mode: PermissionMode, *, outside: bool = False) -> Decision:
    """Whether a call of `tool` may run in `mode`. `outside`: its turn has read something from
    outside the network.
    """
    harmless = tool.permission == "read" or (tool.permission == "write" and tool.speaks)
    if mode == "read_only" and not harmless:
        return Refuse(f"{tool.name} changes things ({tool.permission}), and this agent only reads")
    if tool.confirm is True:
        return NeedsApproval(f"each call of {tool.name} must be approved by a person")
    if tool.confirm == "tainted" and outside:
        return NeedsApproval(f"{tool.name} {_TAINTED}")
    if mode == "ask" and not harmless:
        reason = f"{tool.name} changes things ({tool.permission}), and this agent must ask first"
        return NeedsApproval(reason)
    return Allow()


_TAINTED = "must be approved by a person in a turn that has read something from outside the network"


def told(mode: PermissionMode) -> str:
    """What a model should know of its mode; nothing where there is nothing to know."""
    match mode:
        case "read_only":
            return "You may look things up and talk, but change nothing: tools that do are not here"
        case "ask":
            return (
                "Tools that change something run only when a person has approved the call. "
                "A call that was not approved has had no effect"
            )
        case "full":
            return ""
        case _:
            assert_never(mode)
