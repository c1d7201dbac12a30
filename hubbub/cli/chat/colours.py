"""A colour per participant: the same one every time, readable on dark and on light."""

from __future__ import annotations

from zlib import crc32

__all__ = ["PALETTE", "colour_of"]

PALETTE = (
    "#0087d7",
    "#d75f5f",
    "#5f8700",
    "#af5fd7",
    "#af8700",
    "#008787",
    "#d75f87",
    "#5f87af",
    "#d75f00",
    "#00875f",
    "#875fd7",
    "#af5f5f",
)
"""Of the 256 colours of terminals, some that differ enough from black and from white: a contrast
of at least 3 to both (a test computes it)."""


def colour_of(participant: str) -> str:
    """The participant's colour as #rrggbb."""
    return PALETTE[crc32(participant.encode()) % len(PALETTE)]
