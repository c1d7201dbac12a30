"""Backplanes: how the nodes of a hub hear what was committed. `local` is for a hub of one node."""

from __future__ import annotations

from hubbub.network.backplane.local import LocalBackplane

__all__ = ["LocalBackplane"]
