"""Whole networks tried, recorded and played again: `test`, `record` and `replay`."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import get_args

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.app.preflight import load_valid
from hubbub.client import Client, WebSocketTransport
from hubbub.config.cases import Fault
from hubbub.config.loader import load
from hubbub.config.problems import ConfigProblems
from hubbub.lab.branches import branched, served
from hubbub.lab.cases import load_cases
from hubbub.lab.networks import FaultInjector, NetworkRun, replay
from hubbub.protocol.frames import Event
from tests.unit.cli.conftest import Ran, Shell, running

pytestmark = [pytest.mark.slow, pytest.mark.behaviour("Q-12")]


def sends(to: str, text: str) -> JsonValue:
    """The answer of a model that says this and is done."""
    say: JsonValue = {"tool": "send_text_message", "arguments": {"to": to, "text": text}}
    return {"calls": [say, {"tool": "finish", "arguments": {"reason": "done"}}]}


SCRIPT: JsonValue = {
    "rules": [
        {
            "when": {"system": "the one who wrote to you is asked"},
            "answer": {
                "calls": [
                    {
                        "tool": "ask_human",
                        "arguments": {
                            "question": "A lamp it is. Go on?",
                            "options": ["yes", "stop"],
                        },
                    }
                ]
            },
        },
        {
            "when": {"incoming": "yes"},
            "answer": {"calls": [{"tool": "finish", "arguments": {"message": "Gone on."}}]},
        },
        {
            "when": {"system": "You look orders up", "step": 1},
            "answer": {"calls": [{"tool": "find_order", "arguments": {"number": 7}}]},
        },
        {"when": {"system": "You look orders up"}, "answer": sends("clerk", "Order 7 is a lamp.")},
        {"when": {"system": "You know orders"}, "answer": sends("clerk", "Order 7 is a lamp.")},
        {"when": {"incoming": "Order 7 is"}, "answer": sends("ann", "Money for the lamp it is.")},
        {
            "when": {"system": "You check", "step": 1},
            "answer": {"calls": [{"tool": "find_order", "arguments": {"number": 8}}]},
        },
        {"when": {"system": "You check"}, "answer": sends("clerk", "Order 7 is missing.")},
        {"when": {"system": "You are kind"}, "answer": sends("ann", "Gladly!")},
        {"when": {"incoming": "refund"}, "answer": sends("billing", "What is order 7?")},
        {"when": {"incoming": "hello"}, "answer": sends("ann", "Good morning.")},
    ]
}
CONFIG = """\
network: {{name: shop, auth: open, listen: '127.0.0.1:0', store: 'sqlite::memory:'}}
models: {{default: {{model: m, base_url: '{url}', retries: 0}}}}
humans: {{ann: {{roles: [owner]}}}}
agents:
  clerk: {{instruction: You answer customers., tools: [send_text_message]}}
  billing:
    instruction: You look orders up.
    tools: [send_text_message, 'orders.py:find_order']
"""
PLAIN = CONFIG.replace("You look orders up.", "You know orders.").replace(
    ", 'orders.py:find_order'", ""
)
"""Without Python, which each command would try in a process of its own."""
ORDERS = """\
from hubbub import tool


@tool
def find_order(number: int) -> str:
    '''Look an order up.'''
    with open("looked-up", "a") as file:
        file.write("once ")
    return "a lamp"
"""
NAME = "refunds go through billing"
CASES = f"""\
cases:
  - name: {NAME}
    says: {{to: clerk, text: I want a refund.}}
    faults: [slow_model, rate_limit, agent_killed, person_silent]
    results: {{find_order: a lamp}}
    expect:
      - {{answered_by: clerk}}
      - {{tool_called: find_order}}
      - {{matches: Money}}
      - {{max_turns: 3}}
      - {{max_cost: 0}}
      - never_silent
      - no_loop
      - ends_with_finish
