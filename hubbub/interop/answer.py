"""The answer that ends a turn, and the workspace files it links to."""

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
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import ToolCallRecord

__all__ = ["ANSWER", "MAX_FILES", "AnswerTool", "end_after", "truncate"]

ANSWER = "answer"
"""Records the last call of a turn; never offered as a tool."""
MAX_FILES = 20
"""Files per answer."""
Payload = Mapping[str, JsonValue]
_MAX_COPY_BYTES = 48 * 1024
"""Size limit of a file copied into the network: the most text `write_file` accepts."""
_COPIES = 1000
"""First call number of an answer's file copies, for their idempotency keys."""


def end_after(answer: ToolCallRecord) -> End:
    """How the turn ends after its answer was sent or refused."""
    if answer.error is None:
        return End("finished")
    text = answer.arguments.get("text") if isinstance(answer.arguments, dict) else None
    return End("no_action", f"its answer was refused: {answer.result}", str(text or ""))


class AnswerTool:
    """Answers the message that woke the agent, reports the result of a request, or asks back.

    Files changed by the turn are attached. A network that stores files gets a copy, which others
    can read; otherwise the attachment links into the workspace.
    """

    name = ANSWER
    spec = ToolSpec(
        ANSWER,
        "Answer the message that woke you.",
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
        """`offers` returns whether the hub has an operation."""
        self._caller, self._offers, self._workspace = caller, offers, workspace

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Send the answer. Raises `ToolFailed` if the hub refuses it."""
        listed = arguments.get("files")
        paths = [str(path) for path in listed] if isinstance(listed, list) else []
        files = [await self._attached(path, n, site) for n, path in enumerate(paths)]
        if isinstance(links := arguments.get("links"), list):
            files += links
        payload: Payload = {
            "text": arguments["text"],
            "attachments": [file for file in files if file is not None],
            **untrusted_mark(site.untrusted),
        }
        request, status = arguments.get("request"), arguments.get("status", "result")
        try:
            if not (request and await self._report(payload, site, request=request, status=status)):
                await self._send("send_text_message", payload, site, to=site.thread_id)
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return "sent"

    async def _report(self, payload: Payload, site: CallSite, **request: JsonValue) -> bool:
        """Report it. False if the request has ended, for example while a person decided."""
        try:
            await self._send("report", payload, site, **request)
        except OperationError as exc:
            if exc.code != ErrorCode.REQUEST_OVER:
                raise
            return False
        return True

    async def _send(self, name: str, payload: Payload, site: CallSite, **to: JsonValue) -> None:
        await self._caller.call(name, cid=site.cid, cause=site.turn, **payload, **to)

    async def _attached(self, path: str, n: int, site: CallSite) -> JsonValue:
        """The file as an attachment; None if it is gone or outside the workspace."""
        file = _inside(self._workspace, path)
        if file is None:
            return None
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        copies = self._offers("write_file")
        uri = await self._copied(file, n, site) if copies else file.as_uri()
        return uri and {"name": path[-255:], "media_type": kind, "uri": uri[:2048]}

    async def _copied(self, file: Path, n: int, site: CallSite) -> str | None:
        """The URI of the copy; None if the file is too large or not text."""
        if (text := _text(file)) is None:
            return None
        cid = write_id(site.turn, site.step, _COPIES + n)
        call = partial(self._caller.call, "write_file", cid=cid, name=file.name, text=text)
        try:
            stored = await (call(untrusted=True) if site.untrusted else call())
        except OperationError:
            return None
        return f"file:{stored['id']}" if isinstance(stored, dict) else None


def _inside(workspace: Path, path: str) -> Path | None:
    file = (workspace / path).resolve()
    return file if file.is_relative_to(workspace.resolve()) and file.is_file() else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8") if file.stat().st_size <= _MAX_COPY_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def truncate(text: str, max_bytes: int) -> str:
    """`text`, cut to `max_bytes` of UTF-8 and marked if it was longer."""
    if len(text.encode()) <= max_bytes:
        return text
    return text.encode()[: max_bytes - len(_REST.encode())].decode(errors="ignore") + _REST


_REST = "…\n(the rest is in the turn's record)"
