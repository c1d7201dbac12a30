"""Who wakes: the hub's decision for a message and each of its recipients, as a pure function.

`RULES` is the table that it decides by; docs/explanation/wakes.md is generated from it. What the
rules let wake may be kept from it all the same, by limits and by people: `KEPT_BACK`.

A service counts as an agent: programs open small interactions. An agent for which a person speaks
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
    "KEPT_BACK",
    "RULES",
    "SENTENCES",
    "Decision",
    "Facts",
    "Reason",
    "WakeContext",
    "WakeRule",
    "Whom",
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
    """Why a message wakes a recipient, or does not."""

    DIRECT = "direct"
    MENTION = "mention"
    LAST_SPEAKER = "last_speaker"
    BROADCAST = "broadcast"
    NOT_AN_AGENT = "not_an_agent"
    RESULT = "result"
    TIMER = "timer"
    HOP_LIMIT = "hop_limit"
    # What keeps a message from waking whom the rules would wake.
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
    # The remaining ones need no record: they follow from the message.
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
    Reason.LAST_SPEAKER: "it follows what the agent said last in this thread and mentions nobody",
    Reason.BROADCAST: "it is a broadcast, and the network's policy lets it wake every agent",
    Reason.NOT_AN_AGENT: "only agents are woken",
    Reason.HOP_LIMIT: "its interaction has reached its hop limit: it arrives, but wakes nobody",
    Reason.RESULT: "it ends a request of the agent's",
    Reason.TIMER: "a timer has come that was set for the agent",
    Reason.BUDGET_WAKES: "its interaction has started as many turns as it may",
    Reason.BUDGET_FAN_OUT: "one message wakes no more agents than that",
    Reason.BUDGET_AGENTS: "its interaction has woken as many different agents as it may",
    Reason.BUDGET_WALL_CLOCK: "its interaction has gone on for as long as it may",
    Reason.BUDGET_TOKENS: "its interaction has used its tokens",
    Reason.BUDGET_USD: "its interaction has used its money",
    Reason.DAILY_AGENT: "the agent has spent what it may spend in a day",
    Reason.DAILY_THREAD: "what may be spent in this thread in a day is spent",
    Reason.DAILY_NETWORK: "what the network may spend in a day is spent",
    Reason.LOOP_LIMIT: "the two agents have woken each other often, and no person spoke between",
    Reason.STOPPED: "a person has stopped the agent, the thread or everything",
    Reason.BREAKER_OPEN: "too many turns began in this thread; a person must release it",
    Reason.TAKEN_OVER: "a person speaks for the agent at present",
    Reason.MUTED: "the agent has muted the thread, and the message does not mention it",
    Reason.AMENDMENT: "it edits or deletes an earlier message",
    Reason.IMPORTED: "it comes from a transcript: it was said long ago, and elsewhere",
    Reason.SILENT: "its sender wants it to wake nobody",
    Reason.OWN: "nobody is woken by a message of its own",
    Reason.SYSTEM: "notices of the hub wake nobody",
    Reason.NOT_RECEIVED: "the message did not reach the agent",
    Reason.NOT_MENTIONED: "it does not mention the agent, and does not address it otherwise",
    Reason.BROADCAST_POLICY: "by the network's policy such a broadcast wakes only whom it mentions",
}


KEPT_BACK: Mapping[Reason, str] = {
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
"""What keeps a message from waking whom the rules would wake, in the order in which it is looked
at; and the setting or the command that it comes from."""


class WakeContext(StrEnum):
    """Where a message stands, as far as that matters for who wakes."""

    DIRECT = "direct"
    CHANNEL = "in a channel"
    REPLIES = "in a reply thread"
    BROADCAST = "broadcast"
    RESULT = "result of a request, or its failure"
    NOTICE = "notice of the hub"
    AMENDMENT = "edit or deletion of an earlier message"
    TIMER = "timer that has come"
    IMPORTED = "imported from a transcript"
    SILENT = "`silent`, wherever it stands"


class Whom(StrEnum):
    RECIPIENTS = "the agents among its recipients"
    MENTIONED = "the agents that it mentions"
    LAST_SPEAKER = "the agents that it mentions; if nobody, the agent that spoke last there"
    EVERYBODY = "every agent"
    ASKER = "the agent that asked"
    NAMED = "the agents for which it was set"
    NOBODY = "nobody"


class WakeRule(NamedTuple):
    """A row of the table."""

    place: WakeContext
    by_person: bool | None
    """Whether a person says it, or an agent or a service; None: anybody."""
    whom: Whom
    reply: ReplyNeed | None
    mentioned: ReplyNeed | None = None
    """What is asked of those it mentions, where that is another thing."""
    policy: str | None = None
    """The value of `network.wake.broadcast` for which this is the rule; None: always."""


RULES = (
    WakeRule(WakeContext.DIRECT, True, Whom.RECIPIENTS, "required"),
    WakeRule(WakeContext.DIRECT, False, Whom.RECIPIENTS, "optional"),
    WakeRule(WakeContext.CHANNEL, True, Whom.MENTIONED, "required"),
    WakeRule(WakeContext.CHANNEL, False, Whom.MENTIONED, "optional"),
    WakeRule(WakeContext.REPLIES, True, Whom.LAST_SPEAKER, "required"),
    WakeRule(WakeContext.REPLIES, False, Whom.MENTIONED, "optional"),
    WakeRule(WakeContext.BROADCAST, True, Whom.EVERYBODY, "optional", "required", "humans"),
    WakeRule(WakeContext.BROADCAST, False, Whom.MENTIONED, "optional", None, "humans"),
    WakeRule(WakeContext.BROADCAST, True, Whom.EVERYBODY, "optional", "required", "all"),
    WakeRule(WakeContext.BROADCAST, False, Whom.EVERYBODY, "optional", None, "all"),
    WakeRule(WakeContext.BROADCAST, True, Whom.MENTIONED, "required", None, "mentioned"),
    WakeRule(WakeContext.BROADCAST, False, Whom.MENTIONED, "optional", None, "mentioned"),
    WakeRule(WakeContext.RESULT, None, Whom.ASKER, "optional"),
    WakeRule(WakeContext.NOTICE, None, Whom.NOBODY, None),
    WakeRule(WakeContext.AMENDMENT, None, Whom.NOBODY, None),
    WakeRule(WakeContext.TIMER, None, Whom.NAMED, "optional"),
    WakeRule(WakeContext.IMPORTED, None, Whom.NOBODY, None),
    WakeRule(WakeContext.SILENT, None, Whom.NOBODY, None),
)
"""Who wakes."""

_RULES = {(rule.place, rule.by_person, rule.policy): rule for rule in RULES}
# Looked up for very many messages: a member of an enumeration takes Python 3.11 as long as a call.
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
_EVERYBODY, _LAST_SPEAKER = Whom.EVERYBODY, Whom.LAST_SPEAKER


class Decision(NamedTuple):
    """What a message means for one participant; `reply` is None if it does not wake."""

    participant: str
    reason: Reason
    reply: ReplyNeed | None


_decision = lru_cache(maxsize=4096)(Decision)
"""The same few are made over and over: to this agent, for that reason."""


@dataclass(slots=True)
class Facts:
    """What the decision depends on. Participants are given without the sender."""

    type: MessageType
    sender_kind: SenderKind
    agents: Set[str]
    """All agents of the network."""
    recipients: Iterable[str] = ()
    """Of a direct message."""
    audience: Set[str] = frozenset()
    """Who receives the message as a member of its channel, or of the network."""
    mentions: Iterable[str] = ()
    """Mentioned participants who receive the message."""
    in_reply_thread: bool = False
    last_agent: str | None = None
    """The agent that spoke last in the thread."""
    at_hop_limit: bool = False


def decide(facts: Facts, policy: WakePolicy) -> list[Decision]:
    """One decision for each participant whom the message reaches by name.

    Members whom the message does not name have none: `explain_absence` says why.
    """
    if facts.type == "direct":
        kind, agents, at_limit = facts.sender_kind, facts.agents, facts.at_hop_limit
        return [decide_direct(p, kind, p in agents, at_limit) for p in facts.recipients]
    rule = _rule(facts, policy)
    reply = rule.mentioned or rule.reply
    named = {p: _decision(p, Reason.MENTION, reply) for p in facts.mentions}
    if rule.whom is _EVERYBODY:
        for agent in facts.agents & facts.audience:
            named.setdefault(agent, _decision(agent, Reason.BROADCAST, rule.reply))
    elif rule.whom is _LAST_SPEAKER and not named:
        last = facts.last_agent
        if last is not None and last in facts.agents and last in facts.audience:
            named[last] = _decision(last, Reason.LAST_SPEAKER, rule.reply)
    return [
        _temper(
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
    """`decide` for one recipient of a direct message, which needs no more than this; `agent`:
    whether it is one."""
    decision = Decision(recipient, Reason.DIRECT, _REPLY[sender_kind == "human"])
    return _temper(decision, sender_kind, agent, at_hop_limit)


@lru_cache(maxsize=4096)
def own_delivery(participant: str) -> Decision:
    """That of a message to who says it: for other sockets of its own."""
    return _decision(participant, Reason.OWN, None)


def decide_result(
    recipients: Iterable[str], asker: str, sender_kind: SenderKind, agents: Set[str]
) -> list[Decision]:
    """Decisions for a direct message that ends a request of `asker`: nothing but that wakes, and
    not even the hop limit is in its way."""
    return [
        _decision(p, Reason.RESULT, "optional")
        if p == asker and p in agents
        else _temper(_decision(p, Reason.DIRECT, "optional"), sender_kind, p in agents, False)
        for p in recipients
    ]


def decide_amendment(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for an edit or a deletion: it reaches whom the message reached, and wakes nobody,
    not even those whom the new text mentions."""
    return [_decision(p, Reason.AMENDMENT, None) for p in recipients]


def decide_timer(
    recipients: Iterable[str], named: Iterable[str], agents: Set[str]
) -> list[Decision]:
    """Decisions for what a timer says: it wakes those agents among whom it names."""
    found = {p: _decision(p, Reason.SYSTEM, None) for p in recipients}
    for p in named:
        found[p] = (
            _decision(p, Reason.TIMER, "optional")
            if p in agents
            else _decision(p, Reason.NOT_AN_AGENT, None)
        )
    return list(found.values())


def decide_imported(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for a message of a transcript: it is there, and wakes nobody."""
    return [_decision(p, Reason.IMPORTED, None) for p in recipients]


def decide_silent(recipients: Iterable[str]) -> list[Decision]:
    """Decisions for a message that is to wake nobody."""
    return [_decision(p, Reason.SILENT, None) for p in recipients]


def _temper(
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
    """Why a message that has no decision for an agent did not wake it."""
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
