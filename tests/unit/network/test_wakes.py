from __future__ import annotations

from typing import Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.models import WakePolicy
from hubbub.network.wakes import (
    RULES,
    SENTENCES,
    SUPPRESSIONS,
    Decision,
    Facts,
    Reason,
    WakeContext,
    WakeRule,
    WakeTargets,
    decide,
    decide_amendment,
    decide_imported,
    decide_result,
    decide_silent,
    decide_timer,
    explain_absence,
)
from hubbub.protocol.messages import MessageType, ReplyNeed, SenderKind

AGENTS = frozenset({"calc", "scribe", "guide"})
EVERYBODY = AGENTS | {"ann", "bob"}
HUMANS, ALL, MENTIONED = (
    WakePolicy(broadcast="humans"),
    WakePolicy(broadcast="all"),
    WakePolicy(broadcast="mentioned"),
)


class Case(NamedTuple):
    """A message and the agents that it wakes."""

    type: MessageType
    sender: SenderKind
    wakes: dict[str, tuple[Reason, ReplyNeed]]
    mentions: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    reply_thread: bool = False
    last_agent: str | None = None
    policy: WakePolicy = HUMANS


REQUIRED: ReplyNeed = "required"
OPTIONAL: ReplyNeed = "optional"
DIRECT, MENTION = Reason.DIRECT, Reason.MENTION
BROADCAST, LAST = Reason.BROADCAST, Reason.LAST_SPEAKER


def every_agent(reply: ReplyNeed) -> dict[str, tuple[Reason, ReplyNeed]]:
    return dict.fromkeys(AGENTS, (BROADCAST, reply))


CASES = {
    "direct, human": Case(
        "direct", "human", {"calc": (DIRECT, REQUIRED)}, recipients=("calc", "bob")
    ),
    "direct, agent": Case("direct", "agent", {"calc": (DIRECT, OPTIONAL)}, recipients=("calc",)),
    "direct, service": Case(
        "direct", "service", {"calc": (DIRECT, OPTIONAL)}, recipients=("calc",)
    ),
    "direct, to a group": Case(
        "direct",
        "human",
        {"calc": (DIRECT, REQUIRED), "scribe": (DIRECT, REQUIRED)},
        recipients=("bob", "calc", "scribe"),
        mentions=("calc",),
    ),
    "direct, reply thread": Case(
        "direct",
        "human",
        {"calc": (DIRECT, REQUIRED)},
        recipients=("calc",),
        reply_thread=True,
        last_agent="scribe",
    ),
    "channel, human, mentioning": Case(
        "channel", "human", {"calc": (MENTION, REQUIRED)}, mentions=("calc", "bob")
    ),
    "channel, agent, mentioning": Case(
        "channel", "agent", {"calc": (MENTION, OPTIONAL)}, mentions=("calc",)
    ),
    "channel, human, mentioning nobody": Case("channel", "human", {}),
    "channel, human, after an agent spoke": Case("channel", "human", {}, last_agent="calc"),
    "channel, agent, mentioning nobody": Case("channel", "agent", {}),
    "reply thread, human, mentioning nobody": Case(
        "channel", "human", {"calc": (LAST, REQUIRED)}, reply_thread=True, last_agent="calc"
    ),
    "reply thread, human, nobody spoke": Case("channel", "human", {}, reply_thread=True),
    "reply thread, human, mentioning another": Case(
        "channel",
        "human",
        {"scribe": (MENTION, REQUIRED)},
        mentions=("scribe",),
        reply_thread=True,
        last_agent="calc",
    ),
    "reply thread, human, mentioning a person": Case(
        "channel", "human", {}, mentions=("bob",), reply_thread=True, last_agent="calc"
    ),
    "reply thread, agent": Case("channel", "agent", {}, reply_thread=True, last_agent="calc"),
    "reply thread, service": Case("channel", "service", {}, reply_thread=True, last_agent="calc"),
    "reply thread of the broadcast, human": Case(
        "broadcast", "human", {"calc": (LAST, REQUIRED)}, reply_thread=True, last_agent="calc"
    ),
    "reply thread of the broadcast wakes not everybody": Case(
        "broadcast", "human", {}, reply_thread=True
    ),
    "broadcast, human": Case("broadcast", "human", every_agent(OPTIONAL)),
    "broadcast, human, mentioning": Case(
        "broadcast",
        "human",
        {**every_agent(OPTIONAL), "calc": (MENTION, REQUIRED)},
        mentions=("calc",),
    ),
    "broadcast, agent": Case("broadcast", "agent", {}),
    "broadcast, agent, mentioning": Case(
        "broadcast", "agent", {"calc": (MENTION, OPTIONAL)}, mentions=("calc",)
    ),
    "broadcast, service": Case("broadcast", "service", {}),
    "broadcast, human, mentioned only": Case("broadcast", "human", {}, policy=MENTIONED),
    "broadcast, human, mentioned only, mentioning": Case(
        "broadcast",
        "human",
        {"calc": (MENTION, REQUIRED)},
        mentions=("calc",),
        policy=MENTIONED,
    ),
    "broadcast, agent, all": Case("broadcast", "agent", every_agent(OPTIONAL), policy=ALL),
    "broadcast, human, all": Case("broadcast", "human", every_agent(OPTIONAL), policy=ALL),
    "mod, system": Case("mod", "system", {}, mentions=("calc",)),
    "direct, system": Case("direct", "system", {}, recipients=("calc", "ann")),
    "broadcast, system": Case("broadcast", "system", {}, policy=ALL),
}


