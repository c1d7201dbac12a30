from __future__ import annotations

import inspect

from hubbub import errors
from hubbub.errors import ConfigError, HubbubError


def test_every_error_derives_from_the_root() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), HubbubError)


def test_the_docstring_shows_every_error_of_the_tree() -> None:
    tree = inspect.getdoc(errors) or ""
    assert [name for name in errors.__all__ if name not in tree] == []


def test_a_config_error_starts_with_its_position() -> None:
    assert str(ConfigError("no such key", "net.yaml", 3)) == "net.yaml:3: no such key"
    assert str(ConfigError("no such key", "net.yaml")) == "net.yaml: no such key"
    assert str(ConfigError("no such key")) == "no such key"
