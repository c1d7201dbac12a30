"""Limits of reading, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "NoText", "Refused"]


class NoText(Exception):
    """The file can be kept, but no text can be read from it; says why."""


class Refused(Exception):
    """The file is made to harm whoever opens it; says how."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read, and how much a packed file may become."""

    characters: int
    """Of a text; what is longer is cut."""
    unpacked: int
    """Bytes that a packed file may become in all."""
    ratio: int = 200
    """How many times its size a packed file may become, if that is more than `small`."""
    small: int = 10_000_000
    """Bytes up to which the ratio does not matter: short and dull files pack well."""
    entries: int = 5_000
    """Files in an archive."""

    def check(self, packed: int, unpacked: int) -> None:
        """Raises `Refused` for a decompression bomb."""
        if unpacked > self.unpacked:
            raise Refused(f"it unpacks to more than {self.unpacked} bytes")
        if unpacked > self.small and unpacked > packed * self.ratio:
            raise Refused(f"it unpacks to more than {self.ratio} times its size")
