"""Config files that a test writes as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hubbub.config.loader import LoadedConfig, load
from hubbub.config.problems import ConfigProblems

Write = Callable[[str, str], Path]
Problems = Callable[..., list[str]]
Loading = Callable[..., LoadedConfig]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a dedented text to a file below the current directory, which is a fresh folder."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).removeprefix("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def loading(write: Write) -> Loading:
    """Writes net.yaml and loads it."""

    def loading(
        text: str,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> LoadedConfig:
        path = write("net.yaml", text)
        return load(path, environ=environ or {}, mods=["moderation"], overrides=overrides)

    return loading


@pytest.fixture
def problems(loading: Loading) -> Problems:
    """What loading the text as net.yaml complains about, one line each."""

    def problems(text: str, **options: Mapping[str, str]) -> list[str]:
        with pytest.raises(ConfigProblems) as caught:
            loading(text, **options)
        return str(caught.value).splitlines()

    return problems
