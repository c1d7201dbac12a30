"""Checks beyond the schema: names and files exist, and an open hub stays on loopback.

The checks read the raw data, not the validated models, so they still work if another part of the
file is invalid.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue

from hubbub.config.agents import ROLES_OF
from hubbub.config.explain import dotted
from hubbub.config.knowledge import check_knowledge, check_skills, texts
from hubbub.config.models import AgentConfig, NetworkConfig
from hubbub.config.paths import (
    EVERY,
    MEMORY_STORE,
    POSTGRES,
    SQLITE,
    check_postgres_url,
    split_spec,
    without_password,
)
from hubbub.config.problems import closest, nearest, shown_path
from hubbub.config.source import Loc, YamlDocument
from hubbub.config.units import parse_address
from hubbub.protocol.thread_ids import RESERVED_IDS, is_channel_name, is_id, is_participant_id

__all__ = ["cross_check"]


def check_approvers(document: YamlDocument) -> None:
    """Report unknown approvers, and tools that no one could approve."""
    network = _map(document.data.get("network"))
    people = _map(document.data.get("humans"))
    approvers = _map(network.get("approvals")).get("approvers")
    _check_approver_names(document, ("network", "approvals", "approvers"), approvers, people)
    for name, agent in _map(document.data.get("agents")).items():
        loc = ("agents", name)
        own = _map(agent).get("approvers")
        _check_approver_names(document, (*loc, "approvers"), own, people)
        if not (own or approvers or _has_owner(people) or network.get("auth") == "open"):
            _check_confirmed(document, loc, _map(agent))


def _check_approver_names(
    document: YamlDocument, loc: Loc, named: JsonValue, people: Mapping[str, JsonValue]
) -> None:
    for place, name in texts(named, loc):
        if name not in people:
            agents = _map(document.data.get("agents"))
            hint = nearest(name, people) or "; add a section humans:"
            if name in agents:
                hint = f"; '{name}' is an agent (line {document.place(('agents', name)).line})"
            text = f"{dotted(loc)} names '{name}', who is not in humans{hint}"
            document.report(place, text)


def _has_owner(people: Mapping[str, JsonValue]) -> bool:
    roles = (_map(person).get("roles") for person in people.values())
    return any("owner" in each for each in roles if isinstance(each, list))


def _check_confirmed(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    for tool, settings in _map(agent.get("tool_settings")).items():
        if _map(settings).get("confirm") in (True, "untrusted"):
            document.report(
                (*loc, "tool_settings", tool, "confirm"),
                f"no one can approve calls of {tool}: give a person in humans the role owner, or "
                "name people in network.approvals.approvers",
            )


def _map(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


_DEFAULTS = NetworkConfig()
_AGENT_FIELDS = AgentConfig.model_fields
_AGENT_KEYS = frozenset(field.alias or name for name, field in _AGENT_FIELDS.items())
_OF_A_MODEL: Mapping[str, str] = MappingProxyType(
    {
        "mode": "an unsure router asks the person; see `roles.min_confidence`",
        "begin_with": "the kind determines which role starts",
        "fork": "roles delegate work to agents; see `roles.targets`",
        "skills": "use `knowledge`, or give them to agents that it can ask",
        "select_over": "roles see all their tools",
        "select": "roles see all their tools",
        "rollout": "change `instruction` or `models` for all threads",
        "max_steps": "see `roles.max_plan_steps`, `roles.max_retries` and `max_tokens`",
    }
)
"""Keys that apply to a single model only, with the alternative for agents with roles."""
_OWN_MODEL = "the program uses its own model, set in its own config"
_OF_ACP: Mapping[str, str] = MappingProxyType(
    {
        "model": _OWN_MODEL,
        "models": _OWN_MODEL,
        "roles": "the program works alone",
        "mode": "see `permission_mode`",
        "begin_with": "put it into `instruction`",
        "fork": "the program may have its own sub-agents",
        "rollout": "change `instruction` for all threads",
        "skills": "put them where the program looks for skills",
        "select_over": "list the few it needs in `tools`",
        "select": "list the few it needs in `tools`",
        "context": "the program manages its own context window",
    }
)
"""Keys that apply to agents with a model only, with the alternative for ACP programs."""
_REMOTE_OWN = "the remote agent has its own"
_OF_A2A: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("model", "models", "instruction", "prompt", "knowledge", "skills", "fork"), _REMOTE_OWN
        ),
        "tools": "it can answer, but not use this network's tools",
        "mcp": "it can answer, but not use this network's tools",
        "rollout": "change `a2a.url` for all threads",
        "template": "it receives the messages unchanged",
        "mode": "it decides itself when to ask",
    }
)
"""Keys that apply to agents with a model only, with the alternative for remote agents."""


def cross_check(document: YamlDocument, mods: Collection[str] | None) -> None:
    """Report all inconsistencies. `mods` are the available mods; None accepts any name."""
    _check_names(document)
    _check_network(document)
    _check_members(document)
    _check_bridges(document)
    check_approvers(document)
    check_knowledge(document, (), document.data)
    if mods is not None:
        _check_mods(document, mods)
    for name, agent in _sections(document.data, "agents"):
        _check_agent(document, ("agents", name), agent)


def _sections(
    data: Mapping[str, JsonValue], key: str
) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    """The entries of a section that are maps."""
    for name, entry in _map(data.get(key)).items():
        if isinstance(entry, dict):
            yield name, entry


def _names(document: YamlDocument, key: str) -> list[str]:
    return list(_map(document.data.get(key)))


def _text(section: Mapping[str, JsonValue], key: str, default: str = "") -> str:
    value = section.get(key, default)
    return value if isinstance(value, str) else default


def _check_names(document: YamlDocument) -> None:
    """Report reserved names, and participants with the same name."""
    agents, humans = _names(document, "agents"), _names(document, "humans")
    bridges = _names(document, "bridges")
    for key, names in (("agents", agents), ("humans", humans), ("bridges", bridges)):
        for name in names:
            if is_id(name) and not is_participant_id(name):
                why = (
                    f"is reserved (like {', '.join(sorted(RESERVED_IDS))})"
                    if name in RESERVED_IDS
                    else "looks like a thread id (t1, t2, …, direct_…, channel_…, mod_…)"
                )
                document.report((key, name), f"'{name}' {why}: choose another name")
    for name in _names(document, "channels"):
        if is_id(name) and not is_channel_name(name):
            text = f"'{name}' looks like a thread id (direct_…, channel_…, mod_…)"
            document.report(("channels", name), f"{text}: choose another name")
    for name in set(agents) & set(humans):
        line = document.place(("agents", name)).line
        document.report(
            ("humans", name),
            f"'{name}' is already an agent (line {line}): names of participants must be unique",
        )


def _check_bridges(document: YamlDocument) -> None:
    """Report name clashes with bridges and their people, and missing or closed channels."""
    channels = dict(_sections(document.data, "channels"))
    bridges = _names(document, "bridges")
    for key in ("agents", "humans", "bridges"):
        for name in _names(document, key):
            other = [each for each in bridges if name.startswith(f"{each}-")]
            if key != "bridges" and name in bridges:
                other = [name]
            if other:
                text = f"'{name}' clashes with the bridge '{other[0]}': choose another name"
                document.report((key, name), text)
    for name, bridge in _sections(document.data, "bridges"):
        for channel in _map(bridge.get("channels")):
            loc = ("bridges", name, "channels", channel)
            if channel not in _names(document, "channels"):
                hint = nearest(channel, _names(document, "channels"))
                document.report(loc, f"{dotted(loc)}: there is no channel '{channel}'{hint}")
            elif isinstance(channels.get(channel, {}).get("members"), list):
                text = f"channel '{channel}' has a list of members, so the bridge cannot join"
                document.report(loc, f"{text}: remove `members`")
        kind = _text(bridge, "kind", "irc")
        if kind not in ("irc", "matrix") and split_spec(kind) is None:
            text = f"unknown kind of bridge '{kind}': expected irc, matrix or file.py:ClassName"
            document.report(("bridges", name, "kind"), text)


def _check_network(document: YamlDocument) -> None:
    network = _map(document.data.get("network"))
    _check_store(document, _text(network, "store", _DEFAULTS.store))
    loc = ("network", "listen")
    if loc in document.broken:
        return
    try:
        address = parse_address(_text(network, "listen", _DEFAULTS.listen))
    except ValueError as error:
        document.report(loc, str(error))
        return
    if _text(network, "auth", _DEFAULTS.auth) == "open" and not address.loopback:
        document.report(
            loc,
            f"{address} is reachable from other machines, and `auth: open` lets anyone join under "
            "any name: set `auth: tokens` (and run `hubbub tokens add <participant>`), or listen "
            f"on 127.0.0.1:{address.port}",
        )


def _check_store(document: YamlDocument, store: str) -> None:
    loc = ("network", "store")
    if store.startswith(POSTGRES) and store != POSTGRES:
        try:
            check_postgres_url(store)
        except ValueError as error:
            document.report(loc, f"the store is not a Postgres URL: {error}")
    elif not store.startswith(SQLITE) or store == SQLITE:
        expected = f"sqlite:<file>, {MEMORY_STORE} or {POSTGRES}<user>@<host>/<database>"
        text = f"'{without_password(store)}' is not a valid store: expected {expected}"
        document.report(loc, text)
    elif store != MEMORY_STORE:
        folder = Path(store.removeprefix(SQLITE)).parent
        if not folder.is_dir():
            document.report(loc, f"the store's folder {shown_path(folder)} does not exist")


def _check_members(document: YamlDocument) -> None:
    names = {*_names(document, "agents"), *_names(document, "humans")}
    for name, channel in _sections(document.data, "channels"):
        for place, member in texts(channel.get("members"), ("channels", name, "members")):
            if member not in names:
                document.report(
                    place,
                    f"channel '{name}' has the member '{member}', which is not in agents or "
                    f"humans{nearest(member, names)}",
                )


def _check_mods(document: YamlDocument, valid: Collection[str]) -> None:
    mods = document.data.get("mods")
    for n, entry in enumerate(mods) if isinstance(mods, list) else ():
        names = (
            [entry] if isinstance(entry, str) else list(entry) if isinstance(entry, dict) else []
        )
        if isinstance(entry, dict) and len(entry) != 1:
            document.report(("mods", n), "expected a mod's name, or a name with its settings")
        for name in names:
            if split_spec(name) is not None:
                _check_spec(document, ("mods", n), name, "ClassName")
            elif name not in valid:
                document.report(("mods", n), f"unknown mod '{name}'{nearest(name, valid)}")


def _check_agent(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    kind, class_ = _text(agent, "kind", "llm"), _text(agent, "class")
    if object_ := _text(agent, "object"):
        _check_spec(document, (*loc, "object"), object_, "name")
    if kind == "python":
        if class_:
            _check_spec(document, (*loc, "class"), class_, "ClassName")
        elif _left_out(agent, "class"):
            document.report(loc, f"{dotted(loc)} is a Python agent: it needs the key 'class'")
    elif kind == "acp":
        _check_acp(document, loc, agent)
    elif kind == "a2a":
        if _left_out(agent, "a2a"):
            text = "is a remote agent: it needs `a2a: {url: https://...}`"
            document.report(loc, f"{dotted(loc)} {text}")
        _check_ignored(document, loc, agent, _OF_A2A)
    elif kind == "program":
        if _left_out(agent, "command"):
            text = "is a program: it needs the key 'command', for example `[node, agent.mjs]`"
            document.report(loc, f"{dotted(loc)} {text}")
        if agent.get("process") == "shared":
            document.report(
                (*loc, "process"), f"{dotted(loc)} is a program, which always has its own process"
            )
    elif kind == "llm" or kind in ROLES_OF:
        if class_:
            document.report((*loc, "class"), f"{dotted(loc)} has a class: add `kind: python`")
        else:
            _check_llm(document, loc, agent)
    if kind in ROLES_OF:
        _check_ignored(document, loc, agent, _OF_A_MODEL)
    _check_servers(document, loc, agent)
    check_knowledge(document, loc, agent)
    check_skills(document, loc, agent)
    channels = _names(document, "channels")
    for place, channel in texts(agent.get("channels"), (*loc, "channels")):
        if channel not in channels:
            text = f"there is no channel '{channel}'{nearest(channel, channels)}"
            document.report(place, text)
    for place, tool in texts(agent.get("tools"), (*loc, "tools")):
        if ":" in tool or ".py" in tool:
            _check_spec(document, place, tool, "function")
    _check_prompt(document, (*loc, "prompt"), agent.get("prompt"))
    for place, hook in texts(agent.get("hooks"), (*loc, "hooks")):
        _check_spec(document, place, hook, "ClassName")


def _check_acp(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    if agent.get("acp") is None and _left_out(agent, "acp"):
        text = f"{dotted(loc)} is a coding agent: it needs `acp: {{command: [opencode, acp]}}`"
        document.report(loc, text)
    folder = _map(agent.get("acp")).get("cwd")
    if isinstance(folder, str) and not Path(folder).is_dir():
        text = f"the workspace {shown_path(Path(folder))} does not exist: create the folder"
        document.report((*loc, "acp", "cwd"), text)
    _check_template(document, (*loc, "template"), _text(agent, "template"))
    _check_ignored(document, loc, agent, _OF_ACP)


def _check_prompt(document: YamlDocument, loc: Loc, prompt: JsonValue) -> None:
    """Report missing Python code in a prompt."""
    if isinstance(prompt, str) and split_spec(prompt) is None:
        text = f"{dotted(loc)} is not of the form file.py:name; for a text, use `instruction`"
        document.report(loc, text)
    elif isinstance(prompt, str):
        _check_spec(document, loc, prompt, "name")
    if builder := _text(_map(prompt), "builder"):
        _check_spec(document, (*loc, "builder"), builder, "name")
    parts = _map(_map(prompt).get("components"))
    for key in ("add", "replace"):
        for name, part in _sections(parts, key):
            if function := _text(part, "function"):
                place = (*loc, "components", key, name, "function")
                _check_spec(document, place, function, "function")


def _check_ignored(
    document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue], ignored: Mapping[str, str]
) -> None:
    """Report keys that would be ignored, unless they have their default value."""
    for key, instead in ignored.items():
        default = _AGENT_FIELDS[key].get_default(call_default_factory=True)
        if key in agent and agent[key] != default:
            text = f"`{key}` has no effect on {dotted(loc)}, which is of kind {agent['kind']}"
            document.report((*loc, key), f"{text}: {instead}")


def _check_servers(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    servers = _names(document, "mcp_servers")
    for place, server in texts(agent.get("mcp"), (*loc, "mcp")):
        if server not in servers:
            hint = nearest(server, servers) or "; add a section mcp_servers:"
            text = f"{dotted(loc)} uses the unknown MCP server '{server}'{hint}"
            document.report(place, text)


def _left_out(agent: Mapping[str, JsonValue], key: str) -> bool:
    """Whether a key is missing, not just misspelled or unreadable."""
    unknown = agent.keys() - _AGENT_KEYS
    return key not in agent and not any(closest(each, _AGENT_KEYS) == key for each in unknown)


def _check_llm(document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    models = _names(document, "models")
    _check_template(document, (*loc, "template"), _text(agent, "template"))
    _check_role_models(document, loc, agent, models)
    prompt = agent.get("prompt")
    has_prompt = isinstance(prompt, str) or {"name", "builder"} & {*_map(prompt)}
    if "rollout" in agent and ("object" in agent or has_prompt):
        text = f"{dotted(loc)} has no instruction of its own to roll out; see `prompt.rollout`"
        document.report((*loc, "rollout"), text)
    rolled_out = _map(agent.get("rollout")).get("model")
    if isinstance(rolled_out, str) and rolled_out not in models:
        text = f"{dotted(loc)} rolls out the unknown model '{rolled_out}'"
        hint = nearest(rolled_out, models)
        document.report((*loc, "rollout", "model"), text + hint)
    model = agent.get("model", "default")
    if not isinstance(model, str) or not _needs_model(agent):
        return  # reported by the schema or as a missing variable
    if "object" in agent and "model" not in agent:
        return  # the object sets it
    if model not in models and ("model" in agent or _left_out(agent, "model")):
        hint = (
            nearest(model, models)
            or "; add a section models: (`hubbub network doctor` suggests one)"
        )
        text = f"uses the unknown model '{model}'"
        if "model" not in agent:
            text = f"sets no model, and there is no model '{model}'"
        document.report((*loc, "model"), f"{dotted(loc)} {text}{hint}")


def _check_role_models(
    document: YamlDocument, loc: Loc, agent: Mapping[str, JsonValue], models: Collection[str]
) -> None:
    for role, model in _map(agent.get("models")).items():
        if isinstance(model, str) and model not in models:
            hint = nearest(model, models) or "; add a section models:"
            text = f"{dotted(loc)} uses the unknown model '{model}' for its {role}{hint}"
            document.report((*loc, "models", role), text)


def _needs_model(agent: Mapping[str, JsonValue]) -> bool:
    """Whether any role uses the agent's `model`."""
    kind, own = _text(agent, "kind", "llm"), _map(agent.get("models"))
    return "model" in agent or any(role not in own for role in ROLES_OF.get(kind, (kind,)))


