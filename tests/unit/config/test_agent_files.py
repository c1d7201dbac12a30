"""Files of agents: what is written is what is read, and nothing else of the file changes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.agent_files import agent_text, fields_of, may_be_changed
from hubbub.config.source import parse
from hubbub.protocol.agents import AgentFields, AgentRollout

FILE = Path("rev.yaml")
CONFIGS = Path(__file__).parents[3] / "configs"
ODD = [
    "${HOME}",
    "$${",
    "a: b\n",
    "--- \n",
    "\x85",
    "\u2028",
    "#",
    "'",
    '"',
    " ",
    "\n",
    "- ",
    "no",
    "1e3",
    "\t",
]
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


@given(TEXTS.map("".join), TEXTS.map("".join))
def test_any_text_is_read_as_it_was_written(text: str, other: str) -> None:
    fields = AgentFields(instruction=text, description=other, tools=("a",), daily_usd=0.1)
    document = parse(FILE, {}, agent_text("rev", fields, None))
    agents = document.data["agents"]
    assert isinstance(agents, dict)
    assert [*document.data, *agents] == ["agents", "rev"]
    section = agents["rev"]
    assert isinstance(section, dict)
    assert {*section} <= {"instruction", "card", "tools", "daily"}
    assert fields_of(section) == fields


def test_what_people_wrote_into_the_file_stays_where_it_is() -> None:
    before = BY_HAND, parse(FILE, {}, BY_HAND)
    fields = AgentFields(instruction="New.\nTwo lines.", tools=("read_thread",), max_steps=3)
    assert (
        agent_text("rev", fields, before)
        == BY_HAND.replace(">-\n      Old.", "|-\n      New.\n      Two lines.")
        + "    max_steps: 3\n"
    )


def test_of_a_file_that_people_wrote_only_what_was_changed_is_written_anew() -> None:
    tried = 0
    for file in sorted(CONFIGS.glob("*.yaml")):
        document = parse(file, {}, text := file.read_text())
        agents = document.data["agents"]
        assert isinstance(agents, dict)
        for agent, section in agents.items():
            if not may_be_changed(section) or not isinstance(section, dict):
                continue
            fields = fields_of(section).model_copy(update={"description": "Other."})
            made = agent_text(agent, fields, (text, document))
            lines = zip(text.splitlines(), made.splitlines(), strict=True)
            assert sum(old != new for old, new in lines) == 1, file
            tried += 1
    assert tried > 10


def test_a_rollout_is_written_below_its_agent_and_taken_away_again() -> None:
    text = BY_HAND + "    rollout:\n      share: 10%  # carefully\n      instruction: New.\n"
    before = text, parse(FILE, {}, text)
    agents = before[1].data["agents"]
    assert isinstance(agents, dict)
    section = agents["rev"]
    assert isinstance(section, dict)
    fields = fields_of(section)
    assert fields.rollout == AgentRollout(share=0.1, instruction="New.")
    more = fields.model_copy(update={"rollout": AgentRollout(share=0.5, model="large")})
    made = agent_text("rev", more, before)
    assert made == text.replace("10% ", "0.5 ").replace("instruction: New.", "model: large")
    assert agent_text("rev", fields.model_copy(update={"rollout": None}), before) == BY_HAND
