"""Who reads a thread may title, resolve, follow and mute it."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.client import Client
from hubbub.protocol.thread_ids import relative
from tests.interaction.mods.permissions import THREAD, Entry, ask


async def replies(client: Client) -> str:
    channel = THREAD.partition(".")[2]
    under = await ask(client, "post_to_channel", channel=channel, text="a question")
    told = await ask(client, "reply", message_id=under["id"], text="yes")
    return relative(str(told["thread_id"]), "")


def _about(**more: object) -> Entry:
    def args(thread: str) -> Mapping[str, object]:
        return {"thread": thread, **more}

    return Entry(make=replies, args=args, missing=f"{relative(THREAD, '')}.t999999")


ENTRIES = {
    "set_thread_title": _about(title="Release"),
    "resolve_thread": _about(),
    "reopen_thread": _about(),
    "follow_thread": _about(),
    "unfollow_thread": _about(),
    "mute_thread": _about(),
    "unmute_thread": _about(),
    "list_thread_info": Entry(
        make=replies,
        found=lambda answer, id: (
            id in [relative(each["thread_id"], "") for each in answer["threads"]]
        ),
    ),
}
