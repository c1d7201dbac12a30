"""What files say, as text: read once, when they come in, within limits. Nothing here waits or asks;
it is run in a thread."""

from __future__ import annotations

from hubbub.mods.files.reading.reader import Reading, inspected, way_to_read
from hubbub.mods.files.reading.words import Limits, NoText, Refused

__all__ = ["Limits", "NoText", "Reading", "Refused", "inspected", "way_to_read"]
