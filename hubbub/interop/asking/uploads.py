"""Uploads of a request's files, which are attached to its message."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.interop.asking.question import QuestionFailed
from hubbub.interop.asking.request import RequestFile
from hubbub.protocol.codes import ErrorCode

__all__ = ["attached"]


async def attached(client: Client, files: Sequence[RequestFile], key: str) -> list[JsonValue]:
    """The attachments of a question with these files, which are uploaded once for its `key`.

    Raises `QuestionFailed`, `OperationError` and `ConnectionLost`.
    """
    attachments: list[JsonValue] = []
    for number, file in enumerate(files):
        uri = file.uri or await _upload(client, file, f"asked:{key}:{number}")
        attachments.append({"name": file.name, "media_type": file.media_type, "uri": uri})
    return attachments


async def _upload(client: Client, file: RequestFile, cid: str) -> str:
    if not client.offers("begin_upload"):
        raise QuestionFailed(
            400, "no_files", "this network stores no files: it needs the mod `files`"
        )
    details = {"name": file.name, "size": len(file.data), "media_type": file.media_type}
    opened = await _call(client, "begin_upload", f"{cid}:begin", details)
    upload, chunk = str(opened["upload"]), int(str(opened["chunk"]))
    for at in range(0, len(file.data), chunk):
        data = base64.b64encode(file.data[at : at + chunk]).decode()
        try:
            await client.call("upload_chunk", upload=upload, offset=at, data=data)
        except OperationError as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
            break  # an earlier request finished it
    done = await _call(client, "finish_upload", f"{cid}:end", {"upload": upload})
    return f"file:{done['id']}"


async def _call(
    client: Client, name: str, cid: str, args: Mapping[str, object]
) -> dict[str, JsonValue]:
    value = await client.call(name, cid=cid, **args)
    assert isinstance(value, dict), "upload operations return objects"
    return value
