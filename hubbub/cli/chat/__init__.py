"""The line-based terminal client: `hubbub chat`."""

from __future__ import annotations

from hubbub.cli.chat.conversation import Console, run_chat
from hubbub.cli.chat.entry import chat, default_name

__all__ = ["Console", "chat", "default_name", "run_chat"]
