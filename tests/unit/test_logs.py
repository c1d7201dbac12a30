"""Log records of Hubbub, in programs with and without a logging configuration."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator

import pytest
import structlog

from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.mods.api import Mod, ModConfig, Verdict
from hubbub.protocol.messages import Draft
from hubbub.testing.network import LocalNetwork

log = get_logger("any")


def broken_pipe() -> io.TextIOWrapper:
    """A stream whose reader is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(os.fdopen(writing, "wb", 0), write_through=True)


@pytest.fixture(params=["closed", "unread", "none"])
def unusable_stderr(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    with broken_pipe() as stream, monkeypatch.context() as patch:
        if request.param == "closed":
            stream.close()
        patch.setattr(sys, "stderr", None if request.param == "none" else stream)
        yield


def test_records_are_plain_lines_on_stderr_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.info("a detail")
    log.bind(agent="bot").warning("tool failed", text="two\nlines")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "level='warning' event='tool failed' agent='bot' text='two\\nlines'"
    ]


def test_a_programs_structlog_configuration_applies_at_any_time() -> None:
    text = io.StringIO()
    log.debug("before")
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(text),
    )
    log.debug("after")
    assert text.getvalue() == '{"event": "after"}\n'


class Trips(Mod):
    """A mod with a defect."""

    name = "trips"

    def on_message(self, draft: Draft) -> Verdict:
        raise ZeroDivisionError


async def call_failing_mod() -> None:
    """Makes a call that fails and is logged, then another one on the same connection."""
    async with LocalNetwork(mods=[Trips(ModConfig(on_failure="reject"))]) as network:
        ann, _ = await network.join("ann", "human"), await network.join("bob", "human")
        with pytest.raises(OperationError, match="trips: the mod failed"):
            await ann.post("send_text_message", to="bob", text="hello")
        await ann.call("list_channels")


async def test_a_failing_call_logs_to_stderr_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await call_failing_mod()
    out, err = capsys.readouterr()
    assert out == ""
    assert "ZeroDivisionError" in err


@pytest.mark.usefixtures("unusable_stderr")
async def test_a_failing_call_is_answered_even_if_stderr_is_unusable() -> None:
    log.error("this is lost")
    await call_failing_mod()
