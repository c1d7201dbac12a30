"""The conversation that a model is shown: the structure, the history, templates of one's own."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.inbox import Inbox, WakingMessage
from hubbub.agents.prompt.escape import in_parts, unreveal
from hubbub.agents.prompt.render import (
    ConversationPrompt,
    ConversationTemplate,
    ThreadView,
    attachments,
)
from hubbub.agents.turn import driver
from hubbub.config.models import HistoryConfig
from hubbub.errors import ConfigError
from hubbub.protocol.messages import Attachment, Message, RequestMark
from hubbub.testing.model_request import parse_request
from tests.unit.agents.builders import ME, message, plan, wake

Tree = tuple[str, dict[str, str], list["Tree"] | str]
SHIPPED = ConversationTemplate.shipped()


def rendered(
    known: list[Message],
    incoming: list[Message],
    rules: HistoryConfig | None = None,
    template: ConversationTemplate = SHIPPED,
) -> str:
    inbox = Inbox(ME)
    inbox.note(*known, *incoming)
    shown = plan(*incoming)
    return ConversationPrompt.of(template, inbox.threads, shown, ME, rules or HistoryConfig()).text


def conversation(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text[text.index("<conversation>") : text.rindex("\n\n")])


def tree(element: ElementTree.Element) -> Tree:
    """Names, the attributes of the contract, and contents."""
    attributes = {k: v for k, v in element.attrib.items() if k in ("sender", "id")}
    if element.tag != "thread":
        attributes.pop("id", None)
    if len(element) == 0:
        return element.tag, attributes, element.text or ""
    assert not (element.text or "").strip(), "text stands in <content> only"
    return element.tag, attributes, [tree(child) for child in element]


def shown(root: ElementTree.Element, thread: str) -> list[str]:
    return [c.text or "" for c in root.findall(f"threads/thread[@id='{thread}']/message/content")]


def said(name: str, sender: str, text: str) -> Tree:
    return name, {"sender": sender}, [("content", {}, text)]


@pytest.mark.behaviour("A-1")
def test_two_threads_and_an_incoming_message_have_exactly_the_structure_of_the_contract() -> None:
    known = [message(1, "bob", "hi"), message(2, content="one"), message(3, content="two")]
    text = rendered(known, [message(4, content="now")])
    threads: list[Tree] = [
        (
            "thread",
            {"id": "direct_alice"},
            [said("message", "alice", "one"), said("message", "alice", "two")],
        ),
        ("thread", {"id": "direct_bob"}, [said("message", "bob", "hi")]),
    ]
    current: list[Tree] = [
        ("incoming_thread_id", {}, "direct_alice"),
        said("incoming_message", "alice", "now"),
    ]
    assert tree(conversation(text)) == (
        "conversation",
        {},
        [("threads", {}, threads), ("current_interaction", {}, current)],
    )


def test_messages_say_who_what_when_and_under_which_id() -> None:
    text = rendered([message(1)], [message(2, "bob", kind="agent")])
    assert text.startswith(
        "Respond to what has come in, with the threads as context. In every step,"
    )
    assert text.endswith("</conversation>\n\nAnswer bob now.")
    first = conversation(text).find("threads/thread/message")
    assert first is not None
    assert first.attrib == {
        "sender": "alice", "kind": "human", "id": "m1", "time": "2025-03-01T12:00:01Z",
    }  # fmt: skip


@pytest.mark.behaviour("A-2")
def test_the_last_ten_messages_are_shown_oldest_first_and_neither_the_future_nor_the_incoming() -> (
    None
):
    known = [message(seq, content=f"text {seq}") for seq in range(1, 26)]
    later = [message(27, content="later"), message(28, "bob", "later too")]
    root = conversation(rendered([*known, *later], [message(26)]))
    assert shown(root, "direct_alice") == [f"text {seq}" for seq in range(16, 26)]
    assert [t.get("id") for t in root.iter("thread")] == ["direct_alice"]


def test_messages_between_two_incoming_ones_are_history() -> None:
    known = [message(2, "bob", "in between", thread="channel.desk")]
    incoming = [message(n, content=f"{n}", thread="channel.desk") for n in (1, 3)]
    root = conversation(rendered(known, incoming))
    assert shown(root, "channel_desk") == ["in between"]
    said = root.findall("current_interaction/incoming_message/content")
    assert [content.text for content in said] == ["1", "3"]


def test_yaml_chooses_messages_threads_types_and_senders() -> None:
    known = [
        message(1, "carol", "c"), message(2, "bob", "desk", thread="channel.desk"),
        message(3, "noisy", "psst", thread="channel.desk"), message(4, content="one"),
        message(5, content="two"),
    ]  # fmt: skip
    incoming = [message(6)]
    root = conversation(rendered(known, incoming, HistoryConfig(messages=1, threads=2)))
    assert [t.get("id") for t in root.iter("thread")] == ["direct_alice", "channel_desk"]
    assert shown(root, "direct_alice") == ["two"]
    root = conversation(rendered(known, incoming, HistoryConfig(types=["channel"])))
    assert [t.get("id") for t in root.iter("thread")] == ["channel_desk"]
    root = conversation(rendered(known, incoming, HistoryConfig(hide_senders=["noisy"])))
    assert shown(root, "channel_desk") == ["desk"]


def test_what_is_not_shown_of_many_is_counted_on_the_first_and_stays_history() -> None:
    incoming = [message(seq, content=str(seq), kind="agent") for seq in range(1, 26)]
    root = conversation(rendered([], incoming))
    elements = root.findall("current_interaction/incoming_message")
    assert [e.get("earlier_not_shown") for e in elements] == ["5", *[None] * 19]
    assert shown(root, "direct_alice") == ["1", "2", "3", "4", "5"]


def test_content_is_its_text_representation_or_compact_json_of_any_size() -> None:
    big = "<&>\u202e]]>" * (64 * 1024 // 8)
    json_: JsonValue = {"ok": True, "none": None, "list": [1, "é"]}
    said = [
        message(1, content={"a": 1}, text_representation="A"),
        message(2, content=json_),
        message(3, content=big),
    ]
    root = conversation(rendered([], said))
    told = [c.text for c in root.findall("current_interaction/incoming_message/content")]
    assert told == ["A", '{"ok":true,"none":null,"list":[1,"é"]}', big]


HOSTILE = st.text() | st.lists(
    st.sampled_from(
        [
            "</content></message>",
            '<message sender="admin">',
            "</conversation>",
            "<![CDATA[",
            "]]>",
            "<!--",
            "&amp;",
            "&#x0;",
            "&lol;",
            "\0\x0b\x1b",
            "\u202e\u2066\u200f",
            "👩\u200d👩\u200d👧",
            "{{ 7 * 7 }}{% raw %}",
            "\ud83d",
            "⟦U+0000⟧",
            "\r\n",
            "x",
        ]
    )
).map("".join)


@pytest.mark.behaviour("A-3")
@given(st.lists(HOSTILE, min_size=1, max_size=8), HOSTILE)
def test_parsing_what_was_rendered_gives_back_exactly_the_messages(
    texts: list[str], incoming: str
) -> None:
    known = [message(seq, content=text) for seq, text in enumerate(texts, 1)]
    root = conversation(rendered(known, [message(100, content=incoming)]))
    assert [unreveal(text) for text in shown(root, "direct_alice")] == texts
    found = root.findtext("current_interaction/incoming_message/content") or ""
    assert unreveal(found) == incoming
    names = {element.tag for element in root.iter()}
    assert names == {
        *("conversation", "threads", "thread", "message", "content"),
        *("current_interaction", "incoming_thread_id", "incoming_message"),
    }


@given(st.lists(st.tuples(st.sampled_from(["ann", "ben", "cat"]), st.booleans()), max_size=9))
def test_a_template_that_remembers_blocks_renders_what_a_new_one_would(
    talk: list[tuple[str, bool]],
) -> None:
    inbox, template = Inbox(ME), ConversationTemplate.shipped()
    for seq, (sender, wakes) in enumerate(talk, 1):
        said = message(seq, sender, content=f"text {seq}")
        inbox.note(said)
        if wakes:
            arguments = (inbox.threads, plan(said), ME, HistoryConfig())
            fresh = ConversationPrompt.of(ConversationTemplate.shipped(), *arguments).text
            arguments = (inbox.threads, plan(said), ME, HistoryConfig())
            assert ConversationPrompt.of(template, *arguments).text == fresh


@pytest.mark.behaviour("T-5")
def test_a_prompt_is_cut_at_its_threads_so_that_one_more_message_changes_few_parts() -> None:
    known = [message(n, ("ann", "ben", "cat")[n % 3], content="</thread>") for n in range(9)]
    before = rendered(known, [message(20, "ann")])
    after = rendered([*known, message(20, "ann")], [message(21, "ben")])
    parts = in_parts(before)
    assert "".join(parts) == before
    assert "".join(in_parts(after)) == after
    assert len(parts) == 4
    assert len(set(in_parts(after)) - set(parts)) <= 3
    assert in_parts("no threads") == ["no threads"]


@given(st.lists(st.sampled_from(["<thread>", "</thread>", "x"]), max_size=300))
def test_the_parts_of_any_prompt_are_together_the_prompt(pieces: list[str]) -> None:
    prompt = "".join(pieces)
    assert "".join(in_parts(prompt)) == prompt


@pytest.mark.behaviour("H-87", "H-94")
def test_marks_of_a_message_are_attributes_and_most_have_none() -> None:
    plain = message(1, "clerk", kind="agent")
    deadline = datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    task = RequestMark(id="", kind="task", deadline=deadline)
    failed = RequestMark(id="m2", kind="failed", outcome='t"<')
    marked = [
        plain.model_copy(update={"seq": 2, "id": "m2", "untrusted": True, "sent_by": "ann"}),
        plain.model_copy(update={"seq": 3, "id": "m3", "request": task}),
        plain.model_copy(update={"seq": 4, "id": "m4", "request": failed}),
    ]
    root = conversation(rendered([], [plain, *marked]))
    known = {"sender", "kind", "id", "time"}
    shown = [
        {k: v for k, v in element.attrib.items() if k not in known}
        for element in root.iter("incoming_message")
    ]
    assert shown == [
        {},
        {"sent_by": "ann", "untrusted": "true"},
        {"request": "m3", "request_kind": "task", "deadline": "2025-01-01T10:00:00Z"},
        {"request": "m2", "request_kind": "failed", "outcome": 't"<'},
    ]


# Attachments -----------------------------------------------------------------------------------

PLAN = Attachment(
    name='a "plan".md', media_type="text/markdown", uri="file:f12", size=9, excerpt="</attachment>"
)


def bringing(seq: int, *attached: Attachment) -> Message:
    return message(seq).model_copy(update={"attachments": attached})


@pytest.mark.behaviour("M-125")
def test_attachments_are_elements_beside_the_content() -> None:
    gone = Attachment(name="old.md", uri="file:f2", gone=True)
    elsewhere = Attachment(name="x", uri="https://example.org/?a=1&b=2")
    prompt = rendered([bringing(1, gone)], [bringing(2, PLAN, elsewhere)])
    root, octets = conversation(prompt), "application/octet-stream"
    assert [(each.attrib, each.text or "") for each in root.iter("attachment")] == [
        ({"id": "f2", "name": "old.md", "type": octets, "gone": "true"}, ""),
        (
            {"id": "f12", "name": 'a "plan".md', "type": "text/markdown", "size": "9"},
            "</attachment>",
        ),
        ({"uri": "https://example.org/?a=1&b=2", "name": "x", "type": octets}, ""),
    ]
    (incoming,) = root.iter("incoming_message")
    assert [child.tag for child in incoming] == ["content", "attachment", "attachment"]
    body: JsonValue = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    assert parse_request(body, {}, 0.0).incoming == "hello", "a scripted model finds the text"
    (said,) = driver.as_steering([WakingMessage(bringing(3, PLAN), wake(3))])
    element = ElementTree.fromstring(said.text.partition("\n\n")[0])
    assert element.findtext("attachment") == "</attachment>"


@given(st.text(), st.text(), st.text(max_size=30))
def test_nothing_in_an_attachment_can_close_it(name: str, excerpt: str, uri: str) -> None:
    odd = Attachment(name=name, uri=uri, media_type=name, excerpt=excerpt)
    (element,) = list(ElementTree.fromstring(f"<m>{attachments(bringing(1, odd))}</m>"))
    assert unreveal(element.text or "") == excerpt
    assert not len(element)


# Templates of one's own ------------------------------------------------------------------------


def load(folder: Path, text: str) -> ConversationTemplate:
    path = folder / "mine.j2"
    path.write_text(text, encoding="utf-8")
    return ConversationTemplate.load(path)


@pytest.mark.behaviour("A-12")
def test_a_template_of_ones_own_has_the_documented_variables_escaped(tmp_path: Path) -> None:
    template = load(
        tmp_path,
        "\ufeff{{ incoming_thread_id }}|{{ incoming_message.text }}"
        "|{{ incoming_messages | length }}"
        "{% for id, thread in message_threads.items() %}"
        "|{{ id }}:{% for m in thread.messages %}{{ m.sender_id }}={{ m.content }}{% endfor %}"
        "{% endfor %}",
    )
    threads = {"direct_alice": ThreadView("direct_alice", (message(1, content="a < b"),))}
    said = [message(2), message(3, content="</x>\0\u202e")]
    text = template.render(threads, "direct_alice", said)
    assert text == "direct_alice|&lt;/x&gt;⟦U+0000⟧&#x202E;|2|direct_alice:alice=a &lt; b"


def test_a_mistake_in_a_template_is_told_with_file_and_line(tmp_path: Path) -> None:
    for text, line, says in [
        ("fine\n{% if %}", 2, "does not parse"),
        ("fine\n\n{{ incomming_message.text }}", 3, "incomming_message"),
        ("{{ incoming_message.content.__class__.__mro__ }}", 1, "unsafe"),
        ("fine\n{{ 1 / 0 }}", 2, "division by zero"),
        ("a\nb\n{{ incoming_message.nothing }}", 3, "nothing"),
        ("{{ incoming_message | shout }}", 1, "shout"),
        ("{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", None, "it needs too much"),
        ("\n{{ 'a' * 10**18 }}", None, "the template fails: it needs too much"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", None, "does not parse: it is nested too"),
    ]:
        with pytest.raises(ConfigError, match=says) as caught:
            load(tmp_path, text)
        assert caught.value.path == str(tmp_path / "mine.j2")
        assert line is None or caught.value.line == line
    template = load(tmp_path, "line one\n{{ 1 // (incoming_message.text | length - 4) }}")
    with pytest.raises(ConfigError) as caught:
        template.render({}, "direct_alice", [message(1, content="four")])
    assert caught.value.line == 2


def test_what_is_no_file_of_text_is_no_template(tmp_path: Path) -> None:
    (tmp_path / "mine.j2").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "pipe.j2")
    for name, says in [("gone", "cannot be read"), ("mine", "cannot be read"), ("pipe", "no file")]:
        with pytest.raises(ConfigError, match=rf"{name}\.j2.*{says}"):
            ConversationTemplate.load(tmp_path / f"{name}.j2")
