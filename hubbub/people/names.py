"""Names of people and threads as people type them: `bob`, `a,b`, `#general`, `direct_bob`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from hubbub.errors import UserError
from hubbub.people.text import one_line
from hubbub.protocol import thread_ids
from hubbub.wording import did_you_mean

__all__ = ["check_name", "default_name", "find_thread", "label", "members", "names_in"]

_REPLIES = re.compile(r"(?P<top>.+?)(?P<replies>(?:\.t[1-9]\d*|\s*›\s*m[1-9]\d*)+)")


def check_name(name: str) -> str:
    """Returns `name` if it is a valid participant's name. Raises `UserError`."""
    if not thread_ids.is_participant_id(name):
        raise UserError(
            f"{name!r} is not a valid name: use ASCII letters, digits, - and _, at most 64, and no "
            "reserved word"
        )
    return name


def default_name(humans: Sequence[str], user: str) -> str:
    """The default name: the config's first person, else the user name with invalid characters
    replaced."""
    if humans:
        return humans[0]
    legal = re.sub(r"[^A-Za-z0-9_-]+", "-", user).strip("-")[:64]
    return legal if thread_ids.is_participant_id(legal) else "guest"


def names_in(text: str) -> tuple[str, ...]:
    """The distinct names in `bob`, `@bob, @carol` or `bob+carol`."""
    names = (part.strip().lstrip("@") for part in re.split(r"[,+]", text))
    return tuple(dict.fromkeys(name for name in names if name))


def label(thread_id: str, reader: str) -> str:
    """A thread's name for `reader`: `#general`, `@bob`, `@bob,@carol`, `#general › m13`; a direct
    thread of others keeps its id."""
    top = thread_ids.root(thread_id)
    if top.startswith("dm."):
        others = [member for member in thread_ids.members_of(top) if member != reader]
        is_member = reader in thread_ids.members_of(top)
        shown = ",".join(f"@{member}" for member in others) if is_member else top
    elif top.startswith("channel."):
        shown = "#" + top.partition(".")[2]
    else:
        shown = thread_ids.relative(top, reader)
    replies = thread_id.removeprefix(top).split(".t")[1:]
    return "".join([shown, *(f" › m{seq}" for seq in replies)])


def find_thread(text: str, reader: str, people: Collection[str], channels: Collection[str]) -> str:
    """The canonical id of a thread that `reader` names in any form.

    A bare name is a participant, else a channel. Raises `UserError` with the nearest match.
    """
    text = text.strip()
    thread_id = _conversation(text, reader, people, channels)
    if thread_id is not None:
        return thread_id
    if (match := _REPLIES.fullmatch(text)) is not None:
        replies = "".join(f".t{seq}" for seq in re.findall(r"\d+", match["replies"]))
        return find_thread(match["top"], reader, people, channels) + replies
    if "hub" in names_in(text.removeprefix("direct_")):
        raise UserError(_HUB)
    names = [*people, *channels, *(f"#{name}" for name in channels), *(f"@{p}" for p in people)]
    hint = did_you_mean(text.lstrip("@#"), names)
    raise UserError(f"there is no {_noun(text)} {one_line(text)!r}{hint}")


def members(threads: Iterable[str]) -> set[str]:
    """The members of the direct ones among these threads: also `hub`, and those of imported
    threads, which need not be participants."""
    direct = [thread for thread in map(thread_ids.root, threads) if thread.startswith("dm.")]
    return {member for thread in direct for member in thread_ids.members_of(thread)}


def _noun(text: str) -> str:
    """What a name of this form refers to."""
    if thread_ids.is_id(text) and not text.startswith(("direct_", "channel_", "mod_")):
        return "participant or channel"
    return {"@": "participant", "#": "channel"}.get(text[:1], "thread")


_HUB = (
    "hub is the network itself and does not read messages; "
    "write to a participant (see `hubbub agents list`)"
)


def _conversation(
    text: str, reader: str, people: Collection[str], channels: Collection[str]
) -> str | None:
    """The id of a top-level thread; None if `text` does not name one."""
    canonical = thread_ids.canonical(text, reader)
    if canonical is not None:
        return canonical if _exists(canonical, people, channels) else None
    if text.startswith("#"):
        return thread_ids.channel(text[1:]) if text[1:] in channels else None
    if text.lstrip("@") == reader:
        raise UserError("you cannot send a message to yourself")
    others = [name for name in names_in(text.removeprefix("direct_")) if name != reader]
    if others and set(others) <= set(people):
        return thread_ids.direct({*others, reader}) if len(others) < thread_ids.MAX_GROUP else None
    return thread_ids.channel(text) if text in channels else None


def _exists(thread_id: str, people: Collection[str], channels: Collection[str]) -> bool:
    top = thread_ids.root(thread_id)
    if top.startswith("dm."):
        return set(thread_ids.members_of(top)) <= {*people, "operator"}
    return not top.startswith("channel.") or top.partition(".")[2] in channels
