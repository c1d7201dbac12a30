"""Run files: finding a network without asking."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.client import (
    RunFile,
    find_network,
    find_run_files,
    remove_run_file,
    state_dir,
    write_run_file,
)
from hubbub.errors import UserError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def run(network: str = "quick", port: int = 4820, host: str = "127.0.0.1") -> RunFile:
    return RunFile(
        network=network,
        url=f"ws://{host}:{port}",
        pid=os.getpid(),
        auth="tokens",
        tokens={"ann": "hub_secret"},
        humans=["ann"],
    )


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.behaviour("C-4")
def test_a_written_file_is_found_with_address_and_tokens() -> None:
    write_run_file(run())
    found = find_network(None)
    assert found.url == "ws://127.0.0.1:4820"
    assert found.tokens == {"ann": "hub_secret"}
    assert found.humans == ("ann",)
    assert found.network == "quick"


@pytest.mark.behaviour("C-4")
def test_only_its_user_can_read_it(state: Path) -> None:
    path = write_run_file(run())
    assert path == state / "run" / "127.0.0.1_4820.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_writing_again_replaces_it_and_leaves_nothing_else() -> None:
    write_run_file(run("old"))
    path = write_run_file(run("new"))
    assert [r.network for r in find_run_files()] == ["new"]
    assert list(path.parent.iterdir()) == [path]


def test_a_network_that_stopped_is_gone() -> None:
    write_run_file(run())
    remove_run_file(run())
    remove_run_file(run())
    assert find_run_files() == []
    with pytest.raises(UserError, match="hubbub up"):
        find_network(None)


def test_the_file_of_another_process_is_not_removed() -> None:
    write_run_file(run())
    remove_run_file(run().model_copy(update={"pid": 1}))
    assert len(find_run_files()) == 1


def test_files_of_dead_processes_are_ignored(dead_pid: int) -> None:
    write_run_file(run().model_copy(update={"pid": dead_pid}))
    assert find_run_files() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"network": 1}', "\0"])
def test_files_that_are_no_run_files_are_ignored(state: Path, text: str) -> None:
    write_run_file(run())
    (state / "run" / "other.json").write_text(text)
    assert [r.network for r in find_run_files()] == ["quick"]


def test_fields_of_a_later_version_do_not_hurt(state: Path) -> None:
    path = write_run_file(run())
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "red"}))
    assert [r.network for r in find_run_files()] == ["quick"]


def test_an_address_finds_the_tokens_of_the_network_that_runs_there() -> None:
    write_run_file(run("one", 4820))
    write_run_file(run("two", 4999))
    for text in ("127.0.0.1:4999", "ws://127.0.0.1:4999", "ws://127.0.0.1:4999/", "localhost:4999"):
        found = find_network(text)
        assert (found.network, found.tokens) == ("two", {"ann": "hub_secret"})
    assert find_network("two").url == "ws://127.0.0.1:4999"


def test_an_address_elsewhere_needs_no_run_file() -> None:
    found = find_network("hub.example:443")
    assert (found.url, found.tokens, found.network) == ("ws://hub.example:443", {}, None)
    assert find_network("wss://hub.example:443").url == "wss://hub.example:443"
    assert find_network("[::1]:4820").url == "ws://[::1]:4820"


def test_of_several_networks_the_default_address_counts() -> None:
    write_run_file(run("other", 4999))
    write_run_file(run("usual", 4820))
    assert find_network(None).network == "usual"


def test_several_networks_without_the_default_one_must_be_told_apart() -> None:
    write_run_file(run("one", 5001))
    write_run_file(run("two", 5002))
    with pytest.raises(UserError, match=r"one \(127\.0\.0\.1:5001\), two"):
        find_network(None)


@pytest.mark.parametrize(
    "text", ["nowhere", "", "host:", ":4820", "host:0", "host:99999", "http://x", "a b:1", "::1:48"]
)
def test_an_address_that_says_nothing_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError):
        find_network(text)


def test_an_address_of_version_6_makes_a_legal_file_name() -> None:
    path = write_run_file(run(host="[::1]"))
    assert path.name == "--1_4820.json"
    assert find_network("[::1]:4820").network == "quick"


def test_the_state_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_dir() == Path(os.environ["HUBBUB_STATE_DIR"])
    monkeypatch.delenv("HUBBUB_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert state_dir() == Path("/xdg/hubbub")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_dir() == Path("/home/ann/.local/state/hubbub")
