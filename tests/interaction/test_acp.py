"""Coding agents over ACP, each a process of its own, and the people around them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.app.preflight import load_valid
from hubbub.config.models import NetworkFile
from hubbub.protocol.turns import Turn
from tests.doc_pages import example
from tests.interaction.acp_program import logged
from tests.interaction.agent_harness import Harness, ended, harness, notice, one_person, said_to
from tests.interaction.approval_harness import asked, parked, the_call
from tests.interaction.mods.workspace import advance
from tests.interaction.peers import Networks, Peer, config
from tests.interaction.stop_harness import HandClock

pytest.importorskip("acp", reason="needs the extra `acp`")
pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-I", str(Path(__file__).with_name("acp_program.py"))]


def last_text(turn: Turn) -> str:
    """The text of the program's last step."""
    return turn.steps[-1].text or ""


def prompts(folder: Path) -> list[str]:
    """The prompts that programs in the folder received."""
    requests = (each for each in logged(folder) if each["method"] == "session/prompt")
    return ["\n".join(block["text"] for block in each["params"]["prompt"]) for each in requests]


def count(folder: Path, method: str) -> int:
    return sum(request["method"] == method for request in logged(folder))


@asynccontextmanager
async def coding(
    networks: Networks, folder: Path, file: NetworkFile | None = None, **config: JsonValue
) -> AsyncIterator[tuple[Harness, Peer]]:
    """Ann, and `bot`, whose program works in the folder."""
    async with one_person(networks, file) as (net, ann):
        await net.acp("bot", PROGRAM, folder, **config)
        yield net, ann


# Turns -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("I-1", "I-2")
async def test_a_turn_records_plan_thoughts_calls_diffs_and_tokens_and_attaches_the_file(
    in_memory: Networks, tmp_path: Path, snapshot: object
) -> None:
    async with coding(in_memory, tmp_path, instruction="You write Python.") as (net, ann):
        id = await net.ask(ann, "work a.py")
        event = await ann.event()
        assert event["message"]["content"] == "a.py is written."
        (file,) = event["message"]["attachments"]
        assert (file["name"], file["uri"]) == ("a.py", (tmp_path / "a.py").as_uri())
        assert event["message"]["untrusted"], "it read files"
        turn = await net.turn(id)
        ids = {"agent", "at_ms", "duration_ms", "started_at", "ended_at", "system_prompt", "prompt"}
        assert [step.model_dump(exclude_defaults=True, exclude=ids) for step in no_times(turn)] == (
            snapshot
        )
        assert (turn.tokens_in, turn.tokens_out, turn.cost_usd) == (810, 90, 0.25)
        (prompt,) = prompts(tmp_path)
        assert prompt == f"{turn.system_prompt}\n{turn.prompt}"
        assert turn.system_prompt is not None
        assert "`finish`" not in prompt, "it has no such tool"
        assert prompt.endswith("</conversation>\n\nAnswer ann now.")
        assert turn.system_prompt.startswith("You write Python.")
        await ann.until(lambda: activities(ann)[-1:] == ["idle"])
        assert activities(ann)[0] == "thinking"


def activities(who: Peer) -> list[str]:
    """The states in the activity signals that this person received."""
    return [s["data"]["state"] for s in who.signals if s["type"] == "activity"]


def no_times(turn: Turn) -> list[Any]:
    """The steps without their times."""
    times = {"at_ms": None, "duration_ms": None}
    return [
        step.model_copy(
            update={**times, "calls": tuple(c.model_copy(update=times) for c in step.calls)}
        )
        for step in turn.steps
    ]


@pytest.mark.behaviour("I-7")
async def test_a_program_sends_with_the_networks_tools_and_nothing_is_sent_twice(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path, tools=["send_text_message", "read_thread"])
        turn = await net.turn(await net.ask(ann, "send bob the file is there"))
        assert await said_to(bob) == "the file is there"
        assert (ended(turn).outcome, last_text(turn)) == ("finished", "sent")
        assert the_call(turn, "send_text_message").arguments["to"] == "bob"
        assert len(turn.sent) == 1, "after a sent message, the last text is only recorded"
        turn = await net.turn(await net.ask(ann, "send nobody hello"))
        assert "unknown_participant" in last_text(turn)
        turn = await net.turn(await net.ask(ann, "tools"))
        assert last_text(turn) == "send_text_message, read_thread"


