"""Whether there is somebody who may decide about approvals; checked with the file."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.config.explain import dotted
from hubbub.config.problems import nearest
from hubbub.config.source import Document, Loc

__all__ = ["check_approvers"]


def check_approvers(document: Document) -> None:
    """Report approvers who are nobody, and tools that nobody could ever approve."""
    network = _map(document.data.get("network"))
    people = _map(document.data.get("humans"))
    asked = _map(network.get("approvals")).get("approvers")
    _check_names(document, ("network", "approvals", "approvers"), asked, people)
    for name, agent in _map(document.data.get("agents")).items():
        loc = ("agents", name)
        own = _map(agent).get("approvers")
        _check_names(document, (*loc, "approvers"), own, people)
        if not (own or asked or _has_owner(people) or network.get("auth") == "open"):
            _check_confirmed(document, loc, _map(agent))


def _check_names(
    document: Document, loc: Loc, named: JsonValue, people: Mapping[str, JsonValue]
) -> None:
    for n, name in enumerate(named) if isinstance(named, list) else ():
        if isinstance(name, str) and name not in people:
            agents = _map(document.data.get("agents"))
            hint = nearest(name, people) or "; add a section humans:"
            if name in agents:
                hint = f"; it is an agent (line {document.place(('agents', name)).line})"
            text = f"{dotted(loc)} names '{name}', who is no person of humans{hint}"
            document.report((*loc, n), text)


def _has_owner(people: Mapping[str, JsonValue]) -> bool:
    for person in people.values():
        roles = _map(person).get("roles")
        if isinstance(roles, list) and "owner" in roles:
            return True
    return False


def _check_confirmed(document: Document, loc: Loc, agent: Mapping[str, JsonValue]) -> None:
    for tool, settings in _map(agent.get("tool_settings")).items():
        if _map(settings).get("confirm") in (True, "tainted"):
            document.report(
                (*loc, "tool_settings", tool, "confirm"),
                f"nobody could ever approve the calls of {tool}: give a person in humans the role "
                "owner, or name some in network.approvals.approvers",
            )


def _map(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
