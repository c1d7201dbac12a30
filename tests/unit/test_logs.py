"""Records of Hubbub's own parts, in programs that have and have not said where they go."""

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
    """A stream whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(os.fdopen(writing, "wb", 0), write_through=True)


@pytest.fixture(params=["closed", "unread", "none"])
def lost(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """stderr is one that takes nothing."""
    with broken_pipe() as stream, monkeypatch.context() as patch:
        if request.param == "closed":
            stream.close()
        patch.setattr(sys, "stderr", None if request.param == "none" else stream)
        yield


def test_without_configuration_records_are_plain_lines_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.info("a detail")
    log.bind(agent="bot").warning("tool failed", text="two\nlines")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "level='warning' event='tool failed' agent='bot' text='two\\nlines'"
    ]


def test_a_program_that_configures_structlog_has_its_way_at_any_time() -> None:
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


async def call_what_breaks() -> None:
    """A call that the hub logs a failure of, and another one on the same connection."""
    async with LocalNetwork(mods=[Trips(ModConfig(on_failure="reject"))]) as network:
        ann, _ = await network.join("ann", "human"), await network.join("bob", "human")
        with pytest.raises(OperationError, match="trips: the mod failed"):
            await ann.post("send_text_message", to="bob", text="hello")
        await ann.call("list_channels")


async def test_a_call_that_breaks_says_nothing_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await call_what_breaks()
    out, err = capsys.readouterr()
    assert out == ""
    assert "ZeroDivisionError" in err


@pytest.mark.usefixtures("lost")
async def test_a_call_that_breaks_is_answered_though_nobody_can_be_told() -> None:
    log.error("nobody hears this")
    await call_what_breaks()
