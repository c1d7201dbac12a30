"""Configs with variables and overrides, and their problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hubbub.config.loader import LoadedConfig, load
from hubbub.config.problems import ConfigProblems
from tests.unit.conftest import Write

Problems = Callable[..., list[str]]
Loading = Callable[..., LoadedConfig]


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
    """The problems of the text as net.yaml, one line each."""

    def problems(text: str, **options: Mapping[str, str]) -> list[str]:
        with pytest.raises(ConfigProblems) as caught:
            loading(text, **options)
        return str(caught.value).splitlines()

    return problems
