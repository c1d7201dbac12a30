"""What holds for approvals, and for requests on their way to the store."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from hubbub.config.models import NetworkFile
from hubbub.network.services.approvals.rules import (
    approval_id,
    approvers_of,
    arguments_hash,
    not_pending,
    owners_of,
)
from hubbub.network.services.requests.records import failure, kept, over, position
from hubbub.network.wakes import Decision, Reason, decide_result
from hubbub.protocol.control import Approval, Request

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_an_approval_is_named_after_its_turn_and_call() -> None:
    assert approval_id("calc-m1", "1.c1") == approval_id("calc-m1", "1.c1")
    names = {approval_id(turn, call) for turn in ("a-m1", "a-m11") for call in ("1", "11", "")}
    assert len(names) == 6
    assert all(len(name) == 13 and name.isalnum() for name in names)


@pytest.mark.behaviour("H-42")
def test_arguments_that_mean_the_same_have_the_same_hash() -> None:
    one = arguments_hash({"b": [1, {"d": None, "c": "ü"}], "a": True})
    assert one == arguments_hash({"a": True, "b": [1, {"c": "ü", "d": None}]})
    text = '{"a":true,"b":[1,{"c":"ü","d":null}]}'
    assert one == hashlib.sha256(text.encode()).hexdigest()
    assert one != arguments_hash({"a": True, "b": [{"c": "ü", "d": None}, 1]})


def test_who_decides_is_in_the_config() -> None:
    file = NetworkFile.model_validate(
        {
            "network": {"approvals": {"approvers": ["cat"]}},
            "humans": {"ann": {"roles": ["owner"]}, "bob": {}, "cat": {}},
            "agents": {"own": {"kind": "python", "approvers": ["bob"]}, "other": {}},
        }
    )
    found = [approvers_of(file, agent) for agent in ("own", "other", "stranger")]
    assert found == [("bob",), ("cat",), ("cat",)]
    assert owners_of(file) == ("ann",)
    assert approvers_of(NetworkFile(), "x") == ()


def test_a_refusal_tells_what_was_done() -> None:
    names = {"id": "a1", "agent": "calc", "turn": "calc-m1", "thread_id": "dm.ann.calc"}
    call = {"call": "1", "tool": "t", "arguments": {}, "hash": "", "asked_at": NOW}
    verdict = {"decided_by": "ann", "decided_at": NOW, "verdict": "fine", "expires_at": NOW}
    for state, words in (
        ("approved", "ann has approved it"),
        ("denied", "ann has denied it"),
        ("started", "it was approved by ann, and its call has been started"),
        ("expired", "nobody decided in time"),
        ("cancelled", "its turn is over"),
        ("pending", "nobody has decided yet"),
    ):
        approval = Approval.model_validate({**names, **call, **verdict, "state": state})
        error = not_pending(approval)
        assert error.message == f"approval a1 is {state}: {words} (fine)"
        told = {"decided_by": "ann", "decided_at": "2030-01-01T00:00:00Z", "verdict": "fine"}
        assert error.details == {"state": state, **told}
    waiting = approval.model_copy(update={"decided_by": None, "decided_at": None})
    assert not_pending(waiting).details.keys() == {"state", "verdict"}


REQUEST = Request(
    id="m7",
    requester="boss",
    worker="worker",
    thread_id="dm.boss.worker",
    task="count",
    asked_at=NOW,
    deadline=NOW + timedelta(minutes=10),
    state="open",
)


def test_the_hubs_word_mentions_who_asked() -> None:
    draft = failure(REQUEST, "timeout", "600 s have passed")
    assert (draft.sender_id, draft.sender_kind, draft.mentions) == ("hub", "system", ("boss",))
    assert draft.recipients == ("boss", "worker")
    assert draft.cause_id == "m7"
    assert draft.text_representation == "worker has not done what m7 asked for: 600 s have passed."
    assert draft.request is not None
    assert (draft.request.id, draft.request.outcome) == ("m7", "timeout")


def test_a_request_is_kept_under_the_position_of_its_message() -> None:
    record = kept(REQUEST)
    assert (record.seq, record.requester, record.worker) == (7, "boss", "worker")
    assert Request.model_validate_json(record.body) == REQUEST
    assert [position(id) for id in ("m7", "7", "", "calc-m7")] == [7, 0, 0, 0]


def test_an_ended_request_tells_how() -> None:
    ended = {"state": "failed", "outcome": "timeout", "answer": "m9"}
    error = over("m7", REQUEST.model_copy(update=ended))
    assert error.message == "request m7 has ended with m9: failed (timeout)"
    assert error.details == ended
    assert over("m7", REQUEST).details == over("m7", None).details == {}


@pytest.mark.behaviour("H-52")
def test_a_result_wakes_the_agent_that_asked_and_nobody_else() -> None:
    agents = {"boss", "worker"}
    assert decide_result(("boss",), "boss", "agent", agents) == [
        Decision("boss", Reason.RESULT, "optional")
    ]
    assert decide_result(("boss", "worker"), "boss", "system", agents) == [
        Decision("boss", Reason.RESULT, "optional"),
        Decision("worker", Reason.SYSTEM, None),
    ]
    assert decide_result(("boss", "worker"), "boss", "agent", agents) == [
        Decision("boss", Reason.RESULT, "optional"),
        Decision("worker", Reason.DIRECT, "optional"),
    ]
    assert decide_result(("ann",), "ann", "agent", agents) == [
        Decision("ann", Reason.NOT_AN_AGENT, None)
    ]
