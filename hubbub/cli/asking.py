"""A client that answers with models."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from hubbub.client import Client

__all__ = ["Asking"]

M = TypeVar("M", bound=BaseModel)


class Asking:
    """Calls operations for a person."""

    def __init__(self, client: Client):
        self._client = client

    async def ask(self, shape: type[M], name: str, /, **args: object) -> M:
        """Call an operation; arguments that are None are left out. Raises `OperationError`."""
        # `cid` is no argument of any operation: each call gets a fresh one.
        given = {key: value for key, value in args.items() if value is not None}
        return shape.model_validate(await self._client.call(name, cid=None, **given))
