"""System prompts built from the `prompt` section of an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.agents.prompt.context import Note, ParticipantSummary, PromptContext
from hubbub.agents.prompt.system import SystemPrompts, load_system_prompts
from hubbub.config.agents import AgentConfig
from hubbub.errors import ConfigError

THREAD = "dm.ann.bot"


def prompts_of(folder: Path, prompt: object, instruction: str = "") -> SystemPrompts:
    config = AgentConfig.model_validate({"instruction": instruction, "prompt": prompt})
    return load_system_prompts(config, "bot", folder)


def context(**fields: object) -> PromptContext:
    return PromptContext(agent="bot", network="town", **fields)  # type: ignore[arg-type]  # by name


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_components_are_removed_added_and_replaced_also_from_files(tmp_path: Path) -> None:
    prompts = prompts_of(
        tmp_path,
        {
            "components": {
                "remove": ["thread_ids", "speaking", "untrusted_data"],
                "add": {
                    "style": {"text": "Be brief.", "priority": 97},
                    "usual": {"text": "As always."},
                },
                "replace": {"network": {"text": "You are in town."}},
            }
        },
        "Lead.",
    )
    prompt = prompts.of(context(), THREAD)
    assert prompt.text == "Lead.\n\nBe brief.\n\nYou are in town.\n\nAs always."
    assert prompt.components == ("identity", "style", "network", "usual")
    replace = {"delegation": {"text": "D"}, "network": {"text": "N", "priority": 1000}}
    prompts = prompts_of(tmp_path, {"components": {"replace": replace}}, "I")
    prompt = prompts.of(context(participants=[ParticipantSummary("b", "agent")]), THREAD)
    assert prompt.components[:2] == ("network", "identity")
    assert "delegation" not in prompt.components, "there is no tool to delegate with"
    files = {"style.md": "Be {{ brief }}.\n", "shop.j2": "{{ shop }} in {{ network }}"}
    prompts = prompts_of(
        written(tmp_path, files),
        {
            "variables": {"shop": "A & B"},
            "components": {"add": {"style": {"file": "style.md"}, "shop": {"file": "shop.j2"}}},
        },
    )
    text = prompts.of(context(), THREAD).text
    assert "Be {{ brief }}.\n\nA & B in town" in text


def test_conditions_are_evaluated_for_each_turn(tmp_path: Path) -> None:
    shy = {"text": "Nobody hears.", "when": ["in_direct_thread", "not has_mods"]}
    prompts = prompts_of(tmp_path, {"components": {"add": {"shy": shy}}})
    assert "shy" in prompts.of(context(thread="direct_ann"), THREAD).components
    assert "shy" not in prompts.of(context(thread="channel_a"), THREAD).components
    with_mods = context(thread="direct_ann", mods=[Note("x")])
    assert "shy" not in prompts.of(with_mods, THREAD).components


def test_errors_are_reported_before_the_agent_runs(tmp_path: Path) -> None:
    cases: list[tuple[object, str]] = [
        ({"components": {"add": {"a": {"file": "gone.md"}}}}, r"gone\.md: .* cannot be read"),
        ({"components": {"add": {"a": {"file": "gone.j2"}}}}, r"gone\.j2: .* cannot be read"),
        ({"components": {"add": {"a": {"file": "x.j2"}}}}, r"x\.j2:1: .* variable 'shop'"),
        (
            {"variables": {"shpo": 1}, "components": {"add": {"a": {"file": "x.j2"}}}},
            r"needs the variable 'shop'; did you mean 'shpo'",
        ),
        ({"variables": {"a": 1}}, "gives 'a', which no template uses"),
        ({"variables": {"network": 1}}, "'network', which every prompt has: choose another"),
    ]
    for prompt, reason in cases:
        with pytest.raises(ConfigError, match=reason):
            prompts_of(written(tmp_path, {"x.j2": "{{ shop }}"}), prompt)


def test_a_versioned_prompt_must_have_a_place_for_the_instruction(tmp_path: Path) -> None:
    written(tmp_path, {"prompts/a/1.j2": "First: {{ instruction }}"})
    text = prompts_of(tmp_path, {"name": "a"}, "Lead.").of(context(), THREAD).text
    assert text.startswith("First: Lead.")
    written(tmp_path, {"prompts/a/1.j2": "First"})
    with pytest.raises(ConfigError, match=r"no place for the instruction of agents\.bot"):
        prompts_of(tmp_path, {"name": "a"}, "Lead.")


def test_an_error_in_a_versioned_prompt_or_its_rollout_is_reported(tmp_path: Path) -> None:
    written(tmp_path, {"prompts/a/1.j2": "x", "prompts/a/2.j2": "{{ more }}"})
    rollout: object = {"version": "2", "share": 0.0}
    with pytest.raises(ConfigError, match="a@2 needs the variable 'more'"):
        prompts_of(tmp_path, {"name": "a", "version": "1", "rollout": rollout})
    written(tmp_path, {"prompts/c/1.j2": "a\n{{ threads[5] }}"})
    with pytest.raises(ConfigError, match=r"1\.j2:2: the prompt fails"):
        prompts_of(tmp_path, {"name": "c"}).of(context(), THREAD)


def test_a_versioned_prompt_does_not_escape_descriptions_twice(tmp_path: Path) -> None:
    text = "{% for p in participants %}<p>{{ p.description }}</p>{% endfor %}"
    written(tmp_path, {"prompts/b/1.j2": text})
    others = [ParticipantSummary("bob", "agent", "&lt;/p&gt;")]
    prompt = prompts_of(tmp_path, {"name": "b"}).of(context(participants=others), THREAD)
    assert prompt.text.startswith("<p>&lt;/p&gt;</p>")
