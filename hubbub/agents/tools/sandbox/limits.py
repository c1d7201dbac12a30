"""Resource limits of a sandboxed function."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SandboxLimits"]


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Sizes are bytes."""

    memory: int = 512 * 1024 * 1024
    """Address space, including the interpreter's own (about 100 MiB)."""
    cpu: float = 10.0
    """Seconds of processor time."""
    file: int = 16 * 1024 * 1024
    """Size of each file that it writes."""
    files: int = 64
    """Number of open files."""
    threads: int = 64
    """Where the system counts them for the sandbox alone."""
    output: int = 1024 * 1024
    """Size of its result."""
    read: tuple[str, ...] | None = None
    """Absolute paths that it may read, besides what it needs itself; None: all."""
