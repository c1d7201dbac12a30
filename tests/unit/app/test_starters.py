"""The network that `hubbub init` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.providers import ModelProposal
from hubbub.cli.init import starter_files
from hubbub.config.loader import load
from tests.unit.conftest import Write

pytestmark = pytest.mark.slow

LOCAL = ModelProposal("qwen3:8b", "http://127.0.0.1:11434/v1", None, "Ollama answers")


def test_the_starter_network_is_valid(write: Write, tmp_path: Path) -> None:
    for proposals in ([], [LOCAL], [LOCAL, LOCAL]):
        for name, text in starter_files(proposals).items():
            write(name, text)
        file = load(tmp_path / "hubbub.yaml", environ={}).file
        assert ("concierge" in file.agents) is bool(proposals)
        assert len(file.models) == len(proposals)
        assert file.network.listen == "127.0.0.1:4820"
    load_valid(tmp_path / "hubbub.yaml")


def test_the_starter_network_is_valid_with_its_examples_uncommented(write: Write) -> None:
    files = starter_files([])
    lines = []
    for line in files["hubbub.yaml"].splitlines():
        mark = line.lstrip()
        opened = mark.startswith(("# models:", "#   default", "#     model", "#     base_url"))
        if opened or line.startswith("  # "):
            line = line.replace("# ", "", 1)
        lines.append(line)
    write("agents/greeter.py", files["agents/greeter.py"])
    config = load_valid(write("hubbub.yaml", "\n".join(lines)))
    assert config.file.agents["concierge"].instruction.startswith("You are a helpful member")
    assert config.file.models["default"].model == "qwen3:8b"
