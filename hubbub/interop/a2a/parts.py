"""Converts the parts of A2A messages to text and attachments, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from a2a.types import ContentTypeNotSupportedError, InvalidParamsError, Part
from google.protobuf.json_format import MessageToDict
from pydantic import JsonValue

from hubbub.protocol.messages import Message

__all__ = ["files_of", "links", "names", "text_of"]


def text_of(parts: Iterable[Part]) -> str:
    """The text of a message. Raises `ContentTypeNotSupportedError` and `InvalidParamsError`."""
    texts = []
    for part in parts:
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                texts.append(json.dumps(MessageToDict(part)["data"], ensure_ascii=False))
            case "raw":
                raise ContentTypeNotSupportedError("files are accepted only by URL")
            case None:
                raise InvalidParamsError("parts: one part is empty")
    return "\n\n".join(texts) or names(parts)


def names(parts: Iterable[Part]) -> str:
    """The text of a message that has only files."""
    return ", ".join(part.filename or part.url for part in parts)


def files_of(parts: Iterable[Part]) -> list[JsonValue]:
    """The files of a message as attachments."""
    return [
        {
            "name": (part.filename or part.url.rpartition("/")[2] or "file")[:255],
            "media_type": part.media_type or "application/octet-stream",
            "uri": part.url,
        }
        for part in parts
        if part.WhichOneof("content") == "url"
    ]


def links(message: Message) -> list[Part]:
    """Attachments stored outside the network; others cannot read those inside it."""
    return [
        Part(url=file.uri, filename=file.name, media_type=file.media_type)
        for file in message.attachments
        if file.uri.startswith(("http://", "https://"))
    ]
