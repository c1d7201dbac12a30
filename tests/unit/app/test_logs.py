"""Where log records go."""

from __future__ import annotations

import os

import pytest
import structlog

from hubbub.app.logs import configure_logging
from hubbub.app.printer import Printer


def test_records_go_to_stderr_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(debug=False)
    structlog.get_logger("any").warning("tool failed", tool="x", text="two\nlines")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "warning" in err
    assert "tool='x'" in err


@pytest.mark.parametrize("debug", [True, False])
def test_details_are_for_debugging(capsys: pytest.CaptureFixture[str], debug: bool) -> None:
    configure_logging(debug=debug)
    structlog.get_logger("any").info("connection lost", code=4006)
    assert ("connection lost" in capsys.readouterr().err) is debug


def test_an_exception_is_part_of_its_record(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(debug=False)
    try:
        raise ValueError("inside")
    except ValueError as error:
        structlog.get_logger("any").warning("failed", exc_info=error)
    assert "ValueError: inside" in capsys.readouterr().err


@pytest.mark.behaviour("R-6")
def test_a_record_that_nobody_can_read_fails_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream, Printer(stream, str) as printer:
        configure_logging(debug=False, printer=printer)
        for _ in range(10):
            structlog.get_logger("any").warning("tool failed", text="x" * 100_000)
