"""Scripts of models: their format, their mistakes, and the choice of a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.errors import ConfigError
from hubbub.testing.model_playbook import Playbook
from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import (
    Breakdown,
    Refusal,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptMistake,
    ScriptRule,
    When,
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


def loaded(folder: Path, text: str, name: str = "script.yaml") -> Script:
    (folder / name).write_text(text)
    return load_script(folder / name)


def test_a_script_file_has_rules_and_answers_of_every_kind(tmp_path: Path) -> None:
    script = loaded(tmp_path, YAML)
    assert script.models == ["tiny", "large"]
    sums, others = script.rules
    assert sums.answer == ScriptedAnswer(
        calls=[ScriptedCall(tool="add", arguments={"a": "{{ a }}"})]
    )
    assert others.answer == [
        Refusal(status=429, retry_after=1),
        Breakdown(breakdown="hang"),
        ScriptedAnswer(text="hello", ignore_tool_choice=True),
    ]
    assert script.answers == [
        ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments='{"reason": ')])
    ]
    plain = loaded(tmp_path, '{"answers": [{"text": "hi"}]}', "script.json")
    assert plain == Script(answers=[ScriptedAnswer(text="hi")])


def test_a_mistake_in_a_script_is_reported_with_its_position(tmp_path: Path) -> None:
    for text, place in (
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
    ):
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, text)
        assert str(tmp_path / "script.yaml") in str(caught.value), text
        assert place in str(caught.value), text
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "rules:\n  - when: {prompt: x}\n   answer: y\n")
    assert caught.value.line == 3
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_script(tmp_path / "nowhere.yaml")


def test_an_unknown_key_is_reported_with_only_the_valid_ones(tmp_path: Path) -> None:
    hi = "answer: {text: hi}"
    for text, message in (
        (f"rules: [{{when: {{promt: x}}, {hi}}}]", "promt: unknown key; did you mean 'p"),
        (f"rules: [{{when: {{zzz: x}}, {hi}}}]", "valid: model, system, prompt, incoming"),
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
        ("rule: []", "rule: unknown key; did you mean 'rules'? valid: models, api_key, rules, "),
    ):
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, text)
        assert message in str(caught.value), text
        assert ";" not in str(caught.value).partition("unknown key; ")[2], text


def test_placeholders_are_filled_once_at_any_depth() -> None:
    value: JsonValue = {"to": "{{who}}", "list": [1, None, {"text": "{{ who }} and {{ what }}"}]}
    assert fill(value, {"who": "ann", "what": "bob"}) == {
        "to": "ann",
        "list": [1, None, {"text": "ann and bob"}],
    }
    assert fill("{{ a }}", {"a": "{{ a }}"}) == "{{ a }}"
    with pytest.raises(ScriptMistake, match=r"'whom'.*who"):
        fill(["{{ whom }}"], {"who": "ann"})


# The choice of a rule ---------------------------------------------------------------------------


def request(text: str = "hi", model: str = "m", **more: JsonValue) -> ChatRequest:
    system: JsonValue = {"role": "system", "content": "You add."}
    messages: JsonValue = [system, {"role": "user", "content": text}]
    return parse_request({"model": model, "messages": messages, **more}, {}, 0.0)


def tool(name: str) -> JsonValue:
    return {"type": "function", "function": {"name": name}}


def text_of(playbook: Playbook, asked: ChatRequest) -> str | None:
    answer = playbook.choose(asked).answer
    assert isinstance(answer, ScriptedAnswer)
    return answer.text


def rule(text: str, /, **conditions: object) -> ScriptRule:
    return ScriptRule(when=When.model_validate(conditions), answer=ScriptedAnswer(text=text))


def playing(*rules: ScriptRule) -> Playbook:
    return Playbook(Script(rules=list(rules)))


def test_every_condition_of_a_rule_applies() -> None:
    cases: list[tuple[dict[str, object], bool]] = [
        ({"model": "^m$"}, True),
        ({"model": "gpt"}, False),
        ({"system": "add"}, True),
        ({"system": "subtract"}, False),
        ({"incoming": "h(i|o)"}, True),
        ({"sender": "alice"}, False),
        ({"thread": "x"}, False),
        ({"step": 1}, True),
        ({"step": 2}, False),
        ({"tool_result": ""}, False),
        ({"tools": ["f"]}, True),
        ({"tools": ["f", "g"]}, True),
        ({"tools": ["f", "h"]}, False),
    ]
    asked = request(tools=[tool("f"), tool("g")])
    for conditions, holds in cases:
        answer = text_of(playing(rule("holds", **conditions), rule("does not")), asked)
        assert (answer == "holds") == holds, conditions


def test_nth_counts_matching_requests_whichever_rule_answers_them() -> None:
    playbook = playing(rule("second hi", prompt="hi", nth=2), rule("other"))
    asked = [request("hi"), request("no"), request("hi"), request("hi")]
    assert [text_of(playbook, a) for a in asked] == ["other", "other", "second hi", "other"]
    numbers = playing(*(rule(f"number {n}", prompt="hi", nth=n) for n in (1, 2, 3)))
    assert [text_of(numbers, request()) for _ in range(3)] == ["number 1", "number 2", "number 3"]


def test_text_instead_of_a_required_call_must_be_explicit() -> None:
    asked = request(tools=[tool("f")], tool_choice="required")
    with pytest.raises(ScriptMistake, match="ignore_tool_choice"):
        Playbook(Script(answers=[ScriptedAnswer(text="no")])).choose(asked)
    explicit = Playbook(Script(answers=[ScriptedAnswer(text="no", ignore_tool_choice=True)]))
    assert text_of(explicit, asked) == "no"
    calls = Playbook(Script(answers=[ScriptedAnswer(calls=[ScriptedCall(tool="f")])]))
    assert calls.choose(asked).rule == "answers[0]"
