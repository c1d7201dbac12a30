"""Calls under other names: what a model calls a tool, and its arguments, in the tool's own names.
Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from pydantic import JsonValue

from hubbub.agents.models.base import Answer, CallRequest, ToolSpec
from hubbub.agents.turn.recording import read_arguments
from hubbub.config.agents import Aliases

__all__ = ["renamed"]


def renamed(answer: Answer, aliases: Aliases, tools: Iterable[ToolSpec]) -> Answer:
    """The answer with the tools' own names. An argument that the tool has itself is no alias, nor
    is one beside which its meaning is given."""
    names, fields = aliases.all_names, aliases.all_fields
    if not answer.calls or not (names or fields):
        return answer
    known = {tool.name: tool.parameters.get("properties") for tool in tools}
    calls: list[CallRequest] = []
    for call in answer.calls:
        name = names.get(call.name, call.name)
        own = known.get(name)
        given = _object(call.arguments)
        if given is not None:
            meant = {f: fields[f] for f in given if f in fields and fields[f] not in given}
            if isinstance(own, dict):
                meant = {alias: field for alias, field in meant.items() if alias not in own}
            if meant:
                said = {meant.get(field, field): value for field, value in given.items()}
                call = replace(call, arguments=json.dumps(said, ensure_ascii=False))
        calls.append(replace(call, name=name))
    return replace(answer, calls=tuple(calls))


def _object(arguments: str) -> dict[str, JsonValue] | None:
    """The arguments; None: they are none that can be read, which is told as ever."""
    try:
        return read_arguments(arguments)
    except ValueError:
        return None
