"""The section `prompt` of an agent in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.prompting import PromptConfig
from hubbub.config.schema import json_schema
from tests.unit.config.conftest import Loading, Problems

HEAD = "models: {default: {model: m}}\nagents:\n  bot:\n    prompt:\n"


def prompt(loading: Loading, text: str) -> PromptConfig:
    found = loading(HEAD + text).file.agents["bot"].prompt
    assert found is not None
    return found


@pytest.mark.parametrize(("written", "share"), [("10%", 0.1), ("0.1", 0.1), ("2.5 %", 0.025)])
def test_a_share_is_written_as_people_write_it(
    loading: Loading, written: str, share: float
) -> None:
    text = f"      name: a\n      rollout: {{version: '2', share: {written}}}\n"
    rollout = prompt(loading, text).rollout
    assert rollout is not None
    assert rollout.share == pytest.approx(share)


def test_conditions_are_one_or_several(loading: Loading) -> None:
    text = (
        "      components:\n        add:\n"
        "          a: {text: x, when: has_skills}\n"
        "          b: {text: x, when: [not has_mods, read_only]}\n"
    )
    add = prompt(loading, text).components.add
    assert add["a"].when == ("has_skills",)
    assert add["b"].when == ("not has_mods", "read_only")


def test_paths_are_relative_to_the_file_in_which_they_stand(
    loading: Loading, tmp_path: Path
) -> None:
    text = (
        "      folder: texts\n      components:\n"
        "        add: {a: {file: a.md}}\n        replace: {network: {file: sub/n.j2}}\n"
    )
    found = prompt(loading, text)
    assert found.folder == str(tmp_path / "texts")
    assert found.components.add["a"].file == str(tmp_path / "a.md")
    assert found.components.replace["network"].file == str(tmp_path / "sub" / "n.j2")


@pytest.mark.behaviour("Q-3")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("      nmae: a\n", "unknown key 'nmae' in agents.bot.prompt; did you mean 'name'?"),
        (
            "      components: {remove: [tool]}\n",
            "there is no component 'tool'; did you mean 'tools'?",
        ),
        (
            "      components: {replace: {identiy: {text: x}}}\n",
            "there is no component 'identiy'; did you mean 'identity'?",
        ),
        (
            "      components: {add: {tools: {text: x}}}\n",
            "the component 'tools' exists: put it below replace",
        ),
        (
            "      components: {remove: [tools], replace: {tools: {text: x}}}\n",
            "the component 'tools' is removed and replaced",
        ),
        (
            "      components: {add: {a: {text: x, when: has_skils}}}\n",
            "unknown condition 'has_skils'; did you mean 'has_skills'?",
        ),
        (
            "      components: {add: {a: {text: x, when: [always, not has_mod]}}}\n",
            "unknown condition 'has_mod'; did you mean 'has_mods'?",
        ),
        ("      components: {add: {a: {}}}\n", "a component has either a text or a file"),
        (
            "      components: {add: {a: {text: x, file: y}}}\n",
            "a component has either a text or a file",
        ),
        ("      {name: a, version: 1.10}\n", 'write the version in quotes, "1.1"'),
        ("      version: '1'\n", "a version needs the name of a prompt"),
        (
            "      rollout: {version: '2', share: 10%}\n",
            "a rollout needs the name of a prompt",
        ),
        (
            "      {name: a, rollout: {version: latest, share: 10%}}\n",
            "a rollout names its version",
        ),
        (
            "      {name: a, rollout: {version: '2', share: 200%}}\n",
            "expected a share such as 10%, at most 100%",
        ),
        (
            "      {name: a, rollout: {version: '2', share: many}}\n",
            "expected a share such as 10%, at most 100%",
        ),
        ("      {name: a, version: ../../x}\n", "agents.bot.prompt.version is '../../x'"),
        ("      reminder: [a, b, c, d]\n", "agents.bot.prompt.reminder"),
        ("      examples: [{incoming: x, steps: []}]\n", "agents.bot.prompt.examples[1].steps"),
    ],
)
def test_a_mistake_is_told_with_its_line(problems: Problems, text: str, says: str) -> None:
    (found,) = problems(HEAD + text)
    assert found.startswith(("net.yaml:5: ", "net.yaml:4: agents.bot.prompt is a map"))
    assert says in found


def test_a_whole_number_is_a_version(loading: Loading) -> None:
    assert prompt(loading, "      {name: a, version: 2}\n").version == "2"


def test_editors_are_told_the_conditions() -> None:
    schema = str(json_schema())
    assert "'not has_skills'" in schema
    assert "'has_tools'" in schema
