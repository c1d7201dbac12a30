"""Files of agents: what is written is what is read, and nothing else of the file changes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.agent_files import agent_text, fields_of
from hubbub.config.source import parse
from hubbub.protocol.agents import AgentFields

FILE = Path("rev.yaml")
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
