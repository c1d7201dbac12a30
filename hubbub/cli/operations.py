"""Shell commands generated from operations (`hubbub.people.commands`).

Every command line imports this module, so anything that only some commands need is imported late.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from inspect import Parameter as Place
from inspect import Signature, signature
from typing import Annotated, Any, Literal

import typer
from pydantic import JsonValue

from hubbub.cli.connection import (
    AddressOption,
    AsOption,
    NetworkTarget,
    TokenOption,
    check_known,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.output import JsonFlag, help_if_alone, print_shown
from hubbub.errors import HubbubError
from hubbub.people.commands import GROUPS, THREADS, Command, commands_in, mod_commands, perform
from hubbub.people.figures import SHELL, outcome_text
from hubbub.people.parameters import Parameter, described_operations, value_of
from hubbub.people.shown import CommandResult

__all__ = ["add_group", "add_mod_group", "complete_agent", "complete_recipient", "complete_thread"]

LISTS = {
    "t": "list_tasks", "p": "list_polls", "b": "list_boards", "f": "list_files",
    "d": "list_documents", "r": "list_reminders",
}  # fmt: skip
"""The operation that lists the ids for completion, by the letter that they begin with."""


def add_group(app: typer.Typer, name: str) -> typer.Typer:
    """Add the commands of a group, or the command that is its own group."""
    commands = commands_in(name)
    alone = [command for command in commands if command.path == name]
    if alone:
        app.command(name, help=alone[0].help)(shell_command(alone[0]))
        return app
    return _group(app, name, GROUPS[name].about, commands)


def add_mod_group(app: typer.Typer, name: str) -> bool:
    """Add the commands of a third-party mod of the running network. Returns whether the network has
    such a mod."""
    try:
        about, commands = run_async(_mod(name))
    except HubbubError:
        return False  # no network, or none that admits us
    if commands:
        _group(app, name, f"{about} (mod {name})", commands)
    return bool(commands)


async def _mod(name: str) -> tuple[str, tuple[Command, ...]]:
    from hubbub.protocol.admin import ModStates
    from hubbub.protocol.operations import OperationSchemas

    async with joined(NetworkTarget.of_environment()) as client:
        mods = ModStates.model_validate(await client.call("list_mods")).mods
        mod = next((mod for mod in mods if mod.name == name), None)
        if mod is None or not mod.operations:
            return "", ()
        answer = await client.call("describe_operations", names=list(mod.operations))
    operations = OperationSchemas.model_validate(answer).operations
    return mod.about.partition("\n")[0], mod_commands(name, described_operations(operations, name))


def _group(app: typer.Typer, name: str, about: str, commands: Iterable[Command]) -> typer.Typer:
    group = typer.Typer(help=about, invoke_without_command=True, callback=help_if_alone)
    for command in commands:
        if command.where != "chat":
            group.command(command.word, help=command.help, short_help=command.short)(
                shell_command(command)
            )
    app.add_typer(group, name=name)
    return group


# One command --------------------------------------------------------------------------------------


def _common(
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """The options that all generated commands share."""


def shell_command(command: Command) -> Callable[..., None]:
    """The function for a command, with the signature that typer reads."""

    def run(
        *, as_: str | None, address: str | None, token: str | None, as_json: bool, **typed: Any
    ) -> None:  # Any: values parsed by typer
        target = NetworkTarget(address, token)
        person = as_ if command.operator else default_person(target, as_)
        if person is not None and command.described.permission == "read":
            run_async(check_known(NetworkTarget(address), person))  # the token is a person's
        shown = run_async(_perform(command, target, person, _given(command, typed)))
        print_shown(shown, as_json=as_json)

    common = signature(_common, eval_str=True).parameters
    own = [_place(command, parameter) for parameter in command.parameters]
    last = (each.replace(kind=Place.KEYWORD_ONLY) for each in common.values())
    run.__signature__ = Signature([*own, *last])  # type: ignore[attr-defined]
    return run


def _given(command: Command, typed: dict[str, Any]) -> dict[str, JsonValue]:
    """The arguments that were typed, without those left out."""
    given: dict[str, JsonValue] = {}
    for parameter in command.parameters:
        value = typed[f"{parameter.name}_"]
        if value is None or value is False or value == []:
            continue
        if isinstance(value, list) and not parameter.many:
            value = _sentence(parameter, value)
        if isinstance(value, list):
            given[parameter.name] = [_read(parameter, each) for each in value]
        else:
            given[parameter.name] = _read(parameter, value)
    return given


def _read(parameter: Parameter, value: Any) -> JsonValue:
    return value_of(parameter, value) if isinstance(value, str) else value


def _sentence(parameter: Parameter, words: list[str]) -> str:
    """Words as one text. In a search, a word with spaces was quoted in the shell: a phrase."""
    if parameter.name != "query" or len(words) == 1:
        return " ".join(words)
    return " ".join(f'"{w}"' if " " in w and '"' not in w else w for w in words)


def _place(command: Command, parameter: Parameter) -> Place:
    """A parameter as a typer argument or option."""
    positional = parameter in command.positional
    words = positional and parameter.prose and parameter == command.positional[-1]
    kind = _type(parameter)
    kind = list[kind] if parameter.many or words else kind  # type: ignore[valid-type]
    about: dict[str, Any] = {"help": parameter.help, "show_default": False}  # typer's keywords
    if parameter.default is not None and not parameter.required:
        about["help"] = f"{parameter.help} [default: {parameter.default}]".strip()
    if parameter.kind in ("whole", "number"):
        about |= {"min": parameter.least, "max": parameter.most}
    elif parameter.kind != "flag":
        about["autocompletion"] = _completer(command, parameter)
    if positional:
        info = typer.Argument(metavar=parameter.name.upper(), **about)
    else:
        names = [parameter.option, *([f"-{parameter.short}"] if parameter.short else [])]
        info = typer.Option(*names, **about)
    default = Place.empty if parameter.required else False if parameter.kind == "flag" else None
    if not parameter.required and parameter.kind != "flag":
        kind = kind | None
    return Place(
        f"{parameter.name}_", Place.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _type(parameter: Parameter) -> Any:  # a type built at run time
    if parameter.choices and not parameter.many:
        return Literal[parameter.choices]
    return {"whole": int, "number": float, "flag": bool}.get(parameter.kind, str)


async def _perform(
    command: Command, target: NetworkTarget, person: str | None, given: dict[str, JsonValue]
) -> CommandResult:
    from hubbub.people.client import PersonClient
    from hubbub.people.state import ClientState

    async with joined(target, person) as client:
        state = ClientState(client.participant)
        state.know(client.ready)
        return await perform(command, PersonClient(client, state, SHELL, here=False), given)


# Completion ---------------------------------------------------------------------------------------


def _completer(
    command: Command, parameter: Parameter
) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        try:
            offered = run_async(_offered(command, parameter, ctx.params))
        except (HubbubError, OSError):
            return []
        return [(word, about) for word, about in offered if word.startswith(incomplete)]

    return complete


def complete_agent(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completion for `hubbub ask`: the agents."""
    return [] if ctx.params.get("words") else _complete_as("agents card", "agent", ctx, incomplete)


