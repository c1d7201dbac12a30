"""Slash commands: finding the command, parsing its arguments, and help. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.people.commands import Command, all_commands, find_command
from hubbub.people.parameters import Parameter, known_operations, value_of
from hubbub.people.shown import NoteLine, notes
from hubbub.wording import near

__all__ = ["LOCAL", "find", "help_lines", "missing_mod", "offered", "positional", "read", "usage"]

SHORT = 40
"""Longer usages do not widen the column in the list of commands."""
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<text>.*?)(?P=quote)(?=\s|$)""")
_OPTION = re.compile(r"--(?P<name>[a-z][a-z-]*)(?:=|\s+|$)")


def offered(commands: Iterable[Command], offers: Collection[str]) -> Iterator[Command]:
    """The commands of a chat, given the operations that the hub offers."""
    for command in commands:
        if command.where != "shell" and (not command.operation or command.operation in offers):
            yield command


def find(
    line: str, offers: Collection[str], others: Iterable[Command], local: Collection[str]
) -> tuple[Command, str]:
    """The command in a line without its slash, and the rest of the line. `others` are commands of
    third-party mods, `local` the chat's own words. Raises `UserError`."""
    words, everything = line.split(), (*all_commands(), *others)
    available = list(offered(everything, offers))
    match = find_command(words, available)
    if match is None:
        absent = find_command(words, (c for c in everything if c.where != "shell"))
        if absent is not None:
            raise UserError(f"/{absent[0].path} is not available here: {_missing(absent[0])}")
        names = {*local, *(word for c in available for word in c.path.split())}
        nearest_words = near(words[0], names) if words else []
        hint = f"did you mean /{nearest_words[0]}?" if nearest_words else "see /help"
        raise UserError(f"there is no command /{words[0] if words else ''}; {hint}")
    command, count = match
    parts = line.split(None, count)
    return command, parts[count].strip() if len(parts) > count else ""


def _missing(command: Command) -> str:
    mod = known_operations()[command.operation].mod if command.spec is None else ""
    if not mod:
        return f"this network has no operation {command.operation}"
    return missing_mod(mod)


def missing_mod(mod: str) -> str:
    """How to add a mod that the network lacks."""
    return (
        f"this network does not have the mod {mod}; add `- {mod}` to `mods` in its YAML "
        "and restart it"
    )


def positional(command: Command) -> list[Parameter]:
    """The positional parameters, without a thread that defaults to the open one."""
    return [p for p in command.positional if not (command.here and p.name == "thread")]


def usage(command: Command) -> str:
    """`/tasks claim <task>`."""
    parts = [f"/{command.path}"]
    required = {p.name for p in command.parameters if p.required}
    for each in positional(command):
        shown = f"{each.name.replace('_', ' ')}{' …' if each.many else ''}"
        parts.append(f"<{shown}>" if each.name in required else f"[{shown}]")
    return " ".join(parts)


def read(command: Command, rest: str) -> dict[str, JsonValue]:
    """Parse a command's arguments: options and positional ones, the last of which takes the rest of
    the line. Raises `UserError` with the usage."""
    try:
        return _read(command, rest)
    except UserError as exc:
        colon = "" if str(exc).startswith(("takes", "has")) else ":"
        raise UserError(f"/{command.path}{colon} {exc}: {usage(command)}") from None


def _read(command: Command, rest: str) -> dict[str, JsonValue]:
    given: dict[str, JsonValue] = {}
    waiting, parameters = positional(command), {p.name: p for p in command.parameters}
    while rest:
        if (option := _OPTION.match(rest)) is not None:
            rest = rest[option.end() :]
            options = {p.option: p for p in command.parameters}
            parameter = options.get(f"--{option['name']}")
            if parameter is None:
                raise UserError(f"has no option --{option['name']}")
            if parameter.kind == "flag":
                given[parameter.name] = True
                continue
            value, rest = _word(rest)
            many = given.get(parameter.name) if parameter.many else None
            before = many if isinstance(many, list) else []
            one = value_of(parameter, value)
            given[parameter.name] = [*before, one] if parameter.many else one
            continue
        if not waiting and _may_name_thread(command, given):
            waiting = [parameters["thread"]]
        if not waiting:
            raise UserError("takes no arguments" if not given else "takes no more arguments")
        parameter = waiting.pop(0)
        if not waiting and (parameter.prose or parameter.many or parameter.kind == "object"):
            given[parameter.name] = _last(parameter, rest)
            rest = ""
        else:
            if parameter.name == "question" and "?" in rest and not _QUOTED.match(rest):
                value, mark, rest = (part.strip() for part in rest.partition("?"))
                value += mark
            else:
                value, rest = _word(rest)
            given[parameter.name] = value_of(parameter, value)
    missing = [p.name for p in command.parameters if p.required and p.name not in given]
    missing = [name for name in missing if not (command.here and name == "thread")]
    if missing:
        raise UserError(f"takes {' and '.join(_named(parameters[name]) for name in missing)}")
    return given


