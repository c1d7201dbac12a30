"""Messages from the store as mods show them, still as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hubbub.mods.pipeline import Pipeline
from hubbub.protocol.messages import Message

__all__ = ["shown_bodies", "shown_tails"]


async def shown_bodies(pipeline: Pipeline, bodies: Sequence[bytes]) -> Sequence[bytes]:
    """The messages as they are shown, each as JSON. Raises `StoreUnavailable`."""
    if not pipeline.shows or not bodies:
        return bodies
    messages = [Message.model_validate_json(body) for body in bodies]
    shown = await pipeline.shown(messages)
    return [
        body if now is message else now.model_dump_json(exclude_none=True).encode()
        for body, message, now in zip(bodies, messages, shown, strict=True)
    ]


async def shown_tails(
    pipeline: Pipeline, tails: Mapping[int, Sequence[bytes]], limit: int
) -> Mapping[int, Sequence[bytes]]:
    """The last messages of threads as they are shown: of each thread the last `limit`, among which
    edits and deletions do not count. Raises `StoreUnavailable`."""
    if not pipeline.shows:
        return tails
    cut = {number: _last(bodies, limit) for number, bodies in tails.items()}
    shown = iter(await shown_bodies(pipeline, [body for tail in cut.values() for body in tail]))
    return {number: [next(shown) for _ in tail] for number, tail in cut.items()}


def _last(bodies: Sequence[bytes], limit: int) -> Sequence[bytes]:
    said = [n for n, body in enumerate(bodies) if not _amends(body)]
    return bodies[said[-limit] :] if len(said) > limit else bodies


def _amends(body: bytes) -> bool:
    return b'"amends"' in body and "amends" in json.loads(body)
