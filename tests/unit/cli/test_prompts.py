"""`prompts list | show | diff | lint`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.doc_pages import example
from tests.unit.cli.conftest import Command

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


@pytest.fixture
def shop(home: Path) -> Path:
    """A config with two versions of a prompt."""
    (home / "hubbub.yaml").write_text(CONFIG, encoding="utf-8")
    clock = "from hubbub import Agent\nclass Clock(Agent):\n    pass\n"
    (home / "clock.py").write_text(clock, encoding="utf-8")
    folder = home / "prompts" / "triage"
    folder.mkdir(parents=True)
    (folder / "1.9.j2").write_text("You sell {{ shop }}.\nBe kind.\n", encoding="utf-8")
    (folder / "1.10.j2").write_text("You sell for {{ shop }}.\nBe kind.\n", encoding="utf-8")
    return home


class TestList:
    def test_versions_are_listed_with_who_uses_them(self, shop: Path, hubbub: Command) -> None:
        lines = hubbub("prompts", "list").out.splitlines()
        assert lines[0].split() == ["PROMPT", "VERSION", "FINGERPRINT", "VARIABLES", "USED", "BY"]
        assert [line.split()[1] for line in lines[1:]] == ["1.9", "1.10"]
        assert lines[1].endswith("triage (90 %)")
        assert lines[2].endswith("triage (10 %)")

    def test_programs_get_the_same_as_json(self, shop: Path, hubbub: Command) -> None:
        rows = hubbub("prompts", "list", "--json").json()
        assert isinstance(rows, list)
        assert isinstance(rows[0], dict)
        assert str(rows[0].pop("prompt_id")).startswith("triage@1.9#")
        assert rows[0] == {
            "name": "triage",
            "version": "1.9",
            "path": "prompts/triage/1.9.j2",
            "required": ["shop"],
            "optional": [],
            "used_by": ["triage (90 %)"],
        }

    def test_a_folder_needs_no_config(self, home: Path, hubbub: Command) -> None:
        assert "no prompts in texts" in hubbub("prompts", "list", "--folder", "texts").out
        (home / "texts" / "a").mkdir(parents=True)
        (home / "texts" / "a" / "1.j2").write_text("x", encoding="utf-8")
        assert "a@1#" in hubbub("prompts", "list", "--folder", "texts").out

    @pytest.mark.parametrize("broken", [b"\xff", b"{% if %}"])
    def test_a_version_that_cannot_be_read_hides_no_other(
        self, shop: Path, hubbub: Command, broken: bytes
    ) -> None:
        (shop / "prompts" / "triage" / "1.11.j2").write_bytes(broken)
        ran = hubbub("prompts", "list")
        assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["1.9", "1.10"]
        assert ran.code == 1
        assert ran.err.startswith("prompts/triage/1.11.j2")
        assert "the prompt" in ran.err
        rows = json.loads(hubbub("prompts", "list", "--json").out)
        assert "the prompt" in str(rows[2].pop("problem"))
        assert rows[2] == {
            "name": "triage",
            "version": "1.11",
            "path": "prompts/triage/1.11.j2",
            "used_by": [],
        }


@pytest.mark.behaviour("Q-9")
class TestShow:
    def test_a_prompt_is_shown_with_the_variables_of_the_agent_that_uses_it(
        self, shop: Path, hubbub: Command
    ) -> None:
        out = hubbub("prompts", "show", "triage").out
        assert out.startswith("--- triage@1.9#")
        assert "You sell Acme.\nBe kind." in out
        assert "You sell for Acme." in hubbub("prompts", "show", "triage@1.10").out

    def test_the_source_is_shown_as_it_is(self, shop: Path, hubbub: Command) -> None:
        assert "{{ shop }}" in hubbub("prompts", "show", "triage", "--source").out
        found = hubbub("prompts", "show", "triage@1.9", "--folder", "prompts", "--json").json()
        assert isinstance(found, dict)
        assert found["source"] == "You sell {{ shop }}.\nBe kind.\n"

    def test_the_whole_system_prompt_of_an_agent(self, shop: Path, hubbub: Command) -> None:
        found = hubbub("prompts", "show", "--agent", "triage", "--json").json()
        assert isinstance(found, dict)
        assert str(found["text"]).endswith("Above all:\n- Be brief.")
        assert isinstance(found["components"], list)
        assert found["components"][0] == "identity"
        assert "`send_text_message`" in str(found["text"])
        plain = hubbub("prompts", "show", "--agent", "writer").out
        assert "agents.writer: identity, network, untrusted_data, thread_ids, speaking" in plain

    def test_of_an_agent_with_roles_each_ones_prompt_is_shown(
        self, shop: Path, hubbub: Command
    ) -> None:
        agent = "agents:\n  desk: {kind: router, tools: [list_threads]}\n"
        (shop / "hubbub.yaml").write_text(CONFIG.replace("agents:\n", agent), encoding="utf-8")
        shown = hubbub("prompts", "show", "--agent", "desk").out
        heads = [line for line in shown.splitlines() if line.startswith("--- ")]
        assert [head.partition(": ")[0] for head in heads] == [
            "--- agents.desk, its router",
            "--- agents.desk, its executor for a step with `list_threads`",
        ]
        assert "You are the router" in shown
        found = hubbub("prompts", "show", "--agent", "desk", "--json").json()
        assert isinstance(found, dict)
        roles = found["roles"]
        assert isinstance(roles, list)
        assert [role["role"] for role in roles if isinstance(role, dict)] == ["router", "executor"]

    @pytest.mark.parametrize(
        ("args", "says"),
        [
            (["triag"], "no agent uses the prompt 'triag'; did you mean 'triage'?"),
            (["triage@2"], "the prompt 'triage' has no version '2'; versions: 1.9, 1.10"),
            (["triage", "--agent", "writr"], "did you mean 'writer'?"),
            ([], "say which agent with --agent; valid: triage, writer"),
            (["--source"], "name a prompt"),
            (["triage", "--source", "--agent", "writer"], "leave out --agent"),
            (["triage", "--folder", "prompts", "--agent", "writer"], "leave out --agent"),
        ],
    )
    def test_what_is_not_there_is_told(
        self, shop: Path, hubbub: Command, args: list[str], says: str
    ) -> None:
        ran = hubbub("prompts", "show", *args)
        assert ran.code == 2
        assert says in ran.err

    @pytest.mark.parametrize(
        "source", ["{{ 'a' * 10**18 }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"]
    )
    def test_a_template_that_needs_too_much_is_the_users_mistake(
        self, shop: Path, hubbub: Command, source: str
    ) -> None:
        path = shop / "prompts" / "triage" / "1.9.j2"
        path.write_text(f"{{{{ shop }}}}\n{source}", encoding="utf-8")
        ran = hubbub("prompts", "show", "triage")
        assert ran.code == 2
        assert "prompts/triage/1.9.j2:2: the prompt fails: it needs too much" in ran.err


class TestDiff:
    def test_the_latest_is_compared_with_the_one_before(self, shop: Path, hubbub: Command) -> None:
        lines = hubbub("prompts", "diff", "triage").out.splitlines()
        assert lines[0].startswith("--- triage@1.9#")
        assert lines[1].startswith("+++ triage@1.10#")
        assert lines[3:] == ["-You sell {{ shop }}.", "+You sell for {{ shop }}.", " Be kind."]

    def test_versions_may_be_named(self, shop: Path, hubbub: Command) -> None:
        found = hubbub("prompts", "diff", "triage", "1.10", "1.9", "--json").json()
        assert isinstance(found, dict)
        assert isinstance(found["diff"], list)
        assert "+You sell {{ shop }}." in found["diff"]
        same = hubbub("prompts", "diff", "triage", "1.9", "1.9")
        assert "say the same" in same.out

    def test_the_first_version_has_none_before(self, shop: Path, hubbub: Command) -> None:
        (shop / "prompts" / "triage" / "1.10.j2").unlink()
        ran = hubbub("prompts", "diff", "triage", "--folder", "prompts")
        assert (ran.code, ran.err) == (2, "hubbub: 'triage' has no version before 1.9\n")


@pytest.mark.behaviour("Q-8")
class TestLint:
    def test_a_config_without_findings_is_fine(self, shop: Path, hubbub: Command) -> None:
        ran = hubbub("prompts", "lint")
        assert (ran.code, ran.out) == (0, "hubbub.yaml: nothing found\n")

    @pytest.mark.parametrize(
        "config", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name
    )
    def test_the_shipped_networks_have_no_findings(
        self, home: Path, hubbub: Command, config: Path
    ) -> None:
        ran = hubbub("prompts", "lint", str(config))
        assert (ran.code, ran.out) == (0, f"{config}: nothing found\n")

    def test_the_example_of_the_how_to_has_no_findings(self, home: Path, hubbub: Command) -> None:
        page = "docs/how-to/build-a-system-prompt.md"
        for name in ("desk.yaml", "prompts/triage/1.0.j2"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(example(page, name), encoding="utf-8")
        ran = hubbub("prompts", "lint", "desk.yaml")
        assert (ran.code, ran.out) == (0, "desk.yaml: nothing found\n")
        shown = hubbub("prompts", "show", "--agent", "triage", "--config", "desk.yaml").out
        assert "customers of Acme" in shown
        assert shown.endswith("Above all:\n- Never promise a date.\n")

    def test_an_error_has_place_rule_and_remedy_and_fails(
        self, shop: Path, hubbub: Command
    ) -> None:
        path = shop / "hubbub.yaml"
        path.write_text(CONFIG.replace("read_thread", "red_thread"), encoding="utf-8")
        ran = hubbub("prompts", "lint")
        assert ran.code == 1
        assert ran.out.splitlines() == [
            "hubbub.yaml:16: error: the instruction names the tool `red_thread`, which does not "
            "exist: did you mean `read_thread`? [unknown-tool]",
            "hubbub.yaml: 1 error, 0 warnings",
        ]

    def test_an_agent_that_could_never_answer_is_refused(self, shop: Path, hubbub: Command) -> None:
        silent = CONFIG.replace("[send_text_message]", "[read_thread]")
        (shop / "hubbub.yaml").write_text(silent, encoding="utf-8")
        ran = hubbub("prompts", "lint")
        assert ran.code == 2
        assert "hubbub.yaml:5: agents.triage.tools: no tool is left" in ran.err

    def test_a_warning_alone_does_not_fail(self, shop: Path, hubbub: Command) -> None:
        text = CONFIG.replace("Look back with", "Never call")
        (shop / "hubbub.yaml").write_text(text, encoding="utf-8")
        ran = hubbub("prompts", "lint", "--json")
        (finding,) = json.loads(ran.out)
        assert ran.code == 0
        assert (finding["rule"], finding["level"]) == ("forbidden-tool", "warning")
        assert (finding["path"], finding["line"]) == ("hubbub.yaml", 16)

    def test_findings_in_files_are_told_with_their_lines(self, shop: Path, hubbub: Command) -> None:
        text = "{# call nothing() #}\n{{ shop }}\n{% for p in participants %}\n{{ p.description }}"
        path = shop / "prompts" / "triage" / "1.9.j2"
        path.write_text(text + "\n{% endfor %}\nUse `reply`.", encoding="utf-8")
        found = json.loads(hubbub("prompts", "lint", "--json").out)
        assert [(f["path"], f["line"], f["rule"]) for f in found] == [
            ("prompts/triage/1.9.j2", 4, "untrusted-text"),
            ("prompts/triage/1.9.j2", 6, "disabled-tool"),
        ]

    def test_examples_components_and_reminders_are_read_too(
        self, shop: Path, hubbub: Command
    ) -> None:
        more = """\
      reminder: [Call send_a_mail.]
      examples:
        - incoming: hi
          steps:
            - {call: reply}
      components:
        remove: [untrusted_data]
        add:
          style: {text: Use `read_thread`.}
