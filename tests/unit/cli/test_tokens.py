"""`token add | show | list | revoke`, with the hub running or not."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import NETWORK, Command, running

CLOSED = "network: {name: closed, listen: '127.0.0.1:0', store: 'sqlite:closed.db'}\n"


@pytest.fixture
def closed(home: Path) -> Path:
    """A config of a network that wants tokens and does not run."""
    path = home / "hubbub.yaml"
    path.write_text(CLOSED, encoding="utf-8")
    return path


@pytest.mark.behaviour("D-1")
def test_a_token_is_printed_once_and_stored_as_a_hash(closed: Path, hubbub: Command) -> None:
    ran = hubbub("token", "add", "ann")
    token = ran.out.strip()
    assert token.startswith("hub_")
    assert "not shown again" in ran.err
    database = sqlite3.connect("closed.db")
    rows = database.execute("SELECT participant, sha256 FROM token").fetchall()
    database.close()
    assert rows == [("ann", hashlib.sha256(token.encode()).hexdigest())]


def test_tokens_are_counted(closed: Path, hubbub: Command) -> None:
    assert hubbub("token", "list", "--json").json() == []
    for name in ("ann", "ann", "bob"):
        hubbub("token", "add", name)
    assert hubbub("token", "list", "--json").json() == [
        {"participant": "ann", "tokens": 2},
        {"participant": "bob", "tokens": 1},
    ]
    assert "ann" in hubbub("token", "list").out


def test_revoked_tokens_are_gone(closed: Path, hubbub: Command) -> None:
    hubbub("token", "add", "ann")
    assert hubbub("token", "revoke", "ann").out.startswith("the tokens of ann are useless")
    assert hubbub("token", "list", "--json").json() == []
    hubbub("token", "add", "ann")
    assert hubbub("token", "revoke", "ann", "--json").json() == {
        "participant": "ann",
        "revoked": True,
    }


def test_who_has_no_tokens_cannot_lose_any(closed: Path, hubbub: Command) -> None:
    hubbub("token", "add", "ann")
    for name, sentence in (("bob", "bob has no tokens\n"), ("amn", "; did you mean ann?")):
        ran = hubbub("token", "revoke", name)
        assert (ran.code, ran.out) == (2, "")
        assert sentence in ran.err


def test_the_running_network_tells_its_tokens(town: str, hubbub: Command) -> None:
    assert hubbub("token", "list", "--json").json() == []
    hubbub("token", "add", "zoe")
    for args in ((), ("--address", town)):
        listed = hubbub("token", "list", "--json", *args).json()
        assert listed == [{"participant": "zoe", "tokens": 1}]
    assert hubbub("token", "revoke", "zo").err == "hubbub: zo has no tokens; did you mean zoe?\n"


def test_a_config_can_be_named(closed: Path, hubbub: Command) -> None:
    other = closed.rename(closed.with_name("other.yaml"))
    assert hubbub("token", "add", "ann", "--config", str(other), "--json").code == 0
    ran = hubbub("token", "list")
    assert ran.code == 2
    assert "hubbub.yaml: does not exist" in ran.err


@pytest.mark.behaviour("D-2")
def test_with_the_hub_running_a_token_works_at_once(town: str, hubbub: Command) -> None:
    added = hubbub("token", "add", "zoe", "--json").json()
    assert isinstance(added, dict)
    assert hubbub("send", "--as", "zoe", "--broadcast", "hi").code == 2
    token = str(added["token"])
    assert hubbub("send", "--as", "zoe", "--token", token, "--broadcast", "hi").code == 0
    assert hubbub("token", "revoke", "zoe").code == 0
    assert hubbub("send", "--as", "zoe", "--broadcast", "open again").code == 0


def test_the_running_network_of_a_config_is_told_itself(town: str, hubbub: Command) -> None:
    address = town.removeprefix("ws://")
    text = f"network: {{auth: open, listen: '{address}', store: 'sqlite:town.db'}}\n"
    Path("same.yaml").write_text(text, encoding="utf-8")
    assert hubbub("token", "add", "zoe", "--config", "same.yaml").code == 0
    counted = hubbub("token", "list", "--config", "same.yaml", "--json").json()
    assert counted == [{"participant": "zoe", "tokens": 1}]


@pytest.mark.parametrize("name", ["hub", "a b", "t5", "x" * 65])
@pytest.mark.parametrize("command", ["add", "revoke"])
def test_a_name_that_nobody_can_have_is_refused(
    closed: Path, hubbub: Command, name: str, command: str
) -> None:
    ran = hubbub("token", command, name)
    assert ran.code == 2
    assert "nobody can be called" in ran.err
    assert not Path("closed.db").exists()


class TestOfThisRun:
    """`token show`: what the network that runs here has made for the people of its config."""

    @pytest.fixture
    def guarded(self, home: Path) -> Iterator[str]:
        """A running network that wants tokens; its URL."""
        with running(NETWORK.replace("auth: open", "auth: tokens"), home) as url:
            yield url

    @pytest.mark.behaviour("D-1")
    def test_the_token_of_a_person_opens_the_network(self, guarded: str, hubbub: Command) -> None:
        ran = hubbub("token", "show", "ann")
        token = ran.out.strip()
        assert ran.code == 0
        assert token.startswith("hub_")
        assert "proves ann until the network stops" in ran.err
        assert token not in ran.err

        async def join() -> str:
            async with Client(WebSocketTransport(guarded), "ann", "human", token=token) as ann:
                return ann.network

        assert asyncio.run(join()) == "town"

    def test_it_is_the_same_every_time_and_as_json(self, guarded: str, hubbub: Command) -> None:
        token = hubbub("token", "show", "ann").out.strip()
        told = hubbub("token", "show", "ann", "--json", "--address", guarded)
        assert told.json() == {"participant": "ann", "token": token}

    @pytest.mark.parametrize("name", ["zoe", "amn"])
    def test_one_for_whom_none_was_made_is_told_how_to_make_one(
        self, guarded: str, hubbub: Command, name: str
    ) -> None:
        ran = hubbub("token", "show", name)
        assert (ran.code, ran.out) == (2, "")
        assert f"made no token for {name}" in ran.err
        assert f"`hubbub token add {name}` makes one" in ran.err
        assert ("did you mean ann?" in ran.err) is (name == "amn")

    def test_another_user_is_shown_nothing(
        self, guarded: str, hubbub: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "elsewhere"))
        ran = hubbub("token", "show", "ann", "--address", guarded)
        assert (ran.code, ran.out) == (2, "")
        assert "you run no network at" in ran.err

    def test_in_an_open_network_nobody_needs_one(self, town: str, hubbub: Command) -> None:
        ran = hubbub("token", "show", "ann")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == "hubbub: town is open: people join it without a token\n"

    def test_where_nothing_runs_there_is_nothing_to_show(self, hubbub: Command) -> None:
        ran = hubbub("token", "show", "ann")
        assert (ran.code, ran.out) == (2, "")
        assert "no network runs here" in ran.err

    def test_a_name_that_nobody_can_have_is_told(self, guarded: str, hubbub: Command) -> None:
        assert "nobody can be called" in hubbub("token", "show", "a b").err


def test_a_store_in_memory_keeps_no_tokens(closed: Path, hubbub: Command) -> None:
    closed.write_text("network: {store: 'sqlite::memory:'}\n", encoding="utf-8")
    for args in (("add", "ann"), ("list",), ("revoke", "ann")):
        ran = hubbub("token", *args)
        assert ran.code == 2
        assert "a store in memory" in ran.err
