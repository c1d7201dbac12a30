"""Wakes: for each message and recipient, does the recipient wake? A pure function.

`RULES` is the table it decides by; docs/explanation/wakes.md is generated from it. Limits and
people can still suppress a wake that the rules allow: `SUPPRESSIONS`.

A service counts as an agent: programs open small interactions. An agent that a person speaks for
counts as a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from hubbub.config.models import WakePolicy
from hubbub.protocol.messages import MessageType, ReplyNeed, SenderKind

__all__ = [
    "RULES",
    "SENTENCES",
    "SUPPRESSIONS",
    "Decision",
    "Facts",
    "Reason",
    "WakeContext",
    "WakeRule",
    "WakeTargets",
    "decide",
    "decide_amendment",
    "decide_direct",
    "decide_imported",
    "decide_result",
    "decide_silent",
    "decide_timer",
    "explain_absence",
    "own_delivery",
]


class Reason(StrEnum):
    """Why a message wakes a recipient or does not."""

    DIRECT = "direct"
    MENTION = "mention"
    LAST_SPEAKER = "last_speaker"
    BROADCAST = "broadcast"
    NOT_AN_AGENT = "not_an_agent"
    RESULT = "result"
    TIMER = "timer"
    HOP_LIMIT = "hop_limit"
    # Suppress a wake that the rules allow.
    BUDGET_WAKES = "budget_wakes"
    BUDGET_FAN_OUT = "budget_fan_out"
    BUDGET_AGENTS = "budget_agents"
    BUDGET_WALL_CLOCK = "budget_wall_clock"
    BUDGET_TOKENS = "budget_tokens"
    BUDGET_USD = "budget_usd"
    DAILY_AGENT = "daily_agent"
    DAILY_THREAD = "daily_thread"
    DAILY_NETWORK = "daily_network"
    LOOP_LIMIT = "loop_limit"
    STOPPED = "stopped"
    BREAKER_OPEN = "breaker_open"
    TAKEN_OVER = "taken_over"
    MUTED = "muted"
    # Not recorded, as they follow from the message.
    OWN = "own"
    SYSTEM = "system"
    NOT_RECEIVED = "not_received"
    NOT_MENTIONED = "not_mentioned"
    AMENDMENT = "amendment"
    IMPORTED = "imported"
    SILENT = "silent"
    BROADCAST_POLICY = "broadcast_policy"


SENTENCES: dict[Reason, str] = {
    Reason.DIRECT: "it is a direct message to the agent",
    Reason.MENTION: "it mentions the agent",
    Reason.LAST_SPEAKER: "the agent posted last in this reply thread, and it mentions no one else",
    Reason.BROADCAST: "it is a broadcast, and the network's policy lets it wake every agent",
    Reason.NOT_AN_AGENT: "only agents are woken",
    Reason.HOP_LIMIT: "its interaction reached its hop limit: it is delivered but wakes no one",
    Reason.RESULT: "it completes a request that the agent made",
    Reason.TIMER: "a timer set for the agent fired",
    Reason.BUDGET_WAKES: "its interaction reached its limit of turns",
    Reason.BUDGET_FAN_OUT: "the message reached the limit of agents that one message wakes",
    Reason.BUDGET_AGENTS: "its interaction reached its limit of different agents",
    Reason.BUDGET_WALL_CLOCK: "its interaction ran out of time",
    Reason.BUDGET_TOKENS: "its interaction used up its tokens",
    Reason.BUDGET_USD: "its interaction used up its money",
    Reason.DAILY_AGENT: "the agent's daily budget is used up",
    Reason.DAILY_THREAD: "the thread's daily budget is used up",
    Reason.DAILY_NETWORK: "the network's daily budget is used up",
    Reason.LOOP_LIMIT: "the two agents keep waking each other, with no person in between",
    Reason.STOPPED: "a person stopped the agent, the thread or everything",
    Reason.BREAKER_OPEN: "too many turns began in this thread; a person must release it",
    Reason.TAKEN_OVER: "a person has taken over the agent",
    Reason.MUTED: "the agent muted the thread, and the message does not mention it",
    Reason.AMENDMENT: "it edits or deletes an earlier message",
    Reason.IMPORTED: "it was imported from a transcript",
    Reason.SILENT: "its sender asked that it wake no one",
    Reason.OWN: "a message does not wake its own sender",
    Reason.SYSTEM: "notices of the hub wake no one",
    Reason.NOT_RECEIVED: "the message did not reach the agent",
    Reason.NOT_MENTIONED: "it neither mentions the agent nor addresses it in any other way",
    Reason.BROADCAST_POLICY: "by the network's policy, this broadcast wakes only those it mentions",
}


SUPPRESSIONS: Mapping[Reason, str] = {
    Reason.HOP_LIMIT: "network.budgets.hops",
    Reason.MUTED: "mute_thread",
    Reason.STOPPED: "hubbub stop",
    Reason.BREAKER_OPEN: "network.breaker",
    Reason.TAKEN_OVER: "hubbub agents takeover",
    Reason.BUDGET_WALL_CLOCK: "network.budgets.wall_clock",
    Reason.BUDGET_TOKENS: "network.budgets.tokens",
    Reason.BUDGET_USD: "network.budgets.usd",
    Reason.BUDGET_WAKES: "network.budgets.wakes",
    Reason.BUDGET_AGENTS: "network.budgets.agents",
    Reason.BUDGET_FAN_OUT: "network.budgets.fan_out",
    Reason.DAILY_NETWORK: "network.daily.network",
    Reason.DAILY_THREAD: "network.daily.thread",
    Reason.DAILY_AGENT: "network.daily.agent",
    Reason.LOOP_LIMIT: "network.wake.loop_limit",
}
"""What suppresses a wake that the rules allow, in the order checked, and the setting or command
behind it."""


class WakeContext(StrEnum):
    """The kind of message or thread, as far as it matters for wakes."""

    DIRECT = "direct"
    CHANNEL = "in a channel"
    REPLIES = "in a reply thread"
    BROADCAST = "broadcast"
    RESULT = "result or failure of a request"
    NOTICE = "notice of the hub"
    AMENDMENT = "edit or deletion of an earlier message"
    TIMER = "timer that fired"
    IMPORTED = "imported from a transcript"
    SILENT = "`silent`, in any thread"


class WakeTargets(StrEnum):
    RECIPIENTS = "the agents among its recipients"
    MENTIONED = "the agents it mentions"
    LAST_SPEAKER = "the agents it mentions; if none, the last agent to post there"
    EVERY_AGENT = "every agent"
    ASKER = "the agent that made the request"
    NAMED = "the agents it was set for"
    NONE = "no one"


class WakeRule(NamedTuple):
    """A row of the table."""

    place: WakeContext
    by_person: bool | None
    """Whether the sender is a person rather than an agent or a service; None: any sender."""
    targets: WakeTargets
    reply: ReplyNeed | None
    mentioned: ReplyNeed | None = None
    """The reply asked of mentioned agents, if it differs."""
    policy: str | None = None
    """The value of `network.wake.broadcast` that the rule applies to; None: any."""


RULES = (
    WakeRule(WakeContext.DIRECT, True, WakeTargets.RECIPIENTS, "required"),
    WakeRule(WakeContext.DIRECT, False, WakeTargets.RECIPIENTS, "optional"),
    WakeRule(WakeContext.CHANNEL, True, WakeTargets.MENTIONED, "required"),
    WakeRule(WakeContext.CHANNEL, False, WakeTargets.MENTIONED, "optional"),
    WakeRule(WakeContext.REPLIES, True, WakeTargets.LAST_SPEAKER, "required"),
    WakeRule(WakeContext.REPLIES, False, WakeTargets.MENTIONED, "optional"),
    WakeRule(
        WakeContext.BROADCAST, True, WakeTargets.EVERY_AGENT, "optional", "required", "humans"
    ),
    WakeRule(WakeContext.BROADCAST, False, WakeTargets.MENTIONED, "optional", None, "humans"),
    WakeRule(WakeContext.BROADCAST, True, WakeTargets.EVERY_AGENT, "optional", "required", "all"),
    WakeRule(WakeContext.BROADCAST, False, WakeTargets.EVERY_AGENT, "optional", None, "all"),
    WakeRule(WakeContext.BROADCAST, True, WakeTargets.MENTIONED, "required", None, "mentioned"),
    WakeRule(WakeContext.BROADCAST, False, WakeTargets.MENTIONED, "optional", None, "mentioned"),
    WakeRule(WakeContext.RESULT, None, WakeTargets.ASKER, "optional"),
    WakeRule(WakeContext.NOTICE, None, WakeTargets.NONE, None),
    WakeRule(WakeContext.AMENDMENT, None, WakeTargets.NONE, None),
    WakeRule(WakeContext.TIMER, None, WakeTargets.NAMED, "optional"),
    WakeRule(WakeContext.IMPORTED, None, WakeTargets.NONE, None),
    WakeRule(WakeContext.SILENT, None, WakeTargets.NONE, None),
)
"""Which agents wake."""

_RULES = {(rule.place, rule.by_person, rule.policy): rule for rule in RULES}
# These lookups are hot: in Python 3.11 an enum member access costs as much as a call.
_REPLY: Mapping[bool, ReplyNeed] = {
    person: _RULES[WakeContext.DIRECT, person, None].reply or "optional" for person in (True, False)
}
_IN_REPLIES = {person: _RULES[WakeContext.REPLIES, person, None] for person in (True, False)}
_IN_CHANNELS = {person: _RULES[WakeContext.CHANNEL, person, None] for person in (True, False)}
_BROADCAST = {
    (person, policy): rule
    for (place, person, policy), rule in _RULES.items()
    if place is WakeContext.BROADCAST
}
_EVERY_AGENT, _LAST_SPEAKER = WakeTargets.EVERY_AGENT, WakeTargets.LAST_SPEAKER


class Decision(NamedTuple):
    """What a message means for one participant; `reply` is None unless it wakes."""

    participant: str
    reason: Reason
    reply: ReplyNeed | None


_decision = lru_cache(maxsize=4096)(Decision)
"""Cached, as the same few decisions recur."""


@dataclass(slots=True)
class Facts:
    """The inputs of a decision. Sets of participants exclude the sender."""

    type: MessageType
    sender_kind: SenderKind
    agents: Set[str]
    """All agents of the network."""
    recipients: Iterable[str] = ()
    """The recipients of a direct message."""
    audience: Set[str] = frozenset()
    """Those who receive the message as members of its channel, or of the network."""
    mentions: Iterable[str] = ()
    """Mentioned participants who receive the message."""
    in_reply_thread: bool = False
    last_agent: str | None = None
    """The last agent to post in the thread."""
    at_hop_limit: bool = False


def decide(facts: Facts, policy: WakePolicy) -> list[Decision]:
    """One decision for each participant that the message addresses by name.

    Other members have none; `explain_absence` gives the reason.
    """
    if facts.type == "direct":
        kind, agents, at_limit = facts.sender_kind, facts.agents, facts.at_hop_limit
        return [decide_direct(p, kind, p in agents, at_limit) for p in facts.recipients]
    rule = _rule(facts, policy)
    reply = rule.mentioned or rule.reply
    named = {p: _decision(p, Reason.MENTION, reply) for p in facts.mentions}
    if rule.targets is _EVERY_AGENT:
        for agent in facts.agents & facts.audience:
            named.setdefault(agent, _decision(agent, Reason.BROADCAST, rule.reply))
    elif rule.targets is _LAST_SPEAKER and not named:
        last = facts.last_agent
        if last is not None and last in facts.agents and last in facts.audience:
            named[last] = _decision(last, Reason.LAST_SPEAKER, rule.reply)
    return [
        _final(
            decision, facts.sender_kind, decision.participant in facts.agents, facts.at_hop_limit
        )
        for decision in named.values()
    ]


def _rule(facts: Facts, policy: WakePolicy) -> WakeRule:
    person = facts.sender_kind == "human"
    if facts.in_reply_thread:
        return _IN_REPLIES[person]
    if facts.type == "broadcast":
        return _BROADCAST[person, policy.broadcast]
    return _IN_CHANNELS[person]


@lru_cache(maxsize=4096)
def decide_direct(
    recipient: str, sender_kind: SenderKind, agent: bool, at_hop_limit: bool
) -> Decision:
    """`decide` for one recipient of a direct message. `agent`: whether the recipient is one."""
    decision = Decision(recipient, Reason.DIRECT, _REPLY[sender_kind == "human"])
    return _final(decision, sender_kind, agent, at_hop_limit)


@lru_cache(maxsize=4096)
def own_delivery(participant: str) -> Decision:
    """The decision that delivers a message to its sender's other sockets."""
    return _decision(participant, Reason.OWN, None)


