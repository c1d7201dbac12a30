"""Commands for people: one table for the shell and the chat, generated from operations.

Each operation of a mod gets a command automatically: `assign_task` becomes `tasks assign`, with the
operation's input as arguments and options, its description as help, and its output shown by shape.
The modules of `groups` define the exceptions: another name, a better view, several calls.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from inspect import get_annotations
from typing import Any

from pydantic import BaseModel, JsonValue

from hubbub.errors import UserError
from hubbub.people.client import PersonClient
from hubbub.people.figures import CommandSyntax
from hubbub.people.parameters import OperationSpec, Parameter, known_operations
from hubbub.people.shown import CommandResult, NoteLine, by_shape, listing

__all__ = [
    "CHAT",
    "GROUPS",
    "THREADS",
    "Command",
    "Given",
    "all_commands",
    "commands_in",
    "find_command",
    "in_commands",
    "mod_commands",
    "perform",
    "remember",
]

Given = Mapping[str, JsonValue]
Show = Callable[[Any, PersonClient], list[NoteLine]]
"""Formats an answer. Any: each function takes the output model of its operation, which its
signature names and the answer is validated as."""
Do = Callable[
    [PersonClient, dict[str, Any]], Awaitable[CommandResult]
]  # Any: typed by the parameters
SHORT = 58
"""Columns of a help text in a list."""
THREADS = frozenset({"thread", "threads"})
"""Arguments that name threads, in any form people type."""


@dataclass(frozen=True)
class Command:
    """A command of the shell (`hubbub tasks list`) and of the chat (`/tasks list`)."""

    path: str
    operation: str = ""
    """The operation it needs: a network without it does not have the command."""
    show: Show | None = None
    """Formats the answer; None: by its shape."""
    columns: tuple[str, ...] = ()
    """For a list: the columns that `listing` shows."""
    do: Do | None = None
    """Runs the command; None: a single call."""
    about: str = ""
    """The help; empty: the operation's description."""
    order: tuple[str, ...] | None = None
    """Positional parameters in this order, as `name?` if optional; None: the required ones."""
    without: tuple[str, ...] = ()
    """Parameters of the operation that it does not take."""
    fixed: Given = field(default_factory=dict)
    """Arguments that it always passes."""
    more: tuple[Parameter, ...] = ()
    """Parameters that it takes in addition."""
    operator: bool = False
    """Whether the shell runs it as the operator, unless --as is given."""
    here: bool = False
    """Whether the thread defaults to the open one in a chat."""
    where: str = "both"
    """shell, chat or both."""
    spec: OperationSpec | None = None
    """The spec of an operation of a third-party mod."""

    @property
    def word(self) -> str:
        return self.path.rpartition(" ")[2]

    @cached_property
    def described(self) -> OperationSpec:
        return self.spec or known_operations().get(self.operation) or OperationSpec("", "")

    @property
    def help(self) -> str:
        return self.about or self.described.sentence

    @property
    def short(self) -> str:
        """The help, shortened for a list."""
        short = self.help
        for end in ("[.] ", "[.:;] ", "[.:;,] "):  # commas last: they also separate list items
            if len(short) > SHORT:
                short = re.split(end, short)[0].removesuffix(".") + "."
        return short

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters, those in `order` first."""
        own = {p.name: p for p in (*self.described.parameters, *self.more)}
        for name in (*self.without, *self.fixed):
            own.pop(name, None)
        order = self.order or [name for name, p in own.items() if p.required]
        first = [(own.pop(name.rstrip("?")), not name.endswith("?")) for name in order]
        return (*(replace(p, required=required) for p, required in first), *own.values())

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that are typed without an option's name."""
        if self.order is not None:
            return self.parameters[: len(self.order)]
        return tuple(p for p in self.parameters if p.required)

    @property
    def answer(self) -> type[BaseModel] | None:
        """The model that `show` takes."""
        if self.show is None:
            return None
        shape = next(iter(get_annotations(self.show, eval_str=True).values()))
        assert isinstance(shape, type)
        return shape


