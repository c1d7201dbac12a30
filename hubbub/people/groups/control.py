"""Control of agents: stops, what resumes them, approvals, and the state of the network."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.config.problems import nearest
from hubbub.errors import UserError
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.oversight import (
    approval_words,
    breaker_words,
    decided_words,
    stopped_words,
    takeover_words,
)
from hubbub.people.parameters import Parameter, value_of
from hubbub.people.shown import CommandResult, NoteLine, done, notes
from hubbub.protocol.control import Approval, Approvals, Breakers, Stopped, Stops, Takeovers
from hubbub.protocol.operations import Done, Turns

__all__ = ["COMMANDS"]


async def stops(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """All that keeps agents from working."""
    stopped, breakers = await person.call("list_stops"), await person.call("list_breakers")
    held = await person.call("list_takeovers")
    shown, typed = person.shown, person.typed
    lines = [stopped_words(each, shown, typed) for each in Stops.model_validate(stopped).stops]
    open_ = Breakers.model_validate(breakers).breakers
    lines += [breaker_words(each, shown, typed) for each in open_]
    taken = Takeovers.model_validate(held).takeovers
    lines += [takeover_words(each, person.me, typed) for each in taken]
    nothing = ["nothing is stopped or taken over"]
    value: dict[str, Any] = {}
    for each in (stopped, breakers, held):
        value |= each if isinstance(each, dict) else {}
    return CommandResult(value, notes(lines or nothing, "plain" if lines else "info"))


def listed(found: Approvals, person: PersonClient) -> list[NoteLine]:
    """Those that wait with everything that is needed to decide; the others in a line each."""
    lines: list[str] = []
    for approval in found.approvals:
        waits = approval.state == "pending"
        words = approval_words(approval, person.shown, person.typed) if waits else ()
        lines += words or [decided_words(approval)]
    if found.more:
        lines.append("and older ones")
    return notes(lines or ["there are no pending approvals"], "plain" if lines else "info")


async def _meant(person: PersonClient, name: str) -> Approval:
    """The pending approval that somebody means, as the hub has it now."""
    found = await person.ask(Approvals, "list_approvals", state="pending", limit=200)
    try:
        return person.approval(name, found.approvals)
    except UserError:
        found = await person.ask(Approvals, "list_approvals", state="all", limit=200)
        over = [each for each in found.approvals if name and name in each.id]
        if len(over) != 1 or over[0].state == "pending":
            raise
    raise UserError(f"nothing to decide: {decided_words(over[0])}")


async def approve(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Let a call run, as it was asked for or with other arguments."""
    arguments = given.get("arguments")
    if given.get("edit") and arguments is not None:
        raise UserError("approve takes arguments or --edit, not both")
    asked = await _seen(person, given["id"])
    if given.get("edit"):
        arguments = _edited(asked.arguments)
    args: dict[str, JsonValue] = {"id": asked.id, "hash": asked.hash, "arguments": arguments}
    return await _decide(person, asked, "approve", args)


