"""The files of a knowledge folder: which there are, and their text."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["Found", "Limits", "Scan", "Signature", "Unreadable", "read_text", "scan"]

SUFFIXES = (".md", ".markdown")
_MOST_ENTRIES = 100_000
"""Entries of folders that one look goes through, whatever they are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is searched. What is over a limit is left out, and said to be."""

    max_file: int = 1024 * 1024
    """Bytes of a file."""
    max_files: int = 5000
    """Files of all folders."""
    max_size: int = 64 * 1024 * 1024
    """Bytes of all files."""


class Signature(NamedTuple):
    """What changes when a file does."""

    device: int
    inode: int
    mtime_ns: int
    size: int


class Found(NamedTuple):
    """A file that is to be searched."""

    path: Path
    name: str
    """As hits name it: relative to its folder, with `/`."""
    signature: Signature


class Unreadable(Exception):
    """A file that cannot be searched; the text says why."""


@dataclass(slots=True)
class Scan:
    """What lies in the folders at one moment."""

    files: list[Found] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is left out, and why."""
    _size: int = 0
    _entries: int = 0
    _too_many: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, found: Found, limits: Limits) -> None:
        """Take a file, unless it is there under another name or over a limit."""
        device, inode, _, size = found.signature
        if (device, inode) in self._seen:
            return
        self._seen.add((device, inode))
        if size > limits.max_file:
            self.problems.append(f"{found.name}: larger than {limits.max_file} bytes (max_file)")
        elif len(self.files) == limits.max_files or self._size + size > limits.max_size:
            self._too_many += 1
        else:
            self.files.append(found)
            self._size += size

    def counts(self) -> bool:
        """Count an entry of a folder; False: there were too many."""
        self._entries += 1
        return self._entries <= _MOST_ENTRIES

    def closed(self, limits: Limits) -> Scan:
        """With what can be said at the end."""
        if self._too_many:
            said = f"{limits.max_files} files (max_files) or {limits.max_size} bytes (max_size)"
            self.problems.append(f"{self._too_many} further files: there are more than {said}")
        if self._entries > _MOST_ENTRIES:
            said = f"there are more than {_MOST_ENTRIES} files and folders of any kind"
            self.problems.append(f"the rest of the folders: {said}")
        return self


def scan(folders: Mapping[str, Path], limits: Limits) -> Scan:
    """All Markdown below the folders, by name. The keys are put before the files' names.

    Names that begin with a dot are left out. A link to a file counts if it leads to one below the
    same folder; links to folders are not followed: what they lead to is found where it lies.
    """
    scan = Scan()
    for label, folder in folders.items():
        links: list[tuple[str, str]] = []
        for name, entry in _entries(str(folder), label, scan):
            if entry.is_symlink():
                links.append((name, entry.path))
            elif (found := _found(name, entry.path)) is not None:
                scan.add(found, limits)
        root = os.path.realpath(folder) + os.sep
        for name, link in links:  # after what they may lead to
            target = os.path.realpath(link)
            if target.startswith(root) and (found := _found(name, target)) is not None:
                scan.add(found, limits)
    return scan.closed(limits)


def _entries(folder: str, label: str, scan: Scan) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The Markdown files and links below a folder, each folder's own before those below it."""
    todo = [(folder, label)]
    while todo:
        path, label = todo.pop()
        below: list[tuple[str, str]] = []
        for entry in _listed(path, label, scan):
            if not scan.counts():
                return
            if entry.name.startswith("."):
                continue
            shown = os.fsencode(entry.name).decode(errors="backslashreplace")
            name = f"{label}/{shown}" if label else shown
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, name))
            elif entry.name.lower().endswith(SUFFIXES):
                yield name, entry
        todo += reversed(below)


def _listed(path: str, label: str, scan: Scan) -> list[os.DirEntry[str]]:
    """What a folder has, by name."""
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as exc:
        scan.problems.append(f"{label or os.path.basename(path)}: {exc.strerror or exc}")
        return []


def _found(name: str, path: str) -> Found | None:
    """The file at `path`, if it is one and no link."""
    try:
        about = os.lstat(path)
    except OSError:
        return None  # it has gone since the folder was read
    if not stat.S_ISREG(about.st_mode):
        return None
    return Found(Path(path), name, _signature(about))


def _signature(about: os.stat_result) -> Signature:
    return Signature(about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)


def read_text(found: Found, limits: Limits) -> str:
    """The text of a file. Raises `Unreadable` when it is none, or not the file that was found."""
    try:
        data = _read(found, limits.max_file)
    except OSError as exc:
        raise Unreadable(exc.strerror or str(exc)) from exc
    if len(data) > limits.max_file:
        raise Unreadable(f"larger than {limits.max_file} bytes (max_file)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise Unreadable(f"not UTF-8 text (line {line})") from None
    if "\0" in text:
        raise Unreadable("not text: it has a NUL character")
    return text


def _read(found: Found, most: int) -> bytes:
    """The bytes of the file that was found, and of no other that took its place since.

    Neither a link nor a pipe is opened in its stead.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(found.path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if (about.st_dev, about.st_ino) != found.signature[:2] or not stat.S_ISREG(about.st_mode):
            raise Unreadable("replaced while it was read")
        return file.read(most + 1)
