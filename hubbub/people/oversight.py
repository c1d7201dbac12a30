"""A person's view of approvals, stops and takeovers. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from hubbub.people.figures import CommandSyntax, moment, span_text
from hubbub.people.text import clip, counted, one_line, visible
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
from hubbub.wording import alternatives

__all__ = [
    "Oversight",
    "approval_lines",
    "breaker_text",
    "decision_text",
    "observed_message",
    "stop_text",
    "takeover_text",
]

ARGUMENT = 500
"""Columns of a line of arguments that is cut."""
ARGUMENT_LINES = 40
"""Lines of arguments that are cut."""
Shown = Callable[[str], str]
"""Formats a thread's canonical id for the reader."""
_Held = tuple[tuple[Stopped, ...], tuple[BreakerState, ...]]


class Oversight:
    """Approvals, stops and takeovers, kept up to date from the hub's signals."""

    def __init__(self, me: str) -> None:
        self._me = me
        self.approvals: dict[str, Approval] = {}
        """Pending approvals by id, in the order of the requests."""
        self.stops: tuple[Stopped, ...] = ()
        self.breakers: tuple[BreakerState, ...] = ()
        self.takeovers: tuple[Takeover, ...] = ()
        self._announced: set[str] = set()
        self._before_stops: _Held | None = None
        self._before_takeovers: tuple[Takeover, ...] | None = None

    def renew(self) -> None:
        """Start over on a new connection: the hub sends the current state, except for empty parts.
        State from before the reconnection is not announced again."""
        if self._before_stops is None:
            self._before_stops = (self.stops, self.breakers)
        if self._before_takeovers is None:
            self._before_takeovers = self.takeovers
        self.approvals, self.stops, self.breakers, self.takeovers = {}, (), (), ()

    @property
    def mine(self) -> list[Approval]:
        """Approvals that this person can decide."""
        return [approval for approval in self.approvals.values() if approval.may_decide]

    @property
    def controlled_agents(self) -> list[str]:
        """Agents that this person speaks for."""
        return [held.agent for held in self.takeovers if held.by == self._me]

    def note(self, approval: Approval) -> bool:
        """Note the current state of an approval; returns whether it is new to this person."""
        if approval.state == "pending":
            self.approvals[approval.id] = approval
            new = approval.id not in self._announced
            self._announced.add(approval.id)
            return new
        self._announced.discard(approval.id)
        return self.approvals.pop(approval.id, None) is not None

    def notifies_end(self, scope: str, target: str | None) -> bool:
        """Whether a signal will announce the end of this stop or takeover: only of known ones."""
        if scope == "breaker":
            return any(each.thread_id == target for each in self.breakers)
        if scope == "takeover":
            return any(held.agent == target for held in self.takeovers)
        return any((stop.scope, stop.target) == (scope, target) for stop in self.stops)

    def hear(self, signal: Signal, shown: Shown, typed: CommandSyntax) -> Sequence[str]:
        """Process a signal; returns lines about changes, except those made by this person."""
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
            return approval_lines(approval, shown, typed)
        return [decision_text(approval)]

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
        lines = [stop_text(s, shown, typed) for s in new]
        lines += [f"{_what(s, shown)} is resumed" for k, s in before.items() if k not in after]
        lines += [breaker_text(b, shown, typed) for b in breakers if b.thread_id not in threads]
        gone = threads - {b.thread_id for b in breakers}
        lines += [f"{shown(thread)} is resumed" for thread in sorted(gone)]
        self.stops, self.breakers = stops, breakers
        return lines

    def _takeovers(self, takeovers: tuple[Takeover, ...], typed: CommandSyntax) -> Sequence[str]:
        known = self.takeovers if self._before_takeovers is None else self._before_takeovers
        self._before_takeovers = None
        before = {held.agent: held for held in known}
        after = {held.agent: held for held in takeovers}
        lines = [
            takeover_text(held, self._me, typed)
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


def observed_message(signal: Signal) -> ObservedMessage | None:
    """The message in a signal about a message to an agent that this person speaks for."""
    return ObservedMessage.model_validate(signal.data) if signal.type == "overheard" else None


# Text ---------------------------------------------------------------------------------------------


def argument_lines(arguments: Mapping[str, JsonValue]) -> list[str]:
    """Lines such as `path: "a.txt"`. Texts keep their line breaks and come last."""
    lines, texts = list[str](), list[str]()
    for name, value in arguments.items():
        if isinstance(value, str) and "\n" in value:
            texts.append(f"{one_line(name)}:")
            texts += [f"   | {line}" for line in visible(value).split("\n")]
        else:
            lines.append(f"{one_line(name)}: {one_line(json.dumps(value, ensure_ascii=False))}")
    return [*lines, *texts] or ["without arguments"]


def approval_lines(
    approval: Approval, shown: Shown, typed: CommandSyntax, *, whole: bool = False
) -> list[str]:
    """An agent's request, and the commands to decide it; without `whole`, long arguments are cut,
    with the command that shows all of them."""
    where = shown(approval.thread_id)
    lines = [f"{approval.agent} asks to run {one_line(approval.tool)} in {where}"]
    if approval.description:
        lines.append(f"   {one_line(approval.description)}")
    if approval.reason:
        lines.append(f"   because: {one_line(approval.reason)}")
    arguments = argument_lines(approval.arguments)
    cut = arguments if whole else [clip(line, ARGUMENT) for line in arguments[:ARGUMENT_LINES]]
    lines += [f"   {line}" for line in cut]
    if cut != arguments:
        lines.append(f"   … is cut: `{typed('approvals list')}` shows all of it")
    deny = typed(f"approvals deny {approval.id} <reason>")
    until = moment(approval.expires_at)
    if approval.may_decide:
        lines.append(f"   {typed(f'approvals approve {approval.id}')} or {deny}; expires {until}")
    else:
        who = alternatives(approval.approvers) or "an owner"
        lines.append(f"   {approval.id}: {who} decides")
    return lines


def decision_text(approval: Approval) -> str:
    """The decision on an approval, or why there is none."""
    request = f"{one_line(approval.tool)} by {approval.agent} ({approval.id})"
    if approval.decided_by is None:
        expired = approval.state == "expired"
        return f"{request} {'has expired' if expired else 'was cancelled: its turn ended'}"
    decision = "denied" if approval.state == "denied" else "approved"
    changed = approval.final is not None and approval.final != approval.arguments
    with_changes = " with other arguments" if changed else ""
    why = f": {one_line(approval.verdict)}" if approval.verdict else ""
    unused = ", but its turn ended before it ran" if approval.state == "cancelled" else ""
    return f"{request} was {decision} by {approval.decided_by}{with_changes}{why}{unused}"


def _what(stop: Stopped, shown: Shown) -> str:
    match stop.scope:
        case "all":
            return "everything"
        case "thread":
            return shown(stop.target or "")
        case _:
            return one_line(stop.target or stop.scope)


def stop_text(stop: Stopped, shown: Shown, typed: CommandSyntax) -> str:
    """`ann stopped editor: too loud (1 turn ended, 2 wakes dropped)`, and how to resume."""
    why = f": {one_line(stop.reason)}" if stop.reason else ""
    effects = [f"{counted(stop.turns, 'turn', 'turns')} ended"] if stop.turns else []
    if stop.wakes:
        effects.append(f"{counted(stop.wakes, 'wake', 'wakes')} dropped")
    done = f" ({', '.join(effects)})" if effects else ""
    target = shown(stop.target) if stop.scope == "thread" and stop.target else stop.target
    if stop.scope == "turn" and not (stop.turns or stop.wakes):
        return f"{stop.target} had already ended"
    resume = f"resume {stop.scope} {typed.name(target) if target else ''}".strip()
    way = "" if stop.scope == "turn" else f"; resume with `{typed(resume)}`"
    return f"{stop.by} stopped {_what(stop, shown)}{why}{done}{way}"


def breaker_text(breaker: BreakerState, shown: Shown, typed: CommandSyntax) -> str:
    """`#desk was stopped by its breaker: 61 turns started in 60 s`, and how to resume."""
    where = shown(breaker.thread_id)
    cause = f"{breaker.turns} turns started in {span_text(breaker.within_s)}"
    way = typed(f"resume thread {typed.name(where)}")
    return f"{where} was stopped by its breaker: {cause}; resume with `{way}`"


def takeover_text(held: Takeover, me: str, typed: CommandSyntax) -> str:
    """`you speak for editor until 12:30`, with the commands for it."""
    until = moment(held.until)
    if held.by != me:
        return f"{held.by} speaks for {held.agent} until {until}"
    way = f"send --speak-as {held.agent} …" if typed.shell else f"agents as {held.agent} …"
    ends = typed(f"agents release {held.agent}")
    return f"you speak for {held.agent} until {until}: post with `{typed(way)}`, end with `{ends}`"
