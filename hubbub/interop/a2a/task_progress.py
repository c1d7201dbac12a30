"""The state of a task at a remote agent, built from its events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from a2a.types import Artifact, Part, StreamResponse, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from pydantic import JsonValue

from hubbub.interop.a2a.peer import MAX_BYTES, PeerFailed
from hubbub.protocol.messages import Message

__all__ = ["TaskProgress", "parts_of"]

MAX_LINKS = 20
MAX_URI = 2048
_FINAL_STATES = {
    TaskState.TASK_STATE_COMPLETED: "",
    TaskState.TASK_STATE_INPUT_REQUIRED: "",
    TaskState.TASK_STATE_FAILED: "the task failed",
    TaskState.TASK_STATE_REJECTED: "the task was rejected",
    TaskState.TASK_STATE_CANCELED: "the task was canceled there",
    TaskState.TASK_STATE_AUTH_REQUIRED: "it requires other credentials: see a2a.token",
}
"""States without further events, and the reason if they are failures."""


@dataclass
class TaskProgress:
    """The task so far."""

    task: str = ""
    context: str = ""
    state: TaskState = TaskState.TASK_STATE_UNSPECIFIED
    note: str = ""
    """The text of the last status message."""
    links: list[JsonValue] = field(default_factory=list)
    """The files of the last status message."""
    _artifacts: dict[str, Artifact] = field(default_factory=dict)
    _bytes: int = 0

    @property
    def is_done(self) -> bool:
        return self.state in _FINAL_STATES

    @property
    def is_question(self) -> bool:
        """Whether the task waits for an answer to its question."""
        return self.state == TaskState.TASK_STATE_INPUT_REQUIRED

    @property
    def failure(self) -> str:
        """Why there is no answer; empty if there is one."""
        reason = _FINAL_STATES.get(self.state, "")
        return f"{reason}: {self.note}" if reason and self.note else reason

    def result(self) -> tuple[str, list[JsonValue]]:
        """The text of the answer, and its files, which stay at the remote agent."""
        artifacts = [_read(artifact.parts) for artifact in self._artifacts.values()]
        text = "\n\n".join(text for text, _ in artifacts if text)
        links = [link for _, files in artifacts for link in files]
        if self.is_question or not (text or links):
            text = "\n\n".join(part for part in (text, self.note) if part)
            links += self.links
        return text or ", ".join(_name(link) for link in links), links[:MAX_LINKS]

    @property
    def written(self) -> str:
        """The result's text so far."""
        texts = (part.text for a in self._artifacts.values() for part in a.parts)
        return "".join(texts)

    def add(self, event: StreamResponse) -> None:
        """Apply an event. Raises `PeerFailed` if there is too much data."""
        self._bytes += event.ByteSize()
        if self._bytes > MAX_BYTES:
            raise PeerFailed(f"its response has more than {MAX_BYTES} bytes")
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
                artifact = self._artifacts.get(update.artifact.artifact_id)
                if update.append and artifact is not None:
                    _append(artifact, update.artifact.parts)
                else:
                    self._artifacts[update.artifact.artifact_id] = update.artifact

    def _status(self, status: TaskStatus) -> None:
        self.state = status.state
        if status.HasField("message"):
            self.note, self.links = _read(status.message.parts)


def _append(artifact: Artifact, parts: Iterable[Part]) -> None:
    """Append parts; consecutive text becomes one part."""
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
                try:
                    data = MessageToDict(part).get("data")
                except SerializeToJsonError as error:  # NaN, which the SDK accepts
                    raise PeerFailed(f"its data is not JSON: {error}") from None
                texts.append(json.dumps(data, ensure_ascii=False))
            case "url" if part.url.startswith(("http://", "https://")) and len(part.url) <= MAX_URI:
                kind = part.media_type or "application/octet-stream"
                links.append({"name": name, "media_type": kind[:255], "uri": part.url})
            case "raw" | "url":
                texts.append(f"({name}: a file without a web address, which is not stored)")
    return "\n\n".join(texts), links


def _name(link: JsonValue) -> str:
    return str(link["name"]) if isinstance(link, dict) else ""


def parts_of(messages: Iterable[Message], *, named: bool) -> list[Part]:
    """Messages as parts; with `named`, each text starts with its sender."""
    parts = list[Part]()
    for message in messages:
        text = f"{message.sender_id}: {message.text}" if named else message.text
        internal = list[str]()
        for file in message.attachments:
            if file.uri.startswith(("http://", "https://")):
                parts.append(Part(url=file.uri, filename=file.name, media_type=file.media_type))
            else:
                internal.append(f"({file.name}: a file available only in this network)")
        parts.append(Part(text="\n\n".join([text, *internal])))
    return parts