"""
        text = CONFIG.replace("      reminder: [Be brief.]\n", more)
        (shop / "hubbub.yaml").write_text(text, encoding="utf-8")
        found = json.loads(hubbub("prompts", "lint", "--json").out)
        assert [(f["line"], f["rule"]) for f in found] == [
            (4, "untrusted-rule"),
            (11, "unknown-tool"),
            (15, "disabled-tool"),
            (19, "disabled-tool"),
        ]

    def test_a_file_is_read_by_itself(self, home: Path, hubbub: Command) -> None:
        (home / "p.j2").write_text("Answer {{ incoming_message.text }}", encoding="utf-8")
        ran = hubbub("prompts", "lint", "p.j2", "--json")
        assert ran.code == 1
        assert {f["rule"] for f in json.loads(ran.out)} == {"no-way-out", "untrusted-text"}
        (home / "p.md").write_text("Finish when nothing is asked.", encoding="utf-8")
        assert hubbub("prompts", "lint", "p.md").code == 0

    def test_a_file_that_is_not_there_is_the_users_mistake(
        self, home: Path, hubbub: Command
    ) -> None:
        ran = hubbub("prompts", "lint", "gone.j2")
        assert ran.code == 2
        assert "gone.j2: cannot be read" in ran.err

    @pytest.mark.parametrize("name", ["pipe.j2", "pipe.md", "pipe.yaml"])
    def test_what_is_no_file_is_not_waited_for(
        self, home: Path, hubbub: Command, name: str
    ) -> None:
        os.mkfifo(home / name)
        ran = hubbub("prompts", "lint", name)
        assert ran.code == 2
        assert f"{name}: cannot be read: it is no file" in ran.err


@pytest.mark.slow
def test_check_tells_what_is_wrong_with_prompts(shop: Path, hubbub: Command) -> None:
    text = CONFIG.replace("variables: {shop: Acme}", "variables: {shopp: Acme}")
    (shop / "hubbub.yaml").write_text(text, encoding="utf-8")
    ran = hubbub("check")
    assert ran.code == 2
    assert "prompts/triage/1.9.j2:1: the prompt triage@1.9 needs the variable 'shop'" in ran.err


def test_without_a_command_the_help_is_shown(home: Path, hubbub: Command) -> None:
    assert "lint" in hubbub("prompts").out
