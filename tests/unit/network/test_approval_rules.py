"""Rules for approvals and for the results of requests."""

from __future__ import annotations

import hashlib

import pytest

from hubbub.config.models import NetworkFile
from hubbub.network.services.approval_rules import approvers_of, arguments_hash
from hubbub.network.wakes import Decision, Reason, decide_result


@pytest.mark.behaviour("H-42")
def test_equivalent_arguments_have_the_same_hash() -> None:
    one = arguments_hash({"b": [1, {"d": None, "c": "ü"}], "a": True})
    assert one == arguments_hash({"a": True, "b": [1, {"c": "ü", "d": None}]})
    text = '{"a":true,"b":[1,{"c":"ü","d":null}]}'
    assert one == hashlib.sha256(text.encode()).hexdigest()
    assert one != arguments_hash({"a": True, "b": [{"c": "ü", "d": None}, 1]})


def test_approvers_come_from_the_agent_or_the_network() -> None:
    file = NetworkFile.model_validate(
        {
            "network": {"approvals": {"approvers": ["cat"]}},
            "humans": {"ann": {"roles": ["owner"]}, "bob": {}, "cat": {}},
            "agents": {"own": {"kind": "python", "approvers": ["bob"]}, "other": {}},
        }
    )
    approvers = [approvers_of(file, agent) for agent in ("own", "other", "stranger")]
    assert approvers == [("bob",), ("cat",), ("cat",)]
    assert file.owners == ("ann",)
    assert approvers_of(NetworkFile(), "x") == ()


@pytest.mark.behaviour("H-52")
def test_a_result_wakes_the_asking_agent() -> None:
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
