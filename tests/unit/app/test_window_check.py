"""Context windows without room for a request or an answer."""

from __future__ import annotations

import pytest

from hubbub.app.agent_checks import check_windows
from hubbub.app.preflight import load_valid
from hubbub.config.problems import ConfigProblems
from tests.unit.conftest import Loading, Write

MODEL = "models:\n  default: {{model: gpt-5-mini{}}}\n"
AGENT = "agents:\n  a:\n    instruction: Help.\n    context:\n      {}\n"


def problems(
    loading: Loading, model: str = "", agent: str = "keep_steps: 5", more: str = ""
) -> str:
    config = loading(MODEL.format(model) + (more or AGENT.format(agent)))
    return "\n".join(map(str, check_windows(config)))


def test_sizes_that_leave_room_are_accepted(loading: Loading, write: Write) -> None:
    write("bot.py", "class Bot: ...\n")
    for model, agent in (
        ("", "keep_steps: 5"),
        ("", "reserve: 1000k"),  # the window is unknown
        (", context_window: 8k, max_output_tokens: 2k", "reserve: 7k"),
        (", context_window: 1k", "window: 8k"),
        (", max_output_tokens: 8k", "window: 4k"),
    ):
        assert problems(loading, model, agent) == ""
    python = "{kind: python, class: bot.py:Bot, context: {window: 1k, reserve: 1k}}"
    assert problems(loading, more=f"agents: {{a: {python}}}\n") == "", "it has no model"


@pytest.mark.behaviour("L-3")
def test_sizes_that_leave_no_room_are_reported_with_their_line(
    loading: Loading, write: Write
) -> None:
    reserve = "net.yaml:7: agents.a.context.reserve: "
    for model, agent, expected in (
        ("", "{window: 2k, reserve: 2k}", "2048 tokens reserved for the answer fill the whole"),
        (", context_window: 4k", "reserve: 8k", "8192 tokens reserved for the answer fill"),
        (", context_window: 2k", "{window: 4k, reserve: 3k}", "the whole window of 2048"),
    ):
        problem = problems(loading, model, agent)
        assert problem.startswith(reserve)
        assert expected in problem
    problem = problems(loading, agent="window: 100")
    assert problem.startswith("net.yaml:7: agents.a: its fixed instructions have ")
    assert "but a window of 100 leaves 75 for a request" in problem
    problem = problems(loading, ", context_window: 4k, max_output_tokens: 4k")
    leaves = "an answer of 4096 tokens fills the whole window"
    assert problem.startswith(f"net.yaml:2: models.default: {leaves}")
    small = "  small: {model: m, context_window: 1k}\n"
    agent = "{kind: router, models: {router: small}, context: {reserve: 2k}}"
    problem = problems(loading, more=f"{small}agents: {{a: {agent}}}\n")
    assert "2048 tokens reserved for the answer fill the whole window of 1024" in problem
    path = write("net.yaml", MODEL.format("") + AGENT.format("{window: 2k, reserve: 4k}"))
    with pytest.raises(ConfigProblems, match="fill the whole window of 2048"):
        load_valid(path)


def test_a_long_instruction_is_reported_even_without_the_fixed_components(
    loading: Loading,
) -> None:
    removed = "components: {remove: [network, untrusted_data, thread_ids, speaking]}"
    agent = f"window: 100\n    prompt: {{{removed}}}"
    assert problems(loading, agent=agent) == ""
    long = AGENT.replace("Help.", "Help. " * 90).format(agent)
    assert "leaves 75 for a request" in problems(loading, more=long)
