"""The mods that come with Hubbub, by name; each is imported when a network names it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BUILT_IN"]

BUILT_IN: Mapping[str, str] = {
    "digest": "hubbub.mods.digest.mod:DigestMod",
    "directory": "hubbub.mods.directory.mod:DirectoryMod",
    "documents": "hubbub.mods.documents.mod:DocumentsMod",
    "edits": "hubbub.mods.edits.mod:EditsMod",
    "files": "hubbub.mods.files.mod:FilesMod",
    "moderation": "hubbub.mods.moderation.mod:Moderation",
    "polls": "hubbub.mods.polls.mod:PollsMod",
    "reactions": "hubbub.mods.reactions.mod:ReactionsMod",
    "schedule": "hubbub.mods.schedule.mod:ScheduleMod",
    "search": "hubbub.mods.search.mod:SearchMod",
    "tasks": "hubbub.mods.tasks.mod:TasksMod",
    "threads": "hubbub.mods.threads.mod:ThreadsMod",
    "transcript": "hubbub.mods.transcript.mod:TranscriptMod",
    "webhooks": "hubbub.mods.webhooks.mod:WebhooksMod",
}
