"""Hooks: they observe a turn and can refuse its calls, but cannot break it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hubbub.agents.turn.hooks import HookChain, Hooks, Proceed, Refused, ToolCall, TurnInfo, Verdict
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.turns import Step, ToolCallRecord, TurnEnd
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
    """Records its events."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def on_turn_start(self, turn: TurnInfo) -> None:
        self.lines.append(f"start {turn.id} {turn.agent} {turn.messages[0].id}")

    async def on_step(self, turn: TurnInfo, step: Step) -> None:
        self.lines.append(f"step {step.n}")

    def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
        self.lines.append(f"call {call.name} {dict(call.arguments)}")
        return Proceed()

    async def on_tool_end(self, turn: TurnInfo, call: ToolCall, result: CallResult) -> None:
        self.lines.append(f"result {result.result}")

    def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> None:
        self.lines.append(f"end {end.outcome}")


@pytest.mark.behaviour("Y-7", "H-82")
async def test_a_hook_sees_the_turn_and_its_calls_in_order() -> None:
    async def parks() -> CallResult:
        return CallResult("c1", "", parked=("a1",))

    diary = Diary()
    hooks = chain(diary)
    await hooks.turn_started()
    await hooks.step_taken(Step(n=1, calls=(CALL,)))
    assert (await hooks.around(CALL, parks)).parked == ("a1",)
    assert (await hooks.around(CALL, paid)).result == "paid"
    assert await hooks.turn_ended(END) == ()
    calls = ["call pay {'sum': [1, 2]}"] * 2
    assert diary.lines == ["start bot-m1 bot m1", "step 1", *calls, "result paid", "end finished"]


def verdict_of(answer: object) -> Hooks:
    """A hook that returns this verdict, or raises it if it is an exception."""

    class Guard(Hooks):
        async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            if isinstance(answer, BaseException):
                raise answer
            return answer  # type: ignore[return-value]  # invalid on purpose in some tests

    return Guard()


@pytest.mark.behaviour("Y-7", "Y-8")
async def test_a_refusing_or_failing_hook_stops_the_call_and_the_model_sees_why() -> None:
    failure = RuntimeError("password hunter2 is wrong")
    for verdict, error, reason in (
        (Refused("it is sunday"), "refused", "it is sunday"),
        (failure, "hook_failed", "has had no effect"),
    ):
        before, later = Diary(), Diary()
        hooks = chain(before, verdict_of(verdict), later)
        result = await hooks.around(CALL, never)
        assert (result.id, result.error) == ("c1", error)
        assert reason in result.result
        assert "hunter2" not in result.result
        assert [line.split()[0] for line in before.lines] == ["call", "result"]
        assert [line.split()[0] for line in later.lines] == ["result"], "not asked"
    (note,) = hooks.notes()
    assert note.endswith("Guard.on_tool_start raised RuntimeError: password hunter2 is wrong")


@pytest.mark.behaviour("Y-8")
async def test_without_a_verdict_the_call_does_not_run() -> None:
    for answer in (None, True, "no", Refused):
        hooks = chain(verdict_of(answer))
        assert (await hooks.around(CALL, never)).error == "hook_failed"
        (note,) = hooks.notes()
        assert "Guard.on_tool_start gave no verdict" in note
        assert hooks.notes() == ()


async def test_a_hook_cannot_change_a_call() -> None:
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


@pytest.mark.behaviour("Y-8")
async def test_a_hanging_hook_is_abandoned_and_its_call_does_not_run() -> None:
    release = threading.Event()

    class InTheLoop(Hooks):
        async def on_turn_start(self, turn: TurnInfo) -> None:
            await asyncio.Event().wait()

        async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            await asyncio.Event().wait()
            return Proceed()

    class InAThread(Hooks):
        def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            release.wait()
            return Proceed()

        def on_turn_end(self, turn: TurnInfo, end: TurnEnd) -> None:
            release.wait()

    before = asyncio.all_tasks()
    hooks = chain(InTheLoop(), within_s=0.05)
    await hooks.turn_started()
    assert (await hooks.around(CALL, never)).error == "hook_failed"
    assert len(hooks.notes()) == 2
    hooks = chain(InAThread(), within_s=0.05)
    assert (await hooks.around(CALL, never)).error == "hook_failed"
    notes = hooks.notes() + await hooks.turn_ended(END)
    assert all("took more than 0.05 s" in note for note in notes)
    assert len(notes) == 2
    assert asyncio.all_tasks() == before
    release.set()


@pytest.mark.behaviour("Y-8")
@pytest.mark.parametrize(
    "exc", [asyncio.CancelledError(), SystemExit(2), KeyboardInterrupt(), GeneratorExit()]
)
async def test_a_base_exception_of_a_hook_stops_the_call_and_is_noted(exc: BaseException) -> None:
    hooks = chain(verdict_of(exc))
    assert (await hooks.around(CALL, never)).error == "hook_failed"
    (note,) = hooks.notes()
    assert f"raised {type(exc).__name__}" in note


async def test_a_turn_cancelled_inside_a_hook_is_cancelled() -> None:
    reached = asyncio.Event()

    class Thinking(Hooks):
        async def on_turn_start(self, turn: TurnInfo) -> None:
            reached.set()
            await asyncio.Event().wait()

        async def on_tool_start(self, turn: TurnInfo, call: ToolCall) -> Verdict:
            reached.set()
            await asyncio.Event().wait()
            return Proceed()

    for hooked in (chain(Thinking()).turn_started(), chain(Thinking()).around(CALL, never)):
        reached.clear()
        task = asyncio.ensure_future(hooked)
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
