"""`hubbub test` runs files of cases with a scripted model and reports the results."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub.app.preflight import load_valid
from hubbub.errors import UserError
from hubbub.lab.cases import load_cases
from hubbub.lab.prompt_tests import run_cases
from hubbub.lab.reports import CaseVerdict, Suite, write_junit
from tests.unit.cli.conftest import Shell, calls, sends

pytestmark = [pytest.mark.slow, pytest.mark.behaviour("Q-10")]

SCRIPT: JsonValue = {
    "rules": [
        {"when": {"incoming": "boom"}, "answer": {"status": 400, "message": "no such luck"}},
        {
            "when": {"system": "You sort mail of (?P<shop>\\w+)", "prompt": "refund"},
            "answer": {"text": '{"queue": "billing", "shop": "{{ shop }}"}'},
        },
        {"when": {"system": "You sort"}, "answer": {"text": "Hmm."}},
        {"when": {"step": 1}, "answer": calls("find_order", order=7)},
        {"when": {"step": 2}, "answer": sends("ann", "Sent.")},
    ]
}
CONFIG = """\
network: {{name: shop, auth: open}}
models:
  default: {{model: m, base_url: '{url}', retries: 0}}
  keyless: {{model: m}}
humans: {{ann: {{}}}}
agents:
  sorter: {{prompt: {{name: triage, variables: {{shop: Acme}}}}}}
"""
CLERKS = """\
  clerk: {instruction: Help., tools: [send_text_message, 'orders.py:find_order']}
  clock: {kind: python, class: 'orders.py:Clock'}
"""
"""Agents with Python, which each `hubbub test` imports in a new process."""
ORDERS = """\
from hubbub import Agent, tool


@tool
def find_order(order: int) -> str:
    '''Look an order up.'''
    return "this must never run"


class Clock(Agent):
    pass
"""
TRIAGE = """\
cases:
  - name: a refund goes to billing
    message: I want a refund.
    expect: [valid_json, {field: queue, in: [billing]}, {field: shop, in: [Acme]}]
"""
CLERK = """\
agent: clerk
cases:
  - name: an order is looked up
    incoming: Where is order 7?
    results: {find_order: sent}
    expect: [{tool_called: find_order}, {matches: Sent}, ends_with_finish]
