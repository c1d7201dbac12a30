"""The mod `moderation`: rules for what is said, and secrets that never enter the log."""

from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig

__all__ = ["Moderation", "ModerationConfig"]
