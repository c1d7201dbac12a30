"""What the hub refuses, in the words of the chat. Pure."""

from __future__ import annotations

import re

from hubbub.errors import OperationError, UserError

__all__ = ["told"]

_LISTS = {
    "list_tasks": "/tasks",
    "list_polls": "/polls",
    "list_files": "/files",
    "list_documents": "/docs",
}
_IN_CHAT = (
    (re.compile(r"'([A-Za-z0-9_-]+)'( \w+)?; use join_channel\b"), r"'\1'\2; /join \1"),
    (re.compile(r"\bsee list_threads\b"), "/threads lists yours"),
    (re.compile(r"\bsee list_channels\b"), "/join and Tab list them"),
    (re.compile(r"\bsee list_participants\b"), "/who lists them"),
    (re.compile(r"\bsee list_approvals\b"), "/approvals lists them"),
    *((re.compile(rf"\bsee {name}\b"), f"{word} lists them") for name, word in _LISTS.items()),
    (re.compile(r"\bread_poll tells the result"), "/polls tells the result"),
    (re.compile(r"\bjoin_channel\b"), "/join"),
    (re.compile(r"\blist_threads\b"), "/threads"),
    (re.compile(r"\blist_participants\b"), "/who"),
)
"""The hub speaks to programs and models; here its operations have other names."""


def told(error: OperationError | UserError) -> str:
    """Why something failed, with the commands of the chat in place of the hub's operations."""
    if not isinstance(error, OperationError):
        return str(error)
    text = error.message
    for pattern, command in _IN_CHAT:
        text = pattern.sub(command, text)
    return text