def _may_name_thread(command: Command, given: dict[str, JsonValue]) -> bool:
    """Whether a thread can be named instead of the open one: `/mute #desk`."""
    return command.here and "thread" not in given and "thread" in (command.order or ())


def _named(parameter: Parameter) -> str:
    if parameter.many:
        return parameter.name
    name = {"message_id": "message's id"}.get(parameter.name, parameter.name.replace("_", " "))
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _word(rest: str) -> tuple[str, str]:
    """The first word or quoted text, and the rest."""
    if (quoted := _QUOTED.match(rest)) is not None:
        return quoted["text"], rest[quoted.end() :].lstrip()
    word, *more = rest.split(None, 1)
    return word, more[0] if more else ""


def _last(parameter: Parameter, rest: str) -> JsonValue:
    if not parameter.many:
        return value_of(parameter, unquoted(rest))
    if "|" in rest:
        words = [word.strip() for word in rest.split("|")]
    elif re.fullmatch(r"[\d\s,]+", rest):
        words = re.split(r"[\s,]+", rest)
    else:
        words, more = [], rest
        while more:
            word, more = _word(more)
            words.append(word)
    return [value_of(parameter, word) for word in words if word]


def unquoted(text: str) -> str:
    """The text without quotes around the whole of it."""
    quoted = _QUOTED.fullmatch(text)
    return text if quoted is None else quoted["text"]


# The chat's own commands, and help ----------------------------------------------------------------


@dataclass(frozen=True)
class ChatWord:
    """A command that only a chat has."""

    usage: str
    help: str


LOCAL: Mapping[str, ChatWord] = {
    usage[1:].partition(" ")[0]: ChatWord(usage, help)
    for usage, help in (
        ("/threads", "list your threads, with unread counts"),
        ("/open <n or name>", "open a thread from that list, @name or #channel"),
        ("/dm <who>[,<who>] [text]", "message one participant or a group"),
        ("/who", "list the participants and what they do"),
        ("/reply <m42> <text>", "reply to a message, in its own thread"),
        ("/more", "show older messages of this thread"),
        ("/join <name>", "join a channel and open it"),
        ("/create <name>", "create a channel and open it"),
        ("/leave [name]", "leave a channel, by default this one"),
        ("/queue <text>", "send for the next turn, leaving the running one alone"),
        ("/steer <text>", "send to the running turn"),
        ("/interrupt <text>", "end the running turn and start one with this"),
        ("/wait [seconds]", "wait for an answer here (for scripts; default 10 s)"),
        ("/help [word]", "show this list, or the help of a command"),
        ("/quit", "leave (Ctrl-D does too)"),
    )
}


def help_lines(word: str, commands: Iterable[Command]) -> list[NoteLine]:
    """The list of commands, or the help of one command or group."""
    if word:
        word = word.lstrip("/").lower()
        return _help_of(word, commands) or [NoteLine(f"there is no command {word!r}", "error")]
    lines = [(each.usage, each.help) for each in LOCAL.values()]
    lines += [(usage(command), command.short) for command in commands]
    width = max(len(usage) for usage, _ in lines if len(usage) <= SHORT)
    return [
        *notes(f"{usage:<{width}}  {about}" for usage, about in lines),
        NoteLine("the first word is optional if the second is unambiguous: /claim t3"),
        NoteLine("anything else is sent to the current thread; @name mentions a participant"),
        NoteLine("//text sends /text; /help <word> shows the help of a command"),
    ]


def _help_of(word: str, commands: Iterable[Command]) -> list[NoteLine]:
    lines = [NoteLine(f"{LOCAL[word].usage}: {LOCAL[word].help}")] if word in LOCAL else []
    for command in commands:
        if word in (command.path, command.word, command.path.partition(" ")[0]):
            lines.append(NoteLine(f"{usage(command)}: {command.help}"))
            if word in (command.path, command.word):
                options = (p for p in command.parameters if p.help)
                lines += [NoteLine(f"    {p.option}  {p.help}") for p in options]
    return lines
