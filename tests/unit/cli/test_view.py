"""What `hubbub up` shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.app.happenings import (
    AgentDied,
    AgentGivenUp,
    AgentOutput,
    AgentStarted,
    Happening,
    MessageSeen,
    NetworkUp,
    Stopping,
)
from hubbub.cli.messages import message_line, where
from hubbub.cli.output import program
from hubbub.cli.view import (
    MOST_A_SECOND,
    MOST_COLUMNS,
    MOST_PEOPLE,
    JsonView,
    TerminalView,
    happening_line,
)
from hubbub.protocol.messages import Attachment, Message, MessageType, Quote

UP = NetworkUp(
    "town", "ws://127.0.0.1:5000", "open", "sqlite:x.db", ("bot",), ("ann",), ("general",)
)


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
    return MessageSeen(message.model_dump_json(exclude_none=True), message.type == "direct")


def posted(text: str) -> MessageSeen:
    return seen(message("channel.desk", "channel", text))


def shown(happening: Happening) -> str:
    line = happening_line(happening)
    return line.plain if line is not None else ""


def test_the_banner_tells_who_where_and_how_to_join() -> None:
    text = shown(UP)
    for words in (
        "hubbub town",
        "agents    bot",
        "people    ann",
        "channels  general",
        "hubbub chat --address 127.0.0.1:5000",
        "http://127.0.0.1:5000/",
        "ws://127.0.0.1:5000",
        "Ctrl-C",
    ):
        assert words in text


@pytest.mark.parametrize("auth", ["open", "tokens"])
def test_the_link_of_the_page_stands_above_everything_else(auth: str) -> None:
    lines = shown(replace(UP, auth=auth)).splitlines()
    assert lines[0] == "hubbub town"
    assert lines[1].split()[:2] == ["page", "http://127.0.0.1:5000/"]


def test_a_network_on_all_addresses_is_opened_at_this_machine_s_own() -> None:
    text = shown(replace(UP, url="ws://0.0.0.0:5000", auth="tokens"))
    assert "http://127.0.0.1:5000/" in text
    assert "http://0.0.0.0" not in text


class TestGettingIn:
    def lines(self, *humans: str, url: str = "ws://127.0.0.1:5000") -> list[str]:
        """What the banner of a network with tokens says about them."""
        text = shown(replace(UP, auth="tokens", humans=humans, url=url))
        return [" ".join(line.split()) for line in text.splitlines() if " token " in line]

    def test_every_person_is_told_by_name_where_the_token_is(self) -> None:
        ann, bob = self.lines("ann", "bob")
        option = "--address 127.0.0.1:5000"
        assert ann == (
            f"token {program()} token show ann {option} shows the token to join as ann with"
        )
        assert bob == f"{program()} token show bob {option} shows the token to join as bob with"

    def test_at_the_usual_address_the_command_is_short(self) -> None:
        (line,) = self.lines("ann", url="ws://127.0.0.1:4820")
        assert line.startswith(f"token {program()} token show ann shows")

    def test_many_people_are_told_once(self) -> None:
        (line,) = self.lines(*(f"person{n}" for n in range(MOST_PEOPLE + 1)))
        assert "token show NAME" in line
        assert len(self.lines(*(f"person{n}" for n in range(MOST_PEOPLE)))) == MOST_PEOPLE

    def test_where_nobody_is_known_a_token_has_to_be_made(self) -> None:
        (line,) = self.lines()
        assert "token add NAME" in line

    def test_in_an_open_network_nobody_is_told_of_tokens(self) -> None:
        assert "token" not in shown(UP)


def test_at_the_usual_address_joining_needs_no_option() -> None:
    text = shown(NetworkUp("town", "ws://127.0.0.1:4820", "open", "", (), (), ()))
    assert "hubbub chat " in text
    assert "--address" not in text
    assert "agents" not in text


@pytest.mark.parametrize(
    ("thread", "type", "reply_to", "expected"),
    [
        ("dm.ann.bob", "direct", None, "→ bob"),
        ("dm.ann.bob.carol", "direct", None, "→ bob, carol"),
        ("channel.desk", "channel", None, "#desk"),
        ("channel.desk.t5", "channel", "m5", "#desk ↳ m5"),
        ("broadcast.t13", "broadcast", None, "→ everybody ↳ m13"),
        ("broadcast.t13.t15", "broadcast", None, "→ everybody ↳ m15"),
        ("broadcast", "broadcast", None, "→ everybody"),
        ("mod.tasks", "mod", None, "[tasks]"),
    ],
)
def test_a_message_tells_where_it_goes(
    thread: str, type: MessageType, reply_to: str | None, expected: str
) -> None:
    assert where(message(thread, type, reply_to=reply_to)) == expected


def test_a_message_is_one_line_in_the_log_further_lines_are_indented() -> None:
    assert shown(posted("one\ntwo")).endswith(" m7 ann #desk  one two")
    assert message_line(message(text="one\ntwo")).plain.endswith(" m7 ann → bob  one\n    two")


def test_a_long_message_is_shown_by_its_beginning() -> None:
    text = shown(posted("line of it\n" * 500 + "x" * 10_000))
    assert text.count("line of it") == MOST_COLUMNS // len("line of it ")
    assert text.endswith("…")
    assert len(text) < MOST_COLUMNS + 50


@pytest.mark.behaviour("U-10")
@pytest.mark.parametrize("said", ["my secret", {"pin": "my secret"}])
def test_of_a_direct_message_the_view_tells_who_wrote_to_whom_and_no_word_of_it(
    said: JsonValue,
) -> None:
    letter = message(thread="dm.ann.bob.t3", reply_to="m3").model_copy(
        update={
            "content": said,
            "quote": Quote(message_id="m3", text="my secret"),
            "attachments": (Attachment(name="my secret.txt", uri="file:my secret"),),
            "mentions": ("bob",),
        }
    )
    for view in (TerminalView, JsonView):
        out: list[str] = []
        view(out.append)(seen(letter))
        view(out.append, direct_texts=True)(seen(letter))
        hidden, asked_for = out
        assert "secret" not in hidden
        assert "my secret" in asked_for
        for head in ("ann", "bob", "m7", str(len(letter.text))):
            assert head in hidden
    assert json.loads(hidden)["message"]["characters"] == len(letter.text)


def test_of_many_messages_in_a_second_the_first_are_shown_and_the_others_counted() -> None:
    out: list[str] = []
    timers: list[tuple[float, Callable[[], None]]] = []
    now = 100.0
    view = TerminalView(
        out.append, clock=lambda: now, later=lambda s, work: timers.append((s, work))
    )
    for n in range(MOST_A_SECOND + 3):
        view(posted(f"text {n}"))
    assert len(out) == MOST_A_SECOND
    [(seconds, tell)] = timers
    assert seconds == 1.0
    view(Stopping("SIGINT"))
    assert out[-1] == "stopping …\n"
    tell()
    assert out[-1] == "… 3 more messages; `hubbub log` shows them\n"
    now += 0.99
    view(posted("one too many"))
    now += 0.01
    view(posted("the next second"))
    assert out[-2] == "… 1 more message; `hubbub log` shows them\n"
    assert "the next second" in out[-1]
    timers[1][1]()
    assert "the next second" in out[-1]  # there is no more to tell


def test_a_sender_has_the_same_colour_every_time() -> None:
    first, second = (message_line(message(text=t)) for t in ("a", "b"))
    assert [s.style for s in first.spans] == [s.style for s in second.spans]


@pytest.mark.behaviour("U-2")
@given(st.text())
def test_nothing_that_is_said_can_steer_the_terminal(text: str) -> None:
    line = shown(posted(text or "x"))
    line += shown(AgentOutput(("bot",), "stderr", text))
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in line)


@pytest.mark.parametrize(
    ("happening", "expected"),
    [
        (AgentOutput(("bot",), "stderr", "oh no"), "bot ! oh no"),
        (AgentOutput(("a", "b"), "stdout", "hi"), "a+b | hi"),
        (AgentDied(("bot",), 1, 0.5), "bot ended with exit code 1; starts again in 0.5 s"),
        (AgentDied(("bot",), -9, 2.0), "bot was killed by signal 9; starts again in 2 s"),
        (AgentStarted(("bot",), 1), ""),
        (Stopping("SIGINT"), "stopping …"),
    ],
)
def test_what_happens_to_agents_is_a_line(happening: Happening, expected: str) -> None:
    assert shown(happening) == expected


def test_an_agent_that_is_left_alone_is_told_with_what_to_do() -> None:
    text = shown(AgentGivenUp(("bot",), 1, 5))
    assert text.startswith("bot ended with exit code 1, the 5th time in a row")
    assert "mend it" in text


def test_without_a_terminal_lines_are_plain_and_never_wrapped() -> None:
    out: list[str] = []
    TerminalView(out.append)(posted("word " * 60))
    assert "\x1b" not in out[0]
    assert out[0].count("\n") == 1


def test_what_nobody_needs_to_see_is_not_printed() -> None:
    out: list[str] = []
    TerminalView(out.append)(AgentStarted(("bot",), 1))
    assert out == []


def test_lines_that_nobody_read_in_time_are_counted() -> None:
    assert "17 lines" in TerminalView.gap(17)
    assert json.loads(JsonView.gap(17)) == {"event": "left_out", "lines": 17}


ALL = [
    UP,
    AgentStarted(("bot",), 17),
    AgentDied(("bot",), 1, 0.5),
    AgentGivenUp(("bot",), 1, 5),
    AgentOutput(("bot",), "stdout", "x"),
    seen(message()),
    Stopping("SIGINT"),
]


@pytest.mark.behaviour("U-3")
@pytest.mark.parametrize("happening", ALL)
def test_for_programs_everything_is_an_object_on_a_line(happening: Happening) -> None:
    out: list[str] = []
    JsonView(out.append)(happening)
    (line,) = "".join(out).splitlines()
    assert json.loads(line)["event"] == happening.event


def test_a_message_is_whole_in_json() -> None:
    out: list[str] = []
    JsonView(out.append, direct_texts=True)(seen(message(text="grüße")))
    body = json.loads(out[0])["message"]
    assert Message.model_validate(body) == message(text="grüße")
