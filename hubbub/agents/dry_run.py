"""A turn of an agent that nobody hears of: the agent and its model are real, the hub is a stage.

    performance = await dry_run(config, "clerk", scene, folder, models, {"find_order": "a lamp"})

What the agent sends stays on the stage. Its tools are offered and its calls pass every check, but
none is carried out: a call has the result that it is given here, and one without ends the
dry run. What only looks inside the runtime (picking tools, the knowledge folders, skills) works,
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

from hubbub.agents.knowledge import SEARCH_KNOWLEDGE
from hubbub.agents.launch import run_agent
from hubbub.agents.prompt.cases import Performance
from hubbub.agents.prompt.context import Note
from hubbub.agents.skills import LOAD_SKILL
from hubbub.agents.stage import Scene, Stage
from hubbub.agents.tools.approval import ApprovalRequest, Approved
from hubbub.agents.tools.asking_agents import ASK_AGENT
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.tools.naming import wrong_names
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.tidy import TIDY_STEPS
from hubbub.agents.tools.ways_out import CHECK, FORK, WAIT_FOR
from hubbub.client import Client, MemoryTransport
from hubbub.config.models import AgentConfig, ModelConfig

__all__ = ["dry_run"]

INSIDE = frozenset({SELECT, TIDY_STEPS, SEARCH_KNOWLEDGE, LOAD_SKILL, FORK, WAIT_FOR, CHECK})
"""Tools that reach nothing outside of the runtime, nor the hub."""
_NO_RESULTS: Mapping[str, JsonValue] = MappingProxyType({})


async def dry_run(
    config: AgentConfig,
    name: str,
    scene: Scene,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    results: Mapping[str, JsonValue] = _NO_RESULTS,
    *,
    mods: Sequence[Note] = (),
) -> Performance:
    """What the agent does about the wake in `scene`.

    Its MCP servers and hooks are left out, and it does not greet. Calls that need a person's
    approval have it. Raises `ConfigError` as `run_agent`.
    """
    alone = _alone(config, name, scene, base_dir)
    stage = Stage(scene)
    async with Client(MemoryTransport(stage.attach), name, "agent", turns=True) as client:
        work = asyncio.create_task(
            run_agent(
                alone,
                name,
                client,
                base_dir,
                models,
                grace_s=0,
                mods=mods,
                approver=_Everything(),
                performer=_Props(stage, results).perform,
            )
        )
        over = asyncio.create_task(stage.over.wait())
        try:
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()  # raises: by itself it ends for a mistake only
        finally:
            over.cancel()
            work.cancel()
            await asyncio.wait({work, over})
    end = stage.end
    return Performance(
        steps=tuple(step for _, step in sorted(stage.steps.items())),
        said=tuple(stage.said),
        outcome=end.outcome if end else None,
        reason=end.reason if end else "",
        lacking=stage.lacking,
    )


def _alone(config: AgentConfig, name: str, scene: Scene, base_dir: Path) -> AgentConfig:
    """The agent without what reaches out of it, and without what it says of its servers' tools."""
    alone = config.model_copy(update={"mcp": [], "hooks": [], "greet": None})
    if not config.mcp:
        return alone
    offered = {o.name for o in scene.ready.operations if o.tool and o.permission != "admin"}
    own = ToolKit(config, name, base_dir).own_names
    theirs = set(wrong_names(alone, offered, own)) - set(wrong_names(config, offered, own))
    gone = {(wrong.key, wrong.at) for wrong in theirs}
    disabled = [t for n, t in enumerate(config.disabled_tools) if ("disabled_tools", n) not in gone]
    settings = {t: s for t, s in config.tool_settings.items() if ("tool_settings", t) not in gone}
    update: dict[str, object] = {"disabled_tools": disabled, "tool_settings": settings}
    if ("begin_with", None) in gone:
        update["begin_with"] = None
    return alone.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class _Props:
    """What stands for the tools."""

    stage: Stage
    results: Mapping[str, JsonValue]

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """As `Tool.run`. Never returns where there is no result: the dry run is over."""
        if tool.name in self.results:
            result = self.results[tool.name]
            if tool.speaks:
                self.stage.hear(arguments)
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        if tool.name in INSIDE or (tool.speaks and tool.name != ASK_AGENT):  # who would answer?
            return await tool.run(arguments, site)
        self.stage.stop(tool.name, site.step)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class _Everything:
    """Approves whatever is asked: nothing comes of it."""

    async def approve(self, call: ApprovalRequest) -> Approved:
        return Approved(call.arguments)
