"""Who may decide about approvals is known when the file is read."""

from __future__ import annotations

import pytest

from tests.unit.config.conftest import Loading, Problems

HEAD = "models: {default: {model: m}}\nhumans:\n  ann: {roles: [owner]}\n  bob: {}\n"
CONFIRMED = (
    "models: {default: {model: m}}\n"
    "agents:\n"
    "  calc:\n"
    "    tools: [remember]\n"
    "    tool_settings:\n"
    "      remember:\n"
    "        confirm: true\n"
)


@pytest.mark.behaviour("H-45")
def test_an_unknown_approver_is_an_error_with_its_line_and_the_nearest_name(
    problems: Problems,
) -> None:
    text = f"{HEAD}network:\n  approvals:\n    approvers:\n      - ann\n      - bobb\n"
    assert problems(text) == [
        "net.yaml:9: network.approvals.approvers names 'bobb', who is no person of humans; "
        "did you mean 'bob'?"
    ]


@pytest.mark.behaviour("H-45")
def test_an_agent_is_no_approver(problems: Problems) -> None:
    text = f"{HEAD}agents:\n  calc:\n    approvers: [calc]\n"
    assert problems(text) == [
        "net.yaml:7: agents.calc.approvers names 'calc', who is no person of humans; "
        "it is an agent (line 6)"
    ]


@pytest.mark.behaviour("H-45")
@pytest.mark.parametrize("confirm", ["true", "tainted"])
def test_a_tool_that_nobody_could_approve_is_an_error(problems: Problems, confirm: str) -> None:
    assert problems(CONFIRMED.replace("true", confirm)) == [
        "net.yaml:7: nobody could ever approve the calls of remember: give a person in humans the "
        "role owner, or name some in network.approvals.approvers"
    ]


@pytest.mark.parametrize(
    "more",
    [
        "humans: {ann: {roles: [owner]}}\n",
        "humans: {ann: {}}\nnetwork: {approvals: {approvers: [ann]}}\n",
        "network: {auth: open}\n",
    ],
)
def test_one_who_could_decide_is_enough(loading: Loading, more: str) -> None:
    assert loading(CONFIRMED + more).file.agents["calc"].tool_settings["remember"].confirm is True


def test_an_agent_with_approvers_of_its_own_needs_no_owner(loading: Loading) -> None:
    text = CONFIRMED.replace("    tools:", "    approvers: [bob]\n    tools:")
    assert loading(text + "humans: {bob: {}}\n").file.agents["calc"].approvers == ["bob"]


def test_where_nothing_is_confirmed_nobody_must_be_there(loading: Loading) -> None:
    assert loading(CONFIRMED.replace("true", "false")).file.humans == {}


@pytest.mark.parametrize("wrong", ["network: 3", "network: {approvals: [x]}", "agents: {a: 3}"])
def test_sections_of_the_wrong_shape_are_left_to_the_schema(problems: Problems, wrong: str) -> None:
    assert all("approv" not in line or "expected" in line for line in problems(wrong))
