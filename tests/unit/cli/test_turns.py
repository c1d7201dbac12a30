"""`turns`, `turn`, `why` against a network with an agent."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from hubbub.cli.joining import Target, joined
from hubbub.cli.turns import _cost, _lines, _outcome, _step
from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.turns import (
    ChangedCall,
    Steering,
    Step,
    ToolCallRecord,
    Turn,
    TurnEnd,
    TurnStart,
)
from tests.unit.cli.conftest import Command

START = TurnStart(
    id="bot-m1",
    thread_id="dm.ann.bot",
    messages=("m1",),
    model="tiny",
    prompt_id="brief@1.0#5f2c61aa",
    components=("identity", "network"),
    system_prompt="Be brief.",
    prompt="<conversation>\x1b</conversation>" + "x" * 3000,
    tools=("finish",),
)
STEP = Step(
    n=1,
    text="thinking",
    calls=(ToolCallRecord(id="c1", name="finish", arguments={"reason": "ok"}, result="done"),),
    tokens_in=7,
    tokens_out=3,
    cost_usd=0.00042,
    at_ms=1500.0,
    duration_ms=12.0,
)
LOOKED = ToolCallRecord(
    id="c2", name="look", arguments={}, result="seen", at_ms=3000.0, duration_ms=7.0
)
SECOND = Step(n=2, calls=(LOOKED,), tokens_in=1, tokens_out=1, at_ms=2000.0)


@pytest.fixture
def turn(town: str, hubbub: Command) -> str:
    """A turn of the agent `bot`, recorded as agents record theirs."""

    async def work() -> None:
        async with Client(WebSocketTransport(town), "bot", "agent", turns=True) as bot:
            async with Client(WebSocketTransport(town), "ann", "human") as ann:
                await ann.call("send_text_message", to="bot", text="hello")
            await bot.call("begin_turn", start=START)
            await bot.call("record_step", turn=START.id, step=STEP)
            await bot.call("record_step", turn=START.id, step=SECOND)
            end = TurnEnd(id=START.id, outcome="no_action", reason="nothing to do", text="a poem")
            await bot.call("end_turn", end=end)

    asyncio.run(work())
    return START.id


@pytest.mark.behaviour("U-5")
def test_turns_are_listed_with_their_outcome(turn: str, hubbub: Command) -> None:
    head, row = hubbub("turns").out.splitlines()
    assert head.split()[:3] == ["TURN", "STARTED", "TOOK"]
    assert row.split()[0] == turn
    for words in ("no_action", "8+4", "$0.00042", "tiny", "nothing to do"):
        assert words in row
    listed = hubbub("turns", "--json", "--agent", "bot").json()
    assert isinstance(listed, list)
    assert len(listed) == 1
    ran = hubbub("turns", "--agent", "bto")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no agent 'bto'; did you mean bot?" in ran.err


@pytest.mark.behaviour("U-5")
def test_a_turn_is_shown_whole_and_safe(turn: str, hubbub: Command) -> None:
    out = hubbub("turn", turn).out
    for words in (
        "by bot",
        "woken by  m1",
        "outcome   no_action: nothing to do",
        "--- text that was not published\na poem",
        "--- system prompt\nBe brief.",
        "model     tiny  tokens 8+4  $0.00042",
        "prompt    brief@1.0#5f2c61aa  identity, network\n",
        "--- step 1  12 ms  at 1.5 s  tokens 7+3  $0.00042\nthinking\n"
        'finish({"reason": "ok"})\n  → done',
        "--- step 2  at 2.0 s  tokens 1+1\nlook({})  7 ms  at 3.0 s\n  → seen",
        "sent      nothing",
        "<U+001B>",
        "(--full shows all)",
    ):
        assert words in out
    assert "\x1b" not in out
    assert "--full" not in hubbub("turn", turn, "--full").out


def test_a_turn_that_ended_without_a_reason_says_so_without_a_colon() -> None:
    end = TurnEnd(id="bot-m1", outcome="finished")
    assert _outcome(end) == "finished"


def test_a_call_that_was_repeated_says_which_attempt_the_result_is_from() -> None:
    often = ToolCallRecord(id="c", name="fetch", arguments={}, result="ok", attempts=3)
    once = often.model_copy(update={"attempts": 1})
    assert _step(Step(n=1, calls=(often,)), "1")[1] == "fetch({})  attempt 3"
    assert _step(Step(n=1, calls=(once,)), "1")[1] == "fetch({})"


def test_a_call_that_a_person_has_changed_says_what_ran_and_who_changed_it() -> None:
    changed = ChangedCall(by="ann", arguments={"to": "b", "n": 1}, names=("to",))
    call = ToolCallRecord(
        id="c", name="mail", arguments={"to": "a", "n": 1}, result="sent", changed=changed
    )
    assert _step(Step(n=1, calls=(call,)), "1")[1:] == [
        'mail({"to": "a", "n": 1})',
        '  approved by ann with changes: to: "a" -> "b"',
        '  ran with {"to": "b", "n": 1}',
        "  → sent",
    ]


def test_what_steered_the_turn_stands_before_the_answer_to_it() -> None:
    said = Steering(message="m7", text="<incoming_message>faster</incoming_message>")
    lines = _step(Step(n=2, steered=(said,), text="well", notes=("a hook failed",)), "2")
    assert lines[1:] == [
        "steered by m7: <incoming_message>faster</incoming_message>",
        "note: a hook failed",
        "well",
    ]


def test_notes_of_the_end_come_last() -> None:
    end = TurnEnd(id="bot-m1", outcome="finished", notes=("the hook X raised Y",))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    turn = Turn(start=START, agent="bot", started_at=at, steps=(STEP,), end=end)
    assert _lines(turn)[-1] == "note: the hook X raised Y"


def test_a_turn_as_json_is_its_record(turn: str, hubbub: Command) -> None:
    record = hubbub("turn", turn, "--json").json()
    assert isinstance(record, dict)
    assert record["agent"] == "bot"
    assert record["steps"] == [step.model_dump(mode="json") for step in (STEP, SECOND)]


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (None, ""),
        (0.0, "  $0.00"),
        (0.0000307, "  $0.000031"),
        (0.0042, "  $0.0042"),
        (0.25, "  $0.25"),
        (0.996, "  $1.00"),
        (12.345, "  $12.35"),
    ],
)
def test_money_is_shown_by_the_digits_that_count(usd: float | None, shown: str) -> None:
    assert _cost(usd) == shown


@pytest.mark.behaviour("U-5", "W-13")
def test_why_tells_the_reason(turn: str, hubbub: Command) -> None:
    out = hubbub("why", "bot", "m1").out
    assert out.startswith("m1 woke bot (direct): ")
    assert f"turn {turn}: ended, reply required" in out
    told = hubbub("why", "bot", "m1", "--json").json()
    assert isinstance(told, dict)
    assert (told["woken"], told["reason"]) == (True, "direct")


def test_why_not_is_told_too(turn: str, hubbub: Command) -> None:
    hubbub("send", "-c", "general", "just talking")
    out = hubbub("why", "bot", "m3").out
    assert out.startswith("m3 did not wake bot (")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("turn", "bot-m99"), "there is no turn 'bot-m99'"),
        (("why", "bot", "m99"), "there is no message m99"),
        (("why", "bot", "99"), "they look like m42"),
        (("why", "nobody", "m1"), "there is no agent nobody"),
        (("why", "bott", "m1"), "there is no agent bott; did you mean bot?"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    turn: str, hubbub: Command, args: tuple[str, ...], expected: str
) -> None:
    ran = hubbub(*args)
    assert (ran.code, ran.out) == (2, "")
    assert expected.replace("'", "") in ran.err.replace("'", "")


def test_the_steps_of_helpers_are_called_what_they_are() -> None:
    fork = ToolCallRecord(id="c", name="fork", arguments={"goal": "x"}, result="y")
    steps = (STEP, Step(n=2, calls=(fork,)), Step(n=10_001, text="a part"))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    lines = _lines(Turn(start=START, agent="bot", started_at=at, steps=steps))
    heads = [line.split("  ")[0] for line in lines if line.startswith("--- step")]
    assert heads == ["--- step 1", "--- step 2", "--- step 1 of helper 1 of step 2"]


async def test_the_operator_joins_without_being_listed(town: str) -> None:
    async with joined(Target()) as client:
        assert client.participant == "operator"
        assert "operator" not in {p.id for p in client.ready.participants}
