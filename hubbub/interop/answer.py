"""The answer that a turn ends with, and the files of the workspace that it links."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm
from hubbub.agents.tools.hub import HubCaller, hub_refusal
from hubbub.agents.turn.loop import End
from hubbub.agents.turn.outbox import untrusted_mark
from hubbub.errors import OperationError
from hubbub.ids import write_id
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import ToolCallRecord

__all__ = ["ANSWER", "MOST_FILES", "AnswerTool", "cut", "end_after"]

ANSWER = "answer"
"""What the last call of a turn is recorded as; no program is offered it."""
MOST_FILES = 20
"""Files that an answer links."""
_MOST_BYTES = 48 * 1024
"""Of a file that is copied into the network: what its operation takes as text."""
_COPIES = 1000
"""Where the numbers of an answer's copies begin, for their idempotency keys."""


def end_after(answer: ToolCallRecord) -> End:
    """How a turn ends whose answer was sent, or refused."""
    if answer.error is None:
        return End("finished")
    text = answer.arguments.get("text") if isinstance(answer.arguments, dict) else None
    return End("no_action", f"its answer was refused: {answer.result}", str(text or ""))


class AnswerTool:
    """Answers whoever woke the agent, or reports what a request has led to, or asks back about it.

    Files that the turn has changed are attached: copied into the network where it keeps files, so
    that others can read what is meant, else as links into the workspace.
    """

    name = ANSWER
    spec = ToolSpec(
        ANSWER,
        "Answer whoever wrote.",
        {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "request": {"type": "string"},
                "status": {"type": "string"},
                "files": {"type": "array", "items": {"type": "string"}},
                "links": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["text"],
        },
    )
    permission: Permission = "write"
    confirm: Confirm = False
    idempotent = True  # its writes have a cid each
    ordered = True
    speaks = True
    timeout = None

    def __init__(self, caller: HubCaller, offers: Callable[[str], bool], workspace: Path):
        """`offers` says whether the hub has an operation."""
        self._caller, self._offers, self._workspace = caller, offers, workspace

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Send it. Raises `ToolFailed` where the hub refuses."""
        named = arguments.get("files")
        paths = [str(path) for path in named] if isinstance(named, list) else []
        files = [await self._attached(path, n, site) for n, path in enumerate(paths)]
        if isinstance(links := arguments.get("links"), list):
            files += links
        told: dict[str, JsonValue] = {
            "text": arguments["text"],
            "attachments": [file for file in files if file is not None],
            **untrusted_mark(site.untrusted),
        }
        name = "send_text_message"
        if (request := arguments.get("request")) is not None:
            name = "report"
            told |= {"request": request, "status": arguments.get("status", "result")}
        else:
            told["to"] = site.thread_id
        try:
            await self._caller.call(name, cid=site.cid, cause=site.turn, **told)
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return "sent"

    async def _attached(self, path: str, n: int, site: CallSite) -> JsonValue:
        """The file as an attachment; None if it is gone, or none of the workspace's."""
        file = _inside(self._workspace, path)
        if file is None:
            return None
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        copies = self._offers("write_file")
        uri = await self._copied(file, n, site) if copies else file.as_uri()
        return uri and {"name": path[-255:], "media_type": kind, "uri": uri[:2048]}

    async def _copied(self, file: Path, n: int, site: CallSite) -> str | None:
        """Where its copy is to be had; None if it is too large, or no text."""
        if (text := _text(file)) is None:
            return None
        cid, mark = write_id(site.turn, site.step, _COPIES + n), site.untrusted
        call = partial(self._caller.call, "write_file", cid=cid, name=file.name, text=text)
        try:
            kept = await (call(outside=True) if mark else call())
        except OperationError:
            return None
        return f"file:{kept['id']}" if isinstance(kept, dict) else None


def _inside(workspace: Path, path: str) -> Path | None:
    file = (workspace / path).resolve()
    return file if file.is_relative_to(workspace.resolve()) and file.is_file() else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8") if file.stat().st_size <= _MOST_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def cut(text: str, most: int) -> str:
    """The beginning of a text that is too long for a message of `most` bytes."""
    if len(text.encode()) <= most:
        return text
    return text.encode()[: most - len(_REST.encode())].decode(errors="ignore") + _REST


_REST = "…\n(the rest stands in the turn's record)"
