"""Configs given as text, with their files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.config.loader import LoadedConfig, load

Write = Callable[[str, str], Path]
Loading = Callable[[str], LoadedConfig]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a dedented text to a file below the current directory, which is a fresh folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).removeprefix("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def loading(write: Write) -> Loading:
    """Writes net.yaml and loads it."""
    return lambda text: load(write("net.yaml", text), environ={})