def _check_template(document: YamlDocument, loc: Loc, template: str) -> None:
    if template and not Path(template).is_file():
        document.report(loc, f"the template {shown_path(Path(template))} does not exist")


def _check_spec(document: YamlDocument, loc: Loc, spec: str, noun: str) -> None:
    """Report a `file.py:Name` whose file is missing, invalid, or does not define the name."""
    parts = split_spec(spec)
    if parts is None:
        document.report(loc, f"{dotted(loc)}: '{spec}' is not of the form file.py:{noun}")
        return
    file, name = Path(parts[0]), parts[1]
    if not file.is_file():
        beside = file.parent.glob("*.py") if file.parent.is_dir() else ()
        match = closest(file.name, [p.name for p in beside])
        hint = f"; did you mean '{match}'?" if match else ""
        document.report(loc, f"the file {shown_path(file)} does not exist{hint}")
        return
    try:
        defined = _defined(file)
    except SyntaxError as error:
        where = shown_path(file) + (f":{error.lineno}" if error.lineno else "")
        document.report(loc, f"{where} is not valid Python: {error.msg}")
    except ValueError as error:  # null bytes, before Python 3.11.4
        document.report(loc, f"{shown_path(file)} is not valid Python: {error}")
    except OSError as error:
        document.report(loc, f"cannot read the file {shown_path(file)}: {error}")
    else:
        if defined is not None and name not in (*defined, EVERY):
            hint = nearest(name, (d for d in defined if not d.startswith("_")))
            document.report(loc, f"{shown_path(file)} does not define '{name}'{hint}")


def _defined(file: Path) -> set[str] | None:
    """The top-level names of a module; None if they cannot be determined without running it.

    Raises `SyntaxError`, `OSError`, or `ValueError` if the file is not text.
    """
    names: set[str] = set()
    for node in ast.parse(file.read_bytes(), filename=str(file)).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.Assign() | ast.AnnAssign():
                names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            case ast.Expr() | ast.Pass():
                pass
            case _:
                return None
    return None if "*" in names else names