def facts(case: Case, *, at_hop_limit: bool = False) -> Facts:
    return Facts(
        type=case.type,
        sender_kind=case.sender,
        agents=AGENTS,
        recipients=case.recipients,
        audience=frozenset() if case.type == "direct" else EVERYBODY,
        mentions=case.mentions,
        in_reply_thread=case.reply_thread,
        last_agent=case.last_agent,
        at_hop_limit=at_hop_limit,
    )


@pytest.mark.behaviour("W-1", "W-2", "W-3", "W-4", "W-5", "W-12")
def test_each_kind_of_message_wakes_the_agents_of_its_case() -> None:
    for name, case in CASES.items():
        decisions = decide(facts(case), case.policy)
        woken = {d.participant: (d.reason, d.reply) for d in decisions if d.reply is not None}
        assert woken == case.wakes, name
        named = [decision.participant for decision in decisions]
        assert len(named) == len(set(named))
        assert set(case.recipients) <= set(named)
        for decision in decisions:
            if decision.participant not in AGENTS:  # people are never woken
                assert decision.reply is None
                assert decision.reason in (Reason.NOT_AN_AGENT, Reason.SYSTEM)
        limited = decide(facts(case, at_hop_limit=True), case.policy)
        assert all(decision.reply is None for decision in limited)
        suppressed = {d.participant for d in limited if d.reason is Reason.HOP_LIMIT}
        assert suppressed == set(case.wakes)
    group = decide(facts(CASES["direct, to a group"]), HUMANS)
    assert {d.participant for d in group} == {"bob", "calc", "scribe"}
    mentioning = decide(facts(CASES["channel, human, mentioning"]), HUMANS)
    assert {d.participant for d in mentioning} == {"bob", "calc"}


def test_only_recipients_of_a_message_wake() -> None:
    after_leave = facts(CASES["reply thread, human, mentioning nobody"])
    after_leave.audience = EVERYBODY - {"calc"}
    assert decide(after_leave, HUMANS) == [], "the last speaker has after_leave"
    before_join = facts(CASES["broadcast, human"])
    before_join.audience = frozenset({"calc", "ann"})
    assert decide(before_join, HUMANS) == [Decision("calc", Reason.BROADCAST, "optional")]


TYPES = st.sampled_from(["direct", "channel", "broadcast", "mod"])
KINDS = st.sampled_from(["agent", "human", "service", "system"])
NAMES = st.sets(st.sampled_from(sorted(EVERYBODY)))


@given(TYPES, KINDS, NAMES, NAMES, NAMES, st.booleans(), st.booleans(), st.data())
def test_any_message_wakes_only_agents_and_every_decision_has_a_sentence(
    type: MessageType,
    kind: SenderKind,
    recipients: set[str],
    audience: set[str],
    mentions: set[str],
    reply_thread: bool,
    at_limit: bool,
    data: st.DataObject,
) -> None:
    policy: Literal["humans", "all", "mentioned"] = data.draw(
        st.sampled_from(["humans", "all", "mentioned"])
    )
    decisions = decide(
        Facts(
            type=type,
            sender_kind=kind,
            agents=AGENTS,
            recipients=sorted(recipients),
            audience=audience,
            mentions=sorted(mentions & audience),
            in_reply_thread=reply_thread,
            last_agent=data.draw(st.none() | st.sampled_from(sorted(EVERYBODY))),
            at_hop_limit=at_limit,
        ),
        WakePolicy(broadcast=policy),
    )
    reached = recipients if type == "direct" else audience
    assert {decision.participant for decision in decisions} <= reached
    for participant, reason, reply in decisions:
        assert SENTENCES[reason]
        if reply is not None:
            assert participant in AGENTS
            assert kind != "system"
            assert not at_limit
            assert reply == "optional" or kind == "human"


@pytest.mark.behaviour("W-13")
def test_every_reason_has_a_sentence_and_every_absence_a_reason() -> None:
    assert set(SENTENCES) == set(Reason)
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    cases: list[tuple[bool, bool, MessageType, SenderKind, Reason]] = [
        (True, False, "direct", "agent", Reason.OWN),
        (True, True, "channel", "agent", Reason.OWN),
        (False, False, "direct", "human", Reason.NOT_RECEIVED),
        (False, False, "channel", "system", Reason.NOT_RECEIVED),
        (False, True, "channel", "system", Reason.SYSTEM),
        (False, True, "channel", "human", Reason.NOT_MENTIONED),
        (False, True, "broadcast", "agent", Reason.BROADCAST_POLICY),
    ]
    for own, received, type, kind, reason in cases:
        decisions = explain_absence(own=own, received=received, type=type, sender_kind=kind)
        assert decisions is reason


