"""What a person in charge knows: approvals, stops, takeovers. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from hubbub.people.figures import CommandSyntax, moment, span_words
from hubbub.people.text import clip, counted, one_line
from hubbub.protocol.control import (
    Approval,
    Breakers,
    BreakerState,
    ObservedMessage,
    Stopped,
    Stops,
    Takeover,
    Takeovers,
)
from hubbub.protocol.frames import Signal

__all__ = [
    "Oversight",
    "approval_words",
    "breaker_words",
    "decided_words",
    "overheard",
    "stopped_words",
    "takeover_words",
]

ARGUMENT = 500
"""Columns of an argument."""
Shown = Callable[[str], str]
"""A thread's canonical id as the reader is shown it."""
_Held = tuple[tuple[Stopped, ...], tuple[BreakerState, ...]]


class Oversight:
    """Approvals, stops and take-overs, as the hub's signals tell them to this person."""

    def __init__(self, me: str) -> None:
        self._me = me
        self.approvals: dict[str, Approval] = {}
        """Those that wait, by id, in the order in which they were asked for."""
        self.stops: tuple[Stopped, ...] = ()
        self.breakers: tuple[BreakerState, ...] = ()
        self.takeovers: tuple[Takeover, ...] = ()
        self._announced: set[str] = set()
        self._before_stops: _Held | None = None
        self._before_takeovers: tuple[Takeover, ...] | None = None

    def renew(self) -> None:
        """A connection stands: the hub tells what there is, and nothing where there is nothing.
        What was known before is no news."""
        if self._before_stops is None:
            self._before_stops = (self.stops, self.breakers)
        if self._before_takeovers is None:
            self._before_takeovers = self.takeovers
        self.approvals, self.stops, self.breakers, self.takeovers = {}, (), (), ()

    @property
    def mine(self) -> list[Approval]:
        """Approvals that this person may decide."""
        return [approval for approval in self.approvals.values() if approval.may_decide]

    @property
    def spoken_for(self) -> list[str]:
        """Agents that this person speaks for."""
        return [held.agent for held in self.takeovers if held.by == self._me]

    def note(self, approval: Approval) -> bool:
        """An approval as it stands by now; returns whether that is news."""
        if approval.state == "pending":
            self.approvals[approval.id] = approval
            new = approval.id not in self._announced
            self._announced.add(approval.id)
            return new
        self._announced.discard(approval.id)
        return self.approvals.pop(approval.id, None) is not None

    def tells_end(self, scope: str, target: str | None) -> bool:
        """Whether a signal will say that this stop or take-over is over: it is known."""
        if scope == "breaker":
            return any(each.thread_id == target for each in self.breakers)
        if scope == "takeover":
            return any(held.agent == target for held in self.takeovers)
        return any((stop.scope, stop.target) == (scope, target) for stop in self.stops)

    def hear(self, signal: Signal, shown: Shown, typed: CommandSyntax) -> Sequence[str]:
        """A signal arrived: what has changed, in words. What this person has stopped or taken over
        is no news."""
        match signal.type:
            case "approval":
                return self._approval(Approval.model_validate(signal.data), shown, typed)
            case "stops":
                stops = Stops.model_validate(signal.data).stops
                breakers = Breakers.model_validate(signal.data).breakers
                return self._stops(stops, breakers, shown, typed)
            case "takeovers":
                return self._takeovers(Takeovers.model_validate(signal.data).takeovers, typed)
            case _:
                return ()

    def _approval(self, approval: Approval, shown: Shown, typed: CommandSyntax) -> Sequence[str]:
        if not self.note(approval):
            return ()
        if approval.state == "pending":
            return approval_words(approval, shown, typed)
        return [decided_words(approval)]

    def _stops(
        self,
        stops: tuple[Stopped, ...],
        breakers: tuple[BreakerState, ...],
        shown: Shown,
        typed: CommandSyntax,
    ) -> Sequence[str]:
        known_stops, known_breakers = self._before_stops or (self.stops, self.breakers)
        self._before_stops = None
        before = {(s.scope, s.target): s for s in known_stops}
        after = {(s.scope, s.target): s for s in stops}
        threads = {b.thread_id for b in known_breakers}
        new = [s for k, s in after.items() if k not in before and s.by != self._me]
        lines = [stopped_words(s, shown, typed) for s in new]
        lines += [f"{_what(s, shown)} may go on" for k, s in before.items() if k not in after]
        lines += [breaker_words(b, shown, typed) for b in breakers if b.thread_id not in threads]
        gone = threads - {b.thread_id for b in breakers}
        lines += [f"{shown(thread)} may go on" for thread in sorted(gone)]
        self.stops, self.breakers = stops, breakers
        return lines

    def _takeovers(self, takeovers: tuple[Takeover, ...], typed: CommandSyntax) -> Sequence[str]:
        known = self.takeovers if self._before_takeovers is None else self._before_takeovers
        self._before_takeovers = None
        before = {held.agent: held for held in known}
        after = {held.agent: held for held in takeovers}
        lines = [
            takeover_words(held, self._me, typed)
            for agent, held in after.items()
            if held.by != self._me and (agent not in before or before[agent].by != held.by)
        ]
        lines += [f"{agent} speaks for itself again" for agent in before if agent not in after]
        self.takeovers = takeovers
        return lines

    def status(self) -> list[tuple[str, str]]:
        """Parts of a status line: a kind (lost, unread, quiet) and a text."""
        parts = []
        if count := len(self.mine):
            parts.append(("unread", f"{count} to approve"))
        if self.stops or self.breakers:
            parts.append(("lost", ", ".join(self._stopped())))
        for held in self.takeovers:
            who = "you speak" if held.by == self._me else f"{held.by} speaks"
            parts.append(("unread", f"{who} for {held.agent}"))
        return parts

    def _stopped(self) -> Iterable[str]:
        if any(stop.scope == "all" for stop in self.stops):
            yield "everything is stopped"
        elif count := len(self.stops):
            yield f"{count} stopped"
        if count := len(self.breakers):
            yield counted(count, "breaker open", "breakers open")


