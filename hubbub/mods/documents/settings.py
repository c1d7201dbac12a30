"""The settings of the mod `documents`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.config.units import Size
from hubbub.mods.api import ModConfig

__all__ = ["DocumentsConfig"]


class DocumentsConfig(ModConfig):
    max_size: Size = 1_000_000
    """Bytes of one text."""
    max_lines: Annotated[int, Field(ge=1)] = 20_000
    """Lines of one text."""