@dataclass(frozen=True)
class Group:
    """Commands that start with the same word."""

    about: str
    section: str
    mods: tuple[str, ...] = ()
    """The mods whose operations are its commands."""


GROUPS: Mapping[str, Group] = {
    "messages": Group(
        "Read, search, edit and export messages.", "Talk",
        ("edits", "reactions", "search", "digest", "transcript"),
    ),
    "threads": Group("List, follow, mute, title and resolve threads.", "Talk", ("threads",)),
    "agents": Group(
        "List participants, find an agent for a task, speak for an agent, run one.", "Inspect",
        ("directory",),
    ),
    "turns": Group("Inspect what agents did, why, and what it cost.", "Inspect"),
    "stop": Group("Stop a turn; or a thread, an agent or everything, until resumed.", "Control"),
    "resume": Group("Resume a stopped thread, agent or everything.", "Control"),
    "approvals": Group("Approve or deny tool calls.", "Control"),
    "tasks": Group("Manage the tasks on boards (mod tasks).", "Workspace", ("tasks",)),
    "polls": Group("Create polls, vote, and see the results (mod polls).", "Workspace", ("polls",)),
    "files": Group("Upload, list and download files (mod files).", "Workspace", ("files",)),
    "documents": Group(
        "Read and write shared documents (mod documents).", "Workspace", ("documents",)
    ),
    "reminders": Group(
        "Set, pause and cancel reminders (mod schedule).", "Workspace", ("schedule",)
    ),
    "webhooks": Group(
        "Notify other programs, and be notified by them (mod webhooks).", "Workspace", ("webhooks",)
    ),
    "network": Group("Check, inspect and back up a network.", "Run", ("moderation",)),
}  # fmt: skip
"""Groups with commands generated from operations. A command of one word (`stop`) is its own
group."""
_MODULES = dict.fromkeys(("stop", "resume", "approvals", "network"), "control")
"""The modules of `groups` that define the commands of several groups, by group."""
INTERNAL = frozenset({
    "begin_upload", "upload_chunk", "upload_state", "finish_upload", "cancel_upload",
    "download_chunk", "list_reactions", "add_reaction", "remove_reaction", "mark_visit",
    "export_transcript", "import_transcript", "retract_vote", "list_agents",
})  # fmt: skip
"""Operations that only programs call, as part of another command."""


@cache
def commands_in(group: str) -> tuple[Command, ...]:
    """The commands of a group, those of its module first; empty if there is no such group."""
    if group not in GROUPS:
        return ()
    module = import_module(f"hubbub.people.groups.{_MODULES.get(group, group)}")
    own = [c for c in module.COMMANDS if c.path.partition(" ")[0] == group]
    taken = {c.operation for c in own}
    mods = GROUPS[group].mods
    others = [s for s in known_operations().values() if s.mod in mods and s.mod]
    others = [s for s in others if s.name not in taken]
    return (*own, *_generated(group, others))


def mod_commands(mod: str, specs: Iterable[OperationSpec]) -> tuple[Command, ...]:
    """The commands of a third-party mod, from the specs that the hub returns."""
    return tuple(replace(c, spec=s) for s in specs for c in _generated(mod, [s]))


def _generated(group: str, specs: Iterable[OperationSpec]) -> list[Command]:
    return [
        Command(f"{group} {_word(group, s.name)}", s.name)
        for s in specs
        if s.complete and s.name not in INTERNAL
    ]


def _word(group: str, operation: str) -> str:
    """`assign` for `assign_task` in `tasks`."""
    plain = {group, group.removesuffix("s")}
    words = [word for word in operation.split("_") if word not in plain]
    return "-".join(words or operation.split("_"))


@cache
def all_commands() -> tuple[Command, ...]:
    """The commands of all groups. Imports the models of all mods."""
    return tuple(command for group in GROUPS for command in commands_in(group))


