"""From files to one checked network."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.loader import load
from hubbub.config.problems import ConfigProblems
from hubbub.errors import ConfigError
from tests.unit.config.conftest import Loading, Problems, Write


@pytest.mark.behaviour("L-1")
def test_a_whole_network_is_read(loading: Loading, write: Write, tmp_path: Path) -> None:
    write("agents/calculator.py", "class Calculator: ...\n")
    config = loading(
        """
        network:
          name: newsroom
          listen: 127.0.0.1:4821
          store: sqlite:newsroom.db
          limits: {frame: 256KiB, heartbeat: 30s}
        channels:
          general: {description: Everything, members: all}
          desk: {members: [editor, ann]}
        mods:
          - moderation: {max_words: 5}
        models:
          default: {model: m, base_url: "${URL:-http://127.0.0.1:1/v1}", api_key: "${KEY}"}
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
    assert (file.network.name, file.network.limits.heartbeat) == ("newsroom", 30.0)
    assert config.address.port == 4821
    assert file.models["default"].api_key == "k"
    assert file.agents["editor"].instruction == "You lead.\n"
    assert file.agents["calculator"].class_ == f"{tmp_path}/agents/calculator.py:Calculator"
    assert file.network.store == f"sqlite:{tmp_path}/newsroom.db"
    assert file.humans["ann"].roles == ["owner"]


def test_sections_without_content_mean_defaults(loading: Loading) -> None:
    file = loading("network:\nchannels:\n  general:\nhumans:\n  ann:\nagents:\n").file
    assert file.network.name == "hubbub"
    assert file.channels["general"].members == "all"
    assert list(file.humans) == ["ann"]


def test_an_empty_file_is_a_network_of_defaults(loading: Loading) -> None:
    assert loading("").file.network.listen == "127.0.0.1:4820"


def test_what_is_found_wrong_later_is_told_with_its_place(loading: Loading) -> None:
    config = loading("network:\n  name: n\nmods:\n  - moderation: {}\n")
    assert str(config.problem(("mods", 0), "is odd")) == "net.yaml:4: is odd"


@pytest.mark.behaviour("L-2")
def test_includes_lie_underneath_the_later_over_the_earlier(loading: Loading, write: Write) -> None:
    write("one.yaml", "network: {name: one, auth: open}\nhumans: {ann: {}}\n")
    write("two.yaml", "network: {name: two, compression: true}\nhumans: {bob: {roles: [owner]}}\n")
    file = loading("include: [one.yaml, two.yaml]\nnetwork: {compression: false}\n").file
    assert (file.network.name, file.network.auth) == ("two", "open")
    assert file.network.compression is False
    assert list(file.humans) == ["ann", "bob"]


def test_lists_are_replaced_whole(loading: Loading, write: Write) -> None:
    write("one.yaml", "humans: {ann: {}, bob: {}}\nchannels: {c: {members: [ann, nobody]}}\n")
    file = loading("include: one.yaml\nchannels: {c: {members: [bob]}}\n").file
    assert file.channels["c"].members == ["bob"]


def test_an_included_file_includes_others_relative_to_itself(
    loading: Loading, write: Write, tmp_path: Path
) -> None:
    write("shared/agents.yaml", "include: deep/models.yaml\nagents: {a: {template: t.j2}}\n")
    write(
        "shared/deep/models.yaml", "models: {default: {model: m}}\nnetwork: {store: sqlite:x.db}\n"
    )
    write("shared/t.j2", "")
    file = loading("include: [shared/agents.yaml]\n").file
    assert file.agents["a"].template == str(tmp_path / "shared/t.j2")
    assert file.network.store == f"sqlite:{tmp_path}/shared/deep/x.db"


def test_the_same_file_may_be_included_twice_on_different_ways(
    loading: Loading, write: Write
) -> None:
    write("base.yaml", "humans: {ann: {}}\n")
    write("left.yaml", "include: base.yaml\n")
    write("right.yaml", "include: base.yaml\n")
    assert list(loading("include: [left.yaml, right.yaml]").file.humans) == ["ann"]


