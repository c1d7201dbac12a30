"""Cards are for everybody; each changes its own only, for there is no way to name another's."""

from __future__ import annotations

from tests.interaction.mods.permissions import EVERYBODY, Entry

ENTRIES = {
    "find_agent": Entry(args=lambda _: {"need": "plans"}, allowed=EVERYBODY),
    "list_agents": Entry(allowed=EVERYBODY),
    "read_card": Entry(args=lambda _: {"participant": "other"}, allowed=EVERYBODY),
    "update_card": Entry(args=lambda _: {"skills": ["plans"]}, allowed=EVERYBODY),
}
