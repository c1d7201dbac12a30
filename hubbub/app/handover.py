"""What the launcher of a network tells the processes that it starts, through their environment."""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["RUN", "TOKENS", "URL", "agent_tokens"]

URL = "HUBBUB_URL"
RUN = "HUBBUB_RUN"
TOKENS = "HUBBUB_TOKENS"
"""A JSON object of tokens by agent. Environments are private to a user, command lines are not."""


def agent_tokens(environ: Mapping[str, str]) -> dict[str, str]:
    """What the launcher put into the environment of this process; empty without a launcher."""
    text = environ.get(TOKENS)
    if not text:
        return {}
    found = json.loads(text)
    return {str(name): str(token) for name, token in found.items()}
