"""Permissions of operations: one table per mod, checked by `test_permission_matrix.py`.

Each operation of a mod has an entry in the mod's table:

* `make` creates the object of the call in the thread `THREAD`, using the peer of its owner, and
  returns its id. Two ids (a document and its comment) are separated by a blank. `thread` is for
  operations on the thread itself.
* `maker` names the caller that creates all objects, if not every caller can.
* `args` are arguments for the object with which a permitted call succeeds.
* `allowed` is the rule: `READERS` of the thread (the default), `AUTHORS` who still read it,
  `AUTHORS_AND_OWNERS`, `OWNERS` of the network, `EVERYBODY`, or any function of a `Who`.
* `missing` is an id without an object. Callers outside the thread must get the same error for it as
  for the object.
* `found` is for lists, which everybody can call: only permitted callers find the object.
* `refused` is the code for callers in the thread that are not permitted.

Eight callers (owner, person, agent, service; each inside and outside the thread) make each call for
an object of their own and for one of another participant.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from pydantic import JsonValue

from hubbub.protocol.thread_ids import relative
from tests.interaction.peers import Peer, soon

__all__ = ["TABLES", "Entry", "Role", "Table", "Who"]

THREAD = "channel.desk"

Role = Literal["owner", "person", "agent", "service"]
Answer = dict[str, Any]
"""Plain JSON; tests know which keys are present."""
Make = Callable[[Peer], Awaitable[str]]


@dataclass(frozen=True)
class Who:
    """A caller and its relation to the object."""

    role: Role
    member: bool
    """Whether it reads the thread."""
    own: bool
    """Whether it created the object."""

    @property
    def name(self) -> str:
        return f"{self.role}_{'in' if self.member else 'out'}"

    def __str__(self) -> str:
        return f"{self.name} ({'own' if self.own else 'other'})"


Rule = Callable[[Who], bool]
READERS: Rule = lambda who: who.member  # noqa: E731  # a table of rules
AUTHORS: Rule = lambda who: who.member and who.own  # noqa: E731
AUTHORS_AND_OWNERS: Rule = lambda who: who.member and (who.own or who.role == "owner")  # noqa: E731
OWN: Rule = lambda who: who.own  # noqa: E731
OWNERS: Rule = lambda who: who.role == "owner"  # noqa: E731
EVERYBODY: Rule = lambda who: True  # noqa: E731


async def thread(peer: Peer) -> str:
    """The object is the thread itself."""
    return THREAD


async def thread_as_shown(peer: Peer) -> str:
    return relative(THREAD, "")


@dataclass(frozen=True)
class Entry:
    """The permissions of an operation; see the module's docstring."""

    make: Make = thread
    maker: str = ""
    args: Callable[[str], Mapping[str, Any]] = lambda id: {}
    allowed: Rule = READERS
    missing: str = ""
    found: Callable[[Answer, str], bool] | None = None
    refused: str = "forbidden"


