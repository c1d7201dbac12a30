"""How the chats read what a person in charge types. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.cli.chat.specs import Spec, one_word, without_rest
from hubbub.cli.control.deeds import (
    Approvals,
    Approve,
    Breakers,
    Deed,
    Deny,
    HandBack,
    Interaction,
    Release,
    Requests,
    Resume,
    SpeakAs,
    Spending,
    Stop,
    Stops,
    TakeOver,
    Why,
)
from hubbub.config.problems import nearest
from hubbub.config.units import span
from hubbub.errors import UserError
from hubbub.ids import parse_interaction_id, parse_message_id

if TYPE_CHECKING:
    from hubbub.protocol.control import StopScope

__all__ = ["DEEDS", "SCOPES", "json_object", "minutes", "scope_of"]

SCOPES: tuple[StopScope, ...] = ("turn", "thread", "agent", "all")
_TURN = re.compile(r"[A-Za-z0-9_-]+-m\d+(?:\S*)")
_THREAD = re.compile(r"[#@].+|(?:dm|channel|mod)\..+|(?:direct|channel)_.+|broadcast")


def scope_of(word: str) -> StopScope:
    """What is to be stopped. Raises `UserError` with the nearest word."""
    for scope in SCOPES:
        if scope == word.lower():
            return scope
    raise UserError(f"takes turn, thread, agent or all, not {word!r}{nearest(word, SCOPES)}")


def json_object(text: str) -> dict[str, JsonValue]:
    """The arguments that somebody has written. Raises `UserError`."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError as exc:
        raise UserError(f"the arguments are no JSON: {exc}") from None
    if not isinstance(value, dict):
        raise UserError('the arguments are a JSON object, for example {"path": "a.txt"}')
    return value


def minutes(text: str) -> float:
    """`15m`, `1h` in minutes. Raises `UserError`."""
    try:
        seconds = span(text)
    except ValueError:
        seconds = None
    if not isinstance(seconds, float) or not 0 < seconds <= 86400:
        raise UserError(f"{text!r} is no time up to a day; they look like 15m or 1h")
    return seconds / 60


def _stop(rest: str) -> Stop:
    if not rest:
        return Stop()
    word, _, more = rest.partition(" ")
    scope, more = scope_of(word), more.strip()
    target, _, reason = more.partition(" ")
    match scope:
        case "all":
            return Stop(scope, None, more)
        case "agent" if not target:
            raise UserError("takes the agent's name after `agent`")
        case "turn" if not _TURN.fullmatch(target):
            return Stop(scope, None, more)
        case "thread" if not _THREAD.fullmatch(target):
            return Stop(scope, None, more)
    return Stop(scope, target, reason.strip())


def _resume(rest: str) -> Resume:
    if not rest:
        return Resume()
    word, _, target = rest.partition(" ")
    scope = scope_of(word)
    if scope == "turn":
        raise UserError("takes thread, agent or all; a turn that was stopped is over")
    if scope == "agent" and not target.strip():
        raise UserError("takes the agent's name after `agent`")
    return Resume(scope, target.strip() or None)


def _breaker(rest: str) -> Breakers | Release:
    word, _, thread = rest.partition(" ")
    match word:
        case "" | "list":
            return Breakers()
        case "release":
            return Release(thread.strip() or None)
    raise UserError("takes list or release")


def _every(made: Callable[[bool], Deed]) -> Callable[[str], Deed]:
    """Reads a list's command: nothing, or `all`."""

    def read(rest: str) -> Deed:
        if rest not in ("", "all"):
            raise UserError("takes nothing, or all")
        return made(rest == "all")

    return read


def _approve(rest: str) -> Approve:
    name, _, more = rest.partition(" ")
    if not name:
        raise UserError("takes an approval's id")
    return Approve(name, json_object(more) if more.strip() else None)


def _deny(rest: str) -> Deny:
    name, _, reason = rest.partition(" ")
    if not name:
        raise UserError("takes an approval's id")
    return Deny(name, reason.strip())


def _take_over(rest: str) -> TakeOver:
    words = rest.split()
    if not 1 <= len(words) <= 2:
        raise UserError("takes an agent and perhaps a time")
    return TakeOver(words[0], minutes(words[1]) if len(words) == 2 else None)


def _speak_as(rest: str) -> SpeakAs:
    agent, _, text = rest.partition(" ")
    if not text.strip():
        raise UserError("takes an agent and a text")
    return SpeakAs(agent, text.strip())


def _spending(rest: str) -> Spending:
    """An agent, a thread and a number of days, in any order."""
    agent = thread = None
    days = 1
    for word in rest.split():
        if word.isdecimal():
            days = int(word)
        elif _THREAD.fullmatch(word) and not word.startswith("@"):
            thread = word
        else:
            agent = word
    if not 1 <= days <= 366:
        raise UserError("looks back 1 to 366 days")
    return Spending(agent, thread, days)


def _why(rest: str) -> Why:
    words = rest.split()
    message = next((word for word in words if parse_message_id(word) is not None), None)
    others = [word for word in words if word != message]
    if message is None or len(others) > 1:
        raise UserError("takes a message's id and perhaps an agent")
    return Why(message, others[0] if others else None)


def _interaction(rest: str) -> Interaction:
    if rest and parse_interaction_id(rest) is None and parse_message_id(rest) is None:
        raise UserError("takes the id of an interaction or of a message")
    return Interaction(rest or None)


DEEDS: dict[str, Spec[Deed]] = {
    "stop": Spec(
        "/stop [what] [which] [reason]",
        "stop the turn that runs here; or a turn, thread, agent, all",
        _stop,
    ),
    "resume": Spec("/resume [what] [which]", "let a thread, agent, all go on", _resume),
    "stops": Spec("/stops", "what is stopped, latched or taken over", without_rest(Stops)),
    "breaker": Spec("/breaker [release [thread]]", "threads that are latched", _breaker),
    "approvals": Spec("/approvals [all]", "tool calls that wait for a word", _every(Approvals)),
    "approve": Spec("/approve <id> [arguments]", "let a call run, perhaps changed", _approve),
    "deny": Spec("/deny <id> [reason]", "do not let a call run", _deny),
    "takeover": Spec("/takeover <agent> [15m]", "speak for an agent for a while", _take_over),
    "handback": Spec(
        "/handback [agent]",
        "let it speak for itself again",
        lambda rest: one_word(HandBack)(rest) if rest else HandBack(),
    ),
    "as": Spec("/as <agent> <text>", "say something here as that agent", _speak_as),
    "spending": Spec("/spending [agent] [#thread] [days]", "what work has cost", _spending),
    "requests": Spec("/requests [all]", "work that agents have asked of others", _every(Requests)),
    "why": Spec("/why <m42> [agent]", "the whole story of a message", _why),
    "interaction": Spec("/interaction [i42]", "who caused what, and its budget", _interaction),
}
"""By the words of the chat."""
