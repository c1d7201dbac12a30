"""Idempotent writes: what a repeated `cid` is answered."""

from __future__ import annotations

import json

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.network.ports import Store
from hubbub.network.stored import Settled
from hubbub.protocol.codec import encode_send_result
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["conflict", "first_result"]


async def first_result(store: Store, settled: Settled) -> bytes:
    """What the first call with this cid was answered, as JSON."""
    if settled.seq is None:
        return settled.value or b"null"
    body = await store.message(settled.seq)
    if body is None:
        raise StoreUnavailable("the first result is not readable")
    message = Message.model_validate_json(body)
    return encode_send_result(
        message.seq, message.tseq, message.thread_id, body, amends=message.amends
    )


def conflict(cid: str, first: bytes) -> OperationError:
    """The error for a cid that was used for something else."""
    return OperationError(
        ErrorCode.CID_CONFLICT,
        f"cid {cid} was used before with another body",
        details={"first": json.loads(first)},
    )