"""
NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture
def shop(home: Path, endpoint: str) -> Path:
    """The folder of a network of two agents; nothing of it runs."""
    (home / "hubbub.yaml").write_text(CONFIG.format(url=endpoint))
    (home / "orders.py").write_text(ORDERS)
    (home / "cases.yaml").write_text(CASES)
    return home


def statuses(ran: Ran) -> list[str]:
    """How each run of the case went."""
    assert ran.out, ran.err
    return [run["status"] for run in json.loads(ran.out)["cases"][0]["runs"]]


def test_a_network_is_tried_with_faults_and_then_again_from_its_cassettes_without_an_endpoint(
    shop: Path, hubbub: Shell
) -> None:
    faults, runs = get_args(Fault), 5
    met = [FaultInjector(faults, f"{NAME} {n}").fault for n in range(runs)]
    assert set(met) == {None, *faults}, "these runs have each fault, and none"
    expected = ["failed" if fault == "rate_limit" else "passed" for fault in met]
    command = ("test", "hubbub.yaml", "cases.yaml", "-n", str(runs), "--json")
    assert statuses(hubbub(*command, "--bar=0", "--record")) == expected
    assert not (shop / "looked-up").exists(), "no tool is carried out that reaches out"

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    ran = hubbub(*command, "--bar=1", "--junit=report.xml")
    assert (ran.code, statuses(ran)) == (1, expected)
    assert "there was no answer" in ran.out
    assert "HTTP 429" in (shop / "report.xml").read_text()

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE).replace("answer", "greet"))
    ran = hubbub("test", "hubbub.yaml", "cases.yaml", "-n", "1")
    assert "the recording has no answer to: record again with --record" in ran.out


def test_who_is_told_that_the_model_refuses_is_not_met_with_silence(
    shop: Path, hubbub: Shell
) -> None:
    def strikes_first(name: str) -> bool:
        trouble = FaultInjector(["rate_limit"], f"{name} 0")
        return trouble.fault == "rate_limit" and trouble.strikes()

    name = next(name for name in map(str, range(100)) if strikes_first(name))
    case = f"{{name: '{name}', says: {{to: clerk, text: hello}}, expect: [never_silent]"
    (shop / "cases.yaml").write_text(f"cases: [{case}, faults: [rate_limit]}}]")
    ran = hubbub("test", "hubbub.yaml", "cases.yaml", "-n", "1", "--record", "--json")
    assert statuses(ran) == ["passed"], ran.out
    assert "HTTP 429" in (shop / "cases.cassettes.jsonl").read_text()


def test_the_last_time_is_remembered_and_what_chance_does_not_explain_is_said(
    shop: Path, hubbub: Shell, endpoint: str
) -> None:
    greeting = "  - {name: hi, says: {to: clerk, text: hello}, expect: [{answered_by: clerk}]}\n"
    (shop / "cases.yaml").write_text(CASES.replace("    faults:", "    # faults:") + greeting)
    command = ("test", "hubbub.yaml", "cases.yaml", "-n", "6")
    assert "the last time" not in hubbub(*command, "--record").out
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    same = hubbub(*command)
    assert "the last time" not in same.out
    assert "2 of 2 cases passed" in same.out
    text = (shop / "cases.yaml").read_text()
    (shop / "cases.yaml").write_text(text.replace("Money", "Gold"))
    worse = hubbub(*command)
    assert "last time 6/6: worse" in worse.out
    assert "6 x matches: Gold: it sent 'Money for the lamp it is.'" in worse.out
    (shop / "cases.yaml").write_text(text.replace("{find_order: a lamp}", "{}"))
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=endpoint))
    (shop / "cases.cassettes.jsonl").unlink()
    lacking = hubbub(*command, "-n", "1", "-k", "refund").out
    assert (
        "there was no answer; the case has no result for find_order: add one to `results`"
        in lacking
    )
    assert "tool_called" not in lacking


def test_what_happened_in_a_running_network_is_replayed_and_becomes_a_case(
    shop: Path, hubbub: Shell
) -> None:
    text = (shop / "hubbub.yaml").read_text()
    with running(text, shop):
        assert hubbub("ask", "clerk", "hello", "--as", "ann").out == "Good morning.\n"
        assert hubbub("ask", "clerk", "a refund, please", "--as", "ann").code == 0
        listed = hubbub("messages", "list", "--json").out.splitlines()
        refund = next(m["id"] for m in map(json.loads, listed) if "refund" in m["content"])
        ran = hubbub("record", refund, "--out", "refund.json")
        assert (ran.code, ran.out) == (0, "refund.json: 4 messages, 3 turns\n")
        assert hubbub("record", refund, "--case", "new.yaml").code == 0
        nothing = hubbub("record", "i999", "--out", "x.json")
        assert (nothing.code, nothing.err) == (2, "hubbub: no interaction i999 is visible to you\n")
    assert (shop / "looked-up").read_text() == "once "

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    ran = hubbub("replay", "refund.json")
    assert (ran.code, ran.out) == (0, "refund.json: 3 turns, all as recorded\n")
    ran = hubbub("test", "hubbub.yaml", "new.yaml", "-n", "2")
    assert (ran.code, ran.err, ran.out[:13]) == (0, "", "passed    2/2")
    assert "tool_called: find_order" in (shop / "new.yaml").read_text()
    assert (shop / "looked-up").read_text() == "once "

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE).replace("look orders", "look all"))
    ran = hubbub("replay", "refund.json")
    assert ran.code == 1
    where, _, _, _, *diff = ran.out.splitlines()
    assert where == "billing: its turn about 'What is order 7?' of clerk, the system prompt"
    assert diff[:2] == ["-You look orders up.", "+You look all up."]
    assert replay("hubbub.yaml", "refund.json") is not None
    shutil.copytree(shop, shop / "new")
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    assert hubbub("replay", "refund.json").code == 0
    assert hubbub("replay", "refund.json", "--code", "new").out == ran.out


def test_a_replay_with_another_prompt_asks_the_model_where_the_recording_has_no_answer(
    shop: Path, hubbub: Shell, endpoint: str
) -> None:
    (shop / "hubbub.yaml").write_text(PLAIN.format(url=endpoint))
    with running((shop / "hubbub.yaml").read_text(), shop):
        hubbub("ask", "clerk", "a refund, please", "--as", "ann")
        assert hubbub("record", "i1", "-o", "refund.json").code == 0
    (shop / "kind.txt").write_text("You are kind.")
    ran = hubbub("replay", "refund.json", "--prompt", "clerk=kind.txt")
    assert ran.code == 1
    where, *diff = ran.out.splitlines()
    assert where == "clerk: its turn about 'a refund, please' of ann, step 1"
    assert '+send_text_message {"text": "Gladly!", "to": "ann"}' in diff
    ran = hubbub("replay", "refund.json", "--model", "default")
    assert (ran.code, ran.out) == (0, "refund.json: 3 turns, all as recorded\n")
    assert hubbub("replay", "refund.json", "--prompt", "clark=kind.txt").err == (
        "hubbub: there is no agent 'clark'; did you mean 'clerk'?\n"
    )


def test_turns_that_ask_before_they_go_on_are_recorded_with_what_they_go_on_with_and_replayed(
    shop: Path, hubbub: Shell
) -> None:
    text = (shop / "hubbub.yaml").read_text() + "    mode: interactive\n"
    with running(text, shop):
        asked = hubbub("ask", "billing", "which order?", "--as", "ann")
        assert asked.out.endswith("A lamp it is. Go on?\n1. yes\n2. stop\n")
        assert hubbub("ask", "billing", "yes", "--as", "ann").code == 0
        assert hubbub("record", "i1", "-o", "asks.json").code == 0
        listed = hubbub("messages", "list", "--json").out.splitlines()
        yes = next(m["id"] for m in map(json.loads, listed) if m["content"] == "yes")
        ran = hubbub("record", yes, "-o", "goes-on.json")
        assert (ran.code, ran.out[:14], ran.out[-8:]) == (0, "goes-on.json: ", "2 turns\n")

    (shop / "hubbub.yaml").write_text(text.replace(re.findall("http[^']*", text)[0], NOWHERE))
    ran = hubbub("replay", "asks.json")
    assert (ran.code, ran.err, ran.out) == (0, "", "asks.json: 1 turn, all as recorded\n")
    ran = hubbub("replay", "goes-on.json")
    assert (ran.code, ran.err, ran.out) == (0, "", "goes-on.json: 2 turns, all as recorded\n")
    assert (shop / "looked-up").read_text() == "once "


WRONG = {
    "{says: {to: clark, text: a}, expect: [no_loop]}": "the unknown 'clark'; did you mean",
    "{message: a, prompt: p, expect: [no_loop]}": "it needs `says`",
    "{incoming: a, agent: clerk, faults: [rate_limit], expect: [valid_json]}": "`faults` belong",
    "{says: {to: clerk, text: a}, agent: clerk, expect: [no_loop]}": "belong to `incoming`",
    "{expect: [no_loop]}": "expected either `message`",
}


def test_a_case_that_makes_no_sense_is_refused(home: Path) -> None:
    (home / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    (home / "orders.py").write_text(ORDERS)
    loaded, file = load(home / "hubbub.yaml"), home / "cases.yaml"
    for case, why in WRONG.items():
        file.write_text("cases:\n  - " + case.replace("{", "{name: x, ", 1) + "\n")
        with pytest.raises(ConfigProblems) as caught:
            load_cases(loaded, [file])
        assert why in str(caught.value)


STORED = CONFIG.replace("sqlite::memory:", "sqlite:shop.db")


@pytest.mark.behaviour("Q-13")
def test_a_branch_of_a_running_network_goes_on_otherwise_and_leaves_the_network_as_it_is(
    shop: Path, hubbub: Shell, endpoint: str, snapshot: SnapshotAssertion
) -> None:
    (shop / "hubbub.yaml").write_text(STORED.format(url=endpoint))
    with running((shop / "hubbub.yaml").read_text(), shop):
        hubbub("ask", "clerk", "hello", "--as", "ann")
        hubbub("ask", "clerk", "a refund, please", "--as", "ann")
        hubbub("ask", "clerk", "hello again", "--as", "ann")
        listed = hubbub("messages", "list", "--json").out
        said = {m["content"]: m["id"] for m in map(json.loads, listed.splitlines())}
        refund, order = said["a refund, please"], said["What is order 7?"]

        kind = hubbub("branch", refund, "--with", "clerk.instruction=You are kind.", "--json")
        sides = kind.json()
        assert [m["text"] for m in sides["then"]["said"]] == [
            "What is order 7?", "Order 7 is a lamp.", "Money for the lamp it is.",
        ]  # fmt: skip
        assert [m["text"] for m in sides["now"]["said"]] == ["Gladly!"]
        assert (sides["then"]["turns"], sides["now"]["turns"]) == (3, 1)
        assert 0 < sides["now"]["tokens_in"] < sides["then"]["tokens_in"]
        answer = hubbub("branch", said["Money for the lamp it is."], "--json").json()
        assert answer["message"] == said["Order 7 is a lamp."], "it begins at what was answered"
        assert (shop / "looked-up").read_text() == "once ", "no tool is carried out in a branch"
        assert hubbub("messages", "list", "--json").out == listed

        asyncio.run(goes_on(shop, refund))
        assert hubbub("messages", "list", "--json").out == listed

    lines = (
        f"branch {order} --with 'billing.instruction=You check orders.'",
        f"branch {order} --with 'billing.instruction=You check orders.' --result find_order=none",
        "branch m999",
        "branch m1 --with clark.instruction=x",
        "branch m1 --with clerk.instructions=x",
    )
    assert re.sub(r"\d+ in, \d+ out", "<tokens>", hubbub.story(*lines)) == snapshot


async def goes_on(shop: Path, message: str) -> None:
    """People talk in a branch as in any network, at an address of its own."""
    run = NetworkRun(load_valid(shop / "hubbub.yaml"), live=True)
    async with branched(run, int(message[1:])) as (hub, outcome), served(hub) as url:
        assert outcome.then.said == outcome.now.said
        transport = WebSocketTransport(url.replace("http", "ws", 1))
        async with Client(transport, "ann", "human") as ann:
            await ann.call("send_text_message", to="clerk", text="hello once more")
            async for item in ann.events():
                if isinstance(item, Event) and item.message.text == "Good morning.":
                    break
