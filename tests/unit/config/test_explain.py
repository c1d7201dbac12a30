"""Validation errors as sentences."""

from __future__ import annotations

import pytest

from hubbub.config.explain import dotted
from tests.unit.config.conftest import Loading, Problems


@pytest.mark.behaviour("L-1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("netwrk: {}", "net.yaml:1: unknown key 'netwrk' in the file; did you mean 'network'?"),
        (
            "network:\n  listn: a:1",
            "net.yaml:2: unknown key 'listn' in network; did you mean 'listen'?",
        ),
        (
            "agents:\n  a:\n    kind: python\n    clas: x.py:Y",
            "net.yaml:4: unknown key 'clas' in agents.a; did you mean 'class'?",
        ),
        (
            "models: {default: {model: m}}\nagents:\n  a: {history: {mesages: 3}}",
            "net.yaml:3: unknown key 'mesages' in agents.a.history; did you mean 'messages'?",
        ),
        (
            "channels:\n  a: {zzz: 1}",
            "net.yaml:2: unknown key 'zzz' in channels.a; valid: description, members",
        ),
        ("models:\n  m: {}", "net.yaml:2: models.m needs the key 'model'"),
        (
            "models: {m: {modle: x}}",
            "net.yaml:1: unknown key 'modle' in models.m; did you mean 'model'?",
        ),
        ("humans: []", "net.yaml:1: humans is a list: expected keys with values"),
        ("agents:\n  a: text", "net.yaml:2: agents.a is 'text': expected keys with values"),
        (
            "channels:\n  a b: {}",
            "net.yaml:2: 'a b' cannot be a name in channels: expected 1 to 64",
        ),
        ("network: {name: a.b}", "net.yaml:1: network.name is 'a.b': expected 1 to 64 letters"),
        ("network: {name: 5}", "net.yaml:1: network.name is 5: expected text"),
        (
            "network: {compression: [1]}",
            "net.yaml:1: network.compression is a list: expected true or false",
        ),
        (
            "network:\n  auth: opne",
            "net.yaml:2: network.auth is 'opne': expected 'tokens' or 'open'; did you mean 'open'?",
        ),
        (
            "network: {limits: {frame: 3 bananas}}",
            "net.yaml:1: network.limits.frame is '3 bananas': expected a size: a number of bytes",
        ),
        (
            "network: {limits: {heartbeat: soon}}",
            "net.yaml:1: network.limits.heartbeat is 'soon': expected a time: a number of seconds",
        ),
        (
            f"network: {{limits: {{frame: {'9' * 400}k}}}}",
            f"net.yaml:1: network.limits.frame is '{'9' * 40}…': expected a size: a number",
        ),
        (
            f"network: {{limits: {{heartbeat: {'9' * 400}d}}}}",
            f"net.yaml:1: network.limits.heartbeat is '{'9' * 40}…': expected a time: a number",
        ),
        (
            "models: {m: {model: x, max_output_tokens: -5}}",
            "net.yaml:1: models.m.max_output_tokens is -5: expected at least 1",
        ),
        (
            "models: {m: {model: x, temperature: -1}}",
            "net.yaml:1: models.m.temperature is -1: expected at least 0",
        ),
        (
            "network: {limits: {burst: 0}}",
            "net.yaml:1: network.limits.burst is 0: expected at least",
        ),
        (
            "network: {limits: {burst: many}}",
            "net.yaml:1: network.limits.burst is 'many': expected a whole number",
        ),
        (
            "network: {limits: {heartbeat: 0}}",
            "net.yaml:1: network.limits.heartbeat is 0: expected more than 0",
        ),
        (
            "humans:\n  ann:\n    roles:\n      - owner\n      - admn",
            "net.yaml:5: humans.ann.roles[2] is 'admn': expected 'owner' or 'member'",
        ),
        (
            "channels: {a: {members: al}}",
            "net.yaml:1: channels.a.members is 'al': expected 'all' or a list; did you mean 'all'?",
        ),
        ("mods: [3]", "net.yaml:1: mods[1] is 3: expected text or keys with values"),
    ],
)
def test_a_mistake_is_told_with_place_expectation_and_nearest_name(
    problems: Problems, text: str, expected: str
) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_only_the_branch_of_a_union_that_was_meant_is_told(problems: Problems) -> None:
    found = problems("humans: {ann: {}}\nchannels:\n  a:\n    members:\n      - ann\n      - 7")
    assert found == ["net.yaml:6: channels.a.members[2] is 7: expected text"]


def test_long_values_are_cut(problems: Problems) -> None:
    assert problems(f"network: {{auth: {'x' * 500}}}")[0].startswith(
        f"net.yaml:1: network.auth is '{'x' * 40}…': expected"
    )


def test_nothing_is_said_about_a_value_whose_variable_is_missing(problems: Problems) -> None:
    found = problems('network: {auth: "${AUTH}", name: "${NAME}"}\nmodels: {m: {model: "${M}"}}')
    assert len(found) == 3
    assert all("environment variable" in line for line in found)


def test_mistakes_in_several_places_are_told_together_in_order_of_lines(
    problems: Problems,
) -> None:
    found = problems("agents:\n  a: {zzz: 1}\nnetwork:\n  y: 2\n  z: 3\n")
    assert [line.split(":")[1] for line in found] == ["2", "2", "4", "5"]
    assert "names no model" in found[0]


def test_an_empty_value_is_called_empty(problems: Problems) -> None:
    assert problems("network: {name: }") == ["net.yaml:1: network.name is empty: expected text"]


def test_values_that_can_be_converted_are_no_mistakes(loading: Loading) -> None:
    config = loading('network: {limits: {burst: "7", frame: "1 MB"}, compression: "true"}')
    assert config.file.network.limits.burst == 7
    assert config.file.network.limits.frame == 1_000_000
    assert config.file.network.compression is True


def test_places_in_lists_count_from_one() -> None:
    assert dotted(("agents", "a", "tools", 0)) == "agents.a.tools[1]"
    assert dotted(("mods", 1, "x")) == "mods[2].x"
    assert dotted(()) == "the file"
