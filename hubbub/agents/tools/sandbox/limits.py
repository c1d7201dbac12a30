"""How much a sandboxed function may use."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes are bytes."""

    memory: int = 512 * 1024 * 1024
    """Address space, the interpreter's own (about 100 MiB) included."""
    cpu: float = 10.0
    """Seconds of processor time."""
    file: int = 16 * 1024 * 1024
    """Of each file that it writes."""
    files: int = 64
    """That are open at once."""
    threads: int = 64
    """Where the system counts them for the sandbox alone."""
    output: int = 1024 * 1024
    """Of its result."""
    read: tuple[str, ...] | None = None
    """Absolute paths that it may read besides what it needs itself; None: all."""
