"""`doctor`: findings for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.app import providers
from tests.unit.cli.conftest import Command


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model servers of this machine: what is found must not depend on it."""
    monkeypatch.setattr(providers, "LOOPBACK", ())


def test_without_a_config_models_within_reach_are_proposed(
    hubbub: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = hubbub("doctor")
    assert ran.code == 0
    assert "✓ python" in ran.out
    assert 'api_key: "${OPENAI_API_KEY}"' in ran.out
    assert "sk-secret" not in ran.out


def test_a_problem_makes_the_exit_code_one(home: Path, hubbub: Command) -> None:
    (home / "hubbub.yaml").write_text("netwrk: {}\n")
    ran = hubbub("doctor")
    assert ran.code == 1
    assert "✗ config     hubbub.yaml:1: unknown key 'netwrk'" in ran.out


def test_findings_as_json(home: Path, hubbub: Command) -> None:
    (home / "net.yaml").write_text("network: {auth: open, listen: '127.0.0.1:0'}\n")
    found = hubbub("doctor", "net.yaml", "--json").json()
    assert isinstance(found, dict)
    assert found["healthy"] is True
    findings = found["findings"]
    assert isinstance(findings, list)
    assert {f["what"] for f in findings if isinstance(f, dict)} == {
        "python",
        "sqlite",
        "config",
        "port",
        "database",
        "tokens",
    }


def test_a_running_network_holds_its_port_and_database(
    town: str, home: Path, hubbub: Command
) -> None:
    address = town.removeprefix("ws://")
    text = f"network: {{auth: open, listen: '{address}', store: 'sqlite:town.db'}}\n"
    (home / "same.yaml").write_text(text)
    ran = hubbub("doctor", "same.yaml")
    assert ran.code == 0
    assert "is held by the network 'town'" in ran.out
    assert "in use by the running network" in ran.out
