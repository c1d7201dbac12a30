"""What a role is told of an answer that cannot be used."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.agents.roles.plan import InvalidAnswer, Plan, read


def told(arguments: JsonValue) -> str:
    with pytest.raises(InvalidAnswer) as caught:
        read(Plan, arguments)
    return str(caught.value)


def test_of_a_step_with_wrong_fields_only_the_cause_is_said() -> None:
    wrong = told({"steps": [{"id": 1, "goal": "look", "tool": "look"}]})
    assert wrong == (
        "steps.0.executor: Field required; steps.0.tool: Extra inputs are not permitted"
    )


def test_a_plan_without_steps_is_told_what_it_lacks() -> None:
    assert told({"steps": []}).startswith("steps: Tuple should have at least 1 item")
