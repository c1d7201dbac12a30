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
    assert hubbub.story(
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
    found = hubbub("prompts", "show", "triage@1.9", "--folder", "prompts", "--json").json()
    assert found["source"] == "You sell {{ shop }}.\nBe kind.\n"
    write(shop, "x", "texts/a/1.j2")
    assert "a@1#" in hubbub("prompts", "list", "--folder", "texts").out
    mistakes = hubbub.story(
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
    mistakes += hubbub.story("prompts diff triage --folder prompts")
    assert mistakes == snapshot(name="mistakes")


def test_a_version_that_cannot_be_read_hides_no_other(shop: Path, hubbub: Shell) -> None:
    for broken in (b"\xff", b"{% if %}"):
        (shop / "prompts/triage/1.11.j2").write_bytes(broken)
        ran = hubbub("prompts", "list")
        assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["1.9", "1.10"]
        assert ran.code == 1
        assert ran.err.startswith("prompts/triage/1.11.j2")
        assert "the prompt" in ran.err
        row = json.loads(hubbub("prompts", "list", "--json").out)[2]
        assert "the prompt" in row["problem"]
        assert (row["version"], row["used_by"]) == ("1.11", [])


@pytest.mark.behaviour("Q-9")
def test_the_whole_system_prompt_of_an_agent_and_of_each_role_is_shown(
    shop: Path, hubbub: Shell
) -> None:
    found = hubbub("prompts", "show", "--agent", "triage", "--json").json()
    assert found["text"].endswith("Above all:\n- Be brief.")
    assert found["components"][0] == "identity"
    assert "`send_text_message`" in found["text"]
    plain = hubbub("prompts", "show", "--agent", "writer").out
    assert "agents.writer: identity, network, untrusted_data, thread_ids, speaking" in plain
    agent = "agents:\n  desk: {kind: router, tools: [list_threads]}\n"
    write(shop, CONFIG.replace("agents:\n", agent))
    shown = hubbub("prompts", "show", "--agent", "desk").out
    assert re.findall(r"^--- (.*?): ", shown, re.MULTILINE) == [
        "agents.desk, its router",
        "agents.desk, its executor for a step with `list_threads`",
    ]
    assert "You are the router" in shown
    found = hubbub("prompts", "show", "--agent", "desk", "--json").json()
    assert [role["role"] for role in found["roles"]] == ["router", "executor"]


def test_a_template_that_needs_too_much_is_the_users_mistake(shop: Path, hubbub: Shell) -> None:
    for source in ("{{ 'a' * 10**18 }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"):
        write(shop, f"{{{{ shop }}}}\n{source}", FILE)
        ran = hubbub("prompts", "show", "triage")
        assert ran.code == 2
        assert f"{FILE}:2: the prompt fails: it needs too much" in ran.err


# lint ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Q-8")
def test_the_shipped_networks_and_the_example_of_the_how_to_have_no_findings(
    home: Path, hubbub: Shell
) -> None:
    for config in sorted((ROOT / "configs").glob("*.yaml")):
        ran = hubbub("prompts", "lint", str(config))
        assert (ran.code, ran.out) == (0, f"{config}: no problems\n")
    for name in ("desk.yaml", "prompts/triage/1.0.j2"):
        write(home, example("docs/how-to/build-a-system-prompt.md", name), name)
    ran = hubbub("prompts", "lint", "desk.yaml")
    assert (ran.code, ran.out) == (0, "desk.yaml: no problems\n")
    shown = hubbub("prompts", "show", "--agent", "triage", "--config", "desk.yaml").out
    assert "customers of Acme" in shown
    assert shown.endswith("Above all:\n- Never promise a date.\n")


@pytest.mark.behaviour("Q-8")
def test_findings_have_place_rule_and_remedy_and_only_errors_fail(
    shop: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    told = ""
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
        told += hubbub.story("prompts lint")
    write(shop, CONFIG)
    text = "{# call nothing() #}\n{{ shop }}\n{% for p in participants %}\n{{ p.description }}"
    write(shop, text + "\n{% endfor %}\nUse `reply`.", FILE)
    write(shop, "Answer {{ incoming_message.text }}", "p.j2")
    write(shop, "Finish when nothing is asked.", "p.md")
    assert told + hubbub.story("prompts lint", "prompts lint p.j2", "prompts lint p.md") == snapshot
    found = json.loads(hubbub("prompts", "lint", "--json").out)
    assert [(f["path"], f["line"], f["rule"], f["level"]) for f in found] == [
        (FILE, 4, "untrusted-text", "error"),
        (FILE, 6, "disabled-tool", "error"),
    ]


def test_the_linter_wants_the_format_and_the_tools_in_the_contract_of_a_dialect(
    shop: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    listed = "{% for tool in tools %}{{ tool.name }}{% endfor %}"
    write(shop, f"Write TOOL_CALL with tool_name and parameters: {listed}", "good.j2")
    told = ""
    for contract in (
        "replace: {dialect.tool_call: {file: good.j2}}",
        "replace: {dialect.tool_call: {text: Write CALL and the name.}}",
        "remove: [dialect.tool_call]",
    ):
        parts = f"      reminder: [Be brief.]\n      components:\n        {contract}\n"
        write(shop, CONFIG.replace("      reminder: [Be brief.]\n", parts))
        told += hubbub.story("prompts lint")
    capped = "      reminder: [Be brief.]\n      max_tokens: {memry: 300}\n"
    write(shop, CONFIG.replace("      reminder: [Be brief.]\n", capped))
    assert told + hubbub.story("prompts show triage", "network check") == snapshot


def test_what_is_no_file_is_not_waited_for(home: Path, hubbub: Shell) -> None:
    for name in ("pipe.j2", "pipe.md", "pipe.yaml"):
        os.mkfifo(home / name)
        ran = hubbub("prompts", "lint", name)
        assert ran.code == 2
        assert f"{name}: cannot be read: not a file" in ran.err


@pytest.mark.slow
def test_check_tells_what_is_wrong_with_prompts(shop: Path, hubbub: Shell) -> None:
    write(shop, CONFIG.replace("variables: {shop: Acme}", "variables: {shopp: Acme}"))
    ran = hubbub("network", "check")
    assert ran.code == 2
    assert f"{FILE}:1: the prompt triage@1.9 needs the variable 'shop'" in ran.err
