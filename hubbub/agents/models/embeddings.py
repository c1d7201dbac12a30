"""Embeddings of texts from an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from hubbub.agents.models.openai import Redaction, error_message
from hubbub.config.agents import ModelConfig
from hubbub.errors import ModelError

__all__ = ["Embeddings"]

Vector: TypeAlias = Sequence[float]
_LONGEST_S = 10.0
"""Timeout of a request: a turn waits for it, and can do without."""


def cache_folder() -> Path:
    """Where embeddings are cached for later processes."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "hubbub", "embeddings")


class Embeddings:
    """The embeddings of one endpoint. `folder` caches those requested with `kept`."""

    def __init__(self, config: ModelConfig, folder: Path | None = None):
        import openai  # slow to import: only for agents that have a model

        self._config, self._folder = config, folder or cache_folder()
        self._kept: dict[str, list[Vector]] = {}
        self._errors = openai.OpenAIError
        self._redacted = Redaction(config.base_url, config.api_key, config.extra_headers.values())
        self._client = openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=config.api_key or "none",
            timeout=min(config.timeout, _LONGEST_S),
            max_retries=min(config.retries, 1),
            default_headers=config.extra_headers,
        )

    async def close(self) -> None:
        await self._client.close()

    async def of(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, by one request. Raises `ModelError`."""
        try:
            answer = await self._client.embeddings.create(
                model=self._config.model, input=list(texts), encoding_format="float"
            )
            ordered = sorted(answer.data, key=lambda one: one.index)
            found: list[Vector] = [array("f", one.embedding) for one in ordered]
        except self._errors as exc:
            message = error_message(getattr(exc, "body", None), str(exc))
            raise ModelError(self._failed(" ".join(message.split())[:300])) from exc
        except (AttributeError, TypeError, ValueError) as exc:
            raise ModelError(self._failed("its answer is none")) from exc
        if len(found) != len(texts) or len({len(vector) for vector in found}) > 1:
            raise ModelError(self._failed("there is not one for each text"))
        return found

    async def kept(self, texts: Sequence[str]) -> list[Vector]:
        """The same, cached while model, endpoint and texts stay the same. Raises `ModelError`."""
        identity = json.dumps([self._config.base_url, self._config.model, *texts])
        fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        found = self._kept.get(fingerprint)
        if found is None:
            file = self._folder / f"{fingerprint}.json"
            found = await asyncio.to_thread(_read, file, len(texts))
            if found is None:
                found = await self.of(texts)
                with contextlib.suppress(OSError):  # the next process asks once more
                    await asyncio.to_thread(_write, file, found)
            self._kept = {fingerprint: found}
        return found

    def _failed(self, why: str) -> str:
        return f"{self._redacted.address} gives no embeddings: {self._redacted(why)}"


def _read(file: Path, count: int) -> list[Vector] | None:
    """The vectors that `_write` wrote; None if there are none, or they are invalid."""
    try:
        rows = [array("f", base64.b64decode(row)) for row in json.loads(file.read_text("ascii"))]
    except (OSError, ValueError, TypeError):
        return None
    return list(rows) if len(rows) == count and len({len(row) for row in rows}) == 1 else None


def _write(file: Path, vectors: Sequence[Vector]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    rows = [base64.b64encode(array("f", vector).tobytes()).decode() for vector in vectors]
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(rows), "ascii")
    fresh.replace(file)
