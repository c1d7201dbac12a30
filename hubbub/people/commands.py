"""Commands for people: one table for the shell and the chat, made of operations.

An operation of a mod has its command by being declared: `tasks assign` for `assign_task`, with what
it takes as arguments and options, its description as help, and its answer shown by its shape. The
modules of `groups` say what is different: another word, a better view, more than one call.
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
"""What an answer looks like. Any: each takes the model of its own operation, named in its
signature, and the answer is read as that."""
Do = Callable[
    [PersonClient, dict[str, Any]], Awaitable[CommandResult]
]  # Any: as the parameters say
SHORT = 58
"""Columns of help in a list."""
THREADS = frozenset({"thread", "threads"})
"""Arguments that name threads, in any form that people type."""


@dataclass(frozen=True)
class Command:
    """A command of a shell (`hubbub tasks list`) and of a chat (`/tasks list`)."""

    path: str
    operation: str = ""
    """That it is about: without it in the network there is no such command."""
    show: Show | None = None
    """How its answer is shown; None: by its shape."""
    columns: tuple[str, ...] = ()
    """Of a list: what `listing` shows of each thing."""
    do: Do | None = None
    """In place of one call."""
    about: str = ""
    """Empty: what the operation says of itself."""
    order: tuple[str, ...] | None = None
    """What stands without an option's name, in this order, `name?` where it may be left out; None:
    what is required."""
    without: tuple[str, ...] = ()
    """What of the operation it does not take."""
    fixed: Given = field(default_factory=dict)
    """What it always asks with."""
    more: tuple[Parameter, ...] = ()
    """What it takes besides."""
    operator: bool = False
    """Whether it is asked as the operator at a shell, unless somebody is named."""
    here: bool = False
    """Whether a chat means the open thread where none is named."""
    where: str = "both"
    """shell, chat or both."""
    spec: OperationSpec | None = None
    """Of an operation that does not come with Hubbub."""

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
        """The same for a list: as far as it is needed."""
        short = self.help
        for end in ("[:;] ", "[:;,] "):  # a comma may also stand in a list
            if len(short) > SHORT:
                short = re.split(end, short)[0].removesuffix(".") + "."
        return short

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those in `order` first."""
        own = {p.name: p for p in (*self.described.parameters, *self.more)}
        for name in (*self.without, *self.fixed):
            own.pop(name, None)
        order = self.order or [name for name, p in own.items() if p.required]
        first = [(own.pop(name.rstrip("?")), not name.endswith("?")) for name in order]
        return (*(replace(p, required=required) for p, required in first), *own.values())

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """What is typed without an option's name."""
        if self.order is not None:
            return self.parameters[: len(self.order)]
        return tuple(p for p in self.parameters if p.required)

    @property
    def answer(self) -> type[BaseModel] | None:
        """The model that it shows."""
        if self.show is None:
            return None
        shape = next(iter(get_annotations(self.show, eval_str=True).values()))
        assert isinstance(shape, type)
        return shape


@dataclass(frozen=True)
class Group:
    """Commands that begin with one word."""

    about: str
    section: str
    mods: tuple[str, ...] = ()
    """Whose operations are its commands."""


GROUPS: Mapping[str, Group] = {
    "messages": Group(
        "Read, search, edit and export messages.", "Talk",
        ("edits", "reactions", "search", "digest", "transcript"),
    ),
    "threads": Group("List, follow, mute, title and resolve threads.", "Talk", ("threads",)),
    "agents": Group(
        "See who is here, find who can do something, speak for an agent, run one.", "Look",
        ("directory",),
    ),
    "turns": Group("See what agents did, why, and what it cost.", "Look"),
    "stop": Group("Stop a turn; or a thread, an agent or everything, until resumed.", "In charge"),
    "resume": Group("Resume what was stopped.", "In charge"),
    "approvals": Group("Decide about tool calls that wait for a person.", "In charge"),
    "tasks": Group("Manage the tasks on boards (mod tasks).", "Workplace", ("tasks",)),
    "polls": Group("Create polls, vote, and see the results (mod polls).", "Workplace", ("polls",)),
    "files": Group("Upload, list and download files (mod files).", "Workplace", ("files",)),
    "documents": Group(
        "Read and write shared documents (mod documents).", "Workplace", ("documents",)
    ),
    "reminders": Group(
        "Set, pause and cancel reminders (mod schedule).", "Workplace", ("schedule",)
    ),
    "webhooks": Group(
        "Notify other programs, and be notified by them (mod webhooks).", "Workplace", ("webhooks",)
    ),
    "network": Group("Check, inspect and back up a network.", "Run", ("moderation",)),
}  # fmt: skip
"""The groups that have commands made of operations. Those of one word (`stop`) are their own
group."""
_MODULES = dict.fromkeys(("stop", "resume", "approvals", "network"), "control")
"""The modules of `groups` that have the commands of several groups."""
INTERNAL = frozenset({
    "begin_upload", "upload_chunk", "upload_state", "finish_upload", "cancel_upload",
    "download_chunk", "list_reactions", "add_reaction", "remove_reaction", "mark_visit",
    "export_transcript", "import_transcript", "retract_vote", "list_agents",
})  # fmt: skip
"""Operations that programs call in the course of something else."""


