"""The settings of the mod `files`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from hubbub.config.units import Size, Span
from hubbub.mods.api import ModConfig, OnFailure
from hubbub.mods.files.kinds import TYPE_RULE

__all__ = ["FilesConfig"]


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


TypeRule = Annotated[str, BeforeValidator(_lower), Field(pattern=TYPE_RULE)]


class FilesConfig(ModConfig):
    on_failure: OnFailure = "reject"
    """What becomes of a message with attachments whose hook has failed: nobody has checked them, so
    it is refused, unless this says `pass`."""
    max_size: Size = 25_000_000
    """Bytes of one file."""
    quota: Size = 500_000_000
    """Bytes of all files of one participant."""
    total: Size = 5_000_000_000
    """Bytes of all files of the network."""
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = 50_000
    """Files of the network; each takes some memory of the hub."""
    max_uploads: Annotated[int, Field(ge=1)] = 8
    """Uploads of one participant that are under way."""
    upload_idle: Span = 3600.0
    """Seconds after which an upload is given up to which nothing was added."""
    types: tuple[TypeRule, ...] = ()
    """What is taken: media types (`image/*`, `application/pdf`) and ends of names (`.md`); left
    out: all."""
    excerpt: Annotated[int, Field(ge=0, le=20_000)] = 1_500
    """Characters of text that a message carries of its files, shared among them; 0: none."""
    max_text: Size = 2_000_000
    """Characters of the text of one file that are kept for reading."""
    max_unpacked: Size = 250_000_000
    """Bytes that a packed file may become; a larger one is refused."""
