"""Signals about a message while its model writes it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.inbox import Inbox
from hubbub.agents.models.base import Delta, OnDelta
from hubbub.agents.tools.policy import PermissionMode
from hubbub.agents.turn.hooks import Hooks, Refused, ToolCall, TurnInfo, Verdict
from hubbub.agents.turn.loop import CallResult
from hubbub.agents.turn.partial import (
    MOST_TEXT,
    Partials,
    SignalRate,
    partial_object,
    unrefusable_tools,
)
from hubbub.network.notifications import SIGNAL
from hubbub.protocol.messages import Permission
from tests.unit.agents.builders import ME, message, plan

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


@given(objects, st.booleans(), st.data())
def test_a_prefix_of_json_gives_prefixes_of_its_values(
    whole: dict[str, JsonValue], ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(whole, ensure_ascii=ascii_only)
    assert partial_object(text) == (whole, whole)
    so_far, complete = partial_object(text[: data.draw(st.integers(0, len(text)))])
    assert all(whole[key] == value for key, value in complete.items())
    for key, value in so_far.items():
        if isinstance(value, str):
            assert str(whole[key]).startswith(value)


@given(st.text())
def test_any_text_can_be_read_as_partial_json(text: str) -> None:
    for beginning in ("", "{", '{"text": "'):
        partial_object(beginning + text)


def test_broken_json_has_no_values_and_an_incomplete_character_is_held_back() -> None:
    assert partial_object("{1: 2}") == ({}, {})
    whole = json.dumps({"text": "a😀b"})
    for cut in range(len(whole)):
        so_far, _ = partial_object(whole[:cut])
        assert so_far.get("text", "") in ("", "a", "a😀", "a😀b")


SPEAKING = ("send_text_message", "post_to_channel", "broadcast_text_message", "reply", "remember")


class Stream:
    """A turn whose model writes, and the signals about it."""

    def __init__(
        self,
        thread: str = "dm.ann.bot",
        pace: SignalRate | None = None,
        names: Collection[str] = SPEAKING,
    ) -> None:
        self.signals: list[tuple[str, JsonValue]] = []
        self.pauses: list[float] = []
        self.go_on = asyncio.Event()
        woken = message(3, "ann", thread=thread)
        inbox = Inbox(ME)
        inbox.note(woken)
        self.partials = Partials(self._send, plan(woken), inbox, names, pace, sleep=self._sleep)

    async def _send(self, thread_id: str, data: JsonValue) -> None:
        self.signals.append((thread_id, data))

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.go_on.wait()

    @property
    def texts(self) -> list[JsonValue]:
        return [data["text"] for _, data in self.signals if isinstance(data, dict)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def writes(hear: OnDelta, name: str, text: str, *, call: int = 0, attempt: int = 1) -> None:
    hear(Delta(name=name, text=text, call=call, attempt=attempt))


async def whole(name: str, /, **arguments: JsonValue) -> Stream:
    """The stream of a call, written letter by letter."""
    return await written_in("dm.ann.bot", name, arguments)


async def written_in(thread: str, name: str, arguments: dict[str, JsonValue]) -> Stream:
    stream = Stream(thread)
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        for letter in json.dumps(arguments):
            writes(hear, name, letter)
            await settle()
    return stream


async def test_the_text_grows_as_it_is_written() -> None:
    stream = await whole("send_text_message", to="ann", text="hello")
    assert stream.texts == ["h", "he", "hel", "hell", "hello"]
    data = {"turn": "bot-m3", "step": 1, "text": "hello", "to": "ann"}
    assert stream.signals[-1] == ("dm.ann.bot", data)
    late = await whole("send_text_message", text="hello", to="direct_ann")
    assert late.texts == ["hello"], "the text waits for its recipient"


async def test_a_call_that_is_never_shown_is_not_read_while_it_is_written() -> None:
    stream = Stream()
    async with stream.partials.of(1) as hear:
        for _ in range(30_000):  # reading all of it at every piece would take minutes
            writes(hear, "write_file", '["x"')
            await asyncio.sleep(0)
    assert stream.signals == []


async def test_signals_come_at_most_every_fifth_of_a_second_and_the_last_at_once() -> None:
    stream = Stream()
    async with stream.partials.of(2) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "a')
        await settle()
        for letter in "bcdefgh":
            writes(hear, "", letter)
            await settle()
        assert (stream.texts, stream.pauses) == (["a"], [0.2])
    assert stream.texts == ["a", "abcdefgh"]


async def test_concurrent_turns_use_at_most_a_fifth_of_the_agents_call_rate() -> None:
    for rate in (0.5, 2.0, 20.0, 1000.0):
        for writing in range(1, 65):
            pause_s = SignalRate(rate, writing).pause_s
            assert pause_s >= 0.2
            assert writing / pause_s * SIGNAL <= rate / 5 * 1.001
    pace = SignalRate(calls_per_second=2)
    streams = [Stream(pace=pace) for _ in range(3)]
    async with contextlib.AsyncExitStack() as writers:
        for stream in streams:
            hear = await writers.enter_async_context(stream.partials.of(1))
            hear(Delta(text="text outside calls"))
            assert pace.writing == streams.index(stream), "text outside calls does not count"
            writes(hear, "send_text_message", '{"to": "ann", "text": "a')
        await settle()
        assert [stream.pauses for stream in streams] == [[1.5], [1.5], [1.5]]
    assert pace.writing == 0


async def test_only_messages_to_the_turns_thread_are_signalled() -> None:
    send = "send_text_message"
    here: list[tuple[str, str, dict[str, JsonValue]]] = [
        ("dm.ann.bot", send, {"to": ["ann"], "text": "x"}),
        ("dm.ann.bot", "reply", {"message_id": "m3", "text": "x"}),
        ("channel.desk", "post_to_channel", {"channel": "desk", "text": "x"}),
        ("channel.desk", send, {"to": "channel_desk", "text": "x"}),
        ("channel.desk.t2", "post_to_channel", {"channel": "desk", "text": "x"}),
        ("broadcast", "broadcast_text_message", {"text": "x"}),
    ]
    for thread, name, arguments in here:
        stream = await written_in(thread, name, arguments)
        assert [to for to, _ in stream.signals] == [thread], arguments
    elsewhere: list[tuple[str, dict[str, JsonValue]]] = [
        (send, {"to": "bob", "text": "about ann"}),
        (send, {"to": ["ann", "bob"], "text": "to both"}),
        (send, {"to": "direct_bob", "text": "about ann"}), (send, {"text": "to whom?"}),
        (send, {"to": "ann", "text": 5}), (send, {"to": {"x": 1}, "text": "to what?"}),
        ("post_to_channel", {"channel": "desk", "text": "for the desk"}),
        ("broadcast_text_message", {"text": "to all"}),
        ("reply", {"message_id": "m99", "text": "elsewhere"}),
        ("remember", {"key": "ann", "text": "a note"}),
    ]  # fmt: skip
    for name, arguments in elsewhere:
        assert (await whole(name, **arguments)).signals == [], arguments


async def test_refusable_calls_and_text_outside_calls_are_not_signalled() -> None:
    stream, before = Stream(names=["reply"]), asyncio.all_tasks()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "too early"}')
        hear(Delta(text='TOOL_CALL {"tool_name": "reply", "parameters": {"message_id": "m3"'))
        hear(Delta(text=', "text": "a secret draft"}}'))
        await settle()
    assert stream.signals == []
    async with Stream(names=[]).partials.of(1) as hear:
        writes(hear, "reply", '{"message_id": "m3", "text": "too early"}')
        assert asyncio.all_tasks() == before, "no task runs for calls that are not shown"


@dataclass
class _Tool:
    name: str
    confirm: bool = False
    speaks: bool = True
    permission: Permission = "write"


class _Listener(Hooks):
    def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None:
        """Too late to refuse a call."""


class _Guard(Hooks):
    def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
        return Refused("no")


def test_only_tools_that_nothing_can_refuse_are_shown() -> None:
    cases: list[tuple[PermissionMode, bool, list[Hooks], list[str]]] = [
        ("full", False, [], ["say"]), ("ask", False, [], ["say"]),
        ("read_only", False, [], ["say"]), ("full", True, [], []), ("ask", True, [], []),
        ("full", False, [_Listener()], ["say"]), ("full", False, [_Listener(), _Guard()], []),
    ]  # fmt: skip
    for mode, confirm, hooks, names in cases:
        tools = [_Tool("say", confirm=confirm), _Tool("look", speaks=False)]
        assert sorted(unrefusable_tools(tools, mode, hooks)) == names


async def test_each_message_of_each_attempt_is_signalled_and_a_long_one_by_its_end() -> None:
    stream = Stream()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "the fir')
        await settle()
        writes(hear, "send_text_message", '{"to": "ann", "text": "one"}', attempt=2)
        writes(hear, "send_text_message", '{"to": "ann", "text": "two"}', call=1, attempt=2)
        await settle()
        text = "a" * MOST_TEXT + "end"
        long = json.dumps({"to": "ann", "text": text})
        writes(hear, "send_text_message", long, call=2, attempt=2)
    *short, last = stream.texts
    assert short == ["the fir", "one", "two"]
    assert isinstance(last, str)
    assert (len(last), last[-4:]) == (MOST_TEXT + 1, "aend")


async def test_a_failed_answer_leaves_no_task_and_sends_no_signal() -> None:
    stream, before = Stream(), asyncio.all_tasks()

    async def fail() -> None:
        async with stream.partials.of(1) as hear:
            writes(hear, "send_text_message", '{"to": "ann", "text": "a')
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await fail()
    assert stream.signals == []
    assert asyncio.all_tasks() == before
