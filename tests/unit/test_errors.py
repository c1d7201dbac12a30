from __future__ import annotations

import inspect

from hubbub import errors
from hubbub.errors import ConfigError, ConnectionLost, HubbubError, OperationError


def test_catching_the_root_catches_everything_raised_on_purpose() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), HubbubError)


def test_the_docstring_draws_every_error_of_the_tree() -> None:
    drawn = inspect.getdoc(errors) or ""
    assert [name for name in errors.__all__ if name not in drawn] == []


def test_a_config_error_begins_with_its_place() -> None:
    assert str(ConfigError("no such key", "net.yaml", 3)) == "net.yaml:3: no such key"
    assert str(ConfigError("no such key", "net.yaml")) == "net.yaml: no such key"
    assert str(ConfigError("no such key")) == "no such key"


def test_an_operation_error_is_what_the_frame_says() -> None:
    error = OperationError("limit", "too many", temporary=True, retry_after_s=2, details={"a": 1})
    assert str(error) == "limit: too many"
    assert (error.temporary, error.retry_after_s, error.details) == (True, 2, {"a": 1})


def test_a_lost_connection_tells_code_and_reason() -> None:
    assert str(ConnectionLost(4006, "drain")) == "connection closed with 4006 (drain)"
    assert str(ConnectionLost(1006)) == "connection closed with 1006"
