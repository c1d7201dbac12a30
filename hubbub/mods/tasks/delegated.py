"""Requests of one participant to another (`delegate`) as tasks, made and ended by messages."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.mods.rows import Statement
from hubbub.mods.tasks.rows import BoardRow, TaskRow
from hubbub.mods.tasks.writing import board_there, created
from hubbub.protocol.messages import Message, RequestMark

__all__ = ["asked", "ended"]

TITLE, BODY = 200, 10_000
"""Characters that a task has of what was said."""


def asked(message: Message, mark: RequestMark, board: BoardRow, id: int) -> Sequence[Statement]:
    """A task for the request that this message makes."""
    at = message.sent_at.timestamp()
    row = TaskRow(
        id=id,
        board=board.id,
        thread=message.thread_id,
        title=_title(message.text),
        description=message.text[:BODY],
        state="claimed",
        owner=message.recipients[0],
        priority="normal",
        labels="[]",
        due=mark.deadline.timestamp() if mark.deadline else None,
        result="",
        created_by=message.sender_id,
        created_at=at,
        changed_at=at,
        version=1,
        request=message.id,
    )
    return [board_there(board), *created(row)]


def _title(text: str) -> str:
    """The first line that says something."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = "".join(c for c in next(filter(None, lines), "") if c.isprintable()) or "request"
    return line if len(line) <= TITLE else f"{line[: TITLE - 3]}..."


def ended(message: Message, mark: RequestMark) -> Sequence[Statement]:
    """The end of the task for the request that this message ends."""
    done = mark.kind == "result"
    at, result = message.sent_at.timestamp(), message.text[:BODY]
    end = (
        "UPDATE tasks_task SET state = ?, result = ?, changed_at = ?, version = version + 1 "
        "WHERE request = ? AND state = 'claimed'"
    )
    told = (  # ignored where it has ended before: that version has its change
        "INSERT OR IGNORE INTO tasks_change SELECT id, version, ?, ?, ?, ? FROM tasks_task "
        "WHERE request = ?"
    )
    word, note = ("finished", "") if done else ("cancelled", mark.outcome)
    return [
        Statement(end, ("done" if done else "cancelled", result, at, mark.id)),
        Statement(told, (at, message.sender_id, word, note, mark.id)),
    ]
