"""The Model Context Protocol's own conformance suite and inspector, if npm is available.

`python -m tests.e2e.support.conformance` installs them with npm into `.venv`, with their own Node,
or reports in one line what is missing.
"""

from __future__ import annotations

from tests.e2e.support.npm import NpmPackages

__all__ = ["INSPECTOR", "MISSING", "command"]

_SUITE = NpmPackages("mcp-conformance", ("@modelcontextprotocol/conformance@0.2.0-alpha.12",))
MISSING = _SUITE.missing
INSPECTOR = NpmPackages("mcp-inspector", ("@modelcontextprotocol/inspector@2.12.0",))


def command() -> list[str] | None:
    """The command that runs the suite, None if it is not installed."""
    suite = _SUITE.modules / ".bin" / "conformance"
    return [str(_SUITE.node), str(suite)] if _SUITE.there() else None


if __name__ == "__main__":
    _SUITE.install()
    INSPECTOR.install()
