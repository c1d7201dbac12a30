"""Where the files of agents lie that owners make while a network runs.

Every process that reads a config looks there; what writes into it is in `agent_files`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from hubbub.config.units import Section

__all__ = ["AgentFolder", "file_of", "files_in", "path_of"]


class AgentFolder(Section):
    """What owners may make and change: agents with an instruction and tools of the hub and its
    mods. Code, paths, commands, variables and limits of sandboxes are the operator's."""

    path: str = "agents.d"
    """Its files, NAME.yaml, are read along with this one."""
    tools: list[str] | None = None
    """Operations among which tools can be chosen, and which an agent has that chooses none; left
    out: all that agents may use."""


def path_of(data: Mapping[str, JsonValue], start: Path) -> Path | None:
    """The folder that a network's file at `start` names, if it names one."""
    network = data.get("network")
    section = network.get("agent_folder") if isinstance(network, dict) else None
    if not isinstance(section, dict):
        return None
    named = section.get("path", AgentFolder().path)
    return start.parent / named if isinstance(named, str) else None


def file_of(folder: Path, agent: str) -> Path:
    return folder / f"{agent}.yaml"


def files_in(folder: Path) -> Iterator[Path]:
    """The files of the folder's agents, by name."""
    if folder.is_dir():
        yield from sorted(each for each in folder.glob("*.yaml") if each.is_file())
