"""What holds for approvals, and for requests on their way to the store."""

from __future__ import annotations

import hashlib

import pytest

from hubbub.config.models import NetworkFile
from hubbub.network.services.approval_rules import (
    approvers_of,
    arguments_hash,
)
from hubbub.network.wakes import Decision, Reason, decide_result


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
    assert file.owners == ("ann",)
    assert approvers_of(NetworkFile(), "x") == ()


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