@cache
def commands_in(group: str) -> tuple[Command, ...]:
    """The commands that begin with this word, those of its module first. Empty for other words."""
    if group not in GROUPS:
        return ()
    module = import_module(f"hubbub.people.groups.{_MODULES.get(group, group)}")
    own = [c for c in module.COMMANDS if c.path.partition(" ")[0] == group]
    taken = {c.operation for c in own}
    mods = GROUPS[group].mods
    others = [s for s in known_operations().values() if s.mod in mods and s.mod]
    others = [s for s in others if s.name not in taken]
    return (*own, *_made(group, others))


def mod_commands(mod: str, found: Iterable[OperationSpec]) -> tuple[Command, ...]:
    """The commands of a mod that does not come with Hubbub, made of what the hub says of it."""
    return tuple(replace(c, spec=s) for s in found for c in _made(mod, [s]))


def _made(group: str, specs: Iterable[OperationSpec]) -> list[Command]:
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
    """Those of all groups. Imports the models of all mods."""
    return tuple(command for group in GROUPS for command in commands_in(group))


def in_commands(message: str, typed: Callable[[str], str], *, chat: bool = False) -> str:
    """The hub's sentence with commands in place of operations: it speaks to programs and models."""
    commands = [c for c in reversed(all_commands()) if c.where != "shell" or not chat]
    paths = {c.operation: c.path for c in commands if c.operation}
    if chat:
        paths |= {"join_channel": "join", "list_threads": "threads", "list_participants": "who"}

    def command(found: re.Match[str]) -> str:
        return f"`{typed(paths[found[0]])}`" if found[0] in paths else found[0]

    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", command, message)


# Doing it -----------------------------------------------------------------------------------------


async def perform(command: Command, person: PersonClient, given: Given) -> CommandResult:
    """Do what a command says. Raises `UserError` for names that do not exist, else
    `OperationError`."""
    args = {name: _resolved(person, command, name, value) for name, value in given.items()}
    if command.here and person.here and "thread" not in args:
        args["thread"] = person.state.current
    if command.do is not None:
        return await command.do(person, args)
    value = await person.call(command.operation, **command.fixed, **args)
    remember(person, value)
    return CommandResult(value, shown(command, value, person))


def shown(command: Command, value: JsonValue, person: PersonClient) -> list[NoteLine]:
    """An answer in the view of its command."""
    if command.columns:
        pages = {"before", "after"} & {parameter.name for parameter in command.parameters}
        return listing(value, command.columns, person.shown, next(iter(pages), ""))
    shape = command.answer
    if command.show is None or shape is None:
        return by_shape(value, person.shown)
    return command.show(shape.model_validate(value), person)


def _resolved(person: PersonClient, command: Command, name: str, value: JsonValue) -> JsonValue:
    """Names as people type them, as the hub has them."""
    if name == "agent" and command.do is None:
        return person.agent(str(value))
    if name not in THREADS or value is None:
        return value
    if isinstance(value, list):
        return [person.thread(str(each)) for each in value]
    return person.thread(str(value))


def remember(person: PersonClient, value: JsonValue) -> None:
    """Ids in an answer, and what they are called: completion offers them."""
    if isinstance(value, list):
        for each in value:
            remember(person, each)
    elif isinstance(value, dict):
        id = value.get("id")
        name = value.get("title") or value.get("question") or value.get("name")
        if isinstance(id, str) and isinstance(name, str) and re.fullmatch(r"[a-z][1-9]\d*", id):
            person.state.seen.note([(id, name)])
        for each in value.values():
            if isinstance(each, dict | list):
                remember(person, each)


def find_command(words: Sequence[str], commands: Iterable[Command]) -> tuple[Command, int] | None:
    """The command that these words begin with, and how many of them name it. A group's word may be
    left out where only one command ends so, and a group alone means its list."""
    if not words:
        return None
    there = {command.path: command for command in commands}
    two, one = " ".join(words[:2]).lower(), words[0].lower()
    if two in there and len(words) > 1:
        return there[two], 2
    if one in there:
        return there[one], 1
    if (listed := there.get(f"{one} list")) is not None:
        return listed, 1
    ends = _ending(one, there.values())
    if len(ends) > 1:
        named = " or ".join(f"/{command.path}" for command in ends)
        raise UserError(f"may be {named}: which one?")
    return (ends[0], 1) if ends else None


def _ending(word: str, commands: Iterable[Command]) -> list[Command]:
    """The commands that end so; of messages and threads alone, where there are such: a chat is
    about them."""
    found = [command for command in commands if command.word == word]
    near = [c for c in found if c.path.startswith(("messages ", "threads "))]
    return near or found


def without_group(command: str) -> str:
    """A command as short as a chat understands it."""
    group, _, rest = command.partition(" ")
    word = rest.partition(" ")[0]
    commands = [each for each in all_commands() if each.where != "shell"]
    if group not in GROUPS or any(each.path == word for each in commands):
        return command
    found = _ending(word, commands)
    return rest if len(found) == 1 and found[0].path == f"{group} {word}" else command


CHAT = CommandSyntax("/", without_group)
