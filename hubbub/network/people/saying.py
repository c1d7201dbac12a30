"""Notices of the hub about what has happened already: whoever refuses the words does not undo it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.logs import get_logger

if TYPE_CHECKING:
    from hubbub.network.hub import Hub

__all__ = ["say"]

log = get_logger(__name__)


def say(
    hub: Hub,
    thread_id: str,
    text: str,
    details: Mapping[str, JsonValue],
    once: str,
    *,
    to: Iterable[str],
) -> None:
    """Post a notice as `Writes.notice` does, if the mods let it: notices are posted from within
    commits, and nobody waits there to be told that a mod rejects them or is broken."""
    try:
        hub.writes.notice(thread_id, text, details, once, to=to)
    except OperationError as error:
        log.warning("a notice was refused", thread=thread_id, code=error.code, error=str(error))
    except Exception:  # a mod may raise anything
        log.exception("a notice could not be posted", thread=thread_id)
