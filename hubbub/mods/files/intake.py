"""From an upload to a content: judged, read, and kept once, whoever brings it again."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import NoReturn, Protocol

from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.mods.files.catalog import Catalog
from hubbub.mods.files.kinds import HEAD, takes, true_type
from hubbub.mods.files.reading import Limits, NoText, Reading, Refused, inspected, way_to_read
from hubbub.mods.files.uploads import Coming, Content
from hubbub.mods.files.vault import Vault
from hubbub.protocol.codes import ErrorCode

__all__ = ["INDEXED", "Intake"]

log = get_logger(__name__)

INDEXED = 200_000
"""Characters of a text that a search looks through."""
READERS = 2
"""Files that are read at the same time."""


class Rules(Protocol):
    """Of the mod's settings, what is asked for here."""

    @property
    def types(self) -> tuple[str, ...]: ...

    @property
    def max_text(self) -> int: ...

    @property
    def max_unpacked(self) -> int: ...


class Intake:
    """Brings contents in, and removes those that nobody refers to. A content that is being brought
    in is held: it stays though no file has it yet."""

    def __init__(self, vault: Vault, catalog: Catalog):
        self._vault, self._catalog = vault, catalog
        self._held: Counter[str] = Counter()
        self._moving = asyncio.Lock()
        """Contents come and go one at a time, so that none goes while it comes again."""
        self._reading = asyncio.Semaphore(READERS)

    async def take(self, coming: Coming, rules: Rules) -> Content:
        """The content of an upload that is all here; it is held from now on. Raises
        `OperationError` for one that must not stay, and `StoreUnavailable`."""
        vault, id = self._vault, coming.id
        sha256, size = await asyncio.to_thread(vault.flushed, id)
        if size != coming.size:
            _refuse(f"it should have {coming.size} bytes, and has {size}")
        if coming.sha256 not in (None, sha256):
            _refuse(f"the SHA-256 of what has arrived is {sha256}, not {coming.sha256}")
        head = await asyncio.to_thread(vault.part, id, 0, HEAD)
        media_type = true_type(coming.name, coming.media_type, head)
        if not takes(rules.types, coming.name, media_type):
            _refuse(f"{media_type} is not taken here, only {', '.join(rules.types)}")
        reading, why = await self._read(coming, media_type, rules)
        how = way_to_read(media_type)
        async with self._moving:
            if reading is not None and how is not None:
                await asyncio.to_thread(vault.keep_text, id, sha256, how, reading.text)
            await asyncio.to_thread(vault.keep, id, sha256)
            self._held[sha256] += 1
        if reading is None:
            return Content(sha256, media_type, "", 0, why, False)
        return Content(sha256, media_type, reading.text[:INDEXED], reading.lines, "", reading.cut)

    async def _read(
        self, coming: Coming, media_type: str, rules: Rules
    ) -> tuple[Reading | None, str]:
        """What the file says, or why nothing. Raises `OperationError` for a bomb."""
        limits = Limits(characters=rules.max_text, unpacked=rules.max_unpacked)
        path = self._vault.upload_path(coming.id)
        async with self._reading:
            try:
                return await asyncio.to_thread(inspected, path, media_type, limits), ""
            except NoText as why:
                return None, str(why)
            except Refused as why:
                _refuse(str(why))
            except Exception:  # what strangers have made can break any reader in any way
                log.exception("a file could not be read", media_type=media_type)
                return None, "reading it has failed"

    async def release(self, sha256: str, *, held: bool = False) -> None:
        """Remove a content if no file has it and nobody brings it. `held`: who calls held it.
        Raises `StoreUnavailable`."""
        async with self._moving:
            if held:
                self.let_go(sha256)
            if not self._held[sha256] and not self._catalog.refs[sha256]:
                await asyncio.to_thread(self._vault.remove, sha256)

    def let_go(self, sha256: str) -> None:
        """A file has the content now."""
        self._held[sha256] -= 1
        if not self._held[sha256]:
            del self._held[sha256]


def _refuse(why: str) -> NoReturn:
    raise OperationError(ErrorCode.REJECTED, f"files: {why}")
