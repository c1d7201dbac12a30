"""How the nodes of a hub hear what was committed: a port, and the one for a hub of one node."""

from __future__ import annotations

from hubbub.network.backplane.local import LocalBackplane
from hubbub.network.backplane.port import Announced, Backplane

__all__ = ["Announced", "Backplane", "LocalBackplane"]
