"""A dry run: one turn of an agent with its real model against a fake hub.

    result = await dry_run(config, "clerk", scene, folder, models, {"find_order": "a lamp"})

What the agent sends goes to the fake hub only. Its tools are offered and its calls pass every
check, but none is carried out: a call returns the result given here, and a call without one ends
the dry run. Tools that stay inside the runtime work (picking tools, the knowledge folders, skills),
and so does `fork`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue

from hubbub.agents.fake_hub import DryRunFixture, FakeHub
from hubbub.agents.knowledge import SEARCH_KNOWLEDGE
from hubbub.agents.launch import run_agent
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.expectations import CaseRun
from hubbub.agents.skills import LOAD_SKILL
from hubbub.agents.tools.approval import ApprovalRequest, Approved
from hubbub.agents.tools.ask_agent import ASK_AGENT
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import CHECK, FORK, WAIT_FOR
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.agents.tools.tool_names import wrong_names
from hubbub.client import Client, MemoryTransport
from hubbub.config.models import AgentConfig, ModelConfig

__all__ = ["dry_run"]

INSIDE = frozenset({SELECT, TIDY_STEPS, SEARCH_KNOWLEDGE, LOAD_SKILL, FORK, WAIT_FOR, CHECK})
"""Tools that reach nothing outside of the runtime, not even the hub."""
_NO_RESULTS: Mapping[str, JsonValue] = MappingProxyType({})


async def dry_run(
    config: AgentConfig,
    name: str,
    scene: DryRunFixture,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    results: Mapping[str, JsonValue] = _NO_RESULTS,
    *,
    mods: Sequence[Note] = (),
) -> CaseRun:
    """Run the turn for the wake in `scene`.

    MCP servers and hooks are left out, and the agent does not greet. Calls that need a person's
    approval get it. Raises `ConfigError` as `run_agent`.
    """
    isolated = _isolated(config, name, scene, base_dir)
    hub = FakeHub(scene)
    async with Client(MemoryTransport(hub.attach), name, "agent", turns=True) as client:
        work = asyncio.create_task(
            run_agent(
                isolated,
                name,
                client,
                base_dir,
                models,
                grace_s=0,
                mods=mods,
                approver=_ApproveAll(),
                performer=_CannedResults(hub, results).perform,
            )
        )
        over = asyncio.create_task(hub.over.wait())
        try:
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()  # raises: it ends by itself only on an error
        finally:
            over.cancel()
            work.cancel()
            await asyncio.wait({work, over})
    end = hub.end
    return CaseRun(
        steps=tuple(step for _, step in sorted(hub.steps.items())),
        said=tuple(hub.said),
        outcome=end.outcome if end else None,
        reason=end.reason if end else "",
        lacking=hub.lacking,
    )


def _isolated(config: AgentConfig, name: str, scene: DryRunFixture, base_dir: Path) -> AgentConfig:
    """The config without anything that reaches out of the agent, or configures its MCP servers."""
    isolated = config.model_copy(update={"mcp": [], "hooks": [], "greet": None})
    if not config.mcp:
        return isolated
    offered = {o.name for o in scene.ready.operations if o.tool and o.permission != "admin"}
    own = ToolKit(config, name, base_dir).own_names
    theirs = set(wrong_names(isolated, offered, own)) - set(wrong_names(config, offered, own))
    gone = {(wrong.key, wrong.at) for wrong in theirs}
    disabled = [t for n, t in enumerate(config.disabled_tools) if ("disabled_tools", n) not in gone]
    settings = {t: s for t, s in config.tool_settings.items() if ("tool_settings", t) not in gone}
    update: dict[str, object] = {"disabled_tools": disabled, "tool_settings": settings}
    if ("begin_with", None) in gone:
        update["begin_with"] = None
    return isolated.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class _CannedResults:
    """Stands in for the tools."""

    hub: FakeHub
    results: Mapping[str, JsonValue]

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """As `Tool.run`. Never returns if there is no result: the dry run is over."""
        if tool.name in self.results:
            result = self.results[tool.name]
            if tool.speaks:
                self.hub.record_message(arguments)
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        if tool.name in INSIDE or (tool.speaks and tool.name != ASK_AGENT):  # nobody answers it
            return await tool.run(arguments, site)
        self.hub.stop(tool.name, site.step)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class _ApproveAll:
    """Approves every call: it has no effect anyway."""

    async def approve(self, call: ApprovalRequest) -> Approved:
        return Approved(call.arguments)
