"""`ask_agent`: asks another agent; its answer is the result of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.python.link import AgentLink, Scope, entered
from hubbub.agents.tools.base import CallSite, Confirm, ToolFailed, UntrustedText
from hubbub.agents.tools.hub import hub_refusal
from hubbub.errors import OperationError
from hubbub.protocol.messages import Permission

__all__ = ["ASK_AGENT", "AskAgent"]

ASK_AGENT = "ask_agent"
_ROOM_S = 5.0
"""Extra seconds before the runtime's timeout, because the tool's own timeout gives the better
message."""


@dataclass(slots=True)
class _CallScope(Scope):
    """The scope of one call: it writes once, under the call's own key."""

    cid: str = ""

    def next_cid(self) -> str:
        return self.cid


class AskAgent:
    """Sends a direct message and waits for the answer, like `Agent.ask` of Python agents.

    A call repeated after a crash asks only once: its message has the call's key, and an answer that
    has arrived in the meantime is found.
    """

    permission: Permission = "write"
    confirm: Confirm = False
    idempotent = True
    ordered = False
    speaks = True
    name = ASK_AGENT

    def __init__(self, link: AgentLink, within: float):
        """`within`: seconds to wait for the answer."""
        self._link, self._within = link, within
        self.timeout = within + _ROOM_S
        texts: JsonValue = {
            "agent": {"type": "string", "description": "Its id."},
            "text": {
                "type": "string",
                "description": "What it is to do, with all that it needs to know.",
            },
        }
        self.spec = ToolSpec(
            ASK_AGENT,
            "Ask another agent and wait for its answer.",
            {
                "type": "object",
                "properties": texts,
                "required": ["agent", "text"],
                "additionalProperties": False,
            },
        )

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The agent's answer. Raises `ToolFailed` if there is none, or no such agent."""
        to, text = str(arguments["agent"]), str(arguments["text"])
        try:
            with entered(_CallScope(site.turn, site.step, untrusted=site.untrusted, cid=site.cid)):
                answer = await self._link.ask(
                    to, self._within, "send_text_message", to=to, text=text
                )
        except TimeoutError as exc:
            raise ToolFailed(str(exc), error="timeout") from exc
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return UntrustedText(answer.text) if answer.outside else answer.text
