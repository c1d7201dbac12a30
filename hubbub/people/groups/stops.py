"""Stops turns, threads, agents, everything, and lets them go on."""

from __future__ import annotations

import re
from typing import Any

from hubbub.config.problems import nearest
from hubbub.errors import UserError
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.oversight import stopped_words
from hubbub.people.shown import Shown, done
from hubbub.protocol.control import Breakers, Stopped, Stops
from hubbub.protocol.operations import Done, Turns

__all__ = ["COMMANDS"]

SCOPES = ("turn", "thread", "agent", "all")
_TURN = re.compile(r"[A-Za-z0-9_-]+-m\d+(?:\S*)")
_THREAD = re.compile(r"[#@].+|(?:dm|channel|mod)\..+|(?:direct|channel)_.+|broadcast")


async def stop(person: PersonClient, given: dict[str, Any]) -> Shown:
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
    return Shown(value, done(stopped_words(stopped, person.shown, person.typed)))


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


async def resume(person: PersonClient, given: dict[str, Any]) -> Shown:
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
    return Shown({"resumed": scope, "target": what}, [] if heard else done(f"{name} may go on"))


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
            about="Let a thread, an agent or all go on; without a name, what alone is stopped."),
)  # fmt: skip
