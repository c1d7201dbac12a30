"""Hooks: told what a turn does, able to refuse a call, unable to end a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

import pytest
from pydantic import JsonValue

from hubbub.agents.turn.hooks import HookChain, Hooks, Proceed, Refused, ToolCall, TurnInfo, Verdict
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.turns import ToolCallRecord, TurnEnd
from tests.unit.agents.builders import ME, message, plan

CALL = ToolCallRecord(id="c1", name="pay", arguments={"sum": [1, 2]})
END = TurnEnd(id="bot-m1", outcome="finished")


def chain(*hooks: Hooks, within_s: float = 5.0) -> HookChain:
    return HookChain(hooks, plan(message(1)), ME, within_s=within_s)


async def paid() -> CallResult:
    return CallResult("c1", "paid")


async def never() -> CallResult:
    raise AssertionError("the call must not run")


class Diary(Hooks):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def on_turn_start(self, turn: TurnInfo) -> None:
        self.lines.append(f"start {turn.id} {turn.agent} {turn.messages[0].id}")

    def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
        self.lines.append(f"call {call.name} {dict(call.arguments)}")
        return Proceed()

    async def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None:
        self.lines.append(f"result {result.result}")

    def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> None:
        self.lines.append(f"end {end.outcome}")


@pytest.mark.behaviour("Y-7")
async def test_a_hook_is_told_of_the_turn_and_its_calls_in_order() -> None:
    diary = Diary()
    hooks = chain(diary)
    await hooks.turn_started()
    assert (await hooks.around(CALL, paid)).result == "paid"
    assert await hooks.turn_ended(END) == ()
    assert diary.lines == [
        "start bot-m1 bot m1",
        "call pay {'sum': [1, 2]}",
        "result paid",
        "end finished",
    ]


@pytest.mark.behaviour("H-82")
async def test_a_call_that_waits_for_a_person_is_told_of_again_and_ends_once() -> None:
    async def waits() -> CallResult:
        return CallResult("c1", "", parked=("a1",))

    diary = Diary()
    hooks = chain(diary)
    assert (await hooks.around(CALL, waits)).parked == ("a1",)
    await hooks.around(CALL, paid)
    call = "call pay {'sum': [1, 2]}"
    assert diary.lines == [call, call, "result paid"]


class TestRefusing:
    @pytest.mark.behaviour("Y-7")
    async def test_a_refused_call_does_not_run_and_the_model_is_told_why(self) -> None:
        class Never(Hooks):
            async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                return Refused("it is sunday")

        ran: list[str] = []

        async def pay() -> CallResult:
            ran.append("paid")
            return CallResult("c1", "paid")

        asked_later, diary = Diary(), Diary()
        result = await chain(diary, Never(), asked_later).around(CALL, pay)
        assert (result.id, result.error) == ("c1", "refused")
        assert "it is sunday" in result.result
        assert ran == []
        assert len(diary.lines) == 2
        assert [line.split()[0] for line in asked_later.lines] == ["result"], "not asked any more"

    async def test_a_hook_cannot_change_a_call(self) -> None:
        class Meddler(Hooks):
            def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                assert isinstance(call.arguments, dict)
                call.arguments["sum"].append(1000)
                call.arguments["to"] = "me"
                return Proceed()

        diary = Diary()
        await chain(Meddler(), diary).around(CALL, paid)
        assert CALL.arguments == {"sum": [1, 2]}
        assert diary.lines[0] == "call pay {'sum': [1, 2]}"


class TestFailing:
    """A hook that fails ends no turn; a call that it should have judged does not run."""

    @pytest.mark.behaviour("Y-8")
    @pytest.mark.parametrize("verdict", [None, True, "no", Refused])
    async def test_without_a_verdict_the_call_does_not_run(self, verdict: JsonValue) -> None:
        class Forgetful(Hooks):
            def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                return verdict  # type: ignore[return-value]  # what this is about

        hooks = chain(Forgetful())
        assert (await hooks.around(CALL, never)).error == "hook_failed"
        (note,) = hooks.notes()
        assert "Forgetful.on_tool_start gave no verdict" in note
        assert hooks.notes() == ()

    @pytest.mark.behaviour("Y-8")
    async def test_a_guard_that_fails_lets_nothing_pass_and_the_model_is_told(self) -> None:
        class Guard(Hooks):
            async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                raise RuntimeError("password hunter2 is wrong")

        asked_before, asked_later = Diary(), Diary()
        hooks = chain(asked_before, Guard(), asked_later)
        result = await hooks.around(CALL, never)
        assert (result.id, result.error) == ("c1", "hook_failed")
        assert "has had no effect" in result.result
        assert "hunter2" not in result.result
        (note,) = hooks.notes()
        assert note.endswith("Guard.on_tool_start raised RuntimeError: password hunter2 is wrong")
        assert [line.split()[0] for line in asked_before.lines] == ["call", "result"]
        assert [line.split()[0] for line in asked_later.lines] == ["result"], "not asked any more"

    @pytest.mark.behaviour("Y-8")
    @pytest.mark.parametrize("what", ["hangs", "hangs in a thread", "cancels itself"])
    async def test_a_guard_that_says_nothing_lets_nothing_pass(self, what: str) -> None:
        release = threading.Event()

        class Waiting(Hooks):
            async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                if what == "cancels itself":
                    raise asyncio.CancelledError
                await asyncio.Event().wait()
                return Proceed()

        class WaitingInAThread(Hooks):
            def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                release.wait()
                return Proceed()

        guard = WaitingInAThread() if what == "hangs in a thread" else Waiting()
        hooks = chain(guard, within_s=0.5)
        assert (await hooks.around(CALL, never)).error == "hook_failed"
        assert len(hooks.notes()) == 1
        release.set()

    async def test_a_turn_that_is_cancelled_while_a_guard_thinks_is_cancelled(self) -> None:
        reached = asyncio.Event()

        class Thinking(Hooks):
            async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                reached.set()
                await asyncio.Event().wait()
                return Proceed()

        task = asyncio.ensure_future(chain(Thinking()).around(CALL, never))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    @pytest.mark.behaviour("Y-8")
    async def test_what_only_listens_stops_nothing_when_it_raises(self) -> None:
        class Broken(Hooks):
            async def on_turn_start(self, turn: TurnInfo) -> None:
                raise RuntimeError("no disk")

            def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None:
                raise TimeoutError("of its own")

            def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> None:
                raise KeyError("x")

        diary = Diary()
        hooks = chain(Broken(), diary)
        await hooks.turn_started()
        assert (await hooks.around(CALL, paid)).result == "paid"
        assert [note.partition(" raised ")[2] for note in hooks.notes()] == [
            "RuntimeError: no disk",
            "TimeoutError: of its own",
        ]
        (note,) = await hooks.turn_ended(END)
        assert "on_turn_end raised KeyError" in note
        assert len(diary.lines) == 4

    @pytest.mark.behaviour("Y-8")
    async def test_one_that_hangs_is_left_behind(self) -> None:
        release = threading.Event()

        class Slow(Hooks):
            async def on_turn_start(self, turn: TurnInfo) -> None:
                await asyncio.Event().wait()

            def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> None:
                release.wait()

        hooks, before = chain(Slow(), within_s=0.5), asyncio.all_tasks()
        await hooks.turn_started()
        (note,) = hooks.notes()
        assert "took more than 0.5 s" in note
        (note,) = await hooks.turn_ended(END)
        assert "took more than 0.5 s" in note
        assert asyncio.all_tasks() == before
        release.set()

    @pytest.mark.behaviour("Y-8")
    @pytest.mark.parametrize(
        "exc", [asyncio.CancelledError(), SystemExit(2), KeyboardInterrupt(), GeneratorExit()]
    )
    async def test_what_would_end_the_turn_or_the_process_is_noted(
        self, exc: BaseException
    ) -> None:
        class Confused(Hooks):
            async def on_turn_start(self, turn: TurnInfo) -> None:
                raise exc

            def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
                raise exc

        hooks = chain(Confused())
        await hooks.turn_started()
        assert (await hooks.around(CALL, never)).error == "hook_failed"
        assert [note.split(" raised ")[1].split(":")[0] for note in hooks.notes()] == [
            type(exc).__name__
        ] * 2

    async def test_a_turn_that_is_cancelled_in_a_hook_is_cancelled(self) -> None:
        reached = asyncio.Event()

        class Waiting(Hooks):
            async def on_turn_start(self, turn: TurnInfo) -> None:
                reached.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(chain(Waiting()).turn_started())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_class_with_all_four_methods_is_a_hook_without_deriving() -> None:
    class Own:
        def on_turn_start(self, turn: TurnInfo) -> None: ...
        def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            return Proceed()

        def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None: ...
        def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> Awaitable[None] | None: ...

    assert issubclass(Own, Hooks)
    assert not issubclass(str, Hooks)
