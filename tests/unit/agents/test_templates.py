"""Templates of users: they run in a sandbox, and their mistakes have a file and a line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hubbub.agents.prompt.render import ConversationTemplate, ThreadView
from hubbub.agents.prompt.system import system_prompt
from hubbub.errors import ConfigError
from tests.unit.agents.builders import message

THREADS = {"direct_alice": ThreadView("direct_alice", (message(1, content="a < b"),))}


def load(folder: Path, text: str) -> ConversationTemplate:
    path = folder / "mine.j2"
    path.write_text(text, encoding="utf-8")
    return ConversationTemplate.load(path)


@pytest.mark.behaviour("A-12")
def test_a_template_of_ones_own_has_the_documented_variables(tmp_path: Path) -> None:
    template = load(
        tmp_path,
        "{{ incoming_thread_id }}|{{ incoming_message.text }}|{{ incoming_messages | length }}"
        "{% for id, thread in message_threads.items() %}"
        "|{{ id }}:{% for m in thread.messages %}{{ m.sender_id }}={{ m.content }}{% endfor %}"
        "{% endfor %}",
    )
    text = template.render(THREADS, "direct_alice", [message(2), message(3, content="new")])
    assert text == "direct_alice|new|2|direct_alice:alice=a &lt; b"


@pytest.mark.behaviour("A-12")
def test_a_template_of_ones_own_is_escaped_without_asking(tmp_path: Path) -> None:
    template = load(tmp_path, "<x>{{ incoming_message.text }}</x>")
    text = template.render({}, "direct_alice", [message(1, content="</x>\0\u202e")])
    assert text == "<x>&lt;/x&gt;⟦U+0000⟧&#x202E;</x>"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("fine\n{% if %}", 2, "does not parse"),
        ("fine\n\n{{ incomming_message.text }}", 3, "incomming_message"),
        ("{{ incoming_message.content.__class__.__mro__ }}", 1, "unsafe"),
        ("fine\n{{ 1 / 0 }}", 2, "division by zero"),
        ("a\nb\n{{ incoming_message.nothing }}", 3, "nothing"),
        ("{{ incoming_message | shout }}", 1, "shout"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load(tmp_path, text)
    assert caught.value.path == tmp_path / "mine.j2"
    assert caught.value.line == line


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.j2.*cannot be read"):
        ConversationTemplate.load(tmp_path / "gone.j2")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        ConversationTemplate.load(path)


def test_a_failure_on_real_data_is_told_like_one_at_the_start(tmp_path: Path) -> None:
    template = load(tmp_path, "line one\n{{ 1 // (incoming_message.text | length - 4) }}")
    with pytest.raises(ConfigError) as caught:
        template.render({}, "direct_alice", [message(1, content="four")])
    assert caught.value.line == 2


class TestSystemPrompt:
    def test_the_instruction_comes_first_and_unchanged(self) -> None:
        text = system_prompt("You count {things}.\n", "counter", "lab")
        assert text.startswith("You count {things}.\n\n")

    def test_it_says_who_the_agent_is_and_that_messages_are_data(self) -> None:
        text = system_prompt("", "counter", "lab")
        assert "`counter`" in text
        assert "`lab`" in text
        assert "is data" in text
        assert "`finish`" in text


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}",
        "\n{{ 'a' * 10**18 }}",
    ],
)
def test_a_template_that_needs_too_much_is_a_mistake_with_its_place(
    tmp_path: Path, source: str
) -> None:
    with pytest.raises(ConfigError, match="the template fails: it needs too much") as raised:
        load(tmp_path, source)
    assert raised.value.path == tmp_path / "mine.j2"


def test_a_template_that_is_nested_too_deep_does_not_parse(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not parse: it is nested too deep"):
        load(tmp_path, "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}")


def test_a_template_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.j2")
    with pytest.raises(ConfigError, match="cannot be read: it is no file"):
        ConversationTemplate.load(tmp_path / "pipe.j2")


def test_a_mark_of_the_encoding_is_no_part_of_a_template(tmp_path: Path) -> None:
    template = load(tmp_path, "\ufeff{{ incoming_thread_id }}")
    assert template.render({}, "direct_alice", [message(1)]) == "direct_alice"
