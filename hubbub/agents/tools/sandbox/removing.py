"""Deleting a folder that somebody has filled who means no good."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from itertools import count

__all__ = ["remove"]


def remove(folder: str) -> None:
    """Delete a folder, however deep it is and whatever has been shut in it. Nobody may be in it.

    It needs neither a stack nor open folders for its depth: what lies deeper is moved up. What the
    system does not let go stays.
    """
    with suppress(OSError):
        os.chmod(folder, 0o700)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    prefix, numbers = uuid.uuid4().hex, count()
    while entries := _entries(top):
        for name, is_folder in entries:
            if not is_folder:
                os.unlink(name, dir_fd=top)
                continue
            place = _opened(name, top)
            try:
                for inner, is_deeper in _entries(place):
                    if is_deeper:
                        os.chmod(inner, 0o700, dir_fd=place)  # else it cannot be moved
                        moved = f"{prefix}{next(numbers)}"
                        os.rename(inner, moved, src_dir_fd=place, dst_dir_fd=top)
                    else:
                        os.unlink(inner, dir_fd=place)
            finally:
                os.close(place)
            os.rmdir(name, dir_fd=top)


def _opened(name: str, within: int) -> int:
    os.chmod(name, 0o700, dir_fd=within)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names, and whether they are folders."""
    with os.scandir(folder) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