def decide_result(
    recipients: Iterable[str], asker: str, sender_kind: SenderKind, agents: Set[str]
) -> list[Decision]:
    """Decisions for a direct message that completes a request of `asker`. It wakes only the asker,
    and the hop limit does not apply."""
    return [
        _decision(p, Reason.RESULT, "optional")
        if p == asker and p in agents
        else _final(_decision(p, Reason.DIRECT, "optional"), sender_kind, p in agents, False)
        for p in recipients
    ]


def decide_amendment(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for an edit or a deletion. It reaches the recipients of the original and wakes no
    one, not even participants that the new text mentions."""
    return [_decision(p, Reason.AMENDMENT, None) for p in recipients]


def decide_timer(
    recipients: Iterable[str], named: Iterable[str], agents: Set[str]
) -> list[Decision]:
    """Decisions for the message of a timer: it wakes the agents it names."""
    decisions = {p: _decision(p, Reason.SYSTEM, None) for p in recipients}
    for p in named:
        decisions[p] = (
            _decision(p, Reason.TIMER, "optional")
            if p in agents
            else _decision(p, Reason.NOT_AN_AGENT, None)
        )
    return list(decisions.values())


def decide_imported(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for a message imported from a transcript: it wakes no one."""
    return [_decision(p, Reason.IMPORTED, None) for p in recipients]


def decide_silent(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for a message whose sender asked that it wake no one."""
    return [_decision(p, Reason.SILENT, None) for p in recipients]


def _final(
    decision: Decision, sender_kind: SenderKind, agent: bool, at_hop_limit: bool
) -> Decision:
    if sender_kind == "system":
        return _decision(decision.participant, Reason.SYSTEM, None)
    if not agent:
        return _decision(decision.participant, Reason.NOT_AN_AGENT, None)
    if at_hop_limit:
        return _decision(decision.participant, Reason.HOP_LIMIT, None)
    return decision


def explain_absence(
    *,
    own: bool,
    received: bool,
    type: MessageType,
    sender_kind: SenderKind,
    amends: bool = False,
    imported: bool = False,
    timer: bool = False,
) -> Reason:
    """Why a message without a decision for an agent did not wake it."""
    if own:
        return Reason.OWN
    if not received:
        return Reason.NOT_RECEIVED
    if imported:
        return Reason.IMPORTED
    if sender_kind == "system" and not timer:
        return Reason.SYSTEM
    if amends:
        return Reason.AMENDMENT
    if timer:
        return Reason.NOT_MENTIONED
    return Reason.BROADCAST_POLICY if type == "broadcast" else Reason.NOT_MENTIONED
