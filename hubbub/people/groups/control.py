"""Control of agents: stop and resume, approvals, and the state of the network."""

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
    approval_lines,
    breaker_text,
    decision_text,
    stop_text,
    takeover_text,
)
from hubbub.people.parameters import Parameter, value_of
from hubbub.people.shown import CommandResult, NoteLine, done, notes
from hubbub.protocol.control import Approval, Approvals, Breakers, Stopped, Stops, Takeovers
from hubbub.protocol.operations import Done, Turns

__all__ = ["COMMANDS"]


async def stops(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Everything that keeps agents from working: stops, open breakers, takeovers."""
    stopped, breakers = await person.call("list_stops"), await person.call("list_breakers")
    held = await person.call("list_takeovers")
    shown, typed = person.shown, person.typed
    lines = [stop_text(each, shown, typed) for each in Stops.model_validate(stopped).stops]
    open_ = Breakers.model_validate(breakers).breakers
    lines += [breaker_text(each, shown, typed) for each in open_]
    taken = Takeovers.model_validate(held).takeovers
    lines += [takeover_text(each, person.me, typed) for each in taken]
    nothing = ["nothing is stopped or taken over"]
    value: dict[str, Any] = {}
    for each in (stopped, breakers, held):
        value |= each if isinstance(each, dict) else {}
    return CommandResult(value, notes(lines or nothing, "plain" if lines else "info"))


def listed(answer: Approvals, person: PersonClient) -> list[NoteLine]:
    """Pending approvals in full, the others in one line each."""
    lines: list[str] = []
    for approval in answer.approvals:
        if approval.state == "pending":
            lines += approval_lines(approval, person.shown, person.typed, whole=True)
        else:
            lines.append(decision_text(approval))
    if answer.more:
        lines.append("and older ones")
    return notes(lines or ["there are no pending approvals"], "plain" if lines else "info")


async def _pending(person: PersonClient, name: str) -> Approval:
    """The pending approval with this id, as the hub has it now. Raises `UserError`."""
    answer = await person.ask(Approvals, "list_approvals", state="pending", limit=200)
    try:
        return person.approval(name, answer.approvals)
    except UserError:
        answer = await person.ask(Approvals, "list_approvals", state="all", limit=200)
        matches = [each for each in answer.approvals if name and name in each.id]
        if len(matches) != 1 or matches[0].state == "pending":
            raise
    raise UserError(f"already decided: {decision_text(matches[0])}")


async def approve(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Approve a tool call, as requested or with other arguments."""
    arguments = given.get("arguments")
    if given.get("edit") and arguments is not None:
        raise UserError("approve takes arguments or --edit, not both")
    approval = await _approval(person, given["id"])
    if given.get("edit"):
        arguments = _edited(approval.arguments)
    args: dict[str, JsonValue] = {"id": approval.id, "hash": approval.hash, "arguments": arguments}
    return await _decide(person, approval, "approve", args)


async def deny(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    approval = await _approval(person, given["id"])
    return await _decide(
        person, approval, "deny", {"id": approval.id, "reason": given.get("reason") or ""}
    )


async def _approval(person: PersonClient, name: str) -> Approval:
    return person.state.oversight.approvals.get(name) or await _pending(person, name)


async def _decide(
    person: PersonClient, approval: Approval, operation: str, args: dict[str, JsonValue]
) -> CommandResult:
    """Decide an approval. Shows the outcome unless a signal already did."""
    oversight = person.state.oversight
    was_pending = approval.id in oversight.approvals
    value = await person.call(operation, **args)
    decided = Approval.model_validate(value)
    notified = was_pending and not oversight.note(decided)
    lines = [] if notified else done(decision_text(decided))
    agent = person.state.participants.get(decided.agent)
    if decided.state == "approved" and agent is not None and not agent.present:
        lines += notes([f"it runs once {agent.id} is connected again"])
    return CommandResult(value, lines)


def _edited(arguments: dict[str, JsonValue]) -> JsonValue:
    """The arguments as edited by the person in an editor. Raises `UserError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arguments.json"
        path.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as exc:
            raise UserError(f"cannot start the editor {editor!r}: {exc}") from exc
        if code:
            raise UserError(f"the editor {editor!r} exited with code {code}; nothing is approved")
        return value_of(Parameter("arguments", kind="object"), path.read_text("utf-8"))


SCOPES = ("turn", "thread", "agent", "all")
_TURN = re.compile(r"[A-Za-z0-9_-]+-m\d+(?:\S*)")
_THREAD = re.compile(r"[#@].+|(?:dm|channel|mod)\..+|(?:direct|channel)_.+|broadcast")


async def stop(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Stop the target; in a chat the default is the running turn or the open thread."""
    scope, target, reason = given.get("scope"), given.get("target"), given.get("reason") or ""
    if scope is None and not person.here:
        raise UserError("stop takes turn, thread, agent or all")
    scope = _scope(scope or "turn")
    if person.here and target is not None and not _names(person, scope, target):
        target, reason = None, f"{target} {reason}".strip()  # not a name: part of the reason
    what = await _target(person, scope, target)
    value = await person.call("stop", scope=scope, target=what, reason=reason)
    stopped = Stopped.model_validate(value)
    if scope == "turn" and stopped.target is not None:
        person.state.activities.ended(stopped.target)
    return CommandResult(value, done(stop_text(stopped, person.shown, person.typed)))


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
    """The id of the target of a stop. Raises `UserError`."""
    match scope:
        case "all":
            if target is not None:
                raise UserError("`all` takes no name")
            return None
        case "agent":
            return person.agent(_require(target, "agent"))
        case "thread" if target is None and person.here:
            return person.state.current
        case "thread":
            return person.thread(_require(target, "thread"))
    return await _turn(person, target)


def _require(target: str | None, what: str) -> str:
    if target is None:
        raise UserError(f"name the {what}")
    return target


async def _turn(person: PersonClient, target: str | None) -> str:
    """A turn by its id or its agent; by default the one running in the open thread."""
    if target is not None and target.lstrip("@") not in person.state.participants:
        return target
    if target is None and not person.here:
        raise UserError("name the turn or its agent; list turns with `hubbub turns list`")
    agent = None if target is None else person.agent(target)
    running = await _running(person, agent)
    who = f"of {agent}" if agent else "in this thread"
    if not running:
        raise UserError(f"no turn {who} is running")
    if len(running) > 1:
        raise UserError(f"several turns {who} are running: {', '.join(sorted(running))}; name one")
    return running.pop()


async def _running(person: PersonClient, agent: str | None) -> set[str]:
    """The running turns of an agent, or in the open thread."""
    current = person.state.current
    if agent is None and (cached := person.state.activities.turns(current)):
        return cached
    answer = (await person.ask(Turns, "list_turns", agent=agent, limit=200)).turns
    matches = (t for t in answer if (t.agent == agent if agent else t.thread_id == current))
    return {turn.id for turn in matches if turn.outcome is None}


async def resume(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Lift a stop or close a breaker; by default the only one there is."""
    scope, target = given.get("scope"), given.get("target")
    stops = (await person.ask(Stops, "list_stops")).stops
    open_ = [each.thread_id for each in (await person.ask(Breakers, "list_breakers")).breakers]
    if scope is None:
        scope, what = _only([(s.scope, s.target) for s in stops], open_, person)
    else:
        scope = _scope(scope)
        if scope == "turn":
            raise UserError("takes thread, agent or all; a stopped turn cannot be resumed")
        what = await _target(person, scope, target)
    if scope == "thread" and what in open_:
        notified = person.state.oversight.notifies_end("breaker", what)
        await person.ask(Done, "release_breaker", thread=what)
    else:
        notified = person.state.oversight.notifies_end(scope, what)
        await person.ask(Done, "resume", scope=scope, target=what)
    name = "everything" if what is None else person.shown(what) if scope == "thread" else what
    return CommandResult(
        {"resumed": scope, "target": what}, [] if notified else done(f"{name} is resumed")
    )


def _only(
    stops: list[tuple[Any, str | None]], open_: list[str], person: PersonClient
) -> tuple[str, str | None]:
    here = person.state.current
    if person.here and here in open_:
        return "thread", here
    stopped = [*stops, *(("thread", thread) for thread in open_)]
    if not stopped:
        raise UserError("nothing is stopped")
    if len(stopped) > 1:
        lists = person.typed("network stops")
        raise UserError(f"{len(stopped)} stops are in effect: name one; list them with `{lists}`")
    return stopped[0]


COMMANDS = (
    Command("stop", "stop", do=stop, order=("scope?", "target?", "reason?"),
            about="Stop a turn (by id or agent); or a thread, an agent or all, until resumed."),
    Command("resume", "resume", do=resume, order=("scope?", "target?"),
            about="Resume a thread, an agent or all. Default: the only stop in effect."),
    Command("approvals list", "list_approvals", listed,
            about="List tool calls that wait for approval, with the commands to decide them."),
    Command("approvals approve", "approve", do=approve, order=("id", "arguments?"),
            without=("reason",), more=(
                Parameter("edit", "Edit the arguments in $VISUAL or $EDITOR.", "flag"),),
            about="Approve a tool call, as requested or with other arguments."),
    Command("approvals deny", "deny", do=deny, order=("id", "reason?"),
            about="Deny a tool call, with a reason."),
    Command("network status", "network_status", operator=True, where="shell",
            about="Show the state of the network."),
    Command("network models", "list_models", operator=True,
            columns=("name", "model", "endpoint", "in=usd_in", "out=usd_out"),
            about="List the network's models, with prices in US dollars per million tokens."),
    Command("network stops", "list_stops", do=stops, operator=True,
            about="Show stops, open breakers and takeovers."),
)  # fmt: skip
