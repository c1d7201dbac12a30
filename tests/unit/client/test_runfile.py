"""Run files let programs on this machine find a network."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import hubbub.client
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


def names() -> list[str]:
    return [file.network for file in find_run_files()]


@pytest.mark.behaviour("C-4")
def test_a_run_file_is_found_and_readable_only_by_its_user(state: Path) -> None:
    write_run_file(run("old"))
    path = write_run_file(run())
    assert list(path.parent.iterdir()) == [path], "it replaces the old one"
    address = find_network(None)
    assert (address.url, address.network) == ("ws://127.0.0.1:4820", "quick")
    assert (address.tokens, address.humans) == ({"ann": "hub_secret"}, ("ann",))
    assert path == state / "run" / "127.0.0.1_4820.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_state_folder_that_cannot_be_written_is_reported_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(UserError, match="file/run: Not a directory; set HUBBUB_STATE_DIR to a"):
        write_run_file(run())


def test_run_files_of_stopped_networks_and_unreadable_files_are_ignored(state: Path) -> None:
    path = write_run_file(run())
    path.write_text(json.dumps({**json.loads(path.read_text()), "of a later version": "red"}))
    for text in ("", "{", "[]", '{"network": 1}', "\0"):
        (state / "run" / "other.json").write_text(text)
        assert names() == ["quick"], text
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    write_run_file(run("dead", 4999).model_copy(update={"pid": process.pid}))
    assert names() == ["quick"]
    remove_run_file(run().model_copy(update={"pid": 1}))
    assert names() == ["quick"], "the file of another process stays"
    for _ in range(2):
        remove_run_file(run())
    assert names() == []
    with pytest.raises(UserError, match="hubbub up"):
        find_network(None)


def test_one_of_several_networks_is_chosen_by_address_name_or_default_port() -> None:
    write_run_file(run("one", 5001))
    write_run_file(run("two", 4999))
    for text in ("127.0.0.1:4999", "ws://127.0.0.1:4999", "ws://127.0.0.1:4999/", "localhost:4999"):
        address = find_network(text)
        assert (address.network, address.tokens) == ("two", {"ann": "hub_secret"})
    assert find_network("two").url == "ws://127.0.0.1:4999"
    with pytest.raises(UserError, match=r"two \(127\.0\.0\.1:4999\), one"):
        find_network(None)
    write_run_file(run("usual", 4820, host="0.0.0.0"))
    assert find_network(None).network == "usual"
    assert find_network("127.0.0.1:4820").tokens == find_network("localhost:4820").tokens != {}


def test_a_remote_address_needs_no_run_file_but_must_be_valid() -> None:
    address = find_network("hub.example:443")
    assert (address.url, address.tokens, address.network) == ("ws://hub.example:443", {}, None)
    assert find_network("wss://hub.example:443").url == "wss://hub.example:443"
    assert find_network("wss://hub.example").url == "wss://hub.example:443"
    assert find_network("ws://hub.example/").url == "ws://hub.example:80"
    assert find_network("[::1]:4820").url == "ws://[::1]:4820"
    assert write_run_file(run(host="[::1]")).name == "--1_4820.json"
    assert find_network("[::1]:4820").network == "quick"
    wrong = ("nowhere", "", "host:", ":4820", "host:0", "host:99999", "http://x", "a b:1", "::1:48")
    for text in wrong:
        with pytest.raises(UserError):
            find_network(text)


def test_an_address_can_list_standby_hubs() -> None:
    write_run_file(run("one", 5001))
    address = find_network("localhost:5001, hub-b:4820,wss://hub-c")
    assert address.urls == ("ws://127.0.0.1:5001", "ws://hub-b:4820", "wss://hub-c:443")
    assert address.tokens == {"ann": "hub_secret"}
    address = find_network("hub-b:4820,127.0.0.1:5001")  # the second one has taken over, here
    assert address.urls == ("ws://hub-b:4820", "ws://127.0.0.1:5001")
    assert (address.tokens, address.network) == ({"ann": "hub_secret"}, "one")
    with pytest.raises(UserError, match="'' is neither host:port nor the name"):
        find_network("localhost:5001,")


def test_the_state_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_dir() == Path(os.environ["HUBBUB_STATE_DIR"])
    monkeypatch.delenv("HUBBUB_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert state_dir() == Path("/xdg/hubbub")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_dir() == Path("/home/ann/.local/state/hubbub")


def test_every_public_name_of_the_client_is_exported_once() -> None:
    public = hubbub.client.__all__
    assert len(set(public)) == len(public)
    assert all(hasattr(hubbub.client, name) for name in public)


@pytest.mark.slow
def test_importing_the_client_imports_no_websocket_library() -> None:
    code = "import sys, hubbub.client; print('websockets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
