"""`tokens add | show | list | revoke`, with and without a running hub."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.connection import NetworkTarget, joined
from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import NETWORK, Shell, running

CLOSED = "network: {name: closed, listen: '127.0.0.1:0', store: 'sqlite:closed.db'}\n"


@pytest.fixture
def closed(home: Path) -> Path:
    """The config of a network that requires tokens and does not run."""
    path = home / "hubbub.yaml"
    path.write_text(CLOSED, encoding="utf-8")
    return path


@pytest.mark.behaviour("D-1")
def test_tokens_are_added_counted_and_revoked_and_stored_as_hashes(
    closed: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    result = hubbub("tokens", "add", "ann")
    token = result.out.strip()
    assert token.startswith("hub_")
    assert "not shown again" in result.err
    assert "From now on, ann can join only with a token" in result.err  # in an open network, too
    assert token not in result.err
    with closing(sqlite3.connect("closed.db")) as database:
        rows = database.execute("SELECT participant, sha256 FROM token").fetchall()
    assert rows == [("ann", hashlib.sha256(token.encode()).hexdigest())]
    hubbub("tokens", "add", "ann")
    assert hubbub("tokens", "add", "bob", "--json").json()["token"].startswith("hub_")
    assert (
        hubbub.transcript(
            "tokens list",
            "tokens list --json",
            "tokens revoke eve",
            "tokens revoke amn",
            "tokens revoke ann",
            "tokens list",
            "tokens revoke bob --json",
            "tokens list --json",
            "tokens list --config other.yaml",
            "tokens show ann",
        )
        == snapshot
    )


def test_an_invalid_name_or_a_store_in_memory_is_refused(closed: Path, hubbub: Shell) -> None:
    for args in (("add", "hub"), ("add", "a b"), ("revoke", "t5"), ("revoke", "x" * 65)):
        result = hubbub("tokens", *args)
        assert result.code == 2
        assert "is not a valid name" in result.err
    assert not Path("closed.db").exists()
    closed.write_text("network: {store: 'sqlite::memory:'}\n", encoding="utf-8")
    for args in (("add", "ann"), ("list", "--json"), ("revoke", "ann")):
        result = hubbub("tokens", *args)
        assert result.code == 2
        assert "a store in memory" in result.err


def test_commands_stay_in_a_network_that_restarts_with_new_tokens(home: Path) -> None:
    closed = NETWORK.replace("auth: open", "auth: tokens")
    first, second = ExitStack(), ExitStack()

    async def work(url: str) -> None:
        restarted = closed.replace("127.0.0.1:0", url.removeprefix("ws://"))
        async with joined(NetworkTarget(url)) as operator, joined(NetworkTarget(url), "ann") as ann:
            await asyncio.to_thread(first.close)
            await asyncio.to_thread(second.enter_context, running(restarted, home))
            for client in (operator, ann):
                assert await client.call("list_threads")

    with second, first:
        asyncio.run(work(first.enter_context(running(closed, home))))


@pytest.mark.behaviour("D-2")
def test_a_token_added_to_a_running_hub_works_immediately(home: Path, hubbub: Shell) -> None:
    with running(NETWORK.replace(":memory:", "town.db"), home) as url:
        assert hubbub("tokens", "list", "--json").json() == []
        token = str(hubbub("tokens", "add", "zoe", "--json").json()["token"])
        assert hubbub("send", "--as", "zoe", "--broadcast", "hi").code == 2
        assert hubbub("send", "--as", "zoe", "--token", token, "--broadcast", "hi").code == 0
        address = url.removeprefix("ws://")
        text = f"network: {{auth: open, listen: '{address}', store: 'sqlite:town.db'}}\n"
        (home / "same.yaml").write_text(text, encoding="utf-8")
        assert hubbub("tokens", "add", "zoe", "--config", "same.yaml").code == 0
        for args in ((), ("--address", url), ("--config", "same.yaml")):
            listed = hubbub("tokens", "list", "--json", *args).json()
            assert listed == [{"participant": "zoe", "tokens": 2}]
        result = hubbub("tokens", "revoke", "zo")
        assert result.err == "hubbub: zo has no tokens; did you mean zoe?\n"
        assert hubbub("tokens", "revoke", "zoe").code == 0
        assert hubbub("send", "--as", "zoe", "--broadcast", "open again").code == 0
        result = hubbub("tokens", "show", "ann")
        assert result.err == "hubbub: town is open: people join it without a token\n"


@pytest.mark.behaviour("D-2")
def test_tokens_are_not_revoked_in_the_store_of_a_hub_that_would_keep_the_connections(
    home: Path, hubbub: Shell
) -> None:
    with running(NETWORK.replace(":memory:", "town.db"), home) as url:
        hubbub("tokens", "add", "zoe")
        elsewhere = "network: {listen: '127.0.0.1:1', store: 'sqlite:town.db'}\n"
        (home / "same.yaml").write_text(elsewhere, encoding="utf-8")
        result = hubbub("tokens", "revoke", "zoe", "--config", "same.yaml")
        assert result.code == 2
        assert "name its address with --address" in result.err
        assert hubbub("tokens", "revoke", "zoe", "--address", url).code == 0


@pytest.mark.behaviour("D-1")
def test_the_token_of_a_run_admits_one_person_and_is_shown_only_to_the_same_user(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(NETWORK.replace("auth: open", "auth: tokens"), home) as url:
        result = hubbub("tokens", "show", "ann")
        token = result.out.strip()
        assert token.startswith("hub_")
        assert "identifies ann until the network stops" in result.err
        assert token not in result.err

        async def join() -> str:
            async with Client(WebSocketTransport(url), "ann", "human", token=token) as ann:
                return ann.network

        assert asyncio.run(join()) == "town"
        shown = hubbub("tokens", "show", "ann", "--json", "--address", url)
        assert shown.json() == {"participant": "ann", "token": token}
        result = hubbub("send", "--as", "zoe", "--token", token, "--broadcast", "hi")
        assert result.err == (
            "hubbub: the token does not prove 'zoe'; it is ann's: join as ann (`--as ann`)\n"
        )
        of_bob = hubbub("tokens", "add", "bob").out.strip()
        hubbub("send", "--as", "bob", "--token", of_bob, "ann", "hello ann")
        with monkeypatch.context() as another_machine:
            another_machine.setenv("HUBBUB_STATE_DIR", str(home / "elsewhere"))
            another_machine.setenv("HUBBUB_ADDRESS", url)
            mine = ("messages", "list", "--as", "bob", "--token", of_bob)
            assert "hello ann" in hubbub(*mine, "--thread", "ann").out
            assert "name a thread with --thread" in hubbub(*mine).err
            assert "hello ann" in hubbub("messages", "list", "--as", "ann", "--token", token).out
        for wrong in ("x" * 600, "\udcff"):
            refused = hubbub("send", "--as", "ann", "--token", wrong, "bob", "hi")
            assert refused.err.startswith(
                "hubbub: this is no token: a token is text of at most 512"
            )
            assert wrong not in refused.err
        with monkeypatch.context() as persons_shell:
            persons_shell.setenv("HUBBUB_TOKEN", token)
            assert hubbub("mods", "reload", "--config", "town.yaml").code == 0
        mistakes = hubbub.transcript("tokens show zoe", "tokens show amn", "tokens show 'a b'")
        assert hubbub("tokens", "revoke", "ann").out == "revoked the tokens of ann\n"
        mistakes += hubbub.transcript("tokens show ann", "tokens revoke ann")
        with monkeypatch.context() as another_user:
            another_user.setenv("HUBBUB_STATE_DIR", str(home / "elsewhere"))
            mistakes += hubbub.transcript(f"tokens show ann --address {url}")
    assert mistakes == snapshot
