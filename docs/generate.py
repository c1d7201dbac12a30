"""Writes docs/reference/*.md from the code: `make docs`. tests/unit/test_docs.py holds them to it.

Everything that can be derived is derived: models, codes, operations, config, commands, metrics, the
prompt. The words around it stand in docs/reference/templates/*.md, `{{ name }}` for each part.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from pydantic import BaseModel

from hubbub.agents import loop
from hubbub.agents.agent import Agent
from hubbub.agents.inbox import MOST_INCOMING
from hubbub.agents.prompt import escape
from hubbub.agents.prompt.render import ConversationTemplate, ThreadView
from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.function import tool
from hubbub.cli.app import app
from hubbub.cli.chat.commands import COMMANDS
from hubbub.config import models as config_models
from hubbub.config.models import Limits, NetworkFile
from hubbub.mods.loader import known_mods
from hubbub.mods.operation import Operation
from hubbub.network.metrics import HubMetrics
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.network.wakes import SENTENCES
from hubbub.protocol import codes, frames, messages, operations, thread_ids, turns
from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect
from hubbub.protocol.session import WELCOME, SessionState
from hubbub.testing import model_script
from hubbub.testing.model_request import parse_request

__all__ = ["pages"]

HERE = Path(__file__).parent
TEMPLATES = HERE / "reference" / "templates"

WIDTH = 88
"""Columns of a command's help."""
LIMITS = Limits()
ELSEWHERE = frozenset(messages.__all__ + turns.__all__)
"""Models that the page of the protocol describes."""
SPEECH = list(operations.Speech.model_fields)

Schema = dict[str, Any]  # JSON Schema, walked with the checks that its kinds need


def pages() -> dict[Path, str]:
    """All generated pages, by path."""
    parts = {**_protocol(), **_operations(), **_config(), **_cli(), **_prompt()}
    parts |= {**_python(), **_model_server()}
    return {
        HERE / "reference" / template.name: _filled(template.read_text("utf-8"), parts)
        for template in sorted(TEMPLATES.glob("*.md"))
    }


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]].strip("\n"), template)


# Tables ----------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _docstring(thing: object) -> str:
    """The docstring's first paragraph as one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _docs_of_members(module: ModuleType, class_name: str) -> dict[str, str]:
    """The strings below the members of a class, which Python itself does not keep."""
    tree = ast.parse(inspect.getsource(module))
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found: dict[str, str] = {}
    for statement, following in pairwise(body):
        if not isinstance(statement, ast.Assign) or not isinstance(following, ast.Expr):
            continue
        name, text = statement.targets[0], following.value
        if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
            found[name.id] = " ".join(str(text.value).split())
    return found


# Models ----------------------------------------------------------------------------------------


def _fields(model: type[BaseModel], *, given: bool = True, skip: Sequence[str] = ()) -> str:
    """A table of a model's fields; `given`: by the reader, who wants to know the defaults."""
    schema = model.model_json_schema(by_alias=True)
    must = schema.get("required", [])
    rows = []
    for name, field in schema.get("properties", {}).items():
        if name not in skip:
            default = "required" if name in must else _default(field)
            meaning = field.get("description", "")
            rows.append((f"`{name}`", _type(field, schema), default, meaning))
    if given:
        return _table(("field", "type", "default", "meaning"), rows)
    return _table(
        ("field", "type", "meaning"), [(name, kind, text) for name, kind, _, text in rows]
    )