def overheard(signal: Signal) -> ObservedMessage | None:
    """What reached an agent that this person speaks for, if the signal tells that."""
    return ObservedMessage.model_validate(signal.data) if signal.type == "overheard" else None


# In words -----------------------------------------------------------------------------------------


def arguments_words(arguments: Mapping[str, JsonValue]) -> list[str]:
    """`path: "a.txt"` lines, long values cut."""
    return [
        f"{one_line(name)}: {clip(one_line(json.dumps(value, ensure_ascii=False)), ARGUMENT)}"
        for name, value in arguments.items()
    ] or ["without arguments"]


def approval_words(approval: Approval, shown: Shown, typed: CommandSyntax) -> list[str]:
    """What an agent asks for, and what to type."""
    where = shown(approval.thread_id)
    lines = [f"{approval.agent} asks to run {one_line(approval.tool)} in {where}"]
    if approval.description:
        lines.append(f"   {one_line(approval.description)}")
    if approval.reason:
        lines.append(f"   because: {one_line(approval.reason)}")
    lines += [f"   {line}" for line in arguments_words(approval.arguments)]
    deny = typed(f"approvals deny {approval.id} <reason>")
    until = moment(approval.expires_at)
    if approval.may_decide:
        lines.append(f"   {typed(f'approvals approve {approval.id}')} or {deny}; expires {until}")
    else:
        lines.append(f"   {approval.id}: {', '.join(approval.approvers) or 'an owner'} decides")
    return lines


def decided_words(approval: Approval) -> str:
    """How it was decided."""
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    state = "approved" if approval.state == "started" else approval.state
    changed = approval.final is not None and approval.final != approval.arguments
    why = f": {one_line(approval.verdict)}" if approval.verdict else ""
    with_changes = " with other arguments" if changed else ""
    asked = f"{one_line(approval.tool)} of {approval.agent} ({approval.id})"
    return f"{asked} is {state}{by}{with_changes}{why}"


def _what(stop: Stopped, shown: Shown) -> str:
    match stop.scope:
        case "all":
            return "everything"
        case "thread":
            return shown(stop.target or "")
        case _:
            return one_line(stop.target or stop.scope)


def stopped_words(stop: Stopped, shown: Shown, typed: CommandSyntax) -> str:
    """`ann has stopped editor: too loud (1 turn ended, 2 wakes dropped); /resume agent editor`."""
    why = f": {one_line(stop.reason)}" if stop.reason else ""
    did = [f"{counted(stop.turns, 'turn', 'turns')} ended"] if stop.turns else []
    if stop.wakes:
        did.append(f"{counted(stop.wakes, 'wake', 'wakes')} dropped")
    done = f" ({', '.join(did)})" if did else ""
    target = shown(stop.target) if stop.scope == "thread" and stop.target else stop.target
    if stop.scope == "turn" and not (stop.turns or stop.wakes):
        return f"{stop.target} had ended before"
    again = f"resume {stop.scope} {typed.name(target) if target else ''}".strip()
    way = "" if stop.scope == "turn" else f"; {typed(again)} lets it go on"
    return f"{stop.by} has stopped {_what(stop, shown)}{why}{done}{way}"


def breaker_words(breaker: BreakerState, shown: Shown, typed: CommandSyntax) -> str:
    """`#desk is stopped by its breaker: 61 turns began in 60 s; /resume thread #desk …`."""
    where = shown(breaker.thread_id)
    began = f"{breaker.turns} turns began in {span_words(breaker.within_s)}"
    way = typed(f"resume thread {typed.name(where)}")
    return f"{where} is stopped by its breaker: {began}; {way} lets it go on"


def takeover_words(held: Takeover, me: str, typed: CommandSyntax) -> str:
    """`you speak for editor until 12:30`, and how."""
    until = moment(held.until)
    if held.by != me:
        return f"{held.by} speaks for {held.agent} until {until}"
    way = f"send --speak-as {held.agent} …" if typed.shell else f"agents as {held.agent} …"
    ends = typed(f"agents release {held.agent}")
    return f"you speak for {held.agent} until {until}: {typed(way)} does, {ends} ends it"
