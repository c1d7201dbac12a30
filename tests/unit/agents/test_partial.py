"""What is told of a message while its model writes it."""

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
from hubbub.agents.turn.partial import MOST_TEXT, Pace, Partials, read_growing, unrefusable
from hubbub.network.hub import SIGNAL
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Permission
from tests.unit.agents.builders import ME, message, plan

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


class TestReadingGrowingJson:
    @given(objects, st.booleans(), st.data())
    def test_every_beginning_tells_a_beginning_of_the_whole(
        self, whole: dict[str, JsonValue], ascii_only: bool, data: st.DataObject
    ) -> None:
        text = json.dumps(whole, ensure_ascii=ascii_only)
        cut = data.draw(st.integers(0, len(text)))
        read = read_growing(text[:cut])
        items = list(whole.items())
        got = list(read.members.items())
        for (key, value), (known, told) in zip(got, items, strict=False):
            assert key == known
            unfinished = isinstance(told, int) and not isinstance(told, bool)
            assert value == told or unfinished, "only a number does not show its end"
        if read.key is not None:
            key, value = items[len(got)]
            assert read.key == key
            assert isinstance(value, str)
            assert value.startswith(read.text)

    @given(objects)
    def test_the_whole_is_read_whole(self, whole: dict[str, JsonValue]) -> None:
        assert read_growing(json.dumps(whole)).members == whole

    @given(st.text())
    def test_no_text_is_too_broken(self, text: str) -> None:
        read_growing(text)
        read_growing("{" + text)
        read_growing('{"text": "' + text)

    def test_half_a_character_waits_for_its_other_half(self) -> None:
        whole = json.dumps({"text": "a😀b"})
        texts = [read_growing(whole[:cut]).text for cut in range(len(whole))]
        assert all(text in ("", "a", "a😀", "a😀b") for text in texts)


SPEAKING = ("send_text_message", "post_to_channel", "broadcast_text_message", "reply", "remember")


class Stream:
    """A turn whose model writes; what the thread is told of it."""

    def __init__(
        self,
        thread: str = "dm.ann.bot",
        pace: Pace | None = None,
        names: Collection[str] = SPEAKING,
    ) -> None:
        self.told: list[tuple[str, JsonValue]] = []
        self.slept: list[float] = []
        self.go_on = asyncio.Event()
        woken = message(3, "ann", thread=thread)
        inbox = Inbox(ME)
        inbox.note(woken)
        self.partials = Partials(self._tell, plan(woken), inbox, names, pace, sleep=self._sleep)

    async def _tell(self, thread_id: str, data: JsonValue) -> None:
        self.told.append((thread_id, data))

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.go_on.wait()

    @property
    def texts(self) -> list[JsonValue]:
        return [data["text"] for _, data in self.told if isinstance(data, dict)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def writes(hear: OnDelta, name: str, text: str, *, call: int = 0, attempt: int = 1) -> None:
    hear(Delta(name=name, text=text, call=call, attempt=attempt))


async def whole(name: str, /, **arguments: JsonValue) -> Stream:
    """What is told of a call, written letter by letter."""
    return await written_in("dm.ann.bot", name, arguments)


async def written_in(thread: str, name: str, arguments: dict[str, JsonValue]) -> Stream:
    stream = Stream(thread)
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        for letter in json.dumps(arguments):
            writes(hear, name, letter)
            await settle()
    return stream


async def test_a_text_grows_as_it_is_written() -> None:
    stream = await whole("send_text_message", to="ann", text="hello")
    assert stream.texts == ["h", "he", "hel", "hell", "hello"]
    thread, data = stream.told[-1]
    assert thread == "dm.ann.bot"
    assert data == {"turn": "bot-m3", "step": 1, "text": "hello", "to": "ann"}


async def test_it_is_told_at_most_every_fifth_of_a_second_and_the_last_at_once() -> None:
    stream = Stream()
    async with stream.partials.of(2) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "a')
        await settle()
        for letter in "bcdefgh":
            writes(hear, "", letter)
            await settle()
        assert stream.texts == ["a"]
        assert stream.slept == [0.2]
    assert stream.texts == ["a", "abcdefgh"]


@pytest.mark.parametrize("rate", [0.5, 2.0, 20.0, 1000.0])
def test_the_signals_of_many_turns_take_a_fifth_of_the_agents_calls_at_most(rate: float) -> None:
    for writing in range(1, 65):
        pause_s = Pace(rate, writing).pause_s
        assert pause_s >= 0.2
        assert writing / pause_s * SIGNAL <= rate / 5 * 1.001


async def test_turns_that_write_at_once_are_told_of_more_seldom() -> None:
    pace = Pace(calls_per_second=2)
    streams = [Stream(pace=pace) for _ in range(3)]
    async with contextlib.AsyncExitStack() as writing:
        for stream in streams:
            hear = await writing.enter_async_context(stream.partials.of(1))
            hear(Delta(text="a word beside calls"))
            assert pace.writing == streams.index(stream), "what is not told of does not count"
            writes(hear, "send_text_message", '{"to": "ann", "text": "a')
        await settle()
        assert [stream.slept for stream in streams] == [[1.5], [1.5], [1.5]]
    assert pace.writing == 0


async def test_what_comes_before_its_recipient_waits_for_it() -> None:
    stream = await whole("send_text_message", text="hello", to="direct_ann")
    assert stream.texts == ["hello"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send_text_message", {"to": "bob", "text": "about ann"}),
        ("send_text_message", {"to": ["ann", "bob"], "text": "to both"}),
        ("send_text_message", {"to": "direct_bob", "text": "about ann"}),
        ("send_text_message", {"text": "to whom?"}),
        ("post_to_channel", {"channel": "desk", "text": "for the desk"}),
        ("broadcast_text_message", {"text": "to all"}),
        ("reply", {"message_id": "m99", "text": "elsewhere"}),
        ("remember", {"key": "ann", "text": "a note"}),
        ("send_text_message", {"to": "ann", "text": 5}),
        ("send_text_message", {"to": {"x": 1}, "text": "to what?"}),
    ],
)
async def test_what_is_not_for_this_thread_stays_unsaid(
    name: str, arguments: dict[str, JsonValue]
) -> None:
    assert (await whole(name, **arguments)).told == []


