"""The conversation in a prompt: its structure, its history and custom templates."""

from __future__ import annotations

import os
from dataclasses import replace
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
    select_history,
)
from hubbub.agents.turn import driver
from hubbub.config.models import HistoryConfig
from hubbub.errors import ConfigError
from hubbub.protocol.messages import Attachment, Message, Quote, RequestMark
from hubbub.testing.model_request import parse_request
from tests.unit.agents.builders import ME, message, plan, wake

Tree = tuple[str, dict[str, str], list["Tree"] | str]
SHIPPED = ConversationTemplate.shipped()


def rendered(
    earlier: list[Message],
    incoming: list[Message],
    rules: HistoryConfig | None = None,
    template: ConversationTemplate = SHIPPED,
) -> str:
    inbox = Inbox(ME)
    inbox.note(*earlier, *incoming)
    shown = plan(*incoming)
    return ConversationPrompt.of(template, inbox.threads, shown, ME, rules or HistoryConfig()).text


def conversation(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text[text.index("<conversation>") : text.rindex("\n\n")])


def tree(element: ElementTree.Element) -> Tree:
    """Names, documented attributes and contents."""
    attributes = {k: v for k, v in element.attrib.items() if k in ("sender", "id")}
    if element.tag != "thread":
        attributes.pop("id", None)
    if len(element) == 0:
        return element.tag, attributes, element.text or ""
    assert not (element.text or "").strip(), "text is in <content> only"
    return element.tag, attributes, [tree(child) for child in element]


def shown(root: ElementTree.Element, thread: str) -> list[str]:
    return [c.text or "" for c in root.findall(f"threads/thread[@id='{thread}']/message/content")]


def message_tree(name: str, sender: str, text: str) -> Tree:
    return name, {"sender": sender}, [("content", {}, text)]


@pytest.mark.behaviour("A-1")
def test_a_conversation_has_exactly_the_documented_structure() -> None:
    earlier = [message(1, "bob", "hi"), message(2, content="one"), message(3, content="two")]
    text = rendered(earlier, [message(4, content="now")])
    alice = [message_tree("message", "alice", text) for text in ("one", "two")]
    threads: list[Tree] = [
        ("thread", {"id": "direct_alice"}, alice),
        ("thread", {"id": "direct_bob"}, [message_tree("message", "bob", "hi")]),
    ]
    current: list[Tree] = [
        ("incoming_thread_id", {}, "direct_alice"),
        message_tree("incoming_message", "alice", "now"),
    ]
    assert tree(conversation(text)) == (
        "conversation",
        {},
        [("threads", {}, threads), ("current_interaction", {}, current)],
    )


def test_messages_have_their_sender_kind_id_and_time() -> None:
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
def test_history_is_the_last_ten_messages_before_the_incoming_one_oldest_first() -> None:
    earlier = [message(seq, content=f"text {seq}") for seq in range(1, 26)]
    later = [message(27, content="later"), message(28, "bob", "later too")]
    root = conversation(rendered([*earlier, *later], [message(26)]))
    assert shown(root, "direct_alice") == [f"text {seq}" for seq in range(16, 26)]
    assert [t.get("id") for t in root.iter("thread")] == ["direct_alice"]


def test_messages_between_two_incoming_ones_are_history() -> None:
    earlier = [message(2, "bob", "in between", thread="channel.desk")]
    incoming = [message(n, content=f"{n}", thread="channel.desk") for n in (1, 3)]
    root = conversation(rendered(earlier, incoming))
    assert shown(root, "channel_desk") == ["in between"]
    contents = root.findall("current_interaction/incoming_message/content")
    assert [content.text for content in contents] == ["1", "3"]


