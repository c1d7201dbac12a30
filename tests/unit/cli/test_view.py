"""The output of `hubbub up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from hubbub.app.lifecycle import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    LifecycleEvent,
    MessageSeen,
    MessagesSeen,
    NetworkUp,
    Stopping,
)
from hubbub.cli.view import (
    MOST_A_SECOND,
    MOST_COLUMNS,
    MOST_PEOPLE,
    JsonView,
    TerminalView,
    event_line,
)
from hubbub.people.messages import message_line, where
from hubbub.protocol.messages import Attachment, Message, MessageType, Quote

UP = NetworkUp(
    "town", "ws://127.0.0.1:5000", "open", "sqlite:x.db", ("bot",), ("ann",), ("general",)
)
DEFAULT_URL = "ws://127.0.0.1:4820"


def message(
    thread: str = "dm.ann.bob",
    type: MessageType = "direct",
    text: str = "hello",
    reply_to: str | None = None,
) -> Message:
    return Message(
        id="m7",
        seq=7,
        thread_id=thread,
        tseq=1,
        sender_id="ann",
        sender_kind="human",
        type=type,
        recipients=("bob",) if type == "direct" else (),
        content=text,
        reply_to=reply_to,
        interaction_id="i7",
        hop=0,
        sent_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def seen(message: Message) -> MessageSeen:
    return MessageSeen(
        message.model_dump_json(exclude_none=True).encode(), message.type == "direct"
    )


def posts(*texts: str) -> MessagesSeen:
    return MessagesSeen(tuple(seen(message("channel.desk", "channel", text)) for text in texts))


def shown(event: LifecycleEvent | MessageSeen) -> str:
    line = event_line(event)
    return line.plain if line is not None else ""


def test_the_banner_shows_the_page_and_how_to_join_with_which_token(
    snapshot: SnapshotAssertion,
) -> None:
    many = tuple(f"person{n}" for n in range(MOST_PEOPLE + 1))
    guarded = replace(UP, auth="tokens", humans=("ann", "bob"))
    banners = (
        UP,
        NetworkUp("town", DEFAULT_URL, "open", "", (), (), ()),
        guarded,
        replace(guarded, url="ws://0.0.0.0:5000"),
        replace(guarded, url=DEFAULT_URL),
        replace(guarded, humans=many),
        replace(guarded, humans=()),
    )
    assert "\n".join(map(shown, banners)) == snapshot
    banner = shown(replace(guarded, humans=many[1:]))
    assert banner.count("tokens show person") == MOST_PEOPLE


def test_a_message_is_shown_with_its_destination() -> None:
    cases: tuple[tuple[str, MessageType, str | None, str], ...] = (
        ("dm.ann.bob", "direct", None, "→ bob"),
        ("dm.ann.bob.carol", "direct", None, "→ bob, carol"),
        ("channel.desk", "channel", None, "#desk"),
        ("channel.desk.t5", "channel", "m5", "#desk ↳ m5"),
        ("broadcast.t13.t15", "broadcast", None, "→ everyone ↳ m15"),
        ("broadcast", "broadcast", None, "→ everyone"),
        ("mod.tasks", "mod", None, "[tasks]"),
    )
    for thread, type, reply_to, expected in cases:
        assert where(message(thread, type, reply_to=reply_to)) == expected


def test_a_message_is_one_truncated_line_while_the_network_runs() -> None:
    (post,) = posts("one\ntwo").messages
    assert shown(post).endswith(" m7 ann #desk  one two")
    assert message_line(message(text="one\ntwo")).plain.endswith(" m7 ann → bob  one\n    two")
    (post,) = posts("a long line\n" * 500).messages
    text = shown(post)
    assert text.count("a long line") == MOST_COLUMNS // len("a long line ")
    assert text.endswith("…")
    assert len(text) < MOST_COLUMNS + 50


def test_the_messages_of_one_sender_have_the_same_colour() -> None:
    first, second = (message_line(message(text=t)) for t in ("a", "b"))
    assert [s.style for s in first.spans] == [s.style for s in second.spans]


@pytest.mark.behaviour("U-10")
@pytest.mark.parametrize("content", ["my secret", {"pin": "my secret"}])
def test_the_content_of_a_direct_message_is_hidden_unless_requested(
    content: str | dict[str, str],
) -> None:
    letter = message(thread="dm.ann.bob.t3", reply_to="m3").model_copy(
        update={
            "content": content,
            "quote": Quote(message_id="m3", text="my secret"),
            "attachments": (Attachment(name="my secret.txt", uri="file:my secret"),),
            "mentions": ("bob",),
        }
    )
    for view in (TerminalView, JsonView):
        out: list[str] = []
        view(out.append)(MessagesSeen((seen(letter),)))
        view(out.append, direct_texts=True)(MessagesSeen((seen(letter),)))
        hidden, requested = out
        assert "secret" not in hidden
        assert "my secret" in requested
        for head in ("ann", "bob", "m7", str(len(letter.text))):
            assert head in hidden
    assert json.loads(hidden)["message"]["characters"] == len(letter.text)


def test_messages_beyond_the_limit_per_second_are_counted_instead_of_shown() -> None:
    out: list[str] = []
    timers: list[tuple[float, Callable[[], None]]] = []
    now = 100.0
    view = TerminalView(
        out.append, clock=lambda: now, later=lambda s, work: timers.append((s, work))
    )
    view(posts("the first"))
    view(posts(*(f"text {n}" for n in range(MOST_A_SECOND + 1))))
    view(posts("the last"))
    assert len(out) == MOST_A_SECOND
    [(seconds, show_count)] = timers
    assert seconds == 1.0
    view(Stopping("SIGINT"))
    assert out[-1] == "stopping …\n"
    show_count()
    assert out[-1] == "… 3 more messages; see `hubbub messages list`\n"
    now += 0.99
    view(posts("one too many"))
    now += 0.01
    view(posts("the next second"))
    assert out[-2] == "… 1 more message; see `hubbub messages list`\n"
    assert "the next second" in out[-1]
    timers[1][1]()
    assert "the next second" in out[-1], "nothing is left to count"


@pytest.mark.behaviour("U-2")
@given(st.text())
def test_messages_and_agent_output_cannot_control_the_terminal(text: str) -> None:
    (post,) = posts(text or "x").messages
    line = shown(post) + shown(AgentOutput(("bot",), "stderr", text))
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in line)


ALL: list[LifecycleEvent] = [
    UP,
    AgentStarted(("bot",), 17),
    AgentOutput(("bot",), "stderr", "oh no"),
    AgentOutput(("a", "b"), "stdout", "hi"),
    AgentDied(("bot",), 1, 0.5),
    AgentDied(("bot",), -9, 2.0),
    AgentGivenUp(("bot",), 1, 5),
    MessagesSeen((seen(message(text="grüße")),)),
    Stopping("SIGINT"),
]


@pytest.mark.behaviour("U-3")
def test_an_event_is_a_line_for_people_and_a_json_object_for_programs(
    snapshot: SnapshotAssertion,
) -> None:
    assert "\n".join(map(shown, ALL[1:7])) == snapshot
    out: list[str] = []
    view = JsonView(out.append, direct_texts=True)
    for event in ALL:
        view(event)
    objects = [json.loads(line) for line in "".join(out).splitlines()]
    kinds = [event.event for event in ALL]
    assert [each["event"] for each in objects] == [*kinds[:7], "message", *kinds[8:]]
    assert Message.model_validate(objects[7]["message"]) == message(text="grüße")


def test_lines_without_a_terminal_are_plain_and_not_wrapped() -> None:
    out: list[str] = []
    view = TerminalView(out.append)
    view(AgentStarted(("bot",), 1))
    assert out == [], "a started agent is not shown"
    view(posts("word " * 60))
    assert "\x1b" not in out[0]
    assert out[0].count("\n") == 1


def test_a_gap_in_the_output_shows_the_number_of_lines() -> None:
    assert "17 lines" in TerminalView.gap(17)
    assert json.loads(JsonView.gap(17)) == {"event": "left_out", "lines": 17}
