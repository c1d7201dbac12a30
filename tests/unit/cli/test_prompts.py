"""`prompts list | show | diff | lint`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.doc_pages import example
from tests.unit.cli.conftest import Shell

ROOT = Path(__file__).parents[3]
CONFIG = """\
network: {name: shop}
models: {default: {model: m, base_url: 'http://127.0.0.1:9/v1'}}
agents:
  triage:
    tools: [send_text_message]
    prompt:
      name: triage
      version: "1.9"
      variables: {shop: Acme}
      rollout: {version: "1.10", share: 10%}
      reminder: [Be brief.]
  writer:
    instruction: |
      You write.

      Look back with `read_thread`.
  clock: {kind: python, class: 'clock.py:Clock'}
humans: {ann: {}}
"""
FILE = "prompts/triage/1.9.j2"


@pytest.fixture
def shop(home: Path) -> Path:
    """A config with two versions of a prompt."""
    write(home, CONFIG)
    write(home, "from hubbub import Agent\nclass Clock(Agent):\n    pass\n", "clock.py")
    write(home, "You sell {{ shop }}.\nBe kind.\n", FILE)
    write(home, "You sell for {{ shop }}.\nBe kind.\n", "prompts/triage/1.10.j2")
    return home


def write(home: Path, text: str, name: str = "hubbub.yaml") -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text, encoding="utf-8")


@pytest.mark.behaviour("Q-9")
def test_prompts_are_listed_shown_and_compared(
    shop: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    assert hubbub.transcript(
        "prompts list",
        "prompts show triage",
        "prompts show triage@1.10",
        "prompts show triage --source",
        "prompts diff triage",
        "prompts diff triage 1.10 1.9 --json",
        "prompts diff triage 1.9 1.9",
        "prompts list --folder texts",
        "prompts lint",
    ) == snapshot(name="shown")
    rows = hubbub("prompts", "list", "--json").json()
    assert rows[0].pop("prompt_id").startswith("triage@1.9#")
    assert rows[0] == {
        "name": "triage",
        "version": "1.9",
        "path": FILE,
        "required": ["shop"],
        "optional": [],
        "used_by": ["triage (90 %)"],
    }
    shown = hubbub("prompts", "show", "triage@1.9", "--folder", "prompts", "--json").json()
    assert shown["source"] == "You sell {{ shop }}.\nBe kind.\n"
    write(shop, "x", "texts/a/1.j2")
    assert "a@1#" in hubbub("prompts", "list", "--folder", "texts").out
    mistakes = hubbub.transcript(
        "prompts show triag",
        "prompts show triage@2",
        "prompts show triage --agent writr",
        "prompts show",
        "prompts show --source",
        "prompts show triage --source --agent writer",
        "prompts show triage --folder prompts --agent writer",
        "prompts lint gone.j2",
    )
    (shop / "prompts/triage/1.10.j2").unlink()
    mistakes += hubbub.transcript("prompts diff triage --folder prompts")
    assert mistakes == snapshot(name="mistakes")


def test_an_unreadable_version_does_not_hide_the_others(shop: Path, hubbub: Shell) -> None:
    for broken in (b"\xff", b"{% if %}"):
        (shop / "prompts/triage/1.11.j2").write_bytes(broken)
        result = hubbub("prompts", "list")
        assert [line.split()[1] for line in result.out.splitlines()[1:]] == ["1.9", "1.10"]
        assert result.code == 1
        assert result.err.startswith("prompts/triage/1.11.j2")
        assert "the prompt" in result.err
        row = json.loads(hubbub("prompts", "list", "--json").out)[2]
        assert "the prompt" in row["problem"]
        assert (row["version"], row["used_by"]) == ("1.11", [])


@pytest.mark.behaviour("Q-9")
def test_the_system_prompt_of_an_agent_is_shown_for_each_of_its_roles(
    shop: Path, hubbub: Shell
) -> None:
    triage = hubbub("prompts", "show", "--agent", "triage", "--json").json()
    assert triage["text"].endswith("Above all:\n- Be brief.")
    assert triage["components"][0] == "identity"
    assert "`send_text_message`" in triage["text"]
    plain = hubbub("prompts", "show", "--agent", "writer").out
    assert "agents.writer: identity, network, untrusted_data, thread_ids, speaking" in plain
    agent = "agents:\n  desk: {kind: router, tools: [list_threads]}\n"
    write(shop, CONFIG.replace("agents:\n", agent))
    desk = hubbub("prompts", "show", "--agent", "desk").out
    assert re.findall(r"^--- (.*?): ", desk, re.MULTILINE) == [
        "agents.desk, its router",
        "agents.desk, its executor for a step with `list_threads`",
    ]
    assert "You are the router" in desk
    roles = hubbub("prompts", "show", "--agent", "desk", "--json").json()["roles"]
    assert [role["role"] for role in roles] == ["router", "executor"]


def test_a_template_that_exceeds_its_limits_is_reported_with_its_line(
    shop: Path, hubbub: Shell
) -> None:
    for source in ("{{ 'a' * 10**18 }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"):
        write(shop, f"{{{{ shop }}}}\n{source}", FILE)
        result = hubbub("prompts", "show", "triage")
        assert result.code == 2
        assert f"{FILE}:2: the prompt fails: it needs too much" in result.err


# lint ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Q-8")
def test_the_example_networks_and_the_how_to_pass_the_linter(home: Path, hubbub: Shell) -> None:
    for config in sorted((ROOT / "configs").glob("*.yaml")):
        result = hubbub("prompts", "lint", str(config))
        assert (result.code, result.out) == (0, f"{config}: no problems\n")
    for name in ("desk.yaml", "prompts/triage/1.0.j2"):
        write(home, example("docs/how-to/build-a-system-prompt.md", name), name)
    result = hubbub("prompts", "lint", "desk.yaml")
    assert (result.code, result.out) == (0, "desk.yaml: no problems\n")
    shown = hubbub("prompts", "show", "--agent", "triage", "--config", "desk.yaml").out
    assert "customers of Acme" in shown
    assert shown.endswith("Above all:\n- Never promise a date.\n")


@pytest.mark.behaviour("Q-8")
def test_lint_findings_have_a_place_a_rule_and_a_remedy_and_only_errors_fail(
    shop: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    output = ""
    for old, new in (
        ("read_thread", "red_thread"),
        ("[send_text_message]", "[read_thread]"),
        ("Look back with", "Never call"),
        (
            "      reminder: [Be brief.]\n",
            "      reminder: [Call send_a_mail.]\n"
            "      examples:\n        - incoming: hi\n          steps:\n"
            "            - {call: reply}\n"
            "      components:\n        remove: [untrusted_data]\n"
            "        add:\n          style: {text: Use `read_thread`.}\n",
        ),
    ):
        write(shop, CONFIG.replace(old, new))
        output += hubbub.transcript("prompts lint")
    write(shop, CONFIG)
    text = "{# call nothing() #}\n{{ shop }}\n{% for p in participants %}\n{{ p.description }}"
    write(shop, text + "\n{% endfor %}\nUse `reply`.", FILE)
    write(shop, "Answer {{ incoming_message.text }}", "p.j2")
    write(shop, "Finish when nothing is asked.", "p.md")
    output += hubbub.transcript("prompts lint", "prompts lint p.j2", "prompts lint p.md")
    assert output == snapshot
    findings = json.loads(hubbub("prompts", "lint", "--json").out)
    assert [(f["path"], f["line"], f["rule"], f["level"]) for f in findings] == [
        (FILE, 4, "untrusted-text", "error"),
        (FILE, 6, "disabled-tool", "error"),
    ]


def test_the_linter_requires_the_format_and_the_tools_in_the_prompt_of_a_dialect(
    shop: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    tools = "{% for tool in tools %}{{ tool.name }}{% endfor %}"
    write(shop, f"Write TOOL_CALL with tool_name and parameters: {tools}", "good.j2")
    output = ""
    for change in (
        "replace: {dialect.tool_call: {file: good.j2}}",
        "replace: {dialect.tool_call: {text: Write CALL and the name.}}",
        "remove: [dialect.tool_call]",
    ):
        parts = f"      reminder: [Be brief.]\n      components:\n        {change}\n"
        write(shop, CONFIG.replace("      reminder: [Be brief.]\n", parts))
        output += hubbub.transcript("prompts lint")
    capped = "      reminder: [Be brief.]\n      max_tokens: {memry: 300}\n"
    write(shop, CONFIG.replace("      reminder: [Be brief.]\n", capped))
    assert output + hubbub.transcript("prompts show triage", "network check") == snapshot


def test_the_linter_refuses_a_fifo_instead_of_waiting_for_it(home: Path, hubbub: Shell) -> None:
    for name in ("pipe.j2", "pipe.md", "pipe.yaml"):
        os.mkfifo(home / name)
        result = hubbub("prompts", "lint", name)
        assert result.code == 2
        assert f"{name}: cannot be read: not a file" in result.err


@pytest.mark.slow
def test_network_check_reports_problems_of_prompts(shop: Path, hubbub: Shell) -> None:
    write(shop, CONFIG.replace("variables: {shop: Acme}", "variables: {shopp: Acme}"))
    result = hubbub("network", "check")
    assert result.code == 2
    assert f"{FILE}:1: the prompt triage@1.9 needs the variable 'shop'" in result.err
