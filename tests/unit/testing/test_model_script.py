from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from hubbub.errors import ConfigError
from hubbub.testing.model_script import (
    Answer,
    Breakdown,
    Call,
    Refusal,
    Rule,
    Script,
    ScriptMistake,
    fill,
    load_script,
)

YAML = """
models: [tiny, large]
rules:
  - name: sums
    when: {incoming: 'add (?P<a>\\d+)', step: 1, tools: [add]}
    answer: {calls: [{tool: add, arguments: {a: "{{ a }}"}}]}
  - answer:
      - {status: 429, retry_after: 1}
      - {breakdown: hang}
      - {text: hello, ignore_tool_choice: true}
answers:
  - {calls: [{tool: finish, arguments: '{"reason": '}]}
"""


def test_a_script_file_has_rules_and_answers_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(YAML)
    script = load_script(path)
    assert script.models == ["tiny", "large"]
    sums, others = script.rules
    assert sums.answer == Answer(calls=[Call(tool="add", arguments={"a": "{{ a }}"})])
    assert others.answer == [
        Refusal(status=429, retry_after=1),
        Breakdown(breakdown="hang"),
        Answer(text="hello", ignore_tool_choice=True),
    ]
    assert script.answers == [Answer(calls=[Call(tool="finish", arguments='{"reason": ')])]


def test_a_script_in_json_reads_like_one_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"answers": [{"text": "hi"}]}')
    assert load_script(path) == Script(answers=[Answer(text="hi")])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("answer: []", "answer"),
        ("answers: [{txt: hi}]", "answers.0.answer.txt"),
        ("answers: [{status: 200}]", "answers.0.refusal.status"),
        ("answers: [{breakdown: explode}]", "answers.0.breakdown.breakdown"),
        ("answers: [{status: 429, text: hi}]", "answers.0.refusal.text"),
        ("rules: [{when: {promt: x}, answer: {text: hi}}]", "rules.0.when.promt"),
        ("rules: [{when: {prompt: '('}, answer: {text: hi}}]", "rules.0.when.prompt"),
        ("rules: [{when: {step: 0}, answer: {text: hi}}]", "rules.0.when.step"),
        ("rules: [{when: {}}]", "rules.0.answer"),
        ("- text: hi", "the file"),
        ("just words", "the file"),
    ],
)
def test_a_mistake_in_a_script_is_named_with_its_place(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert str(path) in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "rules: [{when: {promt: x}, answer: {text: hi}}]",
            "promt: unknown key; did you mean 'p",
        ),
        ("rules: [{when: {zzz: x}, answer: {text: hi}}]", "valid: model, system, prompt, incoming"),
        (
            "rules: [{answer: {txt: hi}}]",
            "0.answer.answer.txt: unknown key; did you mean 'text'?",
        ),
        ("rules: [{answer: [{txt: hi}]}]", "unknown key; did you mean 'text'? valid: text, calls"),
        ("rules: [{anser: {text: hi}}]", "did you mean 'answer'? valid: name, when, answer, times"),
        ("answers: [{calls: [{tol: x}]}]", "did you mean 'tool'? valid: tool, arguments, id"),
        ("answers: [{usage: {tokens: 1}}]", "valid: prompt_tokens, completion_tokens"),
        ("answers: [{status: 429, after: 1}]", "valid: status, message, code, retry_after, hold"),
        ("answers: [{breakdown: hang, hold: x}]", "unknown key; valid: breakdown"),
        (
            "rule: []",
            "rule: unknown key; did you mean 'rules'? valid: models, api_key, rules, ",
        ),
    ],
)
def test_a_wrong_key_is_told_with_the_valid_ones_and_nothing_else(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert told in str(caught.value)
    assert ";" not in str(caught.value).partition("unknown key; ")[2]


def test_broken_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("rules:\n  - when: {prompt: x}\n   answer: y\n")
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert caught.value.line == 3
    assert "\n" not in str(caught.value)


def test_a_missing_script_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_script(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("mistake", [{"text": 3}, {"calls": [{"name": "x"}]}, {"piece": 0}])
def test_an_answer_made_in_python_is_checked_too(mistake: dict[str, JsonValue]) -> None:
    with pytest.raises(ValidationError):
        Answer.model_validate(mistake)


def test_a_list_of_answers_bounds_a_rule_as_times_does() -> None:
    two: list[Answer | Refusal | Breakdown] = [Answer(text="a"), Answer(text="b")]
    assert Rule(answer=Answer(text="a")).limit is None
    assert Rule(answer=Answer(text="a"), times=3).limit == 3
    assert Rule(answer=two).limit == 2
    assert Rule(answer=two, times=1).limit == 1
    assert Rule(answer=two, times=5).limit == 2


def test_places_are_filled_however_deep_they_stand() -> None:
    value: JsonValue = {"to": "{{who}}", "list": [1, None, {"text": "{{ who }} and {{ what }}"}]}
    assert fill(value, {"who": "ann", "what": "bob"}) == {
        "to": "ann",
        "list": [1, None, {"text": "ann and bob"}],
    }


def test_an_unknown_place_is_a_mistake_that_names_what_is_known() -> None:
    with pytest.raises(ScriptMistake, match=r"'whom'.*who"):
        fill(["{{ whom }}"], {"who": "ann"})


def test_what_is_filled_in_is_not_filled_again() -> None:
    assert fill("{{ a }}", {"a": "{{ a }}"}) == "{{ a }}"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="{}")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(plain)
def test_a_value_without_places_stays_as_it_is(value: JsonValue) -> None:
    assert fill(value, {}) == value