def test_includes_that_go_round_are_refused_with_their_way(
    problems: Problems, write: Write
) -> None:
    write("a.yaml", "include:\n  - b.yaml\n")
    write("b.yaml", "x: 1\ninclude: [net.yaml]\n")
    found = problems("include: [a.yaml]\n")
    assert "b.yaml:2: includes itself: net.yaml → a.yaml → b.yaml → net.yaml" in found


def test_a_file_cannot_include_itself(problems: Problems) -> None:
    assert problems("include: net.yaml") == ["net.yaml:1: includes itself: net.yaml → net.yaml"]


def test_an_include_that_is_not_there_is_told_with_its_place(problems: Problems) -> None:
    assert problems("network: {}\ninclude:\n  - gone.yaml\n") == [
        "net.yaml:3: the included file gone.yaml does not exist"
    ]


@pytest.mark.parametrize("value", ["5", "{a: b}", "[5]"])
def test_an_include_is_a_list_of_files(problems: Problems, value: str) -> None:
    assert problems(f"include: {value}") == ["net.yaml:1: include: expected a list of files"]


def test_an_include_whose_variable_is_missing_is_told_once(problems: Problems) -> None:
    assert len(problems('include: "${WHERE}"')) == 1


def test_a_mistake_in_an_included_file_is_told_with_that_file(
    problems: Problems, write: Write
) -> None:
    write("one.yaml", "# x\n\nnetwork: {auth: opn}\n")
    assert problems("include: one.yaml")[0].startswith("one.yaml:3: network.auth is 'opn'")


def test_a_mistake_is_told_with_the_file_that_has_the_last_word(
    problems: Problems, write: Write
) -> None:
    write("one.yaml", "network: {auth: open}\nmods:\n  - moderation\n  - moderation\n")
    found = problems("include: one.yaml\nnetwork:\n  auth: opn\nmods: [nope]\n")
    assert [line.split(" ")[0] for line in found] == ["net.yaml:3:", "net.yaml:4:"]


def test_a_map_replaced_by_something_else_leaves_no_places_behind(
    problems: Problems, write: Write
) -> None:
    write("one.yaml", "humans: {ann: {roles: [owner]}}\n")
    assert problems("include: one.yaml\nhumans: {ann: 5}") == [
        "net.yaml:2: humans.ann is 5: expected keys with values"
    ]


def test_overrides_replace_keys_of_the_network(loading: Loading) -> None:
    config = loading("network: {listen: '127.0.0.1:1'}", overrides={"listen": "127.0.0.1:2"})
    assert config.address.port == 2


def test_an_override_settles_a_missing_variable_only_for_its_key(problems: Problems) -> None:
    found = problems('network: {listen: "${L}", name: "${N}"}', overrides={"listen": "127.0.0.1:0"})
    assert any("variable N " in line for line in found)


def test_a_config_that_is_not_there_is_answered_with_the_nearest(
    write: Write, tmp_path: Path
) -> None:
    write("configs/quickstart.yaml", "")
    for wrong in ("quickstart.yaml", "configs/quickstrat.yaml"):
        with pytest.raises(ConfigError, match=r"did you mean configs/quickstart\.yaml\?"):
            load(tmp_path / wrong)


def test_without_any_config_a_first_one_is_offered(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hubbub\.yaml: does not exist; `hubbub init` writes"):
        load(tmp_path / "hubbub.yaml")


def test_without_a_list_of_mods_any_name_is_taken(write: Write) -> None:
    assert load(write("net.yaml", "mods: [whatever]"), environ={}).file.mods == ["whatever"]


def test_the_environment_of_the_process_counts_by_default(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_TEST_NAME", "from-env")
    path = write("net.yaml", "network: {name: '${HUBBUB_TEST_NAME}'}")
    assert load(path).file.network.name == "from-env"


def test_all_problems_of_all_files_come_in_one_error(write: Write) -> None:
    write("one.yaml", "channels: {c: {members: [bob]}}\n")
    path = write("net.yaml", "include: one.yaml\nnetwork: {store: x, zzz: 1}\nhumans: []\n")
    with pytest.raises(ConfigProblems) as caught:
        load(path, environ={})
    places = [(str(p.path), p.line) for p in caught.value.problems]
    assert places == [("net.yaml", 2), ("net.yaml", 2), ("net.yaml", 3), ("one.yaml", 1)]