@pytest.mark.behaviour("I-2")
async def test_a_delegated_task_gets_a_report(in_memory: Networks, tmp_path: Path) -> None:
    async with harness(in_memory) as net:
        lead = await net.network.join("lead", "agent")
        await net.acp("bot", PROGRAM, tmp_path)
        task = await lead.call("delegate", to="bot", task="say it is done")
        await net.turn(f"bot-{task['message']['id']}")
        result = next(e["message"] for e in await lead.sync() if e["message"].get("request"))
        assert result["request"]["kind"] == "result"
        assert result["content"] == "it is done"


@pytest.mark.behaviour("I-2")
async def test_a_result_that_comes_too_late_still_reaches_its_requester(
    in_memory: Networks, tmp_path: Path
) -> None:
    clock, pipe = HandClock(), tmp_path / "pipe"
    os.mkfifo(pipe)
    async with in_memory.start(clock=clock) as network, AsyncExitStack() as stack:
        net = Harness(network)
        stack.push_async_callback(net.stop)
        lead = await network.join("lead", "agent")
        await net.acp("bot", PROGRAM, tmp_path)
        task = await lead.call("delegate", to="bot", task=f"report {pipe}")
        writer = await asyncio.to_thread(pipe.open, "w")  # once the program reads
        advance(network, clock, 600)
        await notice(lead, "timeout")
        with writer:
            writer.write("done")
        turn = await net.turn(f"bot-{task['message']['id']}")
        assert ended(turn).outcome == "finished"
        assert (await lead.sync())[-1]["message"]["content"] == "It says: done"


def test_the_config_of_the_how_to_page_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "coding.yaml"
    path.write_text(example("docs/how-to/let-coding-agents-join.md", path.name))
    assert load_valid(path).file.agent("coder").permission_mode == "ask"


# Sessions --------------------------------------------------------------------------------------


@pytest.mark.behaviour("I-4")
async def test_a_thread_keeps_its_session_when_the_agent_restarts(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path)
        await net.ask(ann, "say one")
        assert await said_to(ann) == "one"
        await net.ask(bob, "recall")
        assert await said_to(bob) == "s2: recall", "another thread, another session"
        await net.crash("bot")
        await net.acp("bot", [*PROGRAM, "late"], tmp_path)
        await net.ask(ann, "recall")
        assert await said_to(ann) == "s1: say one, recall", "and not what was said before"
        assert [count(tmp_path, f"session/{method}") for method in ("new", "load")] == [2, 1]
        first, _, second = prompts(tmp_path)
        assert "an agent in the network" in first
        assert "an agent in the network" not in second, "the session has it already"
        await net.crash("bot")
        (tmp_path / "sessions.json").unlink()
        await net.acp("bot", PROGRAM, tmp_path)
        await net.ask(ann, "recall")
        assert await said_to(ann) == "s1: recall", "a lost session is replaced by a new one"
        assert "say one" in prompts(tmp_path)[-1], "with the thread"


@pytest.mark.behaviour("I-4")
async def test_all_threads_share_a_session_if_configured(
    in_memory: Networks, tmp_path: Path
) -> None:
    program: JsonValue = {"command": [*PROGRAM], "cwd": str(tmp_path), "session": "agent"}
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path, acp=program)
        await net.ask(ann, "say one")
        assert await said_to(ann) == "one"
        await net.ask(bob, "recall")
        assert await said_to(bob) == "s1: say one, recall"


# Permissions and interventions -----------------------------------------------------------------


@pytest.mark.behaviour("I-3")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_person_decides_a_programs_permission_request(
    in_memory: Networks, tmp_path: Path, answer: str
) -> None:
    async with coding(in_memory, tmp_path) as (net, ann):
        id = await net.ask(ann, "edit a.py")
        (approval,) = await parked(net, ann, id)
        assert (approval["tool"], approval["arguments"]["path"]) == ("write", "a.py")
        assert approval["arguments"]["diff"].endswith("+print('hello')")
        assert not (tmp_path / "a.py").exists()
        changed = await ann.ask("approve", id=approval["id"], arguments={"path": "b.py"})
        assert changed["op"] == "error", "a program accepts only a yes or a no"
        await ann.call(answer, id=approval["id"])
        assert await said_to(ann) == ("written" if answer == "approve" else "not written")
        assert (tmp_path / "a.py").exists() == (answer == "approve")
        turn = await net.turn(id)
        assert ended(turn).outcome == "finished"
        decision = "ann approved" if answer == "approve" else "denied"
        assert any(decision in note for step in turn.steps for note in step.notes)


