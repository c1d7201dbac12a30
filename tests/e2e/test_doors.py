"""What a network starts with: no door that it does not use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.support.config_network import run_config

pytestmark = pytest.mark.slow

DOORS = re.compile(r"(hubbub\.interop|acp|mcp)(\.|$)")


@pytest.mark.behaviour("I-9")
async def test_the_quickstart_imports_nothing_of_any_door(tmp_path: Path) -> None:
    async with run_config("quickstart", tmp_path, {"PYTHONPROFILEIMPORTTIME": "1"}) as network:
        await network.shows(r"import time:.*hubbub\.agents\.runner")  # by an agent's process
        ann = await network.join("ann")
        await ann.asks("concierge", "hello, what can you do?")
    imported = [
        line.rpartition("|")[2].strip() for line in network.output if "import time:" in line
    ]
    assert "hubbub.network.hub" in imported
    assert [module for module in imported if DOORS.match(module)] == []