async def deny(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    asked = await _seen(person, given["id"])
    return await _decide(
        person, asked, "deny", {"id": asked.id, "reason": given.get("reason") or ""}
    )


async def _seen(person: PersonClient, name: str) -> Approval:
    return person.state.oversight.approvals.get(name) or await _meant(person, name)


async def _decide(
    person: PersonClient, asked: Approval, operation: str, args: dict[str, JsonValue]
) -> CommandResult:
    """Where a signal says so anyway, nothing is shown a second time."""
    oversight = person.state.oversight
    known_before = asked.id in oversight.approvals
    value = await person.call(operation, **args)
    decided = Approval.model_validate(value)
    heard = known_before and not oversight.note(decided)
    return CommandResult(value, [] if heard else done(decided_words(decided)))


def _edited(arguments: dict[str, JsonValue]) -> JsonValue:
    """The arguments as somebody has left them in an editor. Raises `UserError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arguments.json"
        path.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as exc:
            raise UserError(f"the editor {editor!r} does not start: {exc}") from exc
        if code:
            raise UserError(f"the editor {editor!r} ended with {code}; nothing is approved")
        return value_of(Parameter("arguments", kind="object"), path.read_text("utf-8"))


SCOPES = ("turn", "thread", "agent", "all")
_TURN = re.compile(r"[A-Za-z0-9_-]+-m\d+(?:\S*)")
_THREAD = re.compile(r"[#@].+|(?:dm|channel|mod)\..+|(?:direct|channel)_.+|broadcast")


async def stop(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Stop what is named; in a chat, without a name, what runs or is open there."""
    scope, target, reason = given.get("scope"), given.get("target"), given.get("reason") or ""
    if scope is None and not person.here:
        raise UserError("stop takes turn, thread, agent or all")
    scope = _scope(scope or "turn")
    if person.here and target is not None and not _names(person, scope, target):
        target, reason = None, f"{target} {reason}".strip()  # these are words of the reason
    what = await _target(person, scope, target)
    value = await person.call("stop", scope=scope, target=what, reason=reason)
    stopped = Stopped.model_validate(value)
    if scope == "turn" and stopped.target is not None:
        person.state.activities.ended(stopped.target)
    return CommandResult(value, done(stopped_words(stopped, person.shown, person.typed)))


def _scope(word: str) -> str:
    if word.lower() in SCOPES:
        return word.lower()
    raise UserError(f"takes turn, thread, agent or all, not {word!r}{nearest(word, SCOPES)}")


def _names(person: PersonClient, scope: str, target: str) -> bool:
    match scope:
        case "turn":
            return _TURN.fullmatch(target) is not None or person.is_agent(target)
        case "thread":
            return _THREAD.fullmatch(target) is not None
    return scope == "agent"


async def _target(person: PersonClient, scope: str, target: str | None) -> str | None:
    """What a stop is about, by its id. Raises `UserError`."""
    match scope:
        case "all":
            if target is not None:
                raise UserError("`all` is everything; it takes no name")
            return None
        case "agent":
            return person.agent(_given(target, "agent"))
        case "thread" if target is None and person.here:
            return person.state.current
        case "thread":
            return person.thread(_given(target, "thread"))
    return await _turn(person, target)


def _given(target: str | None, what: str) -> str:
    if target is None:
        raise UserError(f"name the {what}")
    return target


async def _turn(person: PersonClient, target: str | None) -> str:
    """A turn by its id, by its agent, or the one that runs in the open thread."""
    if target is not None and target.lstrip("@") not in person.state.participants:
        return target
    if target is None and not person.here:
        raise UserError("name the turn or its agent: `hubbub turns list` lists them")
    agent = None if target is None else person.agent(target)
    running = await _running(person, agent)
    who = f"of {agent}" if agent else "in this thread"
    if not running:
        raise UserError(f"no turn {who} runs")
    if len(running) > 1:
        raise UserError(f"several turns {who} run: {', '.join(sorted(running))}; name one")
    return running.pop()


async def _running(person: PersonClient, agent: str | None) -> set[str]:
    """The turns that run: of an agent, or in the open thread."""
    current = person.state.current
    if agent is None and (seen := person.state.activities.turns(current)):
        return seen
    found = (await person.ask(Turns, "list_turns", agent=agent, limit=200)).turns
    meant = (t for t in found if (t.agent == agent if agent else t.thread_id == current))
    return {turn.id for turn in meant if turn.outcome is None}


async def resume(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Lift a stop, or close a breaker; none named: the only one that there is."""
    scope, target = given.get("scope"), given.get("target")
    stops = (await person.ask(Stops, "list_stops")).stops
    open_ = [each.thread_id for each in (await person.ask(Breakers, "list_breakers")).breakers]
    if scope is None:
        scope, what = _only([(s.scope, s.target) for s in stops], open_, person)
    else:
        scope = _scope(scope)
        if scope == "turn":
            raise UserError("takes thread, agent or all; a turn that was stopped is over")
        what = await _target(person, scope, target)
    if scope == "thread" and what in open_:
        heard = person.state.oversight.tells_end("breaker", what)
        await person.ask(Done, "release_breaker", thread=what)
    else:
        heard = person.state.oversight.tells_end(scope, what)
        await person.ask(Done, "resume", scope=scope, target=what)
    name = "everything" if what is None else person.shown(what) if scope == "thread" else what
    return CommandResult(
        {"resumed": scope, "target": what}, [] if heard else done(f"{name} may go on")
    )


def _only(
    stops: list[tuple[Any, str | None]], open_: list[str], person: PersonClient
) -> tuple[str, str | None]:
    here = person.state.current
    if person.here and here in open_:
        return "thread", here
    found = [*stops, *(("thread", thread) for thread in open_)]
    if not found:
        raise UserError("nothing is stopped")
    if len(found) > 1:
        lists = person.typed("network stops")
        raise UserError(f"{len(found)} things are stopped: name one; {lists} lists them")
    return found[0]


COMMANDS = (
    Command("stop", "stop", do=stop, order=("scope?", "target?", "reason?"),
            about="Stop a turn (or its agent's); or a thread, an agent or all, until resumed."),
    Command("resume", "resume", do=resume, order=("scope?", "target?"),
            about="Resume a thread, an agent or all; without a name, the only stop that there is."),
    Command("approvals list", "list_approvals", listed,
            about="List tool calls that wait for a person, with what to type."),
    Command("approvals approve", "approve", do=approve, order=("id", "arguments?"),
            without=("reason",), more=(
                Parameter("edit", "Change the arguments in $VISUAL or $EDITOR.", "flag"),),
            about="Approve a tool call, as it was requested or with other arguments."),
    Command("approvals deny", "deny", do=deny, order=("id", "reason?"),
            about="Deny a tool call, and say why."),
    Command("network status", "network_status", operator=True, where="shell",
            about="Show how the network is doing."),
    Command("network models", "list_models", operator=True,
            columns=("name", "model", "endpoint", "in=usd_in", "out=usd_out"),
            about="List the models of the network, with US dollars for a million tokens."),
    Command("network stops", "list_stops", do=stops, operator=True,
            about="Show what is stopped, which breakers are open, and who speaks for whom."),
)  # fmt: skip
