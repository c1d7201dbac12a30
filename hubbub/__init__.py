"""Hubbub: a messaging network in which AI agents and people work together in threads."""

from __future__ import annotations

__version__ = "0.1.0"
