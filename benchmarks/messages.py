"""The messages that are sent, made once and numbered by splicing."""

from __future__ import annotations

from typing import Literal

from benchmarks.wire import header

__all__ = ["ENVELOPE", "Template", "broadcast", "direct", "index_in", "ref_in"]

ENVELOPE = 302
"""Bytes of JSON in one frame of the load, on both sides of every comparison."""

_MARK = b"~#"
_DIGITS = 8
_REF = b'"ref":"'
_PROSE = "the quick brown fox jumps over the lazy dog and writes a message about it to a colleague "


class Template:
    """A masked frame with three places for the message's number: ref, text and cid."""

    def __init__(self, before: str, after: str):
        """`before` and `after` stand around the text; each has one `%08d`."""
        number = f"%0{_DIGITS}d"
        fixed = len((before + after).replace(number, "0" * _DIGITS))
        mark = f"{_MARK.decode()}{number} "
        room = ENVELOPE - fixed - len(mark.replace(number, "0" * _DIGITS))
        if room < 0:
            raise ValueError(f"no room for a text: the envelope alone has {fixed} bytes")
        text = (_PROSE * (room // len(_PROSE) + 1))[:room]
        self._frame = (
            header(ENVELOPE).replace(b"%", b"%%") + (before + mark + text + after).encode()
        )

    def frame(self, index: int) -> bytes:
        """The frame of message `index`."""
        return self._frame % (index, index, index)


def direct(to: str, run: str) -> Template:
    """A direct message to one participant. `run` makes the cids unique among runs."""
    return _call("send_text_message", f'"to":"{to}",', run)


def broadcast(run: str) -> Template:
    return _call("broadcast_text_message", "", run)


def index_in(event: bytes) -> int | None:
    """The number in the text of a message, however the server wrapped it; None if it has none."""
    at = event.find(_MARK)
    return None if at < 0 else int(event[at + 2 : at + 2 + _DIGITS])


def ref_in(result: bytes) -> int | None:
    """The number in the `ref` of an answer; None if there is none."""
    at = result.find(_REF)
    return None if at < 0 else int(result[at + 7 : at + 7 + _DIGITS])


def _call(
    name: Literal["send_text_message", "broadcast_text_message"], to: str, run: str
) -> Template:
    return Template(
        f'{{"op":"call","ref":"%08d","name":"{name}","args":{{{to}"text":"',
        f'"}},"cid":"01BENCH-{run}-%08d"}}',
    )
