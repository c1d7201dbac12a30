"""Coding agents by ACP: programs of their own process on a network, and people around them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.app.preflight import load_valid
from hubbub.protocol.turns import Turn
from tests.doc_pages import example
from tests.interaction.acp_program import notes
from tests.interaction.agent_harness import Harness, ended, harness, notice, said_to
from tests.interaction.approval_harness import asked, parked, the_call
from tests.interaction.peers import Networks, Peer, config

pytest.importorskip("acp", reason="needs the extra `acp`")
pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-I", str(Path(__file__).with_name("acp_program.py"))]


async def asks(net: Harness, who: Peer, text: str, agent: str = "bot") -> str:
    """Says it; the id of the turn that comes of it."""
    return f"{agent}-{(await who.say(agent, text))['id']}"


def said(turn: Turn) -> str:
    """What the program wrote last."""
    return turn.steps[-1].text or ""


def prompts(folder: Path) -> list[str]:
    """What programs in the folder were told, prompt by prompt."""
    told = (note for note in notes(folder) if note["method"] == "session/prompt")
    return ["\n".join(block["text"] for block in each["params"]["prompt"]) for each in told]


def count(folder: Path, method: str) -> int:
    return sum(note["method"] == method for note in notes(folder))


# What a turn is --------------------------------------------------------------------------------


@pytest.mark.behaviour("I-1", "I-2")
async def test_a_turn_tells_plan_thoughts_calls_diffs_tokens_and_links_the_file(
    in_memory: Networks, tmp_path: Path, snapshot: object
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path, instruction="You write Python.")
        id = await asks(net, ann, "work a.py")
        event = await ann.event()
        assert event["message"]["content"] == "a.py is written."
        (file,) = event["message"]["attachments"]
        assert (file["name"], file["uri"]) == ("a.py", (tmp_path / "a.py").as_uri())
        assert event["message"]["untrusted"], "it has read files"
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
    """What the agents showed themselves to be at."""
    return [s["data"]["state"] for s in who.signals if s["type"] == "activity"]


def no_times(turn: Turn) -> list[Any]:
    """The steps, as if they had taken no time."""
    never = {"at_ms": None, "duration_ms": None}
    return [
        step.model_copy(
            update={**never, "calls": tuple(c.model_copy(update=never) for c in step.calls)}
        )
        for step in turn.steps
    ]


@pytest.mark.behaviour("I-7")
async def test_a_program_speaks_by_the_networks_tools_and_nothing_is_said_twice(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path, tools=["send_text_message", "read_thread"])
        turn = await net.turn(await asks(net, ann, "send bob the file is there"))
        assert await said_to(bob) == "the file is there"
        assert (ended(turn).outcome, said(turn)) == ("finished", "sent")
        assert the_call(turn, "send_text_message").arguments["to"] == "bob"
        assert len(turn.sent) == 1, "who has spoken has answered: the last words are recorded only"
        turn = await net.turn(await asks(net, ann, "send nobody hello"))
        assert "unknown_participant" in said(turn), "it is told what any agent is told"
        turn = await net.turn(await asks(net, ann, "tools"))
        assert said(turn) == "send_text_message, read_thread"


@pytest.mark.behaviour("I-2")
async def test_work_that_was_handed_on_is_reported(in_memory: Networks, tmp_path: Path) -> None:
    async with harness(in_memory) as net:
        lead = await net.network.join("lead", "agent")
        await net.acp("bot", PROGRAM, tmp_path)
        task = await lead.call("delegate", to="bot", task="say it is done")
        await net.turn(f"bot-{task['message']['id']}")
        result = next(e["message"] for e in await lead.sync() if e["message"].get("request"))
        assert result["request"]["kind"] == "result"
        assert result["content"] == "it is done"


def test_the_config_in_the_page_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "coding.yaml"
    path.write_text(example("docs/how-to/let-coding-agents-join.md", path.name))
    assert load_valid(path).file.agent("coder").permission_mode == "ask"


# Sessions --------------------------------------------------------------------------------------


@pytest.mark.behaviour("I-4")
async def test_a_thread_has_a_session_that_survives_the_agents_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path)
        await asks(net, ann, "say one")
        assert await said_to(ann) == "one"
        await asks(net, bob, "recall")
        assert await said_to(bob) == "s2: recall", "another thread, another session"
        await net.kill("bot")
        await net.network.gone("bot")
        await net.acp("bot", PROGRAM, tmp_path)
        await asks(net, ann, "recall")
        assert await said_to(ann) == "s1: say one, recall"
        assert [count(tmp_path, f"session/{what}") for what in ("new", "load")] == [2, 1]
        first, _, second = prompts(tmp_path)
        assert "an agent in the network" in first
        assert "an agent in the network" not in second, "it was told, and remembers"
        await net.kill("bot")
        await net.network.gone("bot")
        (tmp_path / "sessions.json").unlink()
        await net.acp("bot", PROGRAM, tmp_path)
        await asks(net, ann, "recall")
        assert await said_to(ann) == "s1: recall", "what the program has lost is begun anew"
        assert "say one" in prompts(tmp_path)[-1], "with the thread"


@pytest.mark.behaviour("I-4")
async def test_one_session_may_be_for_all_threads(in_memory: Networks, tmp_path: Path) -> None:
    program: JsonValue = {"command": [*PROGRAM], "cwd": str(tmp_path), "session": "agent"}
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        await net.acp("bot", PROGRAM, tmp_path, acp=program)
        await asks(net, ann, "say one")
        assert await said_to(ann) == "one"
        await asks(net, bob, "recall")
        assert await said_to(bob) == "s1: say one, recall"


# People in charge ------------------------------------------------------------------------------


@pytest.mark.behaviour("I-3")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_what_a_program_asks_permission_for_a_person_decides(
    in_memory: Networks, tmp_path: Path, answer: str
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path)
        id = await asks(net, ann, "edit a.py")
        (approval,) = await parked(net, ann, id)
        assert (approval["tool"], approval["arguments"]["path"]) == ("write", "a.py")
        assert approval["arguments"]["diff"].endswith("+print('hello')")
        assert not (tmp_path / "a.py").exists()
        changed = await ann.ask("approve", id=approval["id"], arguments={"path": "b.py"})
        assert changed["op"] == "error", "a program takes a yes or a no"
        await ann.call(answer, id=approval["id"])
        assert await said_to(ann) == ("written" if answer == "approve" else "not written")
        assert (tmp_path / "a.py").exists() == (answer == "approve")
        turn = await net.turn(id)
        assert ended(turn).outcome == "finished"
        assert any(
            ("ann approved" if answer == "approve" else "denied") in n
            for s in turn.steps
            for n in s.notes
        )


@pytest.mark.behaviour("I-3")
@pytest.mark.parametrize(("mode", "said"), [("full", "written"), ("read_only", "not written")])
async def test_the_permission_mode_answers_in_a_persons_place(
    in_memory: Networks, tmp_path: Path, mode: str, said: str
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path, permission_mode=mode)
        await asks(net, ann, "edit a.py")
        assert await said_to(ann) == said
        assert (await ann.call("list_approvals", state="all"))["approvals"] == []


@pytest.mark.behaviour("I-3")
async def test_a_persons_word_survives_the_agents_death_and_is_not_asked_for_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path)
        id = await asks(net, ann, "edit a.py")
        (approval,) = await parked(net, ann, id)
        await net.kill("bot")
        await net.network.gone("bot")
        await ann.call("approve", id=approval["id"])
        await net.acp("bot", PROGRAM, tmp_path)
        assert await said_to(ann) == "written"
        turn = await net.turn(id)
        assert (ended(turn).outcome, turn.attempts) == ("finished", 2)
        every = (await ann.call("list_approvals", state="all"))["approvals"]
        assert [each["state"] for each in every] == ["started"]
        assert "You were interrupted" in prompts(tmp_path)[-1]


@pytest.mark.behaviour("I-3", "I-6")
async def test_one_yes_is_good_for_one_permission(in_memory: Networks, tmp_path: Path) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path)
        id = await asks(net, ann, "twice a.py")
        (first,) = await parked(net, ann, id)
        await ann.call("approve", id=first["id"])
        (second,) = await asked(ann)
        assert second["id"] != first["id"]
        await ann.call("deny", id=second["id"])
        assert sorted((await said_to(ann)).split(", ")) == ["no", "yes"]


@pytest.mark.behaviour("I-5")
async def test_a_stop_is_a_cancellation_and_the_program_goes_on_with_the_next(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path)
        id = await asks(net, ann, "hold")
        await ann.until(lambda: any(s["type"] == "activity" for s in ann.signals))
        await net.until(lambda: _prompted(tmp_path, 1))
        await ann.call("stop", scope="turn", target=id)
        assert ended(await net.turn(id)).outcome == "cancelled"
        await asks(net, ann, "recall")
        assert await said_to(ann) == "s1: hold, recall", "in the same session"
        assert [count(tmp_path, m) for m in ("initialize", "session/cancel")] == [1, 1]


async def _prompted(folder: Path, n: int) -> bool:
    return (folder / "log.jsonl").exists() and len(prompts(folder)) >= n


@pytest.mark.behaviour("I-5")
async def test_a_person_may_interrupt(in_memory: Networks, tmp_path: Path) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path, steer="interrupt")
        id = await asks(net, ann, "hold")
        await ann.until(lambda: any(s["type"] == "activity" for s in ann.signals))
        await ann.say("bot", "say something else")
        assert await said_to(ann) == "something else"
        assert ended(await net.turn(id)).reason == "interrupted by ann"


@pytest.mark.behaviour("I-5")
async def test_what_a_program_says_that_it_spends_ends_its_turn_at_the_budget(
    in_memory: Networks, tmp_path: Path
) -> None:
    file = config(network={"daily": {"agent": {"usd": 1.0}}})
    async with harness(in_memory, file) as net:
        ann = await net.person()
        await net.acp("bot", PROGRAM, tmp_path)
        turn = await net.turn(await asks(net, ann, "spend 0.3"))
        assert ended(turn).outcome == "budget_exhausted"
        assert turn.cost_usd is not None
        assert 1.0 <= turn.cost_usd < 3.0
        await net.until(lambda: _cancelled(tmp_path))


async def _cancelled(folder: Path) -> bool:
    return count(folder, "session/cancel") == 1


# Hostile programs ------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, str]] = {
    "die": ("model_error", "exited (exit code 3): out of luck"),
    "garbage": ("model_error", "its output is not the Agent Client Protocol"),
    "bigline": ("model_error", "a line of more than 16 MiB"),
    "nonsense": ("model_error", "its answer is not valid in the Agent Client Protocol"),
    "flood": ("model_error", "more than 32 MiB in one step"),
    "never": ("timeout", "not finished after"),
}


@pytest.mark.behaviour("I-6", "I-5")
@pytest.mark.parametrize("word", WRONG)
async def test_a_program_that_goes_wrong_ends_its_turn_in_one_way_and_harms_nobody(
    in_memory: Networks, tmp_path: Path, word: str
) -> None:
    outcome, reason = WRONG[word]
    short = {"turn_timeout": "1s"} if word == "never" else {}
    async with harness(in_memory) as net:
        ann, bob = await net.person(), await net.person("bob")
        other = tmp_path / "other"
        other.mkdir()
        await net.acp("bot", PROGRAM, tmp_path, **short)
        await net.acp("neighbour", PROGRAM, other)
        id = await asks(net, ann, word)
        await asks(net, bob, "say hello", "neighbour")
        assert await said_to(bob) == "hello"
        turn = await net.turn(id)
        assert ended(turn).outcome == outcome
        assert reason in ended(turn).reason
        assert (await notice(ann, outcome))["sender_kind"] == "system", "who waits is told"
        await asks(net, ann, "say again")
        assert await said_to(ann) == "again", "the next turn has a program that works"


@pytest.mark.behaviour("I-6")
async def test_a_program_that_wants_a_login_says_how_and_has_it(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.acp("bot", [*PROGRAM, "shy"], tmp_path)
        turn = await net.turn(await asks(net, ann, "say hello"))
        assert ended(turn).outcome == "model_error"
        assert ended(turn).reason.endswith(
            "refuses: Authentication required; log in with the program itself, or by `acp.login`: "
            "`key` (Set THE_KEY.)"
        )
        await net.kill("bot")
        await net.network.gone("bot")
        program: dict[str, JsonValue] = {"command": [*PROGRAM, "shy"], "cwd": str(tmp_path)}
        program |= {"login": "key", "env": {"THE_KEY": "open sesame"}}
        await net.acp("bot", [], tmp_path, acp=program)
        await asks(net, ann, "say hello")
        assert await said_to(ann) == "hello"


@pytest.mark.behaviour("I-6")
async def test_a_program_that_cannot_be_had_is_told_in_a_sentence(
    in_memory: Networks, tmp_path: Path
) -> None:
    table: dict[str, Callable[[str], bool]] = {
        "no-such-program": lambda told: "cannot be started: No such file" in told,
        "/bin/false": lambda told: "false exited (exit code 1)" in told,
    }
    async with harness(in_memory) as net:
        ann = await net.person()
        for command, holds in table.items():
            await net.acp("bot", [command], tmp_path)
            turn = await net.turn(await asks(net, ann, "say hello"))
            assert ended(turn).outcome == "model_error"
            assert holds(ended(turn).reason), ended(turn).reason
            await net.kill("bot")
            await net.network.gone("bot")