PLACES: dict[WakeContext, tuple[MessageType, bool]] = {
    WakeContext.DIRECT: ("direct", False),
    WakeContext.CHANNEL: ("channel", False),
    WakeContext.REPLIES: ("channel", True),
    WakeContext.BROADCAST: ("broadcast", False),
}
"""Per context: the type of its messages, and whether they are in a reply thread."""

WOKEN = {
    WakeTargets.RECIPIENTS: {"guide"},
    WakeTargets.MENTIONED: {"calc"},
    WakeTargets.LAST_SPEAKER: {"scribe"},
    WakeTargets.EVERY_AGENT: set(AGENTS),
}
"""The agents woken by a message to `guide` that mentions `calc`, after `scribe` spoke last."""


def facts_for(rule: WakeRule, *mentions: str) -> Facts:
    type, replies = PLACES[rule.place]
    return Facts(
        type=type,
        sender_kind="human" if rule.by_person else "agent",
        agents=AGENTS,
        recipients=("guide", "bob"),
        audience=EVERYBODY,
        mentions=mentions,
        in_reply_thread=replies,
        last_agent="scribe",
    )


@pytest.mark.behaviour("H-104")
def test_the_hub_decides_as_each_rule_of_the_table_states() -> None:
    for rule in [rule for rule in RULES if rule.place in PLACES]:
        policies: dict[str | None, WakePolicy] = {
            "humans": HUMANS,
            "all": ALL,
            "mentioned": MENTIONED,
        }
        for policy in [policies[rule.policy]] if rule.policy else policies.values():
            mentions = () if rule.targets is WakeTargets.LAST_SPEAKER else ("calc", "bob")
            decisions = {
                who: reply for who, _, reply in decide(facts_for(rule, *mentions), policy) if reply
            }
            assert set(decisions) == WOKEN[rule.targets]
            mentioned = {who: rule.mentioned if who == "calc" else None for who in decisions}
            assert decisions == {who: need or rule.reply for who, need in mentioned.items()}


@pytest.mark.behaviour("H-104")
def test_the_table_has_one_rule_for_each_case() -> None:
    cases = [(rule.place, rule.by_person, rule.policy) for rule in RULES]
    assert len(set(cases)) == len(cases)
    assert {rule.place for rule in RULES} == set(WakeContext)
    (result,) = (rule for rule in RULES if rule.place is WakeContext.RESULT)
    assert (result.targets, result.by_person) == (WakeTargets.ASKER, None)
    for kind in ("agent", "system"):
        decisions = decide_result(["calc", "bob"], "calc", kind, AGENTS)
        woken = [each for each in decisions if each.reply]
        assert woken == [Decision("calc", Reason.RESULT, result.reply)]
    (notice,) = (rule for rule in RULES if rule.place is WakeContext.NOTICE)
    assert (notice.targets, notice.reply) == (WakeTargets.NONE, None)
    for type in ("direct", "channel", "broadcast"):
        notice_facts = Facts(type, "system", AGENTS, ("calc",), EVERYBODY, ("scribe",))
        assert [each for each in decide(notice_facts, ALL) if each.reply] == []


def test_edits_and_imports_wake_no_agent_and_timers_wake_the_agents_they_name() -> None:
    everybody = ["calc", "bob"]
    for decisions, reason in (
        (decide_amendment(everybody), Reason.AMENDMENT),
        (decide_imported(everybody), Reason.IMPORTED),
        (decide_silent(everybody), Reason.SILENT),
        (decide_timer(everybody, (), AGENTS), Reason.SYSTEM),
    ):
        assert decisions == [Decision(who, reason, None) for who in everybody]
    assert decide_timer(["calc", "guide"], ["calc", "bob"], AGENTS) == [
        Decision("calc", Reason.TIMER, "optional"),
        Decision("guide", Reason.SYSTEM, None),
        Decision("bob", Reason.NOT_AN_AGENT, None),
    ]


def test_suppressions_are_the_reasons_that_keep_a_message_from_waking() -> None:
    waking = {Reason.DIRECT, Reason.MENTION, Reason.LAST_SPEAKER, Reason.BROADCAST, Reason.RESULT}
    waking.add(Reason.TIMER)
    other = {Reason.OWN, Reason.SYSTEM, Reason.NOT_RECEIVED, Reason.NOT_MENTIONED}
    other |= {Reason.NOT_AN_AGENT, Reason.BROADCAST_POLICY, Reason.AMENDMENT}
    other |= {Reason.IMPORTED, Reason.SILENT}
    rest = {*waking, *other}
    assert set(SUPPRESSIONS) == set(Reason) - rest
