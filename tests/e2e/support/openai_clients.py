"""Clients of the OpenAI API from npm: the `openai` package, and Deep Chat, a chat page.

`python -m tests.e2e.support.openai_clients` installs them and a Node with npm into `.venv`, or
reports in one line what is missing.
"""

from __future__ import annotations

from tests.e2e.support.npm import NpmPackages

__all__ = ["CLIENTS"]

CLIENTS = NpmPackages("openai-clients", ("openai@7.57.0", "deep-chat@2.4.2"))

if __name__ == "__main__":
    CLIENTS.install()
