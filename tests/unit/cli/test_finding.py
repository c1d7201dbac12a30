"""`search`, `digest` and `directory` against a running network."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.mods.digest.words import Digest
from hubbub.mods.search.words import SearchHits
from tests.unit.cli.conftest import NETWORK, Command, running

CARD = "{description: Translates contracts, skills: [German], cost: 0.02 a page}"
FILE = f"""
{NETWORK.replace("The mayor}}}", f"The mayor}}}}, lena: {{card: {CARD}}}}}")}
mods: [search, directory, digest]
"""


@pytest.mark.behaviour("M-192")
def test_messages_are_searched_in_a_shell(home: Path, hubbub: Command) -> None:
    with running(FILE, home):
        assert hubbub("search", "harbour").out == "nothing found\n"
        hubbub("send", "#general", "The harbour plan is late")
        hubbub("send", "#general", "The plan of the harbour")
        head, snippet = hubbub("search", "harbour plan", "late").out.splitlines()
        assert head.split()[0].startswith("m")
        assert head.endswith("ann  #general")
        assert snippet == "    The harbour plan is late"
        lines = hubbub("search", "plan", "-t", "#general", "-n", "1").out.splitlines()
        assert lines[-1].startswith("there is more: --cursor ")
        told = hubbub("search", "plan -late", "--json").json()
        found = SearchHits.model_validate(told)
        assert [hit.snippet for hit in found.hits] == ["The plan of the harbour"]
        failed = hubbub("search", "--kind", "files", "plan")
        assert (failed.code, failed.out) == (2, "")
        assert "no files" in failed.err


@pytest.mark.behaviour("M-192")
def test_a_digest_is_told_and_marked_in_a_shell(home: Path, hubbub: Command) -> None:
    with running(FILE, home):
        assert hubbub("digest").out == "nothing new\n"
        hubbub("send", "#general", "The harbour is closed, @ann", "--as", "bob")
        hubbub("send", "#general", "A storm", "--as", "bob")
        lines = hubbub("digest", "--thread", "#general").out.splitlines()
        assert lines[0] == "#general: 2 messages, 1 mention (bob 2)"
        assert lines[1].endswith("bob: The harbour is closed, @ann")
        assert lines[2].endswith("bob: A storm")
        told = Digest.model_validate(hubbub("digest", "--mark", "--json").json())
        assert [thread.count for thread in told.threads] == [2]
        assert hubbub("digest").out == "nothing new\n"
        assert hubbub("digest", "--since", "2001-01-01").out.startswith("#general: 2 messages")


@pytest.mark.behaviour("M-192")
def test_agents_are_found_by_need_in_a_shell(home: Path, hubbub: Command) -> None:
    with running(FILE, home):
        head, line = hubbub("directory", "find", "translate", "German", "--people").out.splitlines()
        assert head.split() == ["NAME", "STATE", "FITS", "COST"]
        assert line.startswith("lena  away   translate, german  0.02 a page")
        assert "list_agents" in hubbub("directory", "find", "cook").out
        assert "lena" in hubbub("directory", "list", "--people").out
        shown = hubbub("directory", "show", "lena").out
        assert "description  Translates contracts" in shown
        card = hubbub("directory", "show", "lena", "--json").json()
        assert isinstance(card, dict)
        assert card["skills"] == ["German"]
