"""Fields of an agent are written to its file and read back without other changes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.config.agent_files import agent_text, fields_of, may_be_changed
from hubbub.config.source import YamlDocument, parse
from hubbub.protocol.agents import AgentFields, AgentRollout

FILE = Path("rev.yaml")
CONFIGS = Path(__file__).parents[3] / "configs"
ODD = ["${HOME}", "$${", "a: b\n", "--- \n", "- ", "no", "1e3", *"#'\" \n\t\x85\u2028"]
TEXTS = st.lists(st.one_of(st.sampled_from(ODD), st.text(st.characters(codec="utf-8"))), max_size=6)
BY_HAND = """\
# The reviewer.
agents:
  rev:
    greet: Hello   # to everybody
    # as agreed
    instruction: >-
      Old.
    tools: [read_thread]  # little
"""


def sections(document: YamlDocument) -> dict[str, dict[str, JsonValue]]:
    """The sections of the document's agents by name."""
    agents = document.data["agents"]
    assert isinstance(agents, dict)
    return {name: section for name, section in agents.items() if isinstance(section, dict)}


@given(TEXTS.map("".join), TEXTS.map("".join))
def test_any_text_is_read_back_as_written(text: str, other: str) -> None:
    fields = AgentFields(instruction=text, description=other, tools=("a",), daily_usd=0.1)
    document = parse(FILE, {}, agent_text("rev", fields, None))
    assert [*document.data, *sections(document)] == ["agents", "rev"]
    section = sections(document)["rev"]
    assert {*section} <= {"instruction", "card", "tools", "daily"}
    assert fields_of(section) == fields


def test_comments_and_other_fields_of_an_edited_file_stay_in_place() -> None:
    before = BY_HAND, parse(FILE, {}, BY_HAND)
    fields = AgentFields(instruction="New.\nTwo lines.", tools=("read_thread",), max_steps=3)
    assert (
        agent_text("rev", fields, before)
        == BY_HAND.replace(">-\n      Old.", "|-\n      New.\n      Two lines.")
        + "    max_steps: 3\n"
    )


def test_changing_one_field_rewrites_one_line_of_the_example_configs() -> None:
    edited = 0
    for file in sorted(CONFIGS.glob("*.yaml")):
        document = parse(file, {}, text := file.read_text())
        for agent, section in sections(document).items():
            if not may_be_changed(section):
                continue
            fields = fields_of(section).model_copy(update={"description": "Other."})
            after = agent_text(agent, fields, (text, document))
            lines = zip(text.splitlines(), after.splitlines(), strict=True)
            assert sum(old != new for old, new in lines) == 1, file
            edited += 1
    assert edited > 10


def test_a_rollout_is_edited_and_removed_without_other_changes() -> None:
    text = BY_HAND + "    rollout:\n      share: 10%  # carefully\n      instruction: New.\n"
    before = text, parse(FILE, {}, text)
    fields = fields_of(sections(before[1])["rev"])
    assert fields.rollout == AgentRollout(share=0.1, instruction="New.")
    edited = fields.model_copy(update={"rollout": AgentRollout(share=0.5, model="large")})
    expected = text.replace("10% ", "0.5 ").replace("instruction: New.", "model: large")
    assert agent_text("rev", edited, before) == expected
    assert agent_text("rev", fields.model_copy(update={"rollout": None}), before) == BY_HAND
