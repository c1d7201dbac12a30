"""A task of an agent elsewhere, as its answers and events tell of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from a2a.types import Artifact, Part, StreamResponse, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict
from pydantic import JsonValue

from hubbub.interop.a2a.peer import MOST_BYTES, PeerFailed
from hubbub.protocol.messages import Message

__all__ = ["TaskProgress", "parts_of"]

MOST_LINKS = 20
MOST_URI = 2048
_ENDS = {
    TaskState.TASK_STATE_COMPLETED: "",
    TaskState.TASK_STATE_INPUT_REQUIRED: "",
    TaskState.TASK_STATE_FAILED: "it has failed",
    TaskState.TASK_STATE_REJECTED: "it does not take this on",
    TaskState.TASK_STATE_CANCELED: "it was canceled there",
    TaskState.TASK_STATE_AUTH_REQUIRED: "it wants another proof of who asks: see a2a.token",
}
"""States in which nothing more comes by itself, and why that is a failure."""


@dataclass
class TaskProgress:
    """What is known of the task so far."""

    task: str = ""
    context: str = ""
    state: TaskState = TaskState.TASK_STATE_UNSPECIFIED
    note: str = ""
    """What the agent has said of it last, beside the result."""
    links: list[JsonValue] = field(default_factory=list)
    """Of its last status message."""
    _artifacts: dict[str, Artifact] = field(default_factory=dict)
    _bytes: int = 0

    @property
    def over(self) -> bool:
        return self.state in _ENDS

    @property
    def waits(self) -> bool:
        """Whether it goes on with the next message."""
        return self.state == TaskState.TASK_STATE_INPUT_REQUIRED

    @property
    def failure(self) -> str:
        """Why there is no answer; empty: there is one."""
        why = _ENDS.get(self.state, "")
        return f"{why}: {self.note}" if why and self.note else why

    def result(self) -> tuple[str, list[JsonValue]]:
        """The answer, and the files elsewhere that belong to it."""
        told = [_read(artifact.parts) for artifact in self._artifacts.values()]
        text = "\n\n".join(text for text, _ in told if text)
        links = [link for _, some in told for link in some]
        if self.waits or not (text or links):
            text = "\n\n".join(part for part in (text, self.note) if part)
            links += self.links
        return text or ", ".join(_name(link) for link in links), links[:MOST_LINKS]

    @property
    def written(self) -> str:
        """The result's text so far."""
        texts = (part.text for a in self._artifacts.values() for part in a.parts)
        return "".join(texts)

    def take(self, event: StreamResponse) -> None:
        """Raises `PeerFailed` for what has no end."""
        self._bytes += event.ByteSize()
        if self._bytes > MOST_BYTES:
            raise PeerFailed(f"it answers more than {MOST_BYTES} bytes")
        match event.WhichOneof("payload"):
            case "message":
                self.context = event.message.context_id
                self.state = TaskState.TASK_STATE_COMPLETED
                self.note, self.links = _read(event.message.parts)
            case "task":
                self.task, self.context = event.task.id, event.task.context_id
                self._artifacts = {each.artifact_id: each for each in event.task.artifacts}
                self._status(event.task.status)
            case "status_update":
                self._status(event.status_update.status)
            case "artifact_update":
                update = event.artifact_update
                known = self._artifacts.get(update.artifact.artifact_id)
                if update.append and known is not None:
                    _join(known, update.artifact.parts)
                else:
                    self._artifacts[update.artifact.artifact_id] = update.artifact

    def _status(self, status: TaskStatus) -> None:
        self.state = status.state
        if status.HasField("message"):
            self.note, self.links = _read(status.message.parts)


def _join(artifact: Artifact, parts: Iterable[Part]) -> None:
    """Pieces of one text are one part."""
    for part in parts:
        last = artifact.parts[-1] if artifact.parts else None
        if last is not None and last.WhichOneof("content") == part.WhichOneof("content") == "text":
            last.text += part.text
        else:
            artifact.parts.append(part)


def _read(parts: Iterable[Part]) -> tuple[str, list[JsonValue]]:
    texts, links = list[str](), list[JsonValue]()
    for part in parts:
        name = (part.filename or part.url.rpartition("/")[2] or "file")[:255]
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                data = MessageToDict(part).get("data")
                texts.append(json.dumps(data, ensure_ascii=False))
            case "url" if (
                part.url.startswith(("http://", "https://")) and len(part.url) <= MOST_URI
            ):
                kind = part.media_type or "application/octet-stream"
                links.append({"name": name, "media_type": kind[:255], "uri": part.url})
            case "raw" | "url":
                texts.append(
                    f"({name}: a file that came along without an address, and is not kept)"
                )
    return "\n\n".join(texts), links


def _name(link: JsonValue) -> str:
    return str(link["name"]) if isinstance(link, dict) else ""


def parts_of(messages: Iterable[Message], *, named: bool) -> list[Part]:
    """Messages as they are sent on; `named`: with who has written each."""
    parts = list[Part]()
    for message in messages:
        text = f"{message.sender_id}: {message.text}" if named else message.text
        kept = list[str]()
        for file in message.attachments:
            if file.uri.startswith(("http://", "https://")):
                parts.append(Part(url=file.uri, filename=file.name, media_type=file.media_type))
            else:
                kept.append(f"({file.name}: a file that is in this network only)")
        parts.append(Part(text="\n\n".join([text, *kept])))
    return parts
