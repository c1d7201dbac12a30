"""Figures, codes and interaction trees as text, and the lines for control signals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion

from hubbub.errors import UserError
from hubbub.network.wakes import Reason
from hubbub.people.chat.session import ChatSession
from hubbub.people.client import PersonClient
from hubbub.people.commands import CHAT
from hubbub.people.figures import (
    BAR,
    OUTCOMES,
    SHELL,
    bar,
    budget_line,
    delivery_notes,
    duration_text,
    moment,
    outcome_text,
    sentence,
    span_text,
    thousands,
)
from hubbub.people.groups.agents import definition, rolled_out
from hubbub.people.interaction import InteractionView, drawn, lines_of
from hubbub.people.oversight import approval_lines, decision_text
from hubbub.protocol.agents import AgentDefinition, AgentFields, AgentRollout, AgentVersion
from hubbub.protocol.control import Approval, BreakerState, ObservedMessage, Stopped, Takeover
from hubbub.protocol.messages import Message, RequestMark
from hubbub.protocol.operations import Envelope, InteractionWake, Receipt, SendResult, TurnSummary
from hubbub.protocol.spending import BudgetState, Sums
from hubbub.protocol.turns import Outcome
from tests.unit.people.chatting import (
    NOON,
    approval,
    breaker,
    event,
    new_session,
    posted,
    ready,
    shown,
    signal,
    stopped,
    takeover,
)


def test_numbers_and_times_are_formatted_for_people() -> None:
    assert list(map(thousands, (0, 999, 9999, 12_345, 200_000, 1.5e7))) == [
        "0", "999", "9999", "12.3k", "200k", "15M",
    ]  # fmt: skip
    assert list(map(span_text, (8, 119, 720, 10_800, 200_000))) == [
        "8 s", "119 s", "12 min", "3 h", "2 d",
    ]  # fmt: skip
    assert list(map(duration_text, (0, 7.4, 999.4, 999.6, 28_304))) == [
        "0 ms", "7 ms", "999 ms", "1.0 s", "28.3 s",
    ]  # fmt: skip
    now = datetime.now(UTC)
    assert moment(now - timedelta(days=40)).startswith(f"{now - timedelta(days=40):%d %b}")
    for near in (now, now + timedelta(hours=11), now - timedelta(hours=11)):
        assert moment(near) == f"{near:%H:%M}"


def test_every_outcome_and_wake_reason_has_a_text() -> None:
    assert set(get_args(Outcome)) <= set(OUTCOMES)
    assert outcome_text(None) == "running"
    assert outcome_text("budget_exhausted", "usd") == "exhausted its budget: usd"
    assert outcome_text("of_a_newer_hub") == "of a newer hub"
    for code in Reason:
        assert sentence(code) != code
    assert (SHELL.name("#desk"), CHAT.name("#desk")) == ("'#desk'", "#desk")


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_bar_is_full_only_when_the_limit_is_reached(used: float, of: float) -> None:
    drawn = bar(used, of)
    assert len(drawn) == BAR
    assert ("░" not in drawn) == (used >= of)
    if used > 0:
        assert drawn[0] == "█"


def test_a_reached_limit_is_marked() -> None:
    assert budget_line("fan_out", 2, 8).startswith("fan out     ████░")
    assert budget_line("usd", 0.5, 0.5).endswith("$0.50 of $0.50  reached")
    assert budget_line("wakes", 3, 8, reached=True).endswith("3 of 8  reached")


@pytest.mark.behaviour("H-132")
def test_a_sender_sees_which_agents_do_not_wake_why_and_the_remedy(
    snapshot: SnapshotAssertion,
) -> None:
    mine = posted(1, sender="ann")
    result = SendResult(
        id="m1",
        seq=1,
        thread_id="channel.general",
        tseq=1,
        message=mine,
        queued={"bob": 3, "eve": 1},
        not_woken={"dan": "stopped", "fay": "daily_agent", "hal": "of_a_mod"},
    )
    assert "\n".join(delivery_notes(result, CHAT)) == snapshot
    assert "resume with `hubbub resume`" in delivery_notes(result, SHELL)[0]
    steering = result.model_copy(update={"message": mine.model_copy(update={"mode": "steer"})})
    assert delivery_notes(steering, CHAT) == delivery_notes(result, CHAT)
    missed = steering.model_copy(update={"queued": {}, "not_woken": {}})
    assert delivery_notes(missed, CHAT) == [
        "this message woke no agent; mention the one that it is for"
    ]


# Trees --------------------------------------------------------------------------------------------


def entry(seq: int, sender: str, text: str, cause: str | None = None, to: str = "bob") -> Message:
    message = posted(seq, text, sender=sender, thread=f"dm.{'.'.join(sorted((sender, to)))}")
    return message.model_copy(update={"cause_id": cause, "interaction_id": "i1"})


def wake(seq: int, agent: str, turn: str) -> InteractionWake:
    return InteractionWake(
        message_id=f"m{seq}", agent=agent, reason="direct", reply="required", turn=turn,
        state="ended",
    )  # fmt: skip


def turn(id: str, agent: str, **more: object) -> TurnSummary:
    fields: dict[str, object] = {"id": id, "agent": agent, "thread_id": "x", "started_at": NOON}
    return TurnSummary.model_validate({**fields, **more})


@pytest.mark.behaviour("H-120")
def test_an_interaction_tree_has_messages_under_their_turns_and_the_budget(
    snapshot: SnapshotAssertion,
) -> None:
    caused = InteractionView("i1", more=False)
    caused.messages = [
        entry(1, "ann", "go"),
        entry(2, "bob", "help", "bob-m1", to="eve"),
        entry(3, "eve", "no", "m2", to="bob"),
        entry(4, "ann", "and that", "m1"),
    ]
    caused.wakes = [wake(1, "bob", "bob-m1"), wake(4, "bob", "bob-m1"), wake(2, "eve", "eve-m2")]
    caused.turns = {
        "bob-m1": turn("bob-m1", "bob", outcome="finished", steps=2, tokens_in=9, cost_usd=0.5),
        "eve-m2": turn("eve-m2", "eve", waits_for=("a1",), steps=1),
    }
    hidden = InteractionView("i1", more=True, hidden=3)
    hidden.messages = [entry(1, "ann", "go\x07\nnow")]
    hidden.envelopes = [
        Envelope(id="m2", seq=2, thread_id="dm.bob.eve", sender_id="bob", sender_kind="agent",
                 type="direct", recipients=("eve",), cause_id="m1", hop=1, sent_at=NOON)
    ]  # fmt: skip
    asleep = Receipt(participant="bob", kind="agent", present=True, delivered=True, woken=False,
                     reason="stopped", explanation="a person has stopped it")  # fmt: skip
    hidden.prevented = {"m1": [asleep]}
    spent = InteractionView("i1", more=False)
    spent.messages = [entry(1, "ann", "go")]
    spent.budget = BudgetState(
        interaction="i1", opened_by="ann", opened_at=NOON, limits={"wakes": 2, "fan_out": 8},
        used={"wakes": 2}, reached=("wakes", "fan_out"), sums=Sums(turns=1, usd=0.5), active=False,
    )  # fmt: skip
    trees = ("\n".join(lines_of(drawn(view))) for view in (caused, hidden, spent))
    assert "\n\n".join(trees) == snapshot


# Signals ------------------------------------------------------------------------------------------


def dumped(values: Sequence[BaseModel]) -> list[object]:
    return [value.model_dump(mode="json") for value in values]


def asks(session: ChatSession, approval: Approval) -> list[str]:
    data = approval.model_dump(mode="json", by_alias=True)
    return shown(session.signalled(signal("approval", data)))


def stop_lines(
    session: ChatSession, stops: Sequence[Stopped], breakers: Sequence[BreakerState] = ()
) -> list[str]:
    data = {"stops": dumped(stops), "breakers": dumped(breakers)}
    return shown(session.signalled(signal("stops", data)))


def takeover_lines(session: ChatSession, *takeovers: Takeover) -> list[str]:
    return shown(session.signalled(signal("takeovers", {"takeovers": dumped(takeovers)})))


def observed_lines(session: ChatSession, seq: int, text: str, thread: str) -> list[str]:
    message = posted(seq, text, sender="eve", thread=thread)
    observed = ObservedMessage(agent="bob", message=message)
    return shown(session.signalled(signal("overheard", observed.model_dump(mode="json"))))


@pytest.mark.behaviour("H-128")
def test_an_approval_is_shown_once_with_its_commands_and_then_its_decision() -> None:
    session = new_session()
    lines = asks(session, approval(reason="it is gone then", description="Deletes\nit"))
    assert lines[:4] == [
        "bob asks to run delete_file in #general",
        "   Deletes it",
        "   because: it is gone then",
        '   path: "a.txt"',
    ]
    assert lines[4].startswith("   /approve a1 or /deny a1 <reason>; expires ")
    assert asks(session, approval()) == []
    assert session.oversight.status() == [("unread", "1 to approve")]
    done = approval(state="denied", decided_by="eve", verdict="no\x07")
    assert asks(session, done) == ["delete_file by bob (a1) was denied by eve: no<U+0007>"]
    assert session.oversight.status() == []
    assert asks(session, done) == []
    asks(session, approval("a2"))
    runs = approval("a2", state="started", decided_by="ann", final={"path": "b.txt"})
    approved = "delete_file by bob (a2) was approved by ann with other arguments"
    assert asks(session, runs) == [approved]
    others = approval(may_decide=False, approvers=("eve", "max", "bea"))
    assert asks(new_session(), others)[-1] == "   a1: eve, max or bea decides"


def test_a_cut_argument_says_where_all_of_it_can_be_read() -> None:
    long = approval(arguments={"code": "a" * 600 + "b"})
    cut = asks(new_session(), long)
    assert cut[-2] == "   … is cut: `/approvals list` shows all of it"
    assert not any("ab" in line for line in cut)
    whole = approval_lines(long, str, CHAT, whole=True)
    assert any("ab" in line for line in whole)
    assert not any("is cut" in line for line in whole)


def test_an_approval_without_effect_is_shown_with_the_reason() -> None:
    unused = decision_text(approval(state="cancelled", decided_by="ann"))
    assert unused.endswith("was approved by ann, but its turn ended before it ran")
    assert decision_text(approval(state="cancelled")).endswith("was cancelled: its turn ended")
    assert decision_text(approval(state="expired")).endswith("has expired")


@pytest.mark.behaviour("H-129")
def test_stops_breakers_takeovers_and_resumes_are_shown_once() -> None:
    session = new_session()
    stops = [stopped("agent", "bob"), stopped("thread", "channel.general"), stopped("all")]
    assert stop_lines(session, stops, [breaker("channel.desk")]) == [
        "eve stopped bob: too loud; resume with `/resume agent bob`",
        "eve stopped #general: too loud; resume with `/resume thread #general`",
        "eve stopped everything: too loud; resume with `/resume all`",
        "#desk was stopped by its breaker: 61 turns started in 60 s; "
        "resume with `/resume thread #desk`",
    ]
    assert stop_lines(session, stops, [breaker("channel.desk")]) == []
    assert ("lost", "everything is stopped, 1 breaker open") in session.oversight.status()
    assert stop_lines(session, stops[:1]) == [
        "#general is resumed",
        "everything is resumed",
        "#desk is resumed",
    ]
    assert session.oversight.status() == [("lost", "1 stopped")]
    assert stop_lines(new_session(), [stopped("agent", "bob", by="ann")]) == [], (
        "her own is not shown"
    )
    assert takeover_lines(new_session(), takeover("bob", "ann")) == []
    assert takeover_lines(session, takeover("bob", "eve"))[0].startswith(
        "eve speaks for bob until "
    )
    assert ("unread", "eve speaks for bob") in session.oversight.status()
    assert takeover_lines(session) == ["bob speaks for itself again"]


def test_after_a_reconnection_only_changes_are_shown() -> None:
    session = new_session()
    stop_lines(session, [stopped("agent", "bob")])
    takeover_lines(session, takeover("bob", "eve"))
    asks(session, approval())
    session.begin(ready(resumed=True))
    assert session.oversight.status() == []
    assert asks(session, approval()) == []
    assert takeover_lines(session, takeover("bob", "eve")) == []
    assert stop_lines(session, [stopped("agent", "bob"), stopped("agent", "concierge")]) == [
        "eve stopped concierge: too loud; resume with `/resume agent concierge`"
    ]
    assert ("unread", "1 to approve") in session.oversight.status()


@pytest.mark.behaviour("H-130")
def test_a_message_to_an_agent_under_takeover_is_shown_once() -> None:
    session = new_session()
    takeover_lines(session, takeover("bob", "ann"))
    assert observed_lines(session, 9, "psst", "dm.bob.eve") == [
        "12:09 m9 [to bob in dm.bob.eve] eve: psst",
        "to answer there: /open dm.bob.eve, then /as bob <text>",
    ]
    assert observed_lines(session, 9, "psst", "dm.bob.eve") == []
    session.open("dm.bob.eve")
    assert observed_lines(session, 10, "well?", "dm.bob.eve") == ["12:10 m10 eve: well?"]
    for thread in ("channel.general", "broadcast", "dm.ann.bob"):
        assert observed_lines(new_session(), 9, "already hers", thread) == []


def test_an_argument_of_several_lines_is_shown_in_lines_below_the_others() -> None:
    diff = "@@ -1 +1 @@\n-old\n+new\x1b[2J\n" + "\n".join(f" {n}" for n in range(50))
    asked = approval(arguments={"diff": diff, "path": "a.txt"})
    shown = ['   path: "a.txt"', "   diff:", "      | @@ -1 +1 @@", "      | -old",
             "      | +new<U+001B>[2J", "      |  0"]  # fmt: skip
    lines = asks(new_session(), asked)
    assert lines[1:7] == shown
    assert "is cut" in lines[-2]
    whole = approval_lines(asked, str, CHAT, whole=True)
    assert (whole[1:7], whole[-2]) == (shown, "      |  49")


@pytest.mark.behaviour("H-131")
def test_messages_are_labelled_with_speaker_trust_mode_and_request() -> None:
    timeout = RequestMark(id="m7", kind="failed", outcome="timeout")
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"sent_by": "ann"}, "12:01 m1 [ann as bob]: hi"),
        ({"untrusted": True}, "12:01 m1 bob [untrusted]: hi"),
        ({"mode": "interrupt"}, "12:01 m1 bob [interrupt]: hi"),
        ({"request": RequestMark(id="", kind="task", deadline=NOON)},
         "12:01 m1 bob [task until 12:00]: hi"),
        ({"request": RequestMark(id="m7", kind="result")}, "12:01 m1 bob [result of m7]: hi"),
        ({"request": timeout, "untrusted": True},
         "12:01 m1 bob [untrusted] [m7 failed: timeout]: hi"),
    )  # fmt: skip
    for marks, line in cases:
        message = posted(1).model_copy(update=marks)
        assert shown(new_session().take(event(message))) == [line]
        elsewhere = message.model_copy(update={"thread_id": "dm.ann.bob"})
        assert shown(new_session().take(event(elsewhere))) == [line.replace("m1 ", "m1 [@bob] ", 1)]


def test_versions_of_an_agent_are_listed_with_author_and_time() -> None:
    versions = (AgentVersion(version=2), AgentVersion(version=1, at=NOON, by="ann"))
    poet = AgentDefinition(
        agent="poet",
        fields=AgentFields(),
        version=2,
        versions=versions,
        file="agents.d/poet.yaml",
        removable=True,
    )
    unused = cast(PersonClient, None)
    lines = [line.text.split() for line in definition(poet, unused)]
    assert lines[-2:] == [
        ["version", "2", "by", "hand"],
        ["version", "1", "ann", *moment(NOON).split()],
    ]


def test_an_edit_with_a_share_is_a_rollout_until_it_applies_to_all_or_none() -> None:
    def poet(rollout: AgentRollout | None) -> AgentDefinition:
        fields = AgentFields(instruction="Old.", model="small", rollout=rollout)
        return AgentDefinition(
            agent="poet", fields=fields, version=2, versions=(), file="net.yaml", removable=False
        )

    new, trial = {"instruction": "New."}, AgentRollout(share=0.2, instruction="New.")
    old = {"instruction": "Old."}
    assert rolled_out(poet(None), new, 0.2) == {
        **old, "rollout": {"share": 0.2, "instruction": "New."},
    }  # fmt: skip
    assert rolled_out(poet(trial), {"model": "large"}, 0.5) == {
        "model": "small", "rollout": {"share": 0.5, "instruction": "New.", "model": "large"},
    }  # fmt: skip
    assert rolled_out(poet(trial), {}, 1.0) == {"instruction": "New.", "rollout": None}
    assert rolled_out(poet(trial), {}, 0.0) == {"rollout": None}
    with pytest.raises(UserError, match="--instruction or --model"):
        rolled_out(poet(None), {}, 0.2)
