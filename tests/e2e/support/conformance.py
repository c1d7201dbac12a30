"""The Model Context Protocol's own conformance suite and inspector, where npm can be had.

`python -m tests.e2e.support.conformance` has npm install them into `.venv`, with a Node of their
own, and otherwise says in one line what is missing.
"""

from __future__ import annotations

from tests.e2e.support.npm import NpmPackages

__all__ = ["INSPECTOR", "MISSING", "command"]

_SUITE = NpmPackages("mcp-conformance", ("@modelcontextprotocol/conformance@0.2.0-alpha.12",))
MISSING = _SUITE.missing
INSPECTOR = NpmPackages("mcp-inspector", ("@modelcontextprotocol/inspector@2.12.0",))


def command() -> list[str] | None:
    """What runs the suite, None if it is not there."""
    suite = _SUITE.modules / ".bin" / "conformance"
    return [str(_SUITE.node), str(suite)] if _SUITE.there() else None


if __name__ == "__main__":
    _SUITE.install()
    INSPECTOR.install()