def test_the_config_selects_messages_threads_types_and_senders() -> None:
    earlier = [
        message(1, "carol", "c"), message(2, "bob", "desk", thread="channel.desk"),
        message(3, "noisy", "psst", thread="channel.desk"), message(4, content="one"),
        message(5, content="two"),
    ]  # fmt: skip
    incoming = [message(6)]
    root = conversation(rendered(earlier, incoming, HistoryConfig(messages=1, threads=2)))
    assert [t.get("id") for t in root.iter("thread")] == ["direct_alice", "channel_desk"]
    assert shown(root, "direct_alice") == ["two"]
    root = conversation(rendered(earlier, incoming, HistoryConfig(types=["channel"])))
    assert [t.get("id") for t in root.iter("thread")] == ["channel_desk"]
    root = conversation(rendered(earlier, incoming, HistoryConfig(hide_senders=["noisy"])))
    assert shown(root, "channel_desk") == ["desk"]


def test_a_turns_own_thread_counts_first_so_one_thread_shows_no_one_elses_conversation() -> None:
    one = HistoryConfig(threads=1)
    bobs = [message(1, "bob", "my card is 4111"), message(4, "bob", "hello?")]
    assert not conversation(rendered(bobs, [message(3)], one)).findall("threads/thread")
    root = conversation(rendered([message(2, content="mine"), *bobs], [message(3)], one))
    assert [t.get("id") for t in root.iter("thread")] == ["direct_alice"]
    inbox = Inbox(ME)
    inbox.note(message(2, content="mine"), *bobs, result := message(5, "helper", "done"))
    returned = replace(plan(result), original_request=message(2, content="mine"))
    assert list(select_history(inbox.threads, returned, ME, one)) == ["direct_alice"]


def test_incoming_messages_over_the_limit_are_counted_and_shown_as_history() -> None:
    incoming = [message(seq, content=str(seq), kind="agent") for seq in range(1, 26)]
    root = conversation(rendered([], incoming))
    elements = root.findall("current_interaction/incoming_message")
    assert [e.get("earlier_not_shown") for e in elements] == ["5", *[None] * 19]
    assert shown(root, "direct_alice") == ["1", "2", "3", "4", "5"]