@pytest.mark.parametrize(
    ("thread", "name", "arguments"),
    [
        ("dm.ann.bot", "send_text_message", {"to": ["ann"], "text": "x"}),
        ("dm.ann.bot", "reply", {"message_id": "m3", "text": "x"}),
        ("channel.desk", "post_to_channel", {"channel": "desk", "text": "x"}),
        ("channel.desk", "send_text_message", {"to": "channel_desk", "text": "x"}),
        ("channel.desk.t2", "post_to_channel", {"channel": "desk", "text": "x"}),
        ("broadcast", "broadcast_text_message", {"text": "x"}),
    ],
)
async def test_what_is_for_this_thread_is_told_there(
    thread: str, name: str, arguments: dict[str, JsonValue]
) -> None:
    stream = await written_in(thread, name, arguments)
    assert [where for where, _ in stream.told] == [thread]
    assert thread_ids.root(thread) in thread


async def test_what_may_yet_be_refused_stays_unsaid() -> None:
    stream, before = Stream(names=["reply"]), asyncio.all_tasks()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "too early"}')
        await settle()
    assert stream.told == []
    async with Stream(names=[]).partials.of(1) as hear:
        writes(hear, "reply", '{"message_id": "m3", "text": "too early"}')
        assert asyncio.all_tasks() == before, "nothing is watched that is not told of"


@dataclass
class _Tool:
    name: str
    confirm: bool = False
    speaks: bool = True
    permission: Permission = "write"


class _Listener(Hooks):
    def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None:
        """What has happened already is not kept back."""


class _Guard(Hooks):
    def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
        return Refused("no")


@pytest.mark.parametrize(
    ("mode", "confirm", "hooks", "told"),
    [
        ("full", False, [], ["say"]),
        ("ask", False, [], ["say"]),
        ("read_only", False, [], ["say"]),
        ("full", True, [], []),
        ("ask", True, [], []),
        ("full", False, [_Listener()], ["say"]),
        ("full", False, [_Listener(), _Guard()], []),
    ],
)
def test_only_calls_that_nothing_can_refuse_are_told_of(
    mode: PermissionMode, confirm: bool, hooks: list[Hooks], told: list[str]
) -> None:
    tools = [_Tool("say", confirm=confirm), _Tool("look", speaks=False)]
    assert sorted(unrefusable(tools, mode, hooks)) == told


async def test_words_outside_of_calls_are_told_to_nobody() -> None:
    stream = Stream()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        hear(Delta(text='TOOL_CALL {"tool_name": "send_text_message", "parameters": {"to": "ann"'))
        hear(Delta(text=', "text": "a secret draft"}}'))
        await settle()
    assert stream.told == []


async def test_an_answer_that_breaks_off_begins_anew() -> None:
    stream = Stream()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "the fir')
        await settle()
        writes(hear, "send_text_message", '{"to": "ann", "text": "another"}', attempt=2)
        await settle()
    assert stream.texts == ["the fir", "another"]


async def test_each_of_several_messages_is_told() -> None:
    stream = Stream()
    stream.go_on.set()
    async with stream.partials.of(1) as hear:
        writes(hear, "send_text_message", '{"to": "ann", "text": "one"}')
        writes(hear, "send_text_message", '{"to": "ann", "text": "two"}', call=1)
    assert stream.texts == ["one", "two"]


async def test_of_a_very_long_text_the_end_is_told() -> None:
    stream = Stream()
    async with stream.partials.of(1) as hear:
        text = "a" * MOST_TEXT + "end"
        writes(hear, "send_text_message", json.dumps({"to": "ann", "text": text}))
    (told,) = stream.texts
    assert isinstance(told, str)
    assert len(told) == MOST_TEXT + 1
    assert told.endswith("aend")


async def test_a_failed_answer_leaves_no_task_and_tells_no_more() -> None:
    stream, before = Stream(), asyncio.all_tasks()

    async def breaks() -> None:
        async with stream.partials.of(1) as hear:
            writes(hear, "send_text_message", '{"to": "ann", "text": "a')
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await breaks()
    assert stream.told == []
    assert asyncio.all_tasks() == before