def in_commands(message: str, typed: Callable[[str], str], *, chat: bool = False) -> str:
    """The hub's message with commands in place of operations, which it names for programs."""
    commands = [c for c in reversed(all_commands()) if c.where != "shell" or not chat]
    paths = {c.operation: c.path for c in commands if c.operation}
    if chat:
        paths |= {"join_channel": "join", "list_threads": "threads", "list_participants": "who"}

    def command(match: re.Match[str]) -> str:
        return f"`{typed(paths[match[0]])}`" if match[0] in paths else match[0]

    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", command, message)


# Running a command --------------------------------------------------------------------------------


async def perform(command: Command, person: PersonClient, given: Given) -> CommandResult:
    """Run a command. Raises `UserError` for unknown names, `OperationError` if the hub refuses."""
    args = {name: _resolved(person, command, name, value) for name, value in given.items()}
    if command.here and person.here and "thread" not in args:
        args["thread"] = person.state.current
    if command.do is not None:
        return await command.do(person, args)
    value = await person.call(command.operation, **command.fixed, **args)
    remember(person, value)
    return CommandResult(value, shown(command, value, person))


def shown(command: Command, value: JsonValue, person: PersonClient) -> list[NoteLine]:
    """An answer, formatted for its command."""
    if command.columns:
        pages = {"before", "after"} & {parameter.name for parameter in command.parameters}
        return listing(value, command.columns, person.shown, next(iter(pages), ""))
    shape = command.answer
    if command.show is None or shape is None:
        return by_shape(value, person.shown)
    return command.show(shape.model_validate(value), person)


_PROCESS_OPERATIONS = ("start_agent", "stop_agent", "restart_agent", "read_agent_log")
"""Operations for every program that the network starts, which includes bridges."""


def _resolved(person: PersonClient, command: Command, name: str, value: JsonValue) -> JsonValue:
    """The hub's id for a name that a person typed."""
    if name == "agent" and command.do is None:
        return person.agent(str(value), or_service=command.operation in _PROCESS_OPERATIONS)
    if name not in THREADS or value is None:
        return value
    if isinstance(value, list):
        return [person.thread(str(each)) for each in value]
    return person.thread(str(value))


def remember(person: PersonClient, value: JsonValue) -> None:
    """Remember the ids and names in an answer, for completion."""
    if isinstance(value, list):
        for each in value:
            remember(person, each)
    elif isinstance(value, dict):
        id = value.get("id")
        name = value.get("title") or value.get("question") or value.get("name")
        if isinstance(id, str) and isinstance(name, str) and re.fullmatch(r"[a-z][1-9]\d*", id):
            person.state.known_ids.note([(id, name)])
        for each in value.values():
            if isinstance(each, dict | list):
                remember(person, each)


def find_command(words: Sequence[str], commands: Iterable[Command]) -> tuple[Command, int] | None:
    """The command at the start of these words, and how many words name it. The group can be omitted
    if the rest is unambiguous, and a group alone means its list."""
    if not words:
        return None
    by_path = {command.path: command for command in commands}
    two, one = " ".join(words[:2]).lower(), words[0].lower()
    if two in by_path and len(words) > 1:
        return by_path[two], 2
    if one in by_path:
        return by_path[one], 1
    if (listed := by_path.get(f"{one} list")) is not None:
        return listed, 1
    ends = _ending(one, by_path.values())
    if len(ends) > 1:
        named = " or ".join(f"/{command.path}" for command in ends)
        raise UserError(f"/{one} is ambiguous; did you mean {named}?")
    return (ends[0], 1) if ends else None


def _ending(word: str, commands: Iterable[Command]) -> list[Command]:
    """The commands that end with this word. Those of messages and threads win, since a chat is
    about them."""
    matches = [command for command in commands if command.word == word]
    near = [c for c in matches if c.path.startswith(("messages ", "threads "))]
    return near or matches


def without_group(command: str) -> str:
    """The shortest form of a command that a chat accepts."""
    group, _, rest = command.partition(" ")
    word = rest.partition(" ")[0]
    commands = [each for each in all_commands() if each.where != "shell"]
    if group not in GROUPS or any(each.path == word for each in commands):
        return command
    ends = _ending(word, commands)
    return rest if len(ends) == 1 and ends[0].path == f"{group} {word}" else command


CHAT = CommandSyntax("/", without_group)
