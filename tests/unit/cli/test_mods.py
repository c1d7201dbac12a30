"""`mods list | show | new | reload`, and `webhooks serve`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.mods.webhooks.settings import sign
from tests.unit.cli.conftest import NETWORK, Shell, running

LATER = '''from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.operations import Done, Input


class Later(Mod):
    """Comes later."""

    name = "later"


class StillLater(Later):
    class Config(ModConfig):
        when: str

    @operation()
    def wait(self, call: Calling, args: Input) -> Done:
        """Wait for it."""
        return Done()
'''


@pytest.fixture
def later(home: Path) -> Path:
    path = home / "own" / "later.py"
    path.parent.mkdir()
    path.write_text(LATER, encoding="utf-8")
    return path


def write(home: Path, mods: str) -> None:
    (home / "hubbub.yaml").write_text(f"network: {{name: town}}\nmods: {mods}\n", encoding="utf-8")


@pytest.mark.behaviour("M-30")
def test_mods_are_listed_in_the_order_of_the_yaml(home: Path, later: Path, hubbub: Shell) -> None:
    assert "built in" in hubbub("mods", "list").out, "the available mods need no config"
    for names, ordered in (
        ("moderation, own/later.py:Later", ["moderation", "later"]),
        ("own/later.py:Later, moderation", ["later", "moderation"]),
    ):
        write(home, f"[{names}]")
        rows = [(row["order"], row["name"]) for row in hubbub("mods", "list", "--json").json()]
        assert rows[:2] == [("1", ordered[0]), ("2", ordered[1])]
        assert {order for order, _ in rows[2:]} <= {""}
        assert "documents" in [name for _, name in rows[2:]]
    line = hubbub("mods", "list").out.splitlines()[1]
    assert line.split() == ["1", "later", "own/later.py", "Comes", "later."]


def test_a_mod_is_shown_with_its_settings_and_operations(
    home: Path, later: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    shown = hubbub("mods", "show", "moderation").out
    assert shown.startswith("moderation (built in)")
    assert "max_length" in shown
    documents = hubbub("mods", "show", "documents", "--json").json()
    assert documents["name"] == "documents"
    assert documents["operations"]
    assert "Comes later." in hubbub("mods", "show", "own/later.py:Later").out
    still_later = hubbub("mods", "show", "own/later.py:StillLater").out
    assert "required" in still_later
    assert "Wait for it." in still_later
    write(home, "[moderatoin]")
    assert (
        hubbub.transcript(
            "mods list",
            "mods list --config none.yaml",
            "mods show moderatoin",
            "mods show own/later.py:Latre",
            "mods show own/never.py:Never",
        )
        == snapshot
    )


@pytest.mark.slow
@pytest.mark.behaviour("M-31")
def test_a_generated_mod_passes_its_tests_and_the_linter_and_can_be_loaded(
    home: Path, hubbub: Shell
) -> None:
    assert "mods/kind_words.py:KindWords" in hubbub("mods", "new", "kind_words").out
    assert "mods/statement.py:StatementMod" in hubbub("mods", "new", "statement").out
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    for command in (
        ("pytest", "-q", "-p", "no:cacheprovider", "mods"),
        ("ruff", "check", "--select", "E,F,I,B,UP", "--isolated", "--no-cache", "mods"),
        ("ruff", "format", "--check", "--isolated", "--no-cache", "mods"),
    ):
        result = subprocess.run(
            [sys.executable, "-m", *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        if command[0] == "pytest":
            assert "4 passed" in result.stdout
    write(home, "[mods/kind_words.py:KindWords: {word: bravo}]")
    assert "kind_words" in hubbub("mods", "list").out


def test_generating_a_mod_overwrites_nothing_and_needs_a_valid_name(
    home: Path, hubbub: Shell
) -> None:
    hubbub("mods", "new", "thanks", "extra")
    (home / "extra" / "thanks.py").write_text("mine", encoding="utf-8")
    assert hubbub("mods", "new", "thanks", "extra").code == 2
    assert (home / "extra" / "thanks.py").read_text() == "mine"
    assert hubbub("mods", "new", "thanks", "extra", "--force").code == 0
    names = ("Thanks", "2x", "a-b", "class", "moderation", "ünlaut", "a" * 40)
    for name in (*names, "json", "pytest", "mod", "turn"):
        result = hubbub("mods", "new", name)
        assert (result.code, result.out) == (2, ""), name
    assert not (home / "mods").exists()


@pytest.mark.behaviour("M-32")
def test_reloaded_settings_apply_immediately_and_invalid_ones_change_nothing(
    home: Path, hubbub: Shell
) -> None:
    text = f"{NETWORK}mods:\n  - moderation: {{max_length: 9}}\n"
    with running(text, home):
        send_long = ("send", "broadcast", "a long sentence", "--as", "ann")
        yaml = home / "town.yaml"
        yaml.write_text(text.replace("9", "0"), encoding="utf-8")
        invalid = hubbub("mods", "reload", "--config", "town.yaml")
        assert invalid.code == 2
        assert "max_length" in invalid.err
        assert hubbub(*send_long).code != 0
        yaml.write_text(text.replace("9", "90"), encoding="utf-8")
        reloaded = hubbub("mods", "reload", "--config", "town.yaml", "--json").json()
        assert reloaded == [{"name": "moderation", "outcome": "reloaded"}]
        assert hubbub(*send_long).code == 0
        yaml.write_text(f"{NETWORK}mods: [documents]\n", encoding="utf-8")
        lines = hubbub("mods", "reload", "--config", "town.yaml").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["documents", "moderation"]
        assert "restarts" in lines[1]
        assert "no longer" in lines[2]
    write(home, "[moderation]")
    result = hubbub("mods", "reload")
    assert result.code != 0, "no network is running"
    assert result.err.startswith("hubbub: ")


@pytest.mark.slow
@pytest.mark.behaviour("M-257")
def test_webhooks_serve_posts_received_webhooks(home: Path, hubbub: Shell) -> None:
    secret = "correct horse battery"
    endpoint = {"name": "ci", "to": "channel_general", "secret": f"${{CI_SECRET:-{secret}}}"}
    inbound = {"listen": "127.0.0.1:0", "endpoints": [endpoint]}
    mods = json.dumps([{"webhooks": {"inbound": inbound}}])
    with running(f"{NETWORK}\nmods: {mods}\n", home):
        command = [sys.executable, "-m", "hubbub", "webhooks", "serve", "--config", "town.yaml"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[1]
            body = b'{"text": "the build is red"}'
            request = Request(url, body, sign(secret, "e1", time.time(), body))
            with urlopen(request, timeout=20) as response:
                assert json.load(response)["posted"]
            assert "the build is red" in hubbub("messages", "list").out
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            process.stdout.close()
