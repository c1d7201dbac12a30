"""Files of agents that owners create while a network runs: one per agent, in the agent folder.

    agents:
      reviewer:
        instruction: You read diffs, and you are blunt.

They are loaded along with the network's own file. Writing them, or agents in that file, preserves
comments, order and everything that owners cannot set.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter

from hubbub.config.prompting import Share
from hubbub.config.source import Loc, YamlDocument, refers
from hubbub.config.units import Section
from hubbub.protocol.agents import AgentFields, AgentRollout

__all__ = [
    "AgentFolder",
    "agent_text",
    "field_at",
    "fields_of",
    "file_of",
    "files_in",
    "may_be_changed",
    "path_of",
    "rest_of",
    "with_values",
    "with_variables",
]


class AgentFolder(Section):
    """Agents that owners can create and change: with an instruction, and tools of the hub and its
    mods. Code, paths, commands, variables and sandbox limits are reserved for the operator."""

    path: str = "agents.d"
    """The folder. Its files, NAME.yaml, are loaded along with this one."""
    tools: list[str] | None = None
    """Operations that can be chosen as tools; an agent that chooses none gets all of these.
    Default: all operations that agents may use."""


def path_of(data: Mapping[str, JsonValue], start: Path) -> Path | None:
    """The agent folder of a network's file at `start`, if it has one."""
    network = data.get("network")
    section = network.get("agent_folder") if isinstance(network, dict) else None
    if not isinstance(section, dict):
        return None
    named = section.get("path", AgentFolder().path)
    return start.parent / named if isinstance(named, str) else None


def file_of(folder: Path, agent: str) -> Path:
    return folder / f"{agent}.yaml"


def files_in(folder: Path) -> Iterator[Path]:
    """The agent files in a folder, by name."""
    if folder.is_dir():
        yield from sorted(each for each in folder.glob("*.yaml") if each.is_file())


_QUOTED = re.compile(r"[^\n\t\x20-\x7e\xa0-\u2027\u202a-\ufefe\U00010000-\U0010ffff]|[ \t]\n|^\s")
"""Characters that require a string to be quoted."""
_PLACES: Mapping[str, Loc] = {
    **{name: (name,) for name in AgentFields.model_fields},
    "description": ("card", "description"),
    "daily_usd": ("daily", "usd"),
    "daily_tokens": ("daily", "tokens"),
}
"""The place of each field in an agent's section."""
_BY_VALUE = ("model", "permission_mode", "daily_usd", "daily_tokens", "max_steps")
"""Fields that are not free text: the name of a variable is not a valid value for them."""
_SHARE: TypeAdapter[float] = TypeAdapter(Share)


def fields_of(section: Mapping[str, JsonValue]) -> AgentFields:
    """The fields of an agent's section that owners can change. Raises `ValidationError` if one has
    another type."""
    values = {name: _at(section, place) for name, place in _PLACES.items()}
    rollout = values["rollout"]
    if isinstance(rollout, Mapping) and "share" in rollout:
        values["rollout"] = {**rollout, "share": _SHARE.validate_python(rollout["share"])}
    return AgentFields.model_validate({k: v for k, v in values.items() if v is not None})


def with_values(section: dict[str, JsonValue], real: Mapping[str, JsonValue]) -> None:
    """Replace references to variables in `section` by their values from `real`, in fields that are
    not free text."""
    for name in _BY_VALUE:
        *above, last = _PLACES[name]
        parent = _at(section, tuple(above)) if above else section
        if isinstance(parent, dict) and refers(str(parent.get(str(last)))):
            parent[str(last)] = _at(real, _PLACES[name])


def with_variables(
    section: Mapping[str, JsonValue], real: Mapping[str, JsonValue]
) -> frozenset[str]:
    """The fields that contain variables: `section` has their names, `real` their values."""
    places = _PLACES.items()
    return frozenset(name for name, place in places if _at(section, place) != _at(real, place))


def field_at(loc: Loc) -> str:
    """The field that a place in an agent's section belongs to; empty if none."""
    return next((name for name, place in _PLACES.items() if loc[: len(place)] == place), "")


def rest_of(data: Mapping[str, JsonValue], agent: str) -> Mapping[str, JsonValue]:
    """A file without the fields of one agent that owners can change."""
    agents, editable = data["agents"], {place[0] for place in _PLACES.values()}
    section = agents.get(agent) if isinstance(agents, dict) else None
    if not isinstance(agents, dict) or not isinstance(section, dict):
        return data
    rest = {key: value for key, value in section.items() if key not in editable}
    return {**data, "agents": {**agents, agent: rest}}


def may_be_changed(section: JsonValue) -> bool:
    """Whether owners can change the agent: it has a model and its instruction in this file."""
    is_llm = isinstance(section, dict) and section.get("kind", "llm") == "llm"
    return is_llm and isinstance(section, dict) and not {"object", "prompt"} & {*section}


def _at(section: JsonValue | Mapping[str, JsonValue], place: Loc) -> JsonValue:
    for key in place:
        section = section.get(str(key)) if isinstance(section, Mapping) else None
    return section  # type: ignore[return-value]  # a JsonValue below a Mapping of them


def agent_text(agent: str, fields: AgentFields, before: tuple[str, YamlDocument] | None) -> str:
    """The new text of an agent's file; `before` is its current text, as text and parsed. Raises
    `ValueError`, `LookupError` or `TypeError` if the current text has a form that cannot be
    changed: a key that is a number, a duplicate key, a string in place of keys."""
    from ruamel.yaml import YAML  # only needed here
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 4096
    try:
        sequence, offset = load_yaml_guess_indent(before[0])[1:] if before else (None, None)
    except YAMLError as error:
        raise ValueError(str(error)) from None
    offset = 2 if sequence is None or offset is None else offset
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    try:
        data: Any = yaml.load(before[0]) if before else {"agents": {agent: {}}}
    except YAMLError as error:
        raise ValueError(str(error)) from None
    section, old = data["agents"][agent], AgentFields()
    if before:
        agents = before[1].data["agents"]
        current = agents[agent] if isinstance(agents, dict) else None
        assert isinstance(current, dict)  # checked when the file was read
        old = fields_of(current)
    for name, place in _PLACES.items():
        value = getattr(fields, name)
        if value != getattr(old, name):
            _put(section, place, value)
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _put(section: MutableMapping[str, Any], place: Loc, value: object) -> None:
    """Set a value; None removes the key. Any: ruamel's types, which hold comments."""
    if isinstance(value, AgentRollout):
        for name, each in value:
            _put(section, (*place, name), each)
        return
    *above, last = map(str, place)
    for key in above:
        if value is None and key not in section:
            return
        section = section.setdefault(key, {})
    if value is None:
        section.pop(last, None)
    else:
        section[last] = _written(value)


def _written(value: object) -> object:
    """The value for YAML, with `${` escaped: it is text, never a variable."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if not isinstance(value, str):
        return value
    text = value.replace("${", "$${")
    if _QUOTED.search(text):
        return DoubleQuotedScalarString(text)
    return LiteralScalarString(text) if "\n" in text else text
