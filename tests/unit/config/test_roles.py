"""Roles, forks and modes in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hubbub.config.agents import AgentConfig
from hubbub.config.loader import load
from hubbub.config.problems import ConfigProblems

HEAD = """
network: {auth: open, store: "sqlite::memory:"}
models:
  small: {model: s}
  large: {model: l}
agents:
"""


def loaded(folder: Path, text: str) -> AgentConfig:
    (folder / "net.yaml").write_text(HEAD + text)
    return load(folder / "net.yaml", environ={}).file.agents["bot"]


def problems(folder: Path, text: str) -> str:
    with pytest.raises(ConfigProblems) as caught:
        loaded(folder, text)
    return str(caught.value)


def test_a_model_for_each_role_needs_no_other_one(tmp_path: Path) -> None:
    bot = loaded(
        tmp_path,
        "  bot: {kind: pipeline, models: {router: small, executor: small, planner: large, "
        "reflector: large}}",
    )
    assert bot.role_models == {
        "router": "small", "executor": "small", "planner": "large", "reflector": "large",
    }  # fmt: skip
    assert bot.used_models == {"small", "large"}


def test_roles_that_are_not_named_have_the_agents_model(tmp_path: Path) -> None:
    bot = loaded(tmp_path, "  bot: {kind: router, model: large, models: {router: small}}")
    assert bot.role_models == {"router": "small", "executor": "large"}
    judge = loaded(tmp_path, "  bot: {kind: reflector, model: large}")
    assert judge.used_models == {"large"}


def test_a_kind_without_roles_needs_its_model_alone(tmp_path: Path) -> None:
    assert AgentConfig(kind="llm", model="x").used_models == {"x"}
    assert AgentConfig(kind="python").used_models == set()


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("{kind: pipeline, model: large, models: {router: smal}}",
         "agents.bot uses the unknown model 'smal' for its router; did you mean 'small'"),
        ("{kind: pipeline, models: {router: small}}",
         "agents.bot names no model, and there is no 'default'"),
        ("{kind: pipeline, model: large, models: {writer: small}}", "writer"),
        ("{kind: piepline, model: large}", "pipeline"),
        ("{kind: router, model: large, roles: {min_confidence: 2}}", "min_confidence"),
        ("{kind: planner, model: large, roles: {max_plan_step: 2}}", "max_plan_steps"),
        ("{kind: executor, model: large, class: a.py:B}", "kind: python"),
        ("{model: large, fork: {depth: 3}}", "depth"),
        ("{model: large, mode: slow}", "interactive"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_their_place(tmp_path: Path, agent: str, told: str) -> None:
    text = problems(tmp_path, f"  bot: {agent}")
    assert told in text
    assert "net.yaml:7" in text


def test_what_is_left_out_has_the_usual_bounds() -> None:
    bot = AgentConfig.model_validate({"kind": "pipeline", "fork": {}})
    assert (bot.roles.min_confidence, bot.roles.max_plan_steps, bot.roles.max_retries) == (
        0.6,
        8,
        3,
    )
    assert bot.roles.targets is None
    assert bot.fork is not None
    assert (bot.fork.depth, bot.fork.most, bot.fork.timeout) == (1, 4, 120)
    assert AgentConfig().fork is None
    with pytest.raises(ValidationError):
        AgentConfig.model_validate({"fork": {"most": 17}})


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("mode", "interactive", "roles.min_confidence"),
        ("begin_with", "list_threads", "which role begins"),
        ("fork", "{}", "roles.targets"),
        ("skills", "[.]", "knowledge"),
        ("select_over", "5", "all their tools"),
        ("max_steps", "3", "roles.max_plan_steps"),
    ],
)
@pytest.mark.parametrize("kind", ["router", "pipeline"])
def test_what_agents_with_roles_ignore_is_told_with_its_line(
    tmp_path: Path, kind: str, key: str, value: str, instead: str
) -> None:
    text = f"  bot:\n    kind: {kind}\n    model: large\n    {key}: {value}\n"
    told = problems(tmp_path, text)
    head = f"agents.bot is of the kind {kind}, where `{key}` has no effect: "
    assert f"net.yaml:10: {head}" in told
    assert instead in told.partition(head)[2]
    loaded(tmp_path, text.replace(f"kind: {kind}", "kind: llm"))


def test_what_holds_anyway_may_be_said_of_roles(tmp_path: Path) -> None:
    usual = "mode: auto, begin_with: null, fork: null, skills: [], select_over: 24, max_steps: 10"
    assert loaded(tmp_path, f"  bot: {{kind: router, model: large, {usual}}}").max_steps == 10
