"""Files of agents that owners make while a network runs: one for each, in a folder of the config.

    agents:
      reviewer:
        instruction: You read diffs, and you are blunt.

They are read along with the network's own file. They, and the agents of that file, are written so
that comments, order and all that owners cannot set stay as they are.
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


_QUOTED = re.compile(r"[^\n\t\x20-\x7e\xa0-\u2027\u202a-\ufefe\U00010000-\U0010ffff]|[ \t]\n|^\s")
"""What a text cannot have as it stands: it is written in quotes then."""
_PLACES: Mapping[str, Loc] = {
    **{name: (name,) for name in AgentFields.model_fields},
    "description": ("card", "description"),
    "daily_usd": ("daily", "usd"),
    "daily_tokens": ("daily", "tokens"),
}
"""Where in an agent's section each field stands."""
_BY_VALUE = ("model", "permission_mode", "daily_usd", "daily_tokens", "max_steps")
"""Fields that are no free text: where a variable stands for one, its name would be no value."""
_SHARE: TypeAdapter[float] = TypeAdapter(Share)


def fields_of(section: Mapping[str, JsonValue]) -> AgentFields:
    """What of an agent's section owners can change, as it stands there. Raises `ValidationError`
    where that is of another type."""
    found = {name: _at(section, place) for name, place in _PLACES.items()}
    rollout = found["rollout"]
    if isinstance(rollout, Mapping) and "share" in rollout:
        found["rollout"] = {**rollout, "share": _SHARE.validate_python(rollout["share"])}
    return AgentFields.model_validate({k: v for k, v in found.items() if v is not None})


def with_values(section: dict[str, JsonValue], real: Mapping[str, JsonValue]) -> None:
    """Put the value of fields that are no free text, as it is in `real`, in place of the name of
    the variable that stands for it in `section`, which has the names."""
    for name in _BY_VALUE:
        *above, last = _PLACES[name]
        parent = _at(section, tuple(above)) if above else section
        if isinstance(parent, dict) and refers(str(parent.get(str(last)))):
            parent[str(last)] = _at(real, _PLACES[name])


def with_variables(
    section: Mapping[str, JsonValue], real: Mapping[str, JsonValue]
) -> frozenset[str]:
    """The fields in which variables stand: `section` has their names, `real` their values."""
    places = _PLACES.items()
    return frozenset(name for name, place in places if _at(section, place) != _at(real, place))


def field_at(loc: Loc) -> str:
    """The field that a place in an agent's section belongs to; empty: none."""
    return next((name for name, place in _PLACES.items() if loc[: len(place)] == place), "")


def rest_of(data: Mapping[str, JsonValue], agent: str) -> Mapping[str, JsonValue]:
    """A file without what owners can change of one of its agents."""
    agents, changing = data["agents"], {place[0] for place in _PLACES.values()}
    section = agents.get(agent) if isinstance(agents, dict) else None
    if not isinstance(agents, dict) or not isinstance(section, dict):
        return data
    kept = {key: value for key, value in section.items() if key not in changing}
    return {**data, "agents": {**agents, agent: kept}}


def may_be_changed(section: JsonValue) -> bool:
    """Whether what owners can set is what makes up the agent: a model that this file instructs."""
    usual = isinstance(section, dict) and section.get("kind", "llm") == "llm"
    return usual and isinstance(section, dict) and not {"object", "prompt"} & {*section}


def _at(section: JsonValue | Mapping[str, JsonValue], place: Loc) -> JsonValue:
    for key in place:
        section = section.get(str(key)) if isinstance(section, Mapping) else None
    return section  # type: ignore[return-value]  # a JsonValue below a Mapping of them


def agent_text(agent: str, fields: AgentFields, before: tuple[str, YamlDocument] | None) -> str:
    """The text of an agent's file; `before`: that which it has now, and how it was read. Raises
    `ValueError`, `LookupError` or `TypeError` if it is of a form that cannot be changed: a key
    that is a number, one that is there twice, a text in place of keys."""
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
        known = agents[agent] if isinstance(agents, dict) else None
        assert isinstance(known, dict)  # else it was refused when it was read
        old = fields_of(known)
    for name, place in _PLACES.items():
        value = getattr(fields, name)
        if value != getattr(old, name):
            _put(section, place, value)
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _put(section: MutableMapping[str, Any], place: Loc, value: object) -> None:
    """Any: as ruamel has it, with its comments. None takes the key away."""
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
    """As it stands in YAML: `${` is text here, never a variable."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if not isinstance(value, str):
        return value
    text = value.replace("${", "$${")
    if _QUOTED.search(text):
        return DoubleQuotedScalarString(text)
    return LiteralScalarString(text) if "\n" in text else text
