"""The page of the public Python API: every public name of `hubbub`, with its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import hubbub
from generating.agents import told
from generating.tables import docs_of_fields, docstring, table
from hubbub.agents.llm_agent import LlmAgent
from hubbub.config.models import AgentConfig, ModelConfig, NetworkConfig, NetworkFile
from hubbub.embed.network import Network
from hubbub.field_docs import descriptions
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.model_server import ModelServer
from hubbub.testing.network import LocalNetwork

__all__ = ["public_api_parts"]

_MORE = {
    "Agent": "python.md#handlers",
    "Message": "protocol.md#message",
    "ToolFailed": "python.md#toolfailed",
    "tool": "python.md#tool",
}
"""Names that are described further on another page."""
_OWN = {
    "agents": "The network's agents.",
    "approve": "Decides about calls that need approval; by default, people decide.",
    "folder": "The base of relative paths.",
    "people": "People registered before they join: names, or sections by name.",
    "name": "The network's name.",
    "output": "The type of all its answers; default: text.",
}
"""Arguments without a YAML key of the same name."""


def public_api_parts() -> dict[str, str]:
    names = [name for name in hubbub.__all__ if name[0] != "_"]
    testing = (ModelServer, LocalNetwork, mod_contract)
    return {
        "public_api": "\n\n".join(_entry(name, getattr(hubbub, name)) for name in names),
        "testing_api": "\n\n".join(_entry(thing.__name__, thing, "###") for thing in testing),
    }


def _entry(name: str, thing: object, heading: str = "##") -> str:
    parts = [f"{heading} {name}", _about(thing)]
    if thing is LlmAgent:
        parts.append(
            _arguments(LlmAgent, {**descriptions(ModelConfig), **descriptions(AgentConfig)})
        )
    elif thing is Network:
        known = {**descriptions(NetworkFile), **descriptions(NetworkConfig)}
        parts.append(_arguments(Network, known))
    elif name in _MORE:
        parts.append(f"[More]({_MORE[name]}).")
    elif is_dataclass(thing):
        texts = docs_of_fields(inspect.getmodule(thing), name)
        rows = [(f"`{f.name}`", texts.get(f.name, "")) for f in fields(thing)]
        rows += [(f"`{n}`", docstring(v)) for n, v in _members(thing, property)]
        parts.append(table(("attribute", "meaning"), rows) if rows else "")
    if inspect.isclass(thing) and not issubclass(thing, Exception) and name not in _MORE:
        parts += [_method(n, v) for n, v in _members(thing, type(_entry))]
    return "\n\n".join(filter(None, parts))


def _about(thing: object) -> str:
    return "\n\n".join(told(thing, "attribute"))


def _arguments(kind: type, known: Mapping[str, str]) -> str:
    rows = []
    for name, parameter in inspect.signature(kind).parameters.items():
        shown = re.sub(r" \| None$", "", str(parameter.annotation).strip("'"))
        meaning = _OWN.get(name) or known[name]
        rows.append((f"`{name}`", f"`{shown}`", meaning))
    return table(("argument", "type", "meaning"), rows)


def _members(thing: object, kind: type) -> Iterator[tuple[str, object]]:
    return ((n, v) for n, v in vars(thing).items() if n[0] != "_" and isinstance(v, kind))


def _method(name: str, method: object) -> str:
    assert inspect.isfunction(method)
    signature = inspect.signature(method)
    given = [p for p in signature.parameters.values() if p.name != "self"]
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=given)))
    wait = "await " if inspect.iscoroutinefunction(method) else ""
    return f"```text\n{wait}{name}{shown}\n```\n\n{_about(method)}"