@pytest.mark.behaviour("I-3")
@pytest.mark.parametrize(("mode", "reply"), [("full", "written"), ("read_only", "not written")])
async def test_the_permission_mode_decides_without_a_person(
    in_memory: Networks, tmp_path: Path, mode: str, reply: str
) -> None:
    async with coding(in_memory, tmp_path, permission_mode=mode) as (net, ann):
        await net.ask(ann, "edit a.py")
        assert await said_to(ann) == reply
        assert (await ann.call("list_approvals", state="all"))["approvals"] == []


@pytest.mark.behaviour("I-3")
async def test_a_program_whose_model_permits_calls_by_default_asks_people_instead(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with one_person(in_memory) as (net, ann):
        for _ in ("a new session", "a loaded one"):
            await net.acp("bot", [*PROGRAM, "auto"], tmp_path)
            id = await net.ask(ann, "edit a.py")
            (approval,) = await parked(net, ann, id)
            await ann.call("deny", id=approval["id"])
            assert await said_to(ann) == "not written"
            await net.crash("bot")
        assert not (tmp_path / "a.py").exists()


@pytest.mark.behaviour("I-3")
async def test_an_approval_given_while_the_agent_was_down_is_used_without_asking_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with coding(in_memory, tmp_path) as (net, ann):
        id = await net.ask(ann, "edit a.py")
        (approval,) = await parked(net, ann, id)
        await net.crash("bot")
        await ann.call("approve", id=approval["id"])
        await net.acp("bot", PROGRAM, tmp_path)
        assert await said_to(ann) == "written"
        turn = await net.turn(id)
        assert (ended(turn).outcome, turn.attempts) == ("finished", 2)
        approvals = (await ann.call("list_approvals", state="all"))["approvals"]
        assert [each["state"] for each in approvals] == ["started"]
        assert "You were interrupted" in prompts(tmp_path)[-1]


@pytest.mark.behaviour("I-3", "I-6")
async def test_one_approval_grants_one_permission_request(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with coding(in_memory, tmp_path) as (net, ann):
        id = await net.ask(ann, "twice a.py")
        (first,) = await parked(net, ann, id)
        await ann.call("approve", id=first["id"])
        (second,) = await asked(ann)
        assert second["id"] != first["id"]
        await ann.call("deny", id=second["id"])
        assert sorted((await said_to(ann)).split(", ")) == ["no", "yes"]


@pytest.mark.behaviour("I-3", "I-4")
@pytest.mark.parametrize("decision", ["approve", "stop"])
async def test_messages_during_a_permission_request_wait_until_its_turn_has_ended(
    in_memory: Networks, tmp_path: Path, decision: str
) -> None:
    async with coding(in_memory, tmp_path) as (net, ann):
        id = await net.ask(ann, "edit a.py")
        (approval,) = await parked(net, ann, id)
        later = await net.ask(ann, "say two")
        if decision == "stop":
            await ann.call("stop", scope="turn", target=id)
        else:
            await ann.call("approve", id=approval["id"])
            assert await said_to(ann) == "written"
        assert await said_to(ann) == "two"
        assert ended(await net.turn(later)).outcome == "finished"


@pytest.mark.behaviour("I-3", "I-4")
async def test_other_threads_of_one_session_wait_for_a_permission_request(
    in_memory: Networks, tmp_path: Path
) -> None:
    program: JsonValue = {"command": [*PROGRAM], "cwd": str(tmp_path), "session": "agent"}
    async with harness(in_memory) as net:
        ann, lead = await net.person(), await net.network.join("lead", "agent")
        people = [await net.person(name) for name in ("bob", "cem")]
        await net.acp("bot", PROGRAM, tmp_path, acp=program, concurrency=1)
        await lead.call("send_text_message", to="bot", text="edit a.py")
        (approval,) = await asked(ann)
        await lead.until(lambda: activities(lead)[-1:] == ["waiting"])
        for person in people:
            await net.ask(person, "say two")
        await ann.call("approve", id=approval["id"])
        assert [await said_to(person) for person in people] == ["two", "two"]
        assert (tmp_path / "a.py").exists()


@pytest.mark.behaviour("I-5")
async def test_a_stop_cancels_the_prompt_and_the_session_stays_usable(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with coding(in_memory, tmp_path) as (net, ann):
        id = await net.ask(ann, "hold")
        await ann.until(lambda: any(s["type"] == "activity" for s in ann.signals))
        await net.until(lambda: _prompted(tmp_path, 1))
        await ann.call("stop", scope="turn", target=id)
        assert ended(await net.turn(id)).outcome == "cancelled"
        await net.ask(ann, "recall")
        assert await said_to(ann) == "s1: hold, recall", "in the same session"
        assert [count(tmp_path, m) for m in ("initialize", "session/cancel")] == [1, 1]


async def _prompted(folder: Path, n: int) -> bool:
    return (folder / "log.jsonl").exists() and len(prompts(folder)) >= n


@pytest.mark.behaviour("I-5")
async def test_a_person_can_interrupt_a_program(in_memory: Networks, tmp_path: Path) -> None:
    async with coding(in_memory, tmp_path, steer="interrupt") as (net, ann):
        id = await net.ask(ann, "hold")
        await ann.until(lambda: any(s["type"] == "activity" for s in ann.signals))
        await ann.say("bot", "say something else")
        assert await said_to(ann) == "something else"
        assert ended(await net.turn(id)).reason == "interrupted by ann"


@pytest.mark.behaviour("I-5")
async def test_a_turn_ends_when_the_programs_reported_cost_exceeds_the_budget(
    in_memory: Networks, tmp_path: Path
) -> None:
    file = config(network={"daily": {"agent": {"usd": 1.0}}})
    async with coding(in_memory, tmp_path, file) as (net, ann):
        turn = await net.turn(await net.ask(ann, "spend 0.3"))
        assert ended(turn).outcome == "budget_exhausted"
        assert turn.cost_usd is not None
        assert 1.0 <= turn.cost_usd < 3.0
        await net.until(lambda: _cancelled(tmp_path))


async def _cancelled(folder: Path) -> bool:
    return count(folder, "session/cancel") == 1


# Misbehaving programs --------------------------------------------------------------------------

WRONG: dict[str, tuple[str, str]] = {
    "die": ("model_error", "exited (exit code 3): out of luck"),
    "garbage": ("model_error", "its output is not the Agent Client Protocol"),
    "bigline": ("model_error", "a line of more than 16 MiB"),
    "refuse no quota": ("model_error", "refuses: Internal error: no quota"),
    "nonsense": ("model_error", "its answer is not valid in the Agent Client Protocol"),
    "flood": ("model_error", "more than 32 MiB in one step"),
    "never": ("timeout", "not finished after"),
}


@pytest.mark.behaviour("I-6", "I-5")
@pytest.mark.parametrize("command", WRONG)
async def test_a_misbehaving_program_ends_its_turn_with_a_reason_and_affects_no_other_agent(
    in_memory: Networks, tmp_path: Path, command: str
) -> None:
    outcome, reason = WRONG[command]
    short = {"turn_timeout": "1s"} if command == "never" else {}
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        other = tmp_path / "other"
        other.mkdir()
        await net.acp("bot", PROGRAM, tmp_path, **short)
        await net.acp("neighbour", PROGRAM, other)
        id = await net.ask(ann, command)
        await net.ask(bob, "say hello", "neighbour")
        assert await said_to(bob) == "hello"
        turn = await net.turn(id)
        assert ended(turn).outcome == outcome
        assert reason in ended(turn).reason
        await notice(ann, outcome)
        await net.ask(ann, "say again")
        assert await said_to(ann) == "again", "the next turn has a working program"


@pytest.mark.behaviour("I-6")
async def test_a_login_error_explains_how_to_log_in_and_the_configured_login_works(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with one_person(in_memory) as (net, ann):
        await net.acp("bot", [*PROGRAM, "shy"], tmp_path)
        turn = await net.turn(await net.ask(ann, "say hello"))
        assert ended(turn).outcome == "model_error"
        assert ended(turn).reason.endswith(
            "refuses: Authentication required; log in with the program itself, or by `acp.login`: "
            "`key` (Set THE_KEY.)"
        )
        await net.crash("bot")
        program: dict[str, JsonValue] = {"command": [*PROGRAM, "shy"], "cwd": str(tmp_path)}
        program |= {"login": "key", "env": {"THE_KEY": "open sesame"}}
        await net.acp("bot", [], tmp_path, acp=program)
        await net.ask(ann, "say hello")
        assert await said_to(ann) == "hello"


@pytest.mark.behaviour("I-6")
async def test_a_program_that_fails_to_start_is_reported_with_a_reason(
    in_memory: Networks, tmp_path: Path
) -> None:
    reasons = {
        "no-such-program": "cannot be started: No such file",
        "/bin/false": "false exited (exit code 1)",
    }
    async with one_person(in_memory) as (net, ann):
        for command, reason in reasons.items():
            await net.acp("bot", [command], tmp_path)
            turn = await net.turn(await net.ask(ann, "say hello"))
            assert ended(turn).outcome == "model_error"
            assert reason in ended(turn).reason
            await net.crash("bot")