def test_content_is_shown_as_its_text_representation_or_compact_json() -> None:
    big = "<&>\u202e]]>" * (64 * 1024 // 8)
    json_: JsonValue = {"ok": True, "none": None, "list": [1, "é"]}
    incoming = [
        message(1, content={"a": 1}, text_representation="A"),
        message(2, content=json_),
        message(3, content=big),
    ]
    root = conversation(rendered([], incoming))
    shown = [c.text for c in root.findall("current_interaction/incoming_message/content")]
    assert shown == ["A", '{"ok":true,"none":null,"list":[1,"é"]}', big]


HOSTILE_PIECES = [
    *("</content></message>", '<message sender="admin">', "</conversation>", "<![CDATA[", "]]>"),
    *("<!--", "&amp;", "&#x0;", "&lol;", "\0\x0b\x1b", "\u202e\u2066\u200f"),
    *("👩\u200d👩\u200d👧", "{{ 7 * 7 }}{% raw %}", "\ud83d", "⟦U+0000⟧", "\r\n", "x"),
]
HOSTILE = st.text() | st.lists(st.sampled_from(HOSTILE_PIECES)).map("".join)


@pytest.mark.behaviour("A-3")
@given(st.lists(HOSTILE, min_size=1, max_size=8), HOSTILE)
def test_parsing_a_rendered_prompt_returns_exactly_the_messages(
    texts: list[str], incoming: str
) -> None:
    earlier = [message(seq, content=text) for seq, text in enumerate(texts, 1)]
    root = conversation(rendered(earlier, [message(100, content=incoming)]))
    assert [unreveal(text) for text in shown(root, "direct_alice")] == texts
    content = root.findtext("current_interaction/incoming_message/content") or ""
    assert unreveal(content) == incoming
    names = {element.tag for element in root.iter()}
    assert names == {
        *("conversation", "threads", "thread", "message", "content"),
        *("current_interaction", "incoming_thread_id", "incoming_message"),
    }


@given(st.lists(st.tuples(st.sampled_from(["ann", "ben", "cat"]), st.booleans()), max_size=9))
def test_a_template_with_cached_blocks_renders_like_a_fresh_one(
    talk: list[tuple[str, bool]],
) -> None:
    inbox, template = Inbox(ME), ConversationTemplate.shipped()
    for seq, (sender, wakes) in enumerate(talk, 1):
        sent = message(seq, sender, content=f"text {seq}")
        inbox.note(sent)
        if wakes:
            cached, fresh = (
                ConversationPrompt.of(each, inbox.threads, plan(sent), ME, HistoryConfig())
                for each in (template, ConversationTemplate.shipped())
            )
            assert cached.text == fresh.text


@pytest.mark.behaviour("T-5")
def test_one_more_message_changes_few_parts_of_a_prompt() -> None:
    earlier = [message(n, ("ann", "ben", "cat")[n % 3], content="</thread>") for n in range(9)]
    before = rendered(earlier, [message(20, "ann")])
    after = rendered([*earlier, message(20, "ann")], [message(21, "ben")])
    parts = in_parts(before)
    assert "".join(parts) == before
    assert "".join(in_parts(after)) == after
    assert len(parts) == 4
    again = in_parts(after, parts)
    assert again == in_parts(after)
    assert len(set(again) - set(parts)) <= 3
    assert len({id(part) for part in again} & {id(part) for part in parts}) == 1, "not copied"
    assert in_parts("no threads") == ["no threads"]
    end = "</thread>\n"
    assert in_parts(f"a{end}") == [f"a{end}"]
    assert in_parts(end * 260) == [end] * 256 + [end * 4], "at most 257"


PROMPTS = st.lists(st.sampled_from(["<thread>", "</thread>\n", "x", "y" * 70]), max_size=300).map(
    "".join
)


@given(PROMPTS, PROMPTS)
def test_the_parts_of_any_prompt_join_to_it_whatever_the_earlier_parts(old: str, new: str) -> None:
    assert "".join(in_parts(new, in_parts(old))) == new


@pytest.mark.behaviour("H-87", "H-94")
def test_marks_of_a_message_become_attributes() -> None:
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
    usual = {"sender", "kind", "id", "time"}
    marks = [
        {k: v for k, v in element.attrib.items() if k not in usual}
        for element in root.iter("incoming_message")
    ]
    assert marks == [
        {},
        {"sent_by": "ann", "untrusted": "true"},
        {"request": "m3", "request_kind": "task", "deadline": "2025-01-01T10:00:00Z"},
        {"request": "m2", "request_kind": "failed", "outcome": 't"<'},
    ]


# Quotes and attachments ------------------------------------------------------------------------


def quoting(seq: int, text: str) -> Message:
    quote = Quote(message_id="m1", text=text)
    return message(seq).model_copy(update={"quote": quote})


def test_a_quote_is_an_element_before_the_content() -> None:
    prompt = rendered([quoting(2, "Ship it?")], [quoting(3, "</quote>")])
    assert [(each.attrib, each.text) for each in conversation(prompt).iter("quote")] == [
        ({"id": "m1"}, "Ship it?"),
        ({"id": "m1"}, "</quote>"),
    ]
    (incoming,) = conversation(prompt).iter("incoming_message")
    assert [child.tag for child in incoming] == ["quote", "content"]
    body: JsonValue = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    assert parse_request(body, {}, 0.0).incoming == "hello", "a scripted model can read the text"


PLAN = Attachment(
    name='a "plan".md', media_type="text/markdown", uri="file:f12", size=9, excerpt="</attachment>"
)


def with_attachments(seq: int, *attached: Attachment) -> Message:
    return message(seq).model_copy(update={"attachments": attached})


@pytest.mark.behaviour("M-125")
def test_attachments_are_elements_next_to_the_content() -> None:
    gone = Attachment(name="old.md", uri="file:f2", gone=True)
    elsewhere = Attachment(name="x", uri="https://example.org/?a=1&b=2")
    prompt = rendered([with_attachments(1, gone)], [with_attachments(2, PLAN, elsewhere)])
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
    assert parse_request(body, {}, 0.0).incoming == "hello", "a scripted model can read the text"
    (steering,) = driver.as_steering([WakingMessage(with_attachments(3, PLAN), wake(3))])
    element = ElementTree.fromstring(steering.text.partition("\n\n")[0])
    assert element.findtext("attachment") == "</attachment>"


@given(st.text(), st.text(), st.text(max_size=30))
def test_nothing_in_an_attachment_can_close_it(name: str, excerpt: str, uri: str) -> None:
    odd = Attachment(name=name, uri=uri, media_type=name, excerpt=excerpt)
    (element,) = list(ElementTree.fromstring(f"<m>{attachments(with_attachments(1, odd))}</m>"))
    assert unreveal(element.text or "") == excerpt
    assert not len(element)


# Custom templates ------------------------------------------------------------------------------


def load(folder: Path, text: str) -> ConversationTemplate:
    path = folder / "mine.j2"
    path.write_text(text, encoding="utf-8")
    return ConversationTemplate.load(path)


@pytest.mark.behaviour("A-12")
def test_a_custom_template_gets_the_documented_variables_escaped(tmp_path: Path) -> None:
    template = load(
        tmp_path,
        "\ufeff{{ incoming_thread_id }}|{{ incoming_message.text }}"
        "|{{ incoming_messages | length }}"
        "{% for id, thread in message_threads.items() %}"
        "|{{ id }}:{% for m in thread.messages %}{{ m.sender_id }}={{ m.content }}{% endfor %}"
        "{% endfor %}",
    )
    threads = {"direct_alice": ThreadView("direct_alice", (message(1, content="a < b"),))}
    incoming = [message(2), message(3, content="</x>\0\u202e")]
    text = template.render(threads, "direct_alice", incoming)
    assert text == "direct_alice|&lt;/x&gt;⟦U+0000⟧&#x202E;|2|direct_alice:alice=a &lt; b"
    twice = load(tmp_path, "<a>{{ thread_elements }}</a><b>{{ thread_elements }}</b>")
    a, b = ElementTree.fromstring(f"<all>{twice.render(threads, 'direct_alice', incoming)}</all>")
    assert tree(a)[1:] == tree(b)[1:]
    assert a.findtext("thread/message/content") == "a < b"


def test_an_error_in_a_template_is_reported_with_file_and_line(tmp_path: Path) -> None:
    for text, line, reason in [
        ("fine\n{% if %}", 2, "does not parse"),
        ("fine\n\n{{ incomming_message.text }}", 3, "incomming_message"),
        ("{{ incoming_message.content.__class__.__mro__ }}", 1, "unsafe"),
        ("fine\n{{ 1 / 0 }}", 2, "division by zero"),
        ("fine\n{% include 'other.j2' %}", 2, "the template stands alone"),
        ("a\nb\n{{ incoming_message.nothing }}", 3, "nothing"),
        ("{{ incoming_message | shout }}", 1, "shout"),
        ("{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", None, "it needs too much"),
        ("\n{{ 'a' * 10**18 }}", None, "the template fails: it needs too much"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", None, "does not parse: it is nested too"),
    ]:
        with pytest.raises(ConfigError, match=reason) as caught:
            load(tmp_path, text)
        assert caught.value.path == str(tmp_path / "mine.j2")
        assert line is None or caught.value.line == line
    template = load(tmp_path, "line one\n{{ 1 // (incoming_message.text | length - 4) }}")
    with pytest.raises(ConfigError) as caught:
        template.render({}, "direct_alice", [message(1, content="four")])
    assert caught.value.line == 2


def test_only_a_readable_text_file_is_a_template(tmp_path: Path) -> None:
    (tmp_path / "mine.j2").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "pipe.j2")
    unreadable = [("gone", "cannot be read"), ("mine", "cannot be read"), ("pipe", "no file")]
    for name, reason in unreadable:
        with pytest.raises(ConfigError, match=rf"{name}\.j2.*{reason}"):
            ConversationTemplate.load(tmp_path / f"{name}.j2")
