"""Windows in which nothing can be asked or answered."""

from __future__ import annotations

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.window_check import check_windows
from hubbub.config.problems import ConfigProblems
from tests.unit.app.conftest import Loading, Write

MODEL = "models:\n  default: {{model: gpt-5-mini{}}}\n"
"""A model, with more settings."""
AGENT = "agents:\n  a:\n    instruction: Help.\n    context:\n      {}\n"


def wrong(loading: Loading, model: str = "", agent: str = "keep_steps: 5") -> list[str]:
    config = loading(MODEL.format(model) + AGENT.format(agent))
    return [str(problem) for problem in check_windows(config)]


@pytest.mark.parametrize(
    ("model", "agent"),
    [
        ("", "keep_steps: 5"),
        ("", "reserve: 1000k"),  # of a window that is not known
        (", context_window: 8k, max_output_tokens: 2k", "reserve: 7k"),
        (", context_window: 1k", "window: 8k"),
        (", max_output_tokens: 8k", "window: 4k"),
    ],
)
def test_sizes_that_leave_room_are_fine(loading: Loading, model: str, agent: str) -> None:
    assert wrong(loading, model, agent) == []


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("model", "agent", "told"),
    [
        ("", "{window: 2k, reserve: 2k}", "2048 tokens kept for the answer leave nothing of"),
        (", context_window: 4k", "reserve: 8k", "8192 tokens kept for the answer leave nothing"),
        (", context_window: 2k", "{window: 4k, reserve: 3k}", "nothing of a window of 2048"),
    ],
)
def test_a_reserve_that_takes_the_whole_window_is_told_with_its_line(
    loading: Loading, model: str, agent: str, told: str
) -> None:
    (problem,) = wrong(loading, model, agent)
    assert problem.startswith("net.yaml:7: agents.a.context.reserve: ")
    assert told in problem


@pytest.mark.behaviour("L-3")
def test_a_window_without_room_for_what_is_always_told_is_none(loading: Loading) -> None:
    (problem,) = wrong(loading, agent="window: 100")
    assert problem.startswith("net.yaml:7: agents.a: what it is always told has ")
    assert "of a window of 100 there are 75 for a question" in problem


def test_the_instruction_counts_by_itself_where_the_rest_may_be_removed(loading: Loading) -> None:
    removed = "components: {remove: [network, untrusted_data, thread_ids, speaking]}"
    agent = f"window: 100\n    prompt: {{{removed}}}"
    assert wrong(loading, agent=agent) == []
    long = AGENT.replace("Help.", "Help. " * 90)
    config = loading(MODEL.format("") + long.format(agent))
    (problem,) = check_windows(config)
    assert "there are 75 for a question" in str(problem)


@pytest.mark.behaviour("L-3")
def test_a_model_whose_answer_fills_its_window_is_told(loading: Loading) -> None:
    (problem,) = wrong(loading, ", context_window: 4k, max_output_tokens: 4k")
    assert problem.startswith("net.yaml:2: models.default: an answer of 4096 tokens leaves nothing")


def test_the_models_of_roles_count_too(loading: Loading) -> None:
    small = "  small: {model: m, context_window: 1k}\n"
    agent = "{kind: router, models: {router: small}, context: {reserve: 2k}}"
    config = loading(MODEL.format("") + small + f"agents: {{a: {agent}}}\n")
    (problem,) = check_windows(config)
    assert "2048 tokens kept for the answer leave nothing of a window of 1024" in str(problem)


def test_agents_without_a_model_are_left_alone(loading: Loading, write: Write) -> None:
    write("bot.py", "class Bot: ...\n")
    agent = "{kind: python, class: bot.py:Bot, context: {window: 1k, reserve: 1k}}"
    assert check_windows(loading(f"agents: {{a: {agent}}}\n")) == []


def test_it_is_part_of_what_makes_a_config_valid(write: Write) -> None:
    path = write("net.yaml", MODEL.format("") + AGENT.format("{window: 2k, reserve: 4k}"))
    with pytest.raises(ConfigProblems, match="leave nothing of a window of 2048"):
        load_valid(path)