"""
SECOND = CLERK.partition("cases:\n")[2].replace("Where is", "boom").replace("an order", "no order")


@pytest.fixture
def shop(home: Path, endpoint: str) -> Path:
    (home / "hubbub.yaml").write_text(CONFIG.format(url=endpoint))
    cases = home / "prompts" / "triage" / "cases"
    cases.mkdir(parents=True)
    (cases.parent / "1.0.j2").write_text("You sort mail of {{ shop }}.")
    (cases / "usual.yaml").write_text(TRIAGE)
    return home


@pytest.fixture
def staffed(shop: Path) -> Path:
    """The shop with its clerks."""
    with (shop / "hubbub.yaml").open("a") as config:
        config.write(CLERKS)
    (shop / "orders.py").write_text(ORDERS)
    (shop / "clerk.yaml").write_text(CLERK)
    return shop


@pytest.fixture
def reading(staffed: Path) -> Path:
    """The shop with a clerk whose tools include those of an MCP server that is not running."""
    config = staffed / "hubbub.yaml"
    text = config.read_text() + "mcp_servers: {find: {command: [nobody-has-this]}}\n"
    config.write_text(text.replace("tools: [", "mcp: [find], begin_with: find_book, tools: ["))
    assert "mcp: [find]" in config.read_text()
    return staffed


def case(shop: Path, text: str) -> tuple[str, ...]:
    """The arguments that test these cases."""
    (shop / "c.yaml").write_text(text)
    return ("test", "hubbub.yaml", "c.yaml")


def test_the_cases_beside_the_prompts_run_five_times(
    shop: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = hubbub("test")
    assert (result.code, result.err) == (0, "")
    first, last = result.out.splitlines()
    assert first == "passed    5/5   100 % (57-100 %)  a refund goes to billing"
    assert last.startswith("1 of 1 case passed, ")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    bar = hubbub("test", "-k", "REFUND", "-n", "1").err
    assert "a refund goes to billing" in bar
    assert "1/1" in bar
    result = hubbub("test", "-k", "nothing")
    assert (result.code, result.err) == (2, "hubbub: no case has 'nothing' in its name\n")


def test_the_case_of_an_agent_runs_without_its_mcp_servers(reading: Path, hubbub: Shell) -> None:
    result = hubbub("test", "hubbub.yaml", "clerk.yaml", "--json")
    (case,) = result.json()["cases"]
    assert (case["status"], case["passed"], case["rate"]) == ("passed", 5, 1.0)
    assert (case["path"], case["line"]) == ("clerk.yaml", 3)
    warning = (
        "agents.clerk: MCP servers do not run in prompt tests, so the tools of find are missing"
    )
    assert result.err.count(warning) == 1


def test_a_case_below_its_bar_fails_with_the_reason(shop: Path, hubbub: Shell) -> None:
    text = "prompt: triage\n" + TRIAGE.replace("I want a refund.", "Where are you?")
    result = hubbub(*case(shop, text), "-n", "3")
    assert result.code == 1
    assert "failed    0/3     0 % (0-56 %)    a refund goes to billing" in result.out
    assert "3 x valid_json: it is not JSON: it sent 'Hmm.'" in result.out
    assert hubbub(*case(shop, text), "--bar", "0").code == 0
    own = text.replace("    message:", "    bar: 0\n    runs: 2\n    message:")
    result = hubbub(*case(shop, own))
    assert result.code == 0
    assert "0/2" in result.out


def test_a_case_overrides_the_variables_and_the_version_of_a_prompt(
    shop: Path, hubbub: Shell
) -> None:
    (shop / "prompts/triage/0.9.j2").write_text("You sort mail of {{ shop }}, slowly.")
    text = TRIAGE.replace("[Acme]", "[Zeta]").replace(
        "    message:", "    prompt: triage@0.9\n    variables: {shop: Zeta}\n    message:"
    )
    assert hubbub(*case(shop, text), "-n", "1").code == 0


def test_a_failing_model_is_an_error_and_not_a_failed_case(staffed: Path, hubbub: Shell) -> None:
    result = hubbub(*case(staffed, CLERK + SECOND), "-n", "2", "--junit", "out.xml")
    assert result.code == 1
    assert "error     0/0   no answer" in result.out
    assert "2 x no answer: the model endpoint" in result.out
    (suite,) = ElementTree.parse(staffed / "out.xml").getroot()
    assert suite.attrib["name"] == "c.yaml"
    assert [suite.attrib[key] for key in ("tests", "failures", "errors")] == ["2", "0", "1"]
    error = suite.find("testcase/error")
    assert error is not None
    assert "no such luck" in (error.text or "")


async def test_a_mistake_in_a_case_is_reported_before_the_model_is_asked(reading: Path) -> None:
    loaded, file = load_valid(reading / "hubbub.yaml"), reading / "c.yaml"
    mcp = "c.yaml:2: 'find_book' is a tool of the MCP server find, which does not run in prompt"
    schema = "expect: [{arguments_match: find_order, schema: {type: nonsense}}]"
    twice = "message: hi, prompt: triage, expect: [valid_json]"
    for text, message in (
        ("incoming: hi", "c.yaml:2: 'x' has an incoming message, but no agent"),
        ("message: hi", "'x' has a message, but no prompt"),
        ("incoming: hi, agent: clark", "unknown agent 'clark'; did you mean 'clerk'?"),
        ("incoming: hi, agent: clock", "the agent 'clock' has no model"),
        ("incoming: hi, agent: clerk, model: big", "unknown model 'big'"),
        ("incoming: hi, agent: clerk, prompt: triage", "does not use the prompt 'triage'"),
        ("incoming: hi, agent: clerk, variables: {a: 1}", "has no variables"),
        ("incoming: hi, agent: clerk, thread: nowhere", "'nowhere' is not a thread"),
        ("incoming: {from: clerk, text: a}, agent: clerk", "its own message"),
        ("incoming: hi, agent: clerk, results: {find: x}", "has no tool 'find'"),
        ("message: hi, prompt: triag", "there is no prompt 'triag'"),
        ("incomming: hi", "unknown key 'incomming' in cases[1]; did you mean 'incoming'?"),
        ("message: hi, model: keyless, prompt: triage", "models.keyless has no API key"),
        ("agent: clerk, incoming: a, results: {find_book: x}", mcp),
        ("agent: clerk, incoming: a, expect: [{tool_called: find_book}]", mcp),
        ("agent: clerk, incoming: a, expect: [{tool_not_called: find_book}]", mcp),
        ("agent: clerk, incoming: a, expect: [{arguments_match: find_book}]", mcp),
        (f"agent: clerk, incoming: a, {schema}", "c.yaml:2: 'x': invalid JSON Schema"),
        (f"{twice}}}\n  - {{name: x, {twice}", "c.yaml:3: an earlier case has the name 'x', too"),
    ):
        expect = "" if "expect" in text else ", expect: [{max_tokens: 9}]"
        file.write_text(f"cases:\n  - {{name: x, {text}{expect}}}\n")
        with pytest.raises(UserError) as caught:
            await run_cases(loaded, load_cases(loaded, [file]))
        assert message in str(caught.value), text


def test_an_agent_that_cannot_start_is_reported_once(staffed: Path, hubbub: Shell) -> None:
    config = staffed / "hubbub.yaml"
    begins = "permission_mode: read_only, begin_with: find_order, tools: ["
    config.write_text(config.read_text().replace("tools: [", begins))
    (staffed / "orders.py").write_text(ORDERS.replace("@tool", "@tool(permission='write')"))
    result = hubbub(*case(staffed, CLERK.replace("    results: {find_order: sent}\n", "")))
    assert result.code == 2, result.out
    assert result.err.count("agents.clerk.begin_with: 'find_order' changes something") == 1


def test_invalid_options_and_missing_cases_are_refused(shop: Path, hubbub: Shell) -> None:
    for options in (("--runs", "0"), ("--bar", "2"), ("--junit", "no/where.xml"), ("-m", "huge")):
        assert hubbub("test", *options).code == 2, options
    (shop / "prompts/triage/cases/usual.yaml").unlink()
    result = hubbub("test")
    assert result.code == 2
    assert "there are no cases" in result.err


def test_characters_that_xml_forbids_are_visible_in_the_report(tmp_path: Path) -> None:
    suite = Suite("a\x00b", [CaseVerdict("c\x1bd", "failed", "e\x08", "<f> & \ud800")])
    write_junit(tmp_path / "out.xml", [suite])
    (report,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    case = report.find("testcase")
    assert case is not None
    assert case.attrib["name"] == "c⟦U+001B⟧d"
    assert (case[0].tag, case[0].text) == ("failure", "<f> & ⟦U+D800⟧")
