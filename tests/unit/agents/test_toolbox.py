"""Running the calls of a step: order, failures, timeouts, repetition."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Literal

import pytest
from pydantic import JsonValue

from hubbub import ToolFailed, tool
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.compact import compact
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.results import DEFAULT_BUDGET
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.tuning import Retry, Tuning
from hubbub.agents.turn.timing import TurnClock
from hubbub.errors import ConnectionLost, OperationError
from hubbub.ids import write_id
from hubbub.protocol.messages import OperationInfo
from hubbub.protocol.operations import PostToChannel, ReadThread
from hubbub.protocol.turns import Step, ToolCallRecord
from tests.unit.agents.builders import Watch


class Telephone:
    """A hub that notes what it is asked, and answers as told; a held call waits for `go`."""

    def __init__(self, answer: JsonValue | Exception = None):
        self.answer = answer
        self.asked: list[tuple[str, str | None, str | None, dict[str, JsonValue]]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.rang = asyncio.Event()

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        self.asked.append((name, cid, cause, args))
        self.rang.set()
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


SENT: JsonValue = {"id": "m7", "seq": 7, "thread_id": "dm.ann.bot", "tseq": 3, "absent": ["ann"]}


def operation(
    name: str, permission: Literal["read", "write"], model: type[PostToChannel | ReadThread]
) -> OperationInfo:
    return OperationInfo(
        name=name,
        description=f"what {name} does",
        permission=permission,
        input_schema=model.model_json_schema(),
    )


POST = operation("post_to_channel", "write", PostToChannel)
READ = operation("read_thread", "read", ReadThread)


def record(name: str, arguments: JsonValue = None, id: str = "c") -> ToolCallRecord:
    return ToolCallRecord(id=id, name=name, arguments=arguments or {})


async def run_one(
    box: Toolbox, call: ToolCallRecord, again: bool = False
) -> tuple[str, str | None]:
    (result,) = await box.run("bot-m1", 1, [call], [call], again=again)
    assert result.duration_ms is not None
    return result.result, result.error


async def failure_of(box: Toolbox, call: ToolCallRecord, again: bool = False) -> dict[str, object]:
    text, error = await run_one(box, call, again)
    told: dict[str, object] = json.loads(text)
    assert told["error"] == error
    return told


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@tool(idempotent=True)
def look() -> str:
    """Look."""
    return "seen"


SAY: JsonValue = {"channel": "desk", "text": "hi"}


class TestHubTools:
    def test_cause_is_not_shown_to_the_model(self) -> None:
        spec = HubTool(POST, Telephone(), "bot").spec
        assert isinstance(spec.parameters["properties"], dict)
        assert set(spec.parameters["properties"]) == {
            *("channel", "text", "mentions", "quote", "attachments"),
        }
        assert spec.description == "what post_to_channel does"
        assert "title" not in json.dumps(spec.parameters)

    def test_what_a_mod_calls_so_is_its_own(self) -> None:
        schema: dict[str, JsonValue] = {"properties": {"mode": {}, "outside": {}, "cause": {}}}
        poll = OperationInfo(
            name="poll", description="Poll.", permission="write", input_schema=schema
        )
        shown = HubTool(poll, Telephone(), "bot").spec.parameters["properties"]
        assert isinstance(shown, dict)
        assert set(shown) == {"mode", "outside"}

    @pytest.mark.behaviour("H-89")
    @pytest.mark.parametrize("outside", [False, True])
    async def test_a_message_says_whether_its_author_has_read_something_from_outside(
        self, outside: bool
    ) -> None:
        phone = Telephone(SENT)
        tools = [HubTool(POST, phone, "bot"), HubTool(READ, phone, "bot")]
        calls = [record("post_to_channel", SAY, "a"), record("read_thread", {"thread": "x"}, "b")]
        await Toolbox(tools).run("bot-m1", 1, calls, calls, outside=outside)
        said = {name: args.get("outside") for name, _, _, args in phone.asked}
        assert said == {"post_to_channel": True if outside else None, "read_thread": None}

    @pytest.mark.behaviour("H-88")
    @pytest.mark.parametrize(
        ("value", "outside"),
        [
            ({"messages": [{"sender_id": "ann", "content": "x", "outside": True}]}, True),
            ({"messages": [{"sender_id": "ann", "content": "x", "outside": False}]}, False),
            ({"threads": [{"messages": [{"sender_id": "ann", "outside": True}]}]}, True),
            ({"messages": [{"sender_id": "ann", "content": {"outside": True}}]}, False),
            (None, False),
        ],
    )
    async def test_who_reads_a_message_from_outside_has_read_it(
        self, value: JsonValue, outside: bool
    ) -> None:
        box = Toolbox([HubTool(READ, Telephone(value), "bot")])
        call = record("read_thread", {"thread": "x"})
        (result,) = await box.run("bot-m1", 1, [call], [call])
        assert result.outside is outside

    def test_what_sends_a_message_is_known_by_its_cause(self) -> None:
        box = Toolbox([HubTool(POST, Telephone(), "bot"), HubTool(READ, Telephone(), "bot")])
        assert box.speaking == {"post_to_channel"}

    @pytest.mark.behaviour("T-2")
    async def test_a_write_names_its_cause_and_a_cid_that_is_the_same_every_time(self) -> None:
        phone = Telephone(SENT)
        box = Toolbox([HubTool(POST, phone, "bot")])
        call = record("post_to_channel", {"channel": "desk", "text": "hi"})
        await run_one(box, call)
        await run_one(box, call, again=True)
        expected = (
            "post_to_channel",
            write_id("bot-m1", 1, 0),
            "bot-m1",
            {"channel": "desk", "text": "hi"},
        )
        assert phone.asked == [expected, expected]

    async def test_a_read_has_neither(self) -> None:
        phone = Telephone({"messages": []})
        await run_one(
            Toolbox([HubTool(READ, phone, "bot")]), record("read_thread", {"thread": "x"})
        )
        assert phone.asked == [("read_thread", None, None, {"thread": "x"})]

    async def test_the_result_is_short_and_speaks_of_threads_as_the_agent_knows_them(self) -> None:
        box = Toolbox([HubTool(POST, Telephone(SENT), "bot")])
        text, _ = await run_one(box, record("post_to_channel", SAY))
        assert json.loads(text) == {"id": "m7", "thread_id": "direct_ann", "absent": ["ann"]}

    async def test_a_refusal_is_the_result(self) -> None:
        refused = OperationError(
            "rate_limited", "too fast", temporary=True, details={"near": ["desk"]}
        )
        once = Conduct(tuning={"post_to_channel": Tuning(retry=Retry(attempts=1))})
        box = Toolbox([HubTool(POST, Telephone(refused), "bot")], once)
        assert await failure_of(box, record("post_to_channel", SAY)) == {
            "error": "rate_limited",
            "message": "too fast",
            "retry": True,
            "valid_names": ["desk"],
        }

    @pytest.mark.parametrize("name", ["cid", "cause"])
    async def test_what_the_runtime_fills_in_is_not_an_argument(self, name: str) -> None:
        phone = Telephone(SENT)
        box = Toolbox([HubTool(POST, phone, "bot")])
        given: JsonValue = {"channel": "desk", "text": "hi", name: "mine"}
        told = await failure_of(box, record("post_to_channel", given))
        assert told["error"] == "invalid_arguments"
        assert f"there is no argument {name}" in str(told["message"])
        assert phone.asked == []

    async def test_a_hub_tool_run_by_itself_takes_no_cid_either(self) -> None:
        with pytest.raises(ToolFailed, match="no argument cid"):
            await HubTool(POST, Telephone(), "bot").run({"cid": "mine"}, CallSite("bot-m1", 1, 0))

    async def test_a_lost_connection_is_told(self) -> None:
        box = Toolbox([HubTool(READ, Telephone(ConnectionLost(1000)), "bot")])
        assert (await failure_of(box, record("read_thread", {"thread": "x"})))[
            "error"
        ] == "connection_lost"


class TestOrder:
    @pytest.mark.behaviour("A-9")
    async def test_results_come_in_the_order_of_the_calls(self) -> None:
        made = [record("double", {"n": n}, f"c{n}") for n in (3, 1, 2)]
        results = await Toolbox([double]).run("bot-m1", 1, made, made)
        assert [r.result for r in results] == ["6", "2", "4"]

    @pytest.mark.behaviour("A-9")
    async def test_calls_run_side_by_side(self) -> None:
        meeting = asyncio.Barrier(2)

        @tool
        async def meet(who: str) -> str:
            """Meet."""
            await meeting.wait()
            return who

        made = [record("meet", {"who": who}, who) for who in ("a", "b")]
        results = await asyncio.wait_for(Toolbox([meet]).run("bot-m1", 1, made, made), 30)
        assert [r.result for r in results] == ["a", "b"]

    async def test_each_result_tells_when_its_call_began_in_the_turn(self) -> None:
        recorded = [Step(n=1, at_ms=0.0, duration_ms=5000.0)]  # before a crash
        made = [record("double", {"n": n}, f"c{n}") for n in (1, 2)]
        results = await Toolbox([double]).run("bot-m1", 2, made, made, clock=TurnClock(recorded))
        for result in results:
            assert result.at_ms is not None
            assert result.at_ms >= 5000.0
            assert result.duration_ms is not None
            assert result.duration_ms >= 0

    async def test_a_call_that_waits_for_another_begins_when_that_has_ended(self) -> None:
        watch = Watch()

        class Slow(Telephone):
            async def call(
                self,
                name: str,
                /,
                *,
                cid: str | None = None,
                cause: str | None = None,
                **args: JsonValue,
            ) -> JsonValue:
                watch.now += 2.0
                return await super().call(name, cid=cid, cause=cause, **args)

        made = [record("post_to_channel", {"channel": "c", "text": t}, t) for t in ("a", "b")]
        box = Toolbox([HubTool(POST, Slow(SENT), "bot")])
        results = await box.run("bot-m1", 1, made, made, clock=TurnClock(monotonic=watch))
        assert [(r.at_ms, r.duration_ms) for r in results] == [(0.0, 2000.0), (2000.0, 2000.0)]

    @pytest.mark.behaviour("A-9")
    async def test_writes_wait_for_each_other_while_others_go_on(self) -> None:
        phone = Telephone(SENT)
        phone.go.clear()
        looked = asyncio.Event()

        @tool
        async def peek() -> str:
            """Peek."""
            looked.set()
            return "seen"

        box = Toolbox([HubTool(POST, phone, "bot"), peek])
        made = [
            record("post_to_channel", {"channel": "c", "text": "1"}, "a"),
            record("peek", {}, "b"),
            record("post_to_channel", {"channel": "c", "text": "2"}, "c"),
        ]
        task = asyncio.create_task(box.run("bot-m1", 1, made, made))
        await asyncio.wait_for(phone.rang.wait(), 30)
        await asyncio.wait_for(looked.wait(), 30)
        assert [asked[3]["text"] for asked in phone.asked] == ["1"]
        phone.go.set()
        await task
        assert [asked[3]["text"] for asked in phone.asked] == ["1", "2"]

    async def test_the_place_of_a_call_counts_in_the_whole_step(self) -> None:
        phone = Telephone(SENT)
        done, open_ = record("post_to_channel", SAY, "a"), record("post_to_channel", SAY, "b")
        await Toolbox([HubTool(POST, phone, "bot")]).run("bot-m1", 2, [done, open_], [open_])
        assert phone.asked[0][1] == write_id("bot-m1", 2, 1)


class TestFailures:
    @pytest.mark.behaviour("A-5")
    async def test_an_exception_is_told_with_its_type(self) -> None:
        @tool
        def fail() -> str:
            """Fail."""
            raise ZeroDivisionError("by zero")

        told = await failure_of(Toolbox([fail]), record("fail"))
        assert told == {
            "error": "tool_failed",
            "message": "ZeroDivisionError: by zero",
            "retry": False,
        }

    async def test_a_tool_may_choose_the_words(self) -> None:
        @tool
        def order(dish: str) -> str:
            """Order."""
            raise ToolFailed(f"no {dish} today", error="sold_out", retry=True, near=["soup"])

        told = await failure_of(Toolbox([order]), record("order", {"dish": "pie"}))
        assert told == {
            "error": "sold_out",
            "message": "no pie today",
            "retry": True,
            "valid_names": ["soup"],
        }

    async def test_a_slow_tool_is_given_up(self) -> None:
        @tool(timeout=0.01)
        async def sleep() -> str:
            """Sleep."""
            await asyncio.Event().wait()
            return "never"

        told = await failure_of(Toolbox([sleep]), record("sleep"))
        assert told["error"] == "timeout"
        assert "0.01 s" in str(told["message"])
        assert told["retry"] is False

    async def test_the_toolbox_has_a_timeout_for_tools_without_one(self) -> None:
        @tool(idempotent=True)
        async def sleep() -> str:
            """Sleep."""
            await asyncio.Event().wait()
            return "never"

        told = await failure_of(Toolbox([sleep], Conduct(timeout=0.01)), record("sleep"))
        assert (told["error"], told["retry"]) == ("timeout", True)

    async def test_a_timeout_inside_the_tool_is_the_tools_own(self) -> None:
        @tool
        async def ask() -> str:
            """Ask."""
            raise TimeoutError("the other side")

        told = await failure_of(Toolbox([ask]), record("ask"))
        assert told["message"] == "TimeoutError: the other side"

    async def test_one_failure_does_not_disturb_the_others(self) -> None:
        made = [record("double", {"n": "x"}, "a"), record("double", {"n": 2}, "b")]
        results = await Toolbox([double]).run("bot-m1", 1, made, made)
        assert [r.error for r in results] == ["invalid_arguments", None]

    async def test_a_tool_that_needs_approval_does_not_run_without(self) -> None:
        ran = []

        @tool(confirm=True)
        def delete() -> None:
            """Delete."""
            ran.append(1)

        assert (await failure_of(Toolbox([delete]), record("delete")))["error"] == "needs_approval"
        assert ran == []

    async def test_a_long_result_is_cut_and_says_so(self) -> None:
        @tool
        def much() -> str:
            """Much."""
            return "x" * (DEFAULT_BUDGET * 4 + 1)

        text, _ = await run_one(Toolbox([much]), record("much"))
        assert text.startswith("x" * DEFAULT_BUDGET * 4 + "…")
        assert str(DEFAULT_BUDGET * 4 + 1) in text

    async def test_cancelling_ends_every_call(self) -> None:
        started, ended = asyncio.Event(), []

        @tool
        async def wait() -> str:
            """Wait."""
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(1)
            return "never"

        made = [record("wait", {}, "a"), record("wait", {}, "b")]
        task = asyncio.create_task(Toolbox([wait]).run("bot-m1", 1, made, made))
        await asyncio.wait_for(started.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(ended) == 2


class TestTakingUp:
    async def test_what_may_have_run_is_not_run_again(self) -> None:
        told = await failure_of(Toolbox([double]), record("double", {"n": 1}), again=True)
        assert told["error"] == "interrupted"

    async def test_what_does_no_harm_is_run_again(self) -> None:
        assert await run_one(Toolbox([look]), record("look"), again=True) == ("seen", None)

    def test_only_what_could_do_harm_must_be_recorded_first(self) -> None:
        box = Toolbox([double, look, HubTool(POST, Telephone(), "bot")])
        assert box.must_be_recorded([record("double")])
        assert not box.must_be_recorded([record("look"), record("post_to_channel")])


class TestRegistry:
    def test_finish_is_always_there_and_last(self) -> None:
        box = Toolbox([double])
        assert box.names == ("double", "finish")
        assert [spec.name for spec in box.specs] == ["double", "finish"]

    def test_two_tools_of_one_name_are_refused(self) -> None:
        with pytest.raises(ValueError, match="two tools called 'double'"):
            Toolbox([double, double])

    def test_finish_cannot_be_replaced(self) -> None:
        class Finish:
            name, permission, confirm, idempotent = "finish", "read", False, True
            ordered = speaks = False
            timeout = None
            spec = ToolSpec("finish", "", {})

            async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
                return ""

        with pytest.raises(ValueError, match="two tools called 'finish'"):
            Toolbox([Finish()])  # type: ignore[list-item]  # attributes instead of properties


class TestCompact:
    def test_a_message_is_who_when_what(self) -> None:
        message: JsonValue = {
            "id": "m3",
            "seq": 3,
            "thread_id": "dm.ann.bot.t2",
            "tseq": 1,
            "sender_id": "ann",
            "sender_kind": "human",
            "type": "direct",
            "recipients": ["bot"],
            "content": {"a": None, "b": []},
            "mentions": ["bot"],
            "attachments": [],
            "interaction_id": "i1",
            "hop": 0,
            "sent_at": "2025-01-01T00:00:00Z",
        }
        assert compact(
            {"thread_id": "dm.ann.bot", "messages": [message], "more": False}, "bot"
        ) == {
            "thread_id": "direct_ann",
            "messages": [
                {
                    "id": "m3",
                    "thread": "direct_ann.t2",
                    "sender": "ann",
                    "kind": "human",
                    "sent_at": "2025-01-01T00:00:00Z",
                    "content": {"a": None, "b": []},
                    "mentions": ["bot"],
                }
            ],
            "more": False,
        }

    @pytest.mark.behaviour("H-87")
    def test_whose_words_they_are_and_that_they_are_from_outside_stays(self) -> None:
        message: JsonValue = {
            "id": "m3",
            "sender_id": "clerk",
            "sender_kind": "agent",
            "content": "it is paid",
            "spoken_by": "ann",
            "outside": True,
            "request": {"id": "m2", "kind": "result", "outcome": "", "deadline": None},
        }
        assert compact(message, "bot") == {
            "id": "m3",
            "sender": "clerk",
            "kind": "agent",
            "content": "it is paid",
            "spoken_by": "ann",
            "outside": True,
            "request": {"id": "m2", "kind": "result"},
        }

    def test_a_text_representation_goes_before_content(self) -> None:
        short = compact({"sender_id": "a", "content": [1], "text_representation": "one"}, "bot")
        assert isinstance(short, dict)
        assert short["content"] == "one"

    def test_ids_that_are_no_threads_and_plain_values_stay(self) -> None:
        value: JsonValue = {"id": "alice", "present": False, "card": {"description": ""}, "n": 0}
        assert compact(value, "bot") == {"id": "alice", "present": False, "n": 0}
        assert compact([1, "x", None], "bot") == [1, "x", None]
