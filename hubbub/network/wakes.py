"""Who wakes: the hub's decision for a message and each of its recipients, as a pure function.

    message      sender   wakes                                                   reply
    direct       human    the agents among its recipients                         required
    direct       agent    the agents among its recipients                         optional
    channel      human    the agents it mentions                                  required
    channel      agent    the agents it mentions                                  optional
    reply thread human    those it mentions; if nobody, the agent that spoke      required
                          last there
    broadcast    human    every agent; those it mentions must reply               optional
    broadcast    agent    the agents it mentions (`wake.broadcast` may change     optional
                          both rows)
    anything     system   nobody
    anything at the hop limit of its interaction                  nobody

A service counts as an agent: programs open small interactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from hubbub.config.models import WakePolicy
from hubbub.protocol.messages import MessageType, ReplyNeed, SenderKind

__all__ = ["SENTENCES", "Decision", "Facts", "Reason", "decide", "decide_direct", "explain_absence"]


class Reason(StrEnum):
    """Why a message wakes a recipient, or does not."""

    DIRECT = "direct"
    MENTION = "mention"
    LAST_SPEAKER = "last_speaker"
    BROADCAST = "broadcast"
    NOT_AN_AGENT = "not_an_agent"
    RESULT = "result"
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
    DAMPENED = "dampened"
    STOPPED = "stopped"
    LATCHED = "latched"
    TAKEN_OVER = "taken_over"
    # The remaining ones need no record: they follow from the message.
    OWN = "own"
    SYSTEM = "system"
    NOT_RECEIVED = "not_received"
    NOT_MENTIONED = "not_mentioned"
    BROADCAST_POLICY = "broadcast_policy"


SENTENCES: dict[Reason, str] = {
    Reason.DIRECT: "it is a direct message to the agent",
    Reason.MENTION: "it mentions the agent",
    Reason.LAST_SPEAKER: "it follows what the agent said last in this thread and mentions nobody",
    Reason.BROADCAST: "it is a broadcast, and the network's policy lets it wake every agent",
    Reason.NOT_AN_AGENT: "only agents are woken",
    Reason.HOP_LIMIT: "its interaction has reached its hop limit: it arrives, but wakes nobody",
    Reason.RESULT: "it ends a request of the agent's",
    Reason.BUDGET_WAKES: "its interaction has started as many turns as it may",
    Reason.BUDGET_FAN_OUT: "one message wakes no more agents than that",
    Reason.BUDGET_AGENTS: "its interaction has woken as many different agents as it may",
    Reason.BUDGET_WALL_CLOCK: "its interaction has gone on for as long as it may",
    Reason.BUDGET_TOKENS: "its interaction has used its tokens",
    Reason.BUDGET_USD: "its interaction has used its money",
    Reason.DAILY_AGENT: "the agent has spent what it may spend in a day",
    Reason.DAILY_THREAD: "what may be spent in this thread in a day is spent",
    Reason.DAILY_NETWORK: "what the network may spend in a day is spent",
    Reason.DAMPENED: "the two agents have woken each other often, and no person spoke between",
    Reason.STOPPED: "a person has stopped the agent, the thread or everything",
    Reason.LATCHED: "too many turns began in this thread; a person must release it",
    Reason.TAKEN_OVER: "a person speaks for the agent at present",
    Reason.OWN: "nobody is woken by a message of its own",
    Reason.SYSTEM: "notices of the hub wake nobody",
    Reason.NOT_RECEIVED: "the message did not reach the agent",
    Reason.NOT_MENTIONED: "it does not mention the agent, and does not address it otherwise",
    Reason.BROADCAST_POLICY: "by the network's policy such a broadcast wakes only whom it mentions",
}


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
    reply: ReplyNeed = "required" if facts.sender_kind == "human" else "optional"
    if facts.type == "direct":
        return decide_direct(
            facts.recipients, facts.sender_kind, facts.agents, at_hop_limit=facts.at_hop_limit
        )
    named = {p: _decision(p, Reason.MENTION, reply) for p in facts.mentions}
    if facts.type == "broadcast" and not facts.in_reply_thread:
        _add_broadcast(named, facts, policy)
    elif facts.in_reply_thread and not named:
        _add_last_speaker(named, facts)
    return [
        _temper(decision, facts.sender_kind, facts.agents, facts.at_hop_limit)
        for decision in named.values()
    ]


def decide_direct(
    recipients: Iterable[str],
    sender_kind: SenderKind,
    agents: Set[str],
    *,
    at_hop_limit: bool,
) -> list[Decision]:
    """`decide` for a direct message, which needs no more than this."""
    reply: ReplyNeed = "required" if sender_kind == "human" else "optional"
    return [
        _temper(_decision(p, Reason.DIRECT, reply), sender_kind, agents, at_hop_limit)
        for p in recipients
    ]


def _add_broadcast(named: dict[str, Decision], facts: Facts, policy: WakePolicy) -> None:
    human = facts.sender_kind == "human"
    if policy.broadcast == "all" or (policy.broadcast == "humans" and human):
        for agent in facts.agents & facts.audience:
            named.setdefault(agent, Decision(agent, Reason.BROADCAST, "optional"))


def _add_last_speaker(named: dict[str, Decision], facts: Facts) -> None:
    last = facts.last_agent
    if last is None or facts.sender_kind != "human":
        return
    if last in facts.agents and last in facts.audience:
        named[last] = Decision(last, Reason.LAST_SPEAKER, "required")


def _temper(
    decision: Decision, sender_kind: SenderKind, agents: Set[str], at_hop_limit: bool
) -> Decision:
    if sender_kind == "system":
        return _decision(decision.participant, Reason.SYSTEM, None)
    if decision.participant not in agents:
        return _decision(decision.participant, Reason.NOT_AN_AGENT, None)
    if at_hop_limit:
        return _decision(decision.participant, Reason.HOP_LIMIT, None)
    return decision


def explain_absence(
    *, own: bool, received: bool, type: MessageType, sender_kind: SenderKind
) -> Reason:
    """Why a message that has no decision for an agent did not wake it."""
    if own:
        return Reason.OWN
    if not received:
        return Reason.NOT_RECEIVED
    if sender_kind == "system":
        return Reason.SYSTEM
    return Reason.BROADCAST_POLICY if type == "broadcast" else Reason.NOT_MENTIONED
