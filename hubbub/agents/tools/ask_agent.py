"""`ask_agent`: asks another agent; its answer is the result of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.python.link import AgentLink, Scope, entered
from hubbub.agents.tools.base import CallSite, SendingTool, ToolFailed, UntrustedText
from hubbub.agents.tools.hub import hub_refusal
from hubbub.agents.tools.schema import ToolArguments
from hubbub.errors import OperationError

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


class AgentQuestion(ToolArguments):
    """The arguments of `ask_agent`."""

    agent: str
    """Its id."""
    text: str
    """What it is to do, with all that it needs to know."""


class AskAgent(SendingTool):
    """Sends a direct message and waits for the answer, like `Agent.ask` of Python agents.

    A call repeated after a crash asks only once: its message has the call's key, and an answer that
    has arrived in the meantime is found.
    """

    ordered = False  # several agents may be asked at a time
    name = ASK_AGENT

    def __init__(self, link: AgentLink, within: float):
        """`within`: seconds to wait for the answer."""
        self._link, self._within = link, within
        self.timeout = within + _ROOM_S
        self.spec = AgentQuestion.spec_of(ASK_AGENT, "Ask another agent and wait for its answer.")

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The agent's answer. Raises `ToolFailed` if there is none, or no such agent."""
        asked = AgentQuestion.read(arguments)
        try:
            with entered(_CallScope(site.turn, site.step, untrusted=site.untrusted, cid=site.cid)):
                answer = await self._link.ask(
                    asked.agent, self._within, "send_text_message", to=asked.agent, text=asked.text
                )
        except TimeoutError as exc:
            raise ToolFailed(str(exc), error="timeout") from exc
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return UntrustedText(answer.text) if answer.untrusted else answer.text