def complete_thread(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completion of a thread: those that the person is in."""
    return _complete_as("threads list", "thread", ctx, incomplete)


def complete_recipient(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completion for `hubbub send`: participants and threads."""
    if ctx.params.get("words"):
        return []  # the recipient is complete; the rest is text
    people = _complete_as("agents card", "participant", ctx, incomplete)
    threads = complete_thread(ctx, incomplete)
    return people + [each for each in threads if each[0].lstrip("@") not in dict(people)]


def _complete_as(
    path: str, name: str, ctx: typer.Context, incomplete: str
) -> list[tuple[str, str]]:
    return _completer(Command(path), Parameter(name))(ctx, incomplete)


async def _offered(
    command: Command, parameter: Parameter, typed: dict[str, Any]
) -> list[tuple[str, str]]:
    """The values that the target network has for a parameter."""
    from hubbub.people.chat.completion import choices
    from hubbub.people.client import PersonClient
    from hubbub.people.state import ClientState
    from hubbub.protocol.control import Approvals, Breakers, Stops
    from hubbub.protocol.operations import ThreadList, Turns

    target = NetworkTarget.of_environment(typed.get("address"), typed.get("token"))
    of_messages = command.path.startswith(("messages ", "turns interaction"))
    operator = command.operator and not of_messages  # the operator reads no messages itself
    person = None if operator else default_person(target, typed.get("as_"))
    async with joined(target, person) as client:
        state = ClientState(client.participant)
        state.know(client.ready)
        state.current = ""  # a shell has no open thread: offer the ids of all threads
        person_client = PersonClient(client, state, SHELL, here=False)
        given = [str(typed[f"{p.name}_"]) for p in command.positional if typed.get(f"{p.name}_")]
        if command.path in ("turns show", "stop") and given in ([], ["turn"]):
            turns = (await person_client.ask(Turns, "list_turns")).turns
            offered = [(t.id, outcome_text(t.outcome)) for t in turns
                     if not given or t.outcome is None]  # fmt: skip
            if command.path == "turns show" or given:
                return offered
        if of_messages or parameter.name in THREADS or command.path == "stop":
            for thread in (await person_client.ask(ThreadList, "list_threads")).threads:
                state.summarised(thread)
        if parameter.letter in LISTS:
            await perform(Command("", LISTS[parameter.letter]), person_client, {})
        elif command.path.startswith("approvals "):
            for approval in (await person_client.ask(Approvals, "list_approvals")).approvals:
                state.oversight.note(approval)
        elif command.path == "resume":
            state.oversight.stops = (await person_client.ask(Stops, "list_stops")).stops
            state.oversight.breakers = (await person_client.ask(Breakers, "list_breakers")).breakers
        offered = list(choices(command, parameter, state, given))
    return [(_typed(word), about) for word, about in offered]


def _typed(word: str) -> str:
    """A word as typed in a shell, where `#general` would start a comment."""
    plain = word.removeprefix("#").replace(" › m", ".t")
    return shlex.quote(plain) if " " in plain else plain
