"""The prompt linter, rule by rule, with text that it must not report."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.prompt.lint import LONG, MOST_RULES, RULES, Finding, lint
from hubbub.agents.prompt.lint_subject import (
    LintSubject,
    PromptText,
    SourceLine,
    TemplateText,
    ToolFact,
)
from hubbub.protocol.messages import Permission

FINE = "Call `finish` when nothing is asked."


def passage(text: str, *, own: bool = True, file: str = "net.yaml", line: int = 10) -> PromptText:
    places = [SourceLine(file, line + n) for n in range(text.count("\n") + 1)]
    return PromptText("instruction", text, places, own)


def tool(name: str, permission: Permission = "read", about: str = "") -> ToolFact:
    return ToolFact(name, about, permission)


TOOLS = {
    t.name: t
    for t in (
        tool("read_thread"),
        tool("send_text_message", "write"),
        tool("pay", "write", "Deprecated. Use transfer."),
        tool("finish"),
    )
}


def subject(
    *texts: str,
    tools: Mapping[str, ToolFact] | None = TOOLS,
    others: frozenset[str] = frozenset({"post_to_channel", "reply"}),
    **fields: object,
) -> LintSubject:
    passages = [passage(text) for text in texts] + [passage(FINE, own=False)]
    return LintSubject(
        "agents.bot",
        SourceLine("net.yaml", 3),
        passages,
        tools=tools,
        others=others,
        **fields,  # type: ignore[arg-type]  # by name
    )


def rules(*texts: str, **fields: object) -> list[str]:
    return [finding.rule for finding in lint(subject(*texts, **fields))]  # type: ignore[arg-type]


@pytest.mark.behaviour("Q-8")
class TestTools:
    def test_an_unknown_tool_is_reported_with_a_suggestion_and_its_line(self) -> None:
        for text in [
            "Call `send_mail` when asked.", "Then call the tool send_mail.",
            "Use send_mail to answer.", "First `send_mail(to, text)`.",
            "The `send_mail` tool is yours.", "Answer with `send_text_mesage`.",
        ]:  # fmt: skip
            (finding,) = lint(subject(text))
            assert (finding.rule, finding.level) == ("unknown-tool", "error")
        (finding,) = lint(subject("One.\nTwo, and call\n`send_text_mesage` then."))
        assert finding.place == SourceLine("net.yaml", 12)
        assert "did you mean `send_text_message`?" in finding.message
        assert str(finding).startswith("net.yaml:12: error: the instruction names the tool")
        assert rules("Call `send_mail`.", tools=None, others=frozenset()) == []
        for text in [
            "Use `read_thread` and call `finish`.", "Answer in `direct_ann` or channel_desk.",
            "Call `librarian` by name.", "The field `order_id` is a number.",
            "Use `markdown`. Give some_word as it is.", "Use my_server_search.",
            "Call ann when she is there. Recall what I said.",
        ]:  # fmt: skip
            words = frozenset({"librarian", "order_id"})
            assert rules(text, words=words, prefixes=("my_server_",)) == []

    def test_a_tool_that_the_agent_does_not_have_is_reported(self) -> None:
        for text in ["Use post_to_channel.", "`reply` under it.", "post_to_channel is for news"]:
            (finding,) = lint(subject(text))
            assert (finding.rule, finding.level) == ("disabled-tool", "error")
            assert "allow it in `tools`" in finding.message
        place = SourceLine("net.yaml", 20)
        called = [("read_thread", place), ("reply", place), ("red_thread", place)]
        findings = [(f.rule, f.place) for f in lint(subject(called=called))]
        assert findings == [("disabled-tool", place), ("unknown-tool", place)]

    def test_a_forbidden_tool_that_is_offered_is_reported(self) -> None:
        for text in [
            "Never call `read_thread`.",
            "- do not use read_thread",
            "You must not ever use the tool `read_thread`!",
        ]:
            (finding,) = lint(subject(text))
            assert (finding.rule, finding.level) == ("forbidden-tool", "warning")
        for text in [
            "Never call `read_thread` twice.", "Do not use `read_thread` before you have answered.",
            "Never call `finish`.", "Use `read_thread`.",
        ]:  # fmt: skip
            assert rules(text) == []

    def test_a_statement_that_contradicts_the_tool_is_reported(self) -> None:
        for text, truth in [
            ("`read_thread` sends what you found.", "only reads"),
            ("Use `read_thread` to post the news.", "only reads"),
            ("send_text_message changes nothing.", "permission is write"),
            ("`send_text_message` is harmless.", "permission is write"),
            ("You must call `pay` at the end.", "says not to use it"),
        ]:
            (finding,) = lint(subject(text))
            assert (finding.rule, finding.level) == ("contradiction", "error")
            assert truth in finding.message
        for text in [
            "`send_text_message` sends an answer.", "`read_thread` only reads.",
            "`read_thread` never sends anything.", "Use `read_thread` to see what ann sends.",
            "You may call `pay`.",
        ]:  # fmt: skip
            assert rules(text) == []


def has_no_way_out(text: str) -> bool:
    alone = LintSubject("agents.bot", SourceLine("net.yaml", 3), [passage(text)])
    return "no-way-out" in [finding.rule for finding in lint(alone)]


def test_a_prompt_without_a_way_out_is_reported() -> None:
    for text in [
        "Answer every question.", "Never finish.", "Do not ask the person. Don't decline.",
    ]:  # fmt: skip
        assert has_no_way_out(text)
    for text in [
        "Call `finish` when done.", "If you cannot, decline.",
        "When in doubt ask the customer.", "Ask back.", "If you do not know, say so.",
        "Never finish early. Finish when all is said.",
    ]:  # fmt: skip
        assert not has_no_way_out(text)


def test_more_than_seven_rules_of_its_own_are_reported() -> None:
    lines = [f"- You must do {n}." for n in range(MOST_RULES)]
    assert rules("\n".join(lines)) == []
    lines += ["- Never do that.", "- ALWAYS smile."]
    (finding,) = lint(subject("\n".join(lines)))
    assert (finding.rule, finding.level) == ("too-many-rules", "warning")
    assert finding.place.line == 10 + MOST_RULES
    assert "has 9 hard rules" in finding.message
    part = "\n".join(f"- You must do {n}." for n in range(4))
    assert rules(part, part) == ["too-many-rules"]
    ours = passage("\n".join(f"- You must do {n}." for n in range(20)), own=False)
    assert lint(LintSubject("a", SourceLine("f"), [ours, passage(FINE)], tools=TOOLS)) == []


def test_rules_only_in_the_middle_of_a_long_prompt_are_reported() -> None:
    filler = "This is how it is here. " * (LONG // 40)
    middle = f"{filler}\nNever guess a price.\n{filler}"
    (finding,) = lint(subject(middle))
    assert (finding.rule, finding.place.line) == ("rules-in-the-middle", 11)
    assert rules(f"Never guess a price.\n{filler}{filler}") == []
    assert rules(f"{filler}{filler}\nNever guess a price.") == []
    assert rules(middle, reminded=True) == []
    assert rules("Here.\nNever guess a price.\nThere.") == []


def untrusted(source: str) -> list[Finding]:
    template = TemplateText("mine.j2", source)
    return lint(LintSubject("mine.j2", SourceLine("mine.j2"), [passage(FINE)], [template]))


def test_untrusted_text_outside_of_elements_is_reported() -> None:
    for source, line in [
        ("a\n{{ incoming_message.text }}", 2),
        ("<x></x>{{ incoming_message.text }}", 1),
        ("```\n{{ incoming_message.content }}\n```", 2),
        ("{% for m in incoming_messages %}\n{{ m.text }}\n{% endfor %}", 2),
        ("{% for i, t in message_threads.items() %}{{ t.messages[0].text }}{% endfor %}", 1),
        ("{% set x = incoming_message %}{{ x.text | upper }}", 1),
        ("<a>{% if x %}</a>{% endif %}{{ state }}", 1),
        ("{% if x %}<a>{% endif %}</a>{% if y %}b{% else %}{{ state }}{% endif %}", 1),
        ("{{ 'a' ~ participants[0].description }}", 1),
        ("{{ participants if x else 'nobody' }}", 1),
        ("{% macro m(t) %}{{ t.text }}{% endmacro %}<a>{{ m(incoming_message) }}</a>", 1),
    ]:
        (finding,) = untrusted(source)
        assert (finding.rule, finding.level) == ("untrusted-text", "error")
        assert finding.place == SourceLine("mine.j2", line)
    for source in [
        "<x>{{ incoming_message.text }}</x>", "<x a='1'>\n<y/>{{ incoming_message.text }}</x>",
        '<x sender="{{ incoming_message.text }}">',
        "{{ incoming_message.sender_id }} {{ incoming_messages | length }}",
        "{{ 's' if incoming_messages | length > 1 }}{{ incoming_thread_id }}",
        "{% for m in incoming_messages %}<m>{{ m.text }}</m>{% endfor %}",
        "<t>{% for m in incoming_messages %}{{ m.text }}{% endfor %}</t>",
        "{% macro m(t) %}<b>{{ t.text }}</b>{% endmacro %}{{ m(incoming_message) }}",
        "{% macro rule(t) %}- {{ t }}{% endmacro %}{{ rule('be kind') }}",
        "{{ shop }} {# {{ incoming_message.text }} #}", "{{ broken",
    ]:  # fmt: skip
        assert untrusted(source) == []
    (finding,) = untrusted("<x>{{ incoming_message.text | safe }}</x>")
    assert "`| safe`" in finding.message
    (finding,) = lint(subject("Hello.", warned=False))
    assert (finding.rule, finding.level) == ("untrusted-rule", "warning")


def test_every_rule_has_a_unique_id_and_a_description() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.about for rule in RULES)


def test_a_wrapped_sentence_is_one_statement_and_so_is_each_item_of_a_list() -> None:
    text = "You may\ncall it. Never\nagain!\n- one\n- two\n\n1. three"
    assert [(s.text, s.place.line) for s in passage(text).statements()] == [
        ("You may\ncall it.", 10),
        ("Never\nagain!", 11),
        ("- one", 13),
        ("- two", 14),
        ("1. three", 16),
    ]


@given(st.text(max_size=300), st.text("<>/{}%`ab_ incoming_message.text|safe()\n", max_size=80))
def test_no_text_crashes_the_linter(text: str, template: str) -> None:
    for finding in lint(subject(text)) + untrusted(template):
        assert finding.place.line is None or finding.place.line >= 1
