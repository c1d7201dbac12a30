"""External tools: tools of the requester. Calling one hands the call over to the requester."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, count

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, SendingTool
from hubbub.agents.tools.hub import HubCaller, hub_refusal
from hubbub.agents.turn.outbox import untrusted_mark
from hubbub.errors import OperationError
from hubbub.protocol.external_tools import ExternalCall, ExternalTool, call_text

__all__ = ["ExternalToolProxy", "external_proxies"]

_NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}
_RESULT = "handed over to who asked; the result comes with their next message"


class ExternalToolProxy(SendingTool):
    """One external tool: its call is sent to the requester as a message."""

    def __init__(self, tool: ExternalTool, name: str, caller: HubCaller):
        """`name`: its name for the model."""
        self.name, self._tool, self._caller = name, tool, caller
        self.spec = ToolSpec(name, tool.description, tool.parameters or _NO_ARGUMENTS)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Hand the call over. Raises `ToolFailed` if the hub refuses."""
        call = ExternalCall(id=site.cid, name=self._tool.name, arguments=dict(arguments))
        try:
            await self._caller.call(
                "send_message",
                cid=site.cid,
                cause=site.turn,
                to=site.thread_id,
                content={"external_call": call.model_dump(mode="json")},
                text_representation=call_text(call),
                **untrusted_mark(site.untrusted),
            )
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return _RESULT


def external_proxies(
    tools: Iterable[ExternalTool], taken: Collection[str], caller: HubCaller
) -> list[ExternalToolProxy]:
    """The tools, renamed where a name is taken by another tool."""
    found: dict[str, ExternalToolProxy] = {}
    for tool in tools:
        others = (f"asker{n}_{tool.name}"[:64] for n in count(2))
        names = chain((tool.name, f"asker_{tool.name}"[:64]), others)
        name = next(each for each in names if each not in taken and each not in found)
        found[name] = ExternalToolProxy(tool, name, caller)
    return list(found.values())
