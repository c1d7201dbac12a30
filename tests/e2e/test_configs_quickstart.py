"""The network of `make run`, as a new user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.support.config_network import ROOT, ConfigNetwork, run_config, run_here
from tests.unit.configs.people import Person

pytestmark = pytest.mark.slow

QUICKSTART = ROOT / "configs" / "quickstart.yaml"
QUESTION = "how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?"


@pytest.mark.behaviour("L-7", "L-5")
async def test_the_quickstart_greets_answers_together_and_stops_cleanly(tmp_path: Path) -> None:
    async with run_config("quickstart", tmp_path) as network:
        await network.shows("Hello! I am concierge")
        ann, ben = await network.join("ann"), await network.join("ben")
        await _ask_in_the_channel(ann, ben)
        await _ask_directly(ann)
        await _tell_a_secret(ann, ben)
        await _see_it_in_the_terminal(network)


async def _ask_in_the_channel(ann: Person, ben: Person) -> None:
    await ann.posts("general", f"@concierge {QUESTION}")
    for person in (ann, ben):
        answer = await person.hears("concierge", lambda m: m.type == "channel")
        assert answer.text.startswith("≈ 163,743.74 miles")
        assert "librarian: The diameter of Jupiter is 142,984 km." in answer.text
        assert "calculator: (142,984 km) + (120,536 km) in miles" in answer.text


async def _ask_directly(ann: Person) -> None:
    assert await ann.asks("calculator", "what is 0.1 + 0.2?") == "0.1 + 0.2 = 0.3"
    assert "log is the truth" in await ann.asks("librarian", "is the log the truth?")
    assert "calculator: Calculates" in await ann.asks("concierge", "who can calculate?")


async def _tell_a_secret(ann: Person, ben: Person) -> None:
    await ann.asks("librarian", "My locker code is swordfish.")
    assert "swordfish" in await ann.asks("librarian", "what is my locker code?")
    assert "swordfish" not in await ben.asks("librarian", "what is the locker code?")


async def _see_it_in_the_terminal(network: ConfigNetwork) -> None:
    """Who wrote to whom; what was said in private stays with those who said it."""
    await network.shows(r"librarian → concierge +\(\d+ characters\)")
    assert "swordfish" not in "".join(network.output)


async def test_the_librarian_knows_what_was_said_before_a_restart(tmp_path: Path) -> None:
    async with run_here(QUICKSTART, tmp_path) as network:
        ann = await network.join("ann")
        await ann.posts("general", "The password of the wiki is tulip.")
    async with run_here(QUICKSTART, tmp_path) as network:
        ben = await network.join("ben")
        assert "tulip" in await ben.asks("librarian", "what is the password of the wiki?")
