"""`react`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import NETWORK, Command, running

pytestmark = pytest.mark.behaviour("M-230")


def test_a_person_reacts_in_a_shell_and_sees_what_stands_there(home: Path, hubbub: Command) -> None:
    with running(f"{NETWORK}\nmods: [reactions]\n", home) as url:

        async def say() -> None:
            async with Client(WebSocketTransport(url), "bob", "human") as bob:
                await bob.call("broadcast_text_message", text="Lunch?")

        asyncio.run(say())
        assert hubbub("react", "m1", "👍").out == "m1  👍 1\n"
        assert hubbub("react", "m1", "👍", "--as", "bob").out == "m1  👍 2\n"
        told = hubbub("react", "m1", "👍", "--remove", "--json").json()
        assert isinstance(told, dict)
        assert told["changed"]
        assert hubbub("react", "m1", "👍", "--remove", "--as", "bob").out == "m1  no reactions\n"
        wrong = hubbub("react", "m1", "nice")
        assert wrong.code == 2
        assert "'nice' is no emoji" in wrong.err


def test_a_network_without_the_mod_says_so(town: str, hubbub: Command) -> None:
    ran = hubbub("react", "m1", "👍")
    assert ran.code == 2
    assert "does not have the mod reactions" in ran.err
