"""The parts of the pages about the protocol and its operations."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from enum import Enum

from pydantic import BaseModel

from generating.models import fields, models_of, section
from generating.tables import docs_of_members, docstring, table
from hubbub.config.models import Limits
from hubbub.mods.operation import Operation
from hubbub.network.exposition import Exposition
from hubbub.network.metrics import HubMetrics
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.network.wakes import SENTENCES
from hubbub.protocol import (
    admin,
    agents,
    codes,
    control,
    frames,
    memory,
    messages,
    operations,
    spending,
    thread_ids,
    turns,
)
from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect
from hubbub.protocol.wire import WELCOME, SessionState

__all__ = ["operations_parts", "protocol_parts"]

LIMITS = Limits()
ELSEWHERE = frozenset(messages.__all__ + turns.__all__)
"""Models that the page of the protocol describes."""
SPEECH = list(operations.Speech.model_fields)


def protocol_parts() -> dict[str, str]:
    sent: list[type[BaseModel]] = [frames.Identify, frames.Call, frames.Ack, frames.Signal]
    got: list[type[BaseModel]] = [
        frames.Hello, frames.Ready, frames.Result, frames.ErrorFrame, frames.Event,
        frames.Reconnect,
    ]  # fmt: skip
    data: list[type[BaseModel]] = [
        messages.Message, messages.RequestMark, messages.Amendment, messages.Quote,
        messages.NewQuote, messages.Attachment, messages.NewAttachment, messages.Wake,
        messages.PendingWake, messages.ThreadSummary, messages.Participant, messages.Card,
        messages.Channel, messages.OperationInfo, frames.Cursor, frames.LimitsInfo,
    ]  # fmt: skip
    record: list[type[BaseModel]] = [
        turns.TurnStart, turns.PromptParts, turns.Step, turns.ToolCallRecord, turns.ChangedCall,
        turns.Compressed, turns.Window, turns.Layer, turns.Steering, turns.TurnEnd, turns.Turn,
    ]  # fmt: skip
    return {
        "client_frames": "\n\n".join(map(_frame, sent)),
        "hub_frames": "\n\n".join(map(_frame, got)),
        "data_models": "\n\n".join(map(section, data)),
        "turn_models": "\n\n".join(map(section, record)),
        "error_codes": _error_codes(),
        "close_codes": _close_codes(),
        "session_table": _session_table(),
        "thread_ids": f"```text\n{_thread_ids()}\n```",
        "reserved_ids": ", ".join(f"`{name}`" for name in sorted(thread_ids.RESERVED_IDS)),
        "wake_reasons": table(
            ("reason", "why a message wakes or does not wake an agent"),
            [(f"`{reason.value}`", text) for reason, text in SENTENCES.items()],
        ),
        "metrics": _metrics(),
        "unacknowledged": str(LIMITS.unacknowledged),
        "unsent_for": f"{LIMITS.unsent_for:g} s",
        "unsent": f"{LIMITS.unsent // 1024**2} MiB",
    }


def _frame(model: type[BaseModel]) -> str:
    op = model.model_fields["op"].default
    paragraphs = (inspect.getdoc(model) or "").split("\n\n")
    told = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    text = re.sub(r"^(hub|client|both): ", "", told)
    table = fields(model, given=docstring(model).startswith(("client", "both")), skip=["op"])
    return f"### `{op}`\n\n{text[0].upper()}{text[1:]}\n\n{table}"


def _error_codes() -> str:
    told = docs_of_members(codes, "ErrorCode")
    return table(
        ("code", "meaning"),
        [(f"`{code.value}`", told.get(code.name, "")) for code in ErrorCode],
    )


def _close_codes() -> str:
    told = docs_of_members(codes, "CloseCode")
    return table(
        ("code", "name", "come back?", "meaning"),
        [
            (str(code.value), _words(code), "yes" if may_reconnect(code) else "no",
             told.get(code.name, ""))
            for code in CloseCode
        ],
    )  # fmt: skip


def _words(member: Enum) -> str:
    return member.name.lower().replace("_", " ")


def _session_table() -> str:
    told = docs_of_members(sys.modules[SessionState.__module__], "SessionState")
    return table(
        ("state", "allowed frames", "meaning"),
        [
            (
                _words(state),
                ", ".join(f"`{op}`" for op in sorted(WELCOME[state])) or "none",
                told.get(state.name, ""),
            )
            for state in SessionState
        ],
    )


def _thread_ids() -> str:
    text = inspect.getdoc(thread_ids) or ""
    lines = text.split("\n\n")[1].splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines)


def _metrics() -> str:
    rows = []
    for metric in Exposition(HubMetrics()).collect():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        rows.append((f"`{name}`", metric.type, metric.documentation))
    return table(("metric", "type", "meaning"), rows)


def operations_parts() -> dict[str, str]:
    declared = sorted(CORE_OPERATIONS, key=lambda each: each.name)
    tools = [op for op in declared if op.tool]
    others = [op for op in declared if not op.tool]
    inputs = [op.input for op in declared]
    outputs = _described_here(_models_of([op.output for op in declared]))
    parts = _described_here(m for m in _models_of(inputs) if m not in (*inputs, *outputs))
    return {
        "operation_list": table(
            ("operation", "permission", "what it does"),
            [(f"[`{o.name}`](#{o.name})", o.permission, o.description) for o in declared],
        ),
        "tool_operations": "\n\n".join(map(_operation, tools)),
        "program_operations": "\n\n".join(map(_operation, others)),
        "speech": fields(operations.Speech),
        "operation_parts": "\n\n".join(map(section, parts)),
        "operation_results": "\n\n".join(map(section, outputs)),
    }


def _models_of(roots: Sequence[type[BaseModel]]) -> list[type[BaseModel]]:
    modules = (operations, memory, control, spending, admin, agents)
    return [model for module in modules for model in models_of(*roots, module=module)]


def _described_here(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    return [model for model in models if model.__name__ not in ELSEWHERE]


def _operation(operation: Operation) -> str:
    output = operation.output.__name__
    page = "protocol.md" if output in ELSEWHERE else ""
    own = [name for name in operation.input.model_fields if name not in SPEECH]
    takes = fields(operation.input, skip=SPEECH) if own else "It takes no arguments."
    if SPEECH[0] in operation.input.model_fields:
        optional = "optional fields of every message"
        takes += f"\n\nAlso the [{optional}](#{optional.replace(' ', '-')})."
    return (
        f"### {operation.name}\n\n{operation.description}\n\n"
        f"Permission: {operation.permission}. Result: [{output}]({page}#{output.lower()}).\n\n"
        f"{takes}"
    )