def _default(field: Schema) -> str:
    value = field.get("default")
    if value is None or value == "" or isinstance(value, list | dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    unit = _unit(field)
    if unit == "size" and value % 1024 == 0:
        return f"`{value // 1024}KiB`" if value < 1024**2 else f"`{value // 1024**2}MiB`"
    return f"`{value:g}s`" if unit == "span" else f"`{value}`"


def _unit(field: Schema) -> str:
    """`size` or `span` for values that may be written with a unit."""
    patterns = [option.get("pattern", "") for option in field.get("anyOf", [])]
    if any("KiB" in pattern for pattern in patterns):
        return "size"
    return "span" if any("|ms|" in pattern for pattern in patterns) else ""


def _type(field: Schema, root: Schema) -> str:
    """A JSON Schema in words."""
    match field:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            target = root.get("$defs", {}).get(name, {})
            return str(name) if target.get("type") == "object" else _type(target, root)
        case {"const": value}:
            return f"`{value}`"
        case {"enum": list(values)}:
            return " or ".join(f"`{value}`" for value in values)
        case {"anyOf": list(options)} if _unit(field):
            return "a size: bytes, or `256KiB`" if _unit(field) == "size" else "a time: s, or `10m`"
        case {"oneOf": list(options)}:
            return " or ".join(_type(option, root) for option in options)
        case {"anyOf": list(options)}:
            kinds = [_type(option, root) for option in options if option != {"type": "null"}]
            return " or ".join(dict.fromkeys(kinds))
        case {"type": "array"}:
            return f"list of {_type(field.get('items', {}), root)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"map to {_type(values, root)}"
        case {"type": "object", "patternProperties": dict(patterns)}:
            return f"map to {_type(next(iter(patterns.values())), root)}"
        case {"type": "string", "format": "date-time" | "regex" as kind}:
            return "time (RFC 3339)" if kind == "date-time" else "pattern"
        case {"type": "string"}:
            return "text" + _bounds(field, "Length", " characters")
        case {"type": "integer" | "number" as kind}:
            return f"{kind}{_bounds(field, 'imum', '')}"
        case {"type": str(kind)}:
            return kind
        case _:
            return "any JSON"


def _bounds(field: Schema, kind: str, unit: str) -> str:
    low, high = field.get(f"min{kind}"), field.get(f"max{kind}")
    above = field.get("exclusiveMinimum")
    if field.get("pattern") == thread_ids.ID_PATTERN:
        return " (an id)"
    if kind == "Length" and "pattern" in field:
        return f" like `{field['pattern']}`"
    if above is not None:
        return f" over {above}"
    if low is not None and high is not None and high < 2**60:
        return f" ({low} to {high}{unit})"
    if low == 1 and kind == "Length":
        return " (not empty)"
    if low is not None:
        return f" (at least {low}{unit})"
    return f" (at most {high}{unit})" if high is not None and high < 2**60 else ""


def _models_of(*roots: type[BaseModel], module: ModuleType) -> list[type[BaseModel]]:
    """The models that the roots are made of and that `module` defines, roots included."""
    names = [root.__name__ for root in roots]
    for root in roots:
        names += root.model_json_schema().get("$defs", {})
    found = [getattr(module, name, None) for name in dict.fromkeys(names)]
    return [model for model in found if isinstance(model, type) and issubclass(model, BaseModel)]


def _section(model: type[BaseModel]) -> str:
    """A model that the reader is sent."""
    own = _docstring(model) if "__doc__" in vars(model) else ""
    return (
        f"### {model.__name__}\n\n{own + chr(10) * 2 if own else ''}{_fields(model, given=False)}"
    )


# Pages -----------------------------------------------------------------------------------------


def _protocol() -> dict[str, str]:
    sent: list[type[BaseModel]] = [frames.Identify, frames.Call, frames.Ack, frames.Signal]
    got: list[type[BaseModel]] = [
        frames.Hello, frames.Ready, frames.Result, frames.ErrorFrame, frames.Event,
        frames.Reconnect,
    ]  # fmt: skip
    data: list[type[BaseModel]] = [
        messages.Message, messages.Quote, messages.Attachment, messages.Wake, messages.PendingWake,
        messages.ThreadSummary, messages.Participant, messages.Card, messages.Channel,
        messages.OperationInfo, frames.Cursor, frames.LimitsInfo,
    ]  # fmt: skip
    record: list[type[BaseModel]] = [
        turns.TurnStart, turns.Step, turns.ToolCallRecord, turns.TurnEnd, turns.Turn
    ]  # fmt: skip
    return {
        "client_frames": "\n\n".join(map(_frame, sent)),
        "hub_frames": "\n\n".join(map(_frame, got)),
        "data_models": "\n\n".join(map(_section, data)),
        "turn_models": "\n\n".join(map(_section, record)),
        "error_codes": _error_codes(),
        "close_codes": _close_codes(),
        "session_table": _session_table(),
        "thread_ids": f"```text\n{_thread_ids()}\n```",
        "reserved_ids": ", ".join(f"`{name}`" for name in sorted(thread_ids.RESERVED_IDS)),
        "wake_reasons": _table(
            ("reason", "a message does or does not wake an agent, because"),
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
    table = _fields(model, given=_docstring(model).startswith(("client", "both")), skip=["op"])
    return f"### `{op}`\n\n{text[0].upper()}{text[1:]}\n\n{table}"


def _error_codes() -> str:
    told = _docs_of_members(codes, "ErrorCode")
    return _table(
        ("code", "meaning"),
        [(f"`{code.value}`", told.get(code.name, "")) for code in ErrorCode],
    )


def _close_codes() -> str:
    told = _docs_of_members(codes, "CloseCode")
    return _table(
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
    told = _docs_of_members(sys.modules[SessionState.__module__], "SessionState")
    return _table(
        ("state", "frames that are welcome", "meaning"),
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
    for metric in HubMetrics().collect():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        rows.append((f"`{name}`", metric.type, metric.documentation))
    return _table(("metric", "type", "meaning"), rows)


def _operations() -> dict[str, str]:
    tools = [op for op in CORE_OPERATIONS if op.tool]
    others = [op for op in CORE_OPERATIONS if not op.tool]
    outputs = _models_of(*(op.output for op in CORE_OPERATIONS), module=operations)
    outputs = [model for model in outputs if model.__name__ not in ELSEWHERE]
    return {
        "operation_list": _table(
            ("operation", "permission", "what it does"),
            [(f"[`{o.name}`](#{o.name})", o.permission, o.description) for o in CORE_OPERATIONS],
        ),
        "tool_operations": "\n\n".join(map(_operation, tools)),
        "program_operations": "\n\n".join(map(_operation, others)),
        "speech": _fields(operations.Speech),
        "operation_results": "\n\n".join(map(_section, outputs)),
    }


def _operation(operation: Operation) -> str:
    output = operation.output.__name__
    page = "protocol.md" if output in ELSEWHERE else ""
    own = [name for name in operation.input.model_fields if name not in SPEECH]
    takes = _fields(operation.input, skip=SPEECH) if own else "It takes no arguments."
    if SPEECH[0] in operation.input.model_fields:
        takes += "\n\nAlso what [every message](#what-every-message-may-carry) may carry."
    return (
        f"### {operation.name}\n\n{operation.description}\n\n"
        f"Permission: {operation.permission}. Result: [{output}]({page}#{output.lower()}).\n\n"
        f"{takes}"
    )


def _config() -> dict[str, str]:
    parts = {}
    for model in _models_of(NetworkFile, module=config_models):
        parts[f"config_{model.__name__.lower()}"] = _fields(model)
    parts["config_card"] = _fields(messages.Card)
    parts["mod_list"] = "\n\n".join(
        f"### {name}\n\n{_docstring(mod)}\n\n{_fields(mod.Config)}"
        for name, mod in sorted(known_mods().items())
    )
    return parts


def _prompt() -> dict[str, str]:
    def said(seq: int, thread: str, sender: str, text: str) -> messages.Message:
        return messages.Message.model_validate(
            {
                "id": f"m{seq}", "seq": seq, "tseq": seq, "thread_id": thread, "content": text,
                "sender_id": sender, "sender_kind": "agent" if sender == "host" else "human",
                "type": "direct", "interaction_id": f"i{seq}", "hop": 0,
                "sent_at": f"2026-01-05T12:00:{seq:02}Z",
            }
        )  # fmt: skip

    with_ann, with_bob = thread_ids.direct(["ann", "host"]), thread_ids.direct(["bob", "host"])
    threads = {
        "direct_ann": (said(1, with_ann, "ann", "soup?"), said(2, with_ann, "host", "noted")),
        "direct_bob": (said(3, with_bob, "bob", "</content> & more"),),
    }
    conversation = ConversationTemplate.shipped().render(
        {name: ThreadView(name, said) for name, said in threads.items()},
        "direct_ann",
        [said(4, with_ann, "ann", "what do people want?")],
    )
    cases = (inspect.getdoc(escape) or "").split("\n\n")[2]
    steps = (inspect.getdoc(loop) or "").split("\n\n")[3]
    return {
        "system_prompt": system_prompt("You organise lunch.", "host", "lunch"),
        "conversation": conversation,
        "most_incoming": str(MOST_INCOMING),
        "escaping": cases,
        "loop": "\n".join(line.removeprefix("    ") for line in steps.splitlines()),
    }


def _python() -> dict[str, str]:
    about = _paragraphs(Agent)
    methods = {n: f for n, f in vars(Agent).items() if inspect.isfunction(f) and n[0] != "_"}
    handlers = [(n, f) for n, f in methods.items() if n.startswith("on_")]
    others = [(n, f) for n, f in methods.items() if not n.startswith("on_")]
    own = [(n, v) for n, v in vars(messages.Message).items() if isinstance(v, property)]
    return {
        "agent_about": "\n\n".join(about[1:-1]),
        "agent_attributes": _table(("attribute", "meaning"), _columns(about[-1])),
        "agent_handlers": _table(
            ("handler", "what has happened"),
            [(f"`{_call(n, f, own=True)}`", " ".join(_paragraphs(f))) for n, f in handlers],
        ),
        "message_properties": "\n".join(f"* `.{n}` {_docstring(value)}" for n, value in own),
        "agent_methods": "\n\n".join(_function(f"self.{n}", f) for n, f in others),
        "tool_decorator": _function("@tool", tool),
        "tool_failed": _function("ToolFailed", ToolFailed),
    }


def _function(name: str, function: Callable[..., object]) -> str:
    """A function with its arguments; the columns of its docstring become a table."""
    told = [
        _table(("argument", "meaning"), _columns(text)) if _is_columns(text) else text
        for text in _paragraphs(function)
    ]
    shown = f"```text\n{_call(name, function)}\n```"
    return "\n\n".join([f"### {name.removeprefix('self.')}", shown, *told])


def _call(name: str, function: Callable[..., object], *, own: bool = False) -> str:
    """How a function is written: its arguments with their types, and what it gives."""
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name not in ("self", "function")]
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=given)))
    if own or function in (tool, ToolFailed):  # what these give is told in words
        text = text.rpartition(" -> ")[0] or text
    return f"await {name}{text}" if inspect.iscoroutinefunction(function) else f"{name}{text}"


def _paragraphs(thing: object) -> list[str]:
    """A docstring's paragraphs, each on one line but for columns."""
    found = (inspect.getdoc(thing) or "").split("\n\n")
    return [text if _is_columns(text) else " ".join(text.split()) for text in found]


def _is_columns(text: str) -> bool:
    return all(re.match(r"\w+ {2,}\S", line) for line in text.splitlines())


def _columns(text: str) -> list[tuple[str, str]]:
    """`name   meaning` on each line."""
    pairs = (line.split(maxsplit=1) for line in text.splitlines())
    return [(f"`{name}`", meaning) for name, meaning in pairs]


def _model_server() -> dict[str, str]:
    shapes: dict[str, type[BaseModel]] = {
        "script": model_script.Script, "rule": model_script.Rule, "when": model_script.When,
        "answer": model_script.Answer, "call": model_script.Call, "usage": model_script.Usage,
        "refusal": model_script.Refusal, "breakdown": model_script.Breakdown,
    }  # fmt: skip
    nothing = parse_request({"model": "", "messages": [{"role": "user"}]}, {}, 0.0)
    return {
        **{f"{name}_fields": _fields(model) for name, model in shapes.items()},
        **{f"{name}_about": _docstring(model) for name, model in shapes.items()},
        "script_example": (TEMPLATES / "script.yaml").read_text("utf-8"),
        "script_words": ", ".join(f"`{word}`" for word in nothing.words()),
        "place": "{{ name }}",
    }


def _cli() -> dict[str, str]:
    root: Any = typer.main.get_command(app)  # of typer's own classes
    context = root.context_class(
        root, info_name="hubbub", terminal_width=WIDTH, **root.context_settings
    )
    return {
        "commands": "\n\n".join(_commands(context)),
        "chat_commands": _table(
            ("command", "what it does"),
            [(f"`{spec.usage}`", spec.help) for spec in COMMANDS.values()],
        ),
    }


def _commands(context: Any) -> Iterator[str]:
    """The help of a command and of all below it (the classes are typer's own, hence Any)."""
    command, path = context.command, context.command_path
    level = "##" if path.count(" ") < 2 else "###"
    yield f"{level} {path}\n\n```text\n{command.get_help(context).rstrip()}\n```"
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(
            below.context_class(below, info_name=name, parent=context, terminal_width=WIDTH)
        )


def main() -> None:
    """Write the pages that have changed."""
    for path, text in pages().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"wrote {path.relative_to(HERE.parent)}")  # noqa: T201  a program's output


if __name__ == "__main__":
    main()
