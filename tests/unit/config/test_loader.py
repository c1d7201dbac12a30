"""Files are merged into one checked network."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.agents import AgentConfig
from hubbub.config.loader import load
from hubbub.config.models import Price
from hubbub.errors import ConfigError
from tests.unit.config.conftest import Loading
from tests.unit.conftest import Write

MODELS = "models: {small: {model: s}, large: {model: l}}\n"


@pytest.mark.behaviour("L-1")
def test_a_complete_network_loads_with_its_values_converted(
    loading: Loading, write: Write, tmp_path: Path
) -> None:
    write("agents/calculator.py", "class Calculator: ...\n")
    config = loading(
        """
        network:
          name: newsroom
          listen: 127.0.0.1:4821
          store: sqlite:newsroom.db
          limits: {frame: 1 MB, heartbeat: 30s, burst: "7"}
          compression: "true"
          hosts: [Hub.Example.org]
        channels:
          general: {description: Everything, members: all}
          desk: {members: [editor, ann]}
        mods:
          - moderation: {max_words: 5}
        models:
          default: {model: m, base_url: "${URL:-http://127.0.0.1:1/v1}", api_key: "${KEY}"}
          small: {model: m, price: {input: 0.25, output: 2.00}}
        agents:
          editor:
            instruction: |
              You lead.
            card: {skills: [editing]}
          calculator:
            kind: python
            class: agents/calculator.py:Calculator
            process: shared
        humans:
          ann: {roles: [owner]}
        """,
        environ={"KEY": "k"},
    )
    file = config.file
    limits = file.network.limits
    assert (file.network.name, limits.heartbeat, limits.burst) == ("newsroom", 30.0, 7)
    assert (limits.frame, file.network.compression) == (1_000_000, True)
    assert file.network.hosts == ["hub.example.org"]
    assert config.address.port == 4821
    assert file.models["default"].api_key == "k"
    assert file.models["default"].price is None
    assert file.models["small"].price == Price(input=0.25, output=2.0)
    assert file.agents["editor"].instruction == "You lead.\n"
    assert file.agents["calculator"].class_ == f"{tmp_path}/agents/calculator.py:Calculator"
    assert file.network.store == f"sqlite:{tmp_path}/newsroom.db"
    assert file.humans["ann"].roles == ["owner"]
    assert str(config.problem(("mods", 0), "is odd")) == "net.yaml:12: is odd"


def test_omitted_and_empty_sections_have_defaults(loading: Loading) -> None:
    file = loading("network:\nchannels:\n  general:\nhumans:\n  ann:\nagents:\n").file
    assert file.network.name == "hubbub"
    assert file.channels["general"].members == "all"
    assert list(file.humans) == ["ann"]
    assert loading("").file.network.listen == "127.0.0.1:4820"


def test_valid_configs_close_to_a_mistake_are_accepted(loading: Loading, write: Write) -> None:
    write("one.py", "from other import Bot\nAlso = Bot\nThird: type = Bot\n")
    write("two.py", "if True:\n    class Bot: ...\n")
    write("three.py", "from other import *\n")
    specs = ["one.py:Bot", "one.py:Also", "one.py:Third", "two.py:Bot", "three.py:Bot"]
    classes = ", ".join(f"a{n}: {{kind: python, class: '{s}'}}" for n, s in enumerate(specs))
    confirmed = "tools: [remember], tool_settings: {remember: {confirm: true}}"
    defaults = (
        "mode: auto, begin_with: null, fork: null, skills: [], select_over: 24, max_steps: 10"
    )
    for text in (
        f"agents: {{{classes}}}",
        'network: {auth: open, listen: "127.0.0.1:1"}',
        "network: {auth: open, listen: localhost:1}",
        'network: {auth: open, listen: "[::1]:1"}',
        "network: {listen: '0.0.0.0:4820'}",
        f"agents: {{a: {{model: small, {confirmed}}}}}\nhumans: {{ann: {{roles: [owner]}}}}",
        f"agents: {{a: {{model: small, {confirmed}}}}}\nhumans: {{ann: {{}}}}\n"
        "network: {approvals: {approvers: [ann]}}",
        f"agents: {{a: {{model: small, {confirmed}}}}}\nnetwork: {{auth: open}}",
        f"agents: {{a: {{model: small, approvers: [b], {confirmed}}}}}\nhumans: {{b: {{}}}}",
        f"agents: {{a: {{model: small, {confirmed.replace('true', 'false')}}}}}",
        f"agents: {{a: {{kind: router, model: large, {defaults}}}}}",
        "agents: {a: {model: small, mode: interactive, begin_with: list_threads, fork: {}}}",
        "agents: {a: {model: small, skills: [.], select_over: 5, max_steps: 3}}",
    ):
        assert loading(MODELS + text).file.models.keys() == {"small", "large"}, text
    assert load(write("net.yaml", "mods: [whatever]"), environ={}).file.mods == ["whatever"]


def test_an_agent_uses_the_models_of_its_roles_or_only_its_own(loading: Loading) -> None:
    roles = "{router: small, executor: small, planner: large, reflector: large}"
    bots = f"b: {{kind: pipeline, models: {roles}}}, c: {{kind: router, model: large, models: "
    file = loading(f"{MODELS}agents: {{{bots}{{router: small}}}}}}").file
    assert file.agents["b"].used_models == {"small", "large"}
    assert file.agents["c"].role_models == {"router": "small", "executor": "large"}
    assert AgentConfig(kind="reflector", model="large").used_models == {"large"}
    assert AgentConfig(kind="llm", model="x").used_models == {"x"}
    assert AgentConfig(kind="python").used_models == set()


@pytest.mark.behaviour("L-2")
def test_a_file_overrides_its_includes_and_a_later_include_an_earlier_one(
    loading: Loading, write: Write
) -> None:
    write("one.yaml", "network: {name: one, auth: open}\nhumans: {ann: {}}\n")
    write(
        "two.yaml",
        "include: one.yaml\nnetwork: {name: two, compression: true}\n"
        "humans: {bob: {roles: [owner]}}\nchannels: {c: {members: [ann, nobody]}}\n",
    )
    file = loading(
        "include: [one.yaml, two.yaml]\nnetwork: {compression: false}\n"
        "channels: {c: {members: [bob]}}\n"
    ).file
    assert (file.network.name, file.network.auth) == ("two", "open")
    assert file.network.compression is False
    assert list(file.humans) == ["ann", "bob"]
    assert file.channels["c"].members == ["bob"], "lists are replaced, not merged"


def test_paths_are_relative_to_the_file_that_contains_them(
    loading: Loading, write: Write, tmp_path: Path
) -> None:
    prompt = "prompt: {folder: texts, components: {add: {x: {file: a.md}}}}"
    write("shared/a.yaml", f"include: deep/m.yaml\nagents: {{a: {{template: t.j2, {prompt}}}}}\n")
    write("shared/deep/m.yaml", "models: {default: {model: m}}\nnetwork: {store: sqlite:x.db}\n")
    write("shared/t.j2", "")
    file = loading("include: [shared/a.yaml]\n").file
    agent = file.agents["a"]
    assert agent.template == str(tmp_path / "shared/t.j2")
    assert agent.prompt is not None
    assert agent.prompt.folder == str(tmp_path / "shared/texts")
    assert agent.prompt.components.add["x"].file == str(tmp_path / "shared/a.md")
    assert file.network.store == f"sqlite:{tmp_path}/shared/deep/x.db"


def test_the_error_about_a_missing_config_suggests_a_similar_one_or_creating_one(
    write: Write, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"hubbub\.yaml: does not exist; create one with"):
        load(tmp_path / "hubbub.yaml")
    write("configs/quickstart.yaml", "")
    for wrong in ("quickstart.yaml", "configs/quickstrat.yaml"):
        with pytest.raises(ConfigError, match=r"did you mean configs/quickstart\.yaml\?"):
            load(tmp_path / wrong)