@dataclass(frozen=True)
class Table:
    """The entries of a mod; `settings` configure it, `beside` lists further mods to load."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    beside: Sequence[str] = ()


def making(name: str, key: str = "id", /, **args: Any) -> Make:
    """Create an object with this operation; `key` is the key of its id in the answer."""

    async def make(peer: Peer) -> str:
        return str((await peer.call(name, **args))[key])

    return make


def then(make: Make, name: str, arg: str, /, **args: Any) -> Make:
    """Create an object, then call this operation on it."""

    async def both(peer: Peer) -> str:
        id = await make(peer)
        await peer.call(name, **{arg: id}, **args)
        return id

    return both


def about(make: Make, arg: str, missing: str, allowed: Rule = READERS, /, **args: Any) -> Entry:
    return Entry(make, args=lambda id: {arg: id, **args}, allowed=allowed, missing=missing)


def within(arg: str = "thread", /, **args: Any) -> Entry:
    return Entry(args=lambda id: {arg: id, **args})


def listed(make: Make, key: str, allowed: Rule = READERS) -> Entry:
    return Entry(
        make, allowed=allowed, found=lambda answer, id: id in [each["id"] for each in answer[key]]
    )


_numbers = count(1)
_message = making("post_to_channel", channel="desk", text="old")
_liked = then(_message, "add_reaction", "message_id", emoji="👍")
_document = making("create_document", title="Plan", text="old", thread=THREAD)
_poll = making("create_poll", thread=THREAD, question="Lunch?", options=["Soup", "Rice"])
_reminder = making("remind", thread=THREAD, text="look", when="every 2h")
_task = making("create_task", title="Write", thread=THREAD)
_held = then(_task, "claim_task", "task")
_file = making("write_file", name="x.md", text="text", thread=THREAD)
_upload = making("begin_upload", "upload", name="x.md", size=4, thread=THREAD)
_DATA = b64encode(b"text").decode()
_whole = then(_upload, "upload_chunk", "upload", offset=0, data=_DATA)


async def _comment(peer: Peer) -> str:
    id = await _document(peer)
    return f"{id} {(await peer.call('comment_on_document', id=id, text='why?'))['id']}"


async def _board(peer: Peer) -> str:
    """The board of the thread."""
    await _task(peer)
    return str((await peer.call("list_boards", thread=THREAD))["boards"][-1]["id"])


async def _word(peer: Peer) -> str:
    """Post a message with a unique word; the word."""
    word = f"zebra{next(_numbers)}"
    await peer.say(THREAD, f"a {word} passes")
    return word


async def _replies(peer: Peer) -> str:
    reply = await peer.call("reply", message_id=await _message(peer), text="yes")
    return relative(str(reply["thread_id"]), "")


async def _failed(peer: Peer) -> str:
    """An abandoned delivery to an address where no server listens."""
    id = await _message(peer)
    which: dict[str, Any] = {"hook": "audit", "state": "failed", "limit": 200}
    async with soon():
        while True:
            for each in (await peer.call("webhook_deliveries", **which))["deliveries"]:
                if each["message_id"] == id:
                    return str(each["id"])


def _trusted(make: Make, arg: str, missing: str, allowed: Rule, /, **args: Any) -> Entry:
    """An object that does not exist for other callers, even readers of the thread."""
    return Entry(
        make,
        args=lambda id: {arg: id, **args},
        allowed=allowed,
        missing=missing,
        refused="not_found",
    )


def _uploaded(make: Make, **more: Any) -> Entry:
    return _trusted(make, "upload", f"u{'0' * 16}", OWN, **more)


def _reminding() -> Entry:
    return _trusted(_reminder, "id", "r999999", lambda who: who.own or who.role == "owner")


_readers_or_own: Rule = lambda who: who.member or who.own  # noqa: E731
_own_or_owner: Rule = lambda who: who.own or (who.member and who.role == "owner")  # noqa: E731
_HEADER = {"transcript": 1, "network": "old", "epoch": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
_NEW = [{"first": 1, "last": 1, "text": "new"}]
_REPLIES_GONE = f"{relative(THREAD, '')}.t999999"

TABLES = {
    "moderation": Table(),
    "digest": Table(
        {
            "digest": Entry(
                thread_as_shown, args=lambda id: {"threads": [id]}, missing="channel_nowhere"
            ),
            "mark_visit": Entry(args=lambda _: {"upto": 0}, allowed=EVERYBODY),
        }
    ),
    "directory": Table(
        {  # a caller can only change its own card, since no argument names another
            "find_agent": Entry(args=lambda _: {"need": "plans"}, allowed=EVERYBODY),
            "list_agents": Entry(allowed=EVERYBODY),
            "read_card": Entry(args=lambda _: {"participant": "other"}, allowed=EVERYBODY),
            "update_card": Entry(args=lambda _: {"skills": ["plans"]}, allowed=EVERYBODY),
        }
    ),
    "documents": Table(
        {
            "create_document": within(title="Plan"),
            "list_documents": listed(_document, "documents"),
            "read_document": about(_document, "id", "d999999"),
            "document_history": about(_document, "id", "d999999"),
            "diff_document": about(_document, "id", "d999999", old=1),
            "edit_document": about(_document, "id", "d999999", base_version=1, edits=_NEW),
            "write_document": about(_document, "id", "d999999", base_version=1, text="new"),
            "comment_on_document": about(_document, "id", "d999999", text="why?"),
            "read_document_comments": about(_document, "id", "d999999"),
            "resolve_document_comment": Entry(
                _comment,
                args=lambda ids: {"id": ids.split()[0], "comment": int(ids.split()[1])},
                missing="d999999 1",
            ),
        }
    ),
    "edits": Table(
        {
            "edit_message": about(_message, "message_id", "m999999", AUTHORS, text="new"),
            "delete_message": about(_message, "message_id", "m999999", AUTHORS_AND_OWNERS),
            "message_history": about(_message, "message_id", "m999999"),
        }
    ),
    "files": Table(
        {
            "begin_upload": within(name="x.md", size=4),
            "write_file": within(name="x.md", text="text"),
            "upload_chunk": _uploaded(_upload, offset=0, data=_DATA),
            "upload_state": _uploaded(_upload),
            "cancel_upload": _uploaded(_upload),
            "finish_upload": _uploaded(_whole),
            "list_files": listed(_file, "files", _readers_or_own),
            "file_info": about(_file, "id", "f9999", _readers_or_own),
            "read_file": about(_file, "id", "f9999", _readers_or_own),
            "download_chunk": about(_file, "id", "f9999", _readers_or_own),
            "share_file": Entry(_file, args=lambda id: {"id": id, "thread": THREAD}),
            "delete_file": about(_file, "id", "f9999", _own_or_owner),
        },
        {"max_uploads": 100},
    ),
    "polls": Table(
        {
            "create_poll": within(question="Lunch?", options=["Soup", "Rice"]),
            "list_polls": listed(_poll, "polls"),
            "read_poll": about(_poll, "poll", "p999999"),
            "vote": about(_poll, "poll", "p999999", options=["Soup"]),
            "retract_vote": about(_poll, "poll", "p999999"),
            "close_poll": about(_poll, "poll", "p999999", AUTHORS_AND_OWNERS),
        },
        {"announce": False, "max_open": 1000},
    ),
    "reactions": Table(
        {
            **{
                f"{verb}_reaction": about(_liked, "message_id", "m999999", emoji="👍")
                for verb in ("add", "remove", "toggle")
            },
            "list_reactions": Entry(
                _liked,
                args=lambda id: {"message_ids": [id]},
                found=lambda answer, id: (
                    [each["message_id"] for each in answer["messages"]] == [id]
                ),
            ),
        }
    ),
    "schedule": Table(
        {
            "remind": within(text="look", when="every 2h"),
            "list_reminders": listed(_reminder, "reminders", OWN),
            "cancel_reminder": _reminding(),
            "pause_reminder": _reminding(),
            "resume_reminder": _reminding(),
        },
        {"each": 100},
    ),
    "search": Table(
        {
            "search": Entry(
                _word,
                args=lambda word: {"query": word},
                found=lambda answer, word: any(word in hit["snippet"] for hit in answer["hits"]),
            )
        }
    ),
    "tasks": Table(
        {
            "create_board": Entry(args=lambda id: {"thread": id, "name": f"{next(_numbers)}"}),
            "list_boards": listed(_board, "boards"),
            "board_as_markdown": about(_board, "board", "b999999"),
            "create_task": within(title="Write"),
            "list_tasks": listed(_task, "tasks"),
            "read_task": about(_task, "task", "t999999"),
            "update_task": about(_task, "task", "t999999", title="Rewrite"),
            "claim_task": about(_task, "task", "t999999"),
            "reopen_task": about(then(_task, "finish_task", "task"), "task", "t999999"),
            # Held tasks belong to the holder, the author and the owners.
            "release_task": about(_held, "task", "t999999", AUTHORS_AND_OWNERS),
            "finish_task": about(_held, "task", "t999999", AUTHORS_AND_OWNERS),
            "cancel_task": about(_held, "task", "t999999", AUTHORS_AND_OWNERS),
            "assign_task": about(_held, "task", "t999999", AUTHORS_AND_OWNERS, to="other"),
        },
        {"max_active": 1000},
    ),
    "threads": Table(
        {
            "set_thread_title": about(_replies, "thread", _REPLIES_GONE, title="Release"),
            **{
                f"{verb}_thread": about(_replies, "thread", _REPLIES_GONE)
                for verb in ("resolve", "reopen", "follow", "unfollow", "mute", "unmute")
            },
            "list_thread_info": Entry(
                _replies,
                found=lambda answer, id: (
                    id in [relative(each["thread_id"], "") for each in answer["threads"]]
                ),
            ),
        }
    ),
    "transcript": Table(
        {
            "export_transcript": about(thread_as_shown, "thread", "channel_nowhere"),
            "import_transcript": Entry(
                args=lambda _: {"header": json.dumps(_HEADER), "lines": []}, allowed=OWNERS
            ),
        }
    ),
    "webhooks": Table(
        {
            "list_webhooks": Entry(allowed=OWNERS),
            "webhook_deliveries": Entry(args=lambda _: {"hook": "audit"}, allowed=OWNERS),
            "retry_webhook": Entry(_failed, "owner_in", args=lambda id: {"id": id}, allowed=OWNERS),
        },
        {
            "attempts": 1,
            "hooks": [
                {"name": "audit", "url": "http://127.0.0.1:9/x", "secret": "correct horse battery"}
            ],
        },
    ),
}
