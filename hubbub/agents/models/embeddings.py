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

from hubbub.agents.models.endpoint_client import open_client
from hubbub.agents.models.openai import Redaction, error_message
from hubbub.config.agents import ModelConfig
from hubbub.errors import ModelError

__all__ = ["Embeddings"]

Vector: TypeAlias = Sequence[float]
_MAX_TIMEOUT_S = 10.0
"""A turn waits for the request, but can do without its result."""


def cache_folder() -> Path:
    """The folder that caches embeddings across processes."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "hubbub", "embeddings")


class Embeddings:
    """The embeddings of one endpoint. `folder` stores those requested with `embed_cached`."""

    def __init__(self, config: ModelConfig, folder: Path | None = None):
        import openai  # slow to import: only for agents that have a model

        self._config, self._folder = config, folder or cache_folder()
        self._cached: dict[str, list[Vector]] = {}
        self._errors = openai.OpenAIError
        self._redacted = Redaction(config.base_url, config.api_key, config.extra_headers.values())
        self._client = open_client(config).with_options(
            timeout=min(config.timeout, _MAX_TIMEOUT_S),
            max_retries=min(config.retries, 1),
            default_headers=config.extra_headers,
        )

    async def close(self) -> None:
        await self._client.close()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed the texts in one request, in order. Raises `ModelError`."""
        try:
            answer = await self._client.embeddings.create(
                model=self._config.model, input=list(texts), encoding_format="float"
            )
            ordered = sorted(answer.data, key=lambda item: item.index)
            vectors: list[Vector] = [array("f", item.embedding) for item in ordered]
        except self._errors as exc:
            message = error_message(getattr(exc, "body", None), str(exc))
            raise ModelError(self._failure(" ".join(message.split())[:300])) from exc
        except (AttributeError, TypeError, ValueError) as exc:
            raise ModelError(self._failure("its answer contains none")) from exc
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ModelError(self._failure("there is not one for each text"))
        return vectors

    async def embed_cached(self, texts: Sequence[str]) -> list[Vector]:
        """Like `embed`, cached while model, endpoint and texts are unchanged."""
        identity = json.dumps([self._config.base_url, self._config.model, *texts])
        fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        vectors = self._cached.get(fingerprint)
        if vectors is None:
            file = self._folder / f"{fingerprint}.json"
            vectors = await asyncio.to_thread(_read, file, len(texts))
            if vectors is None:
                vectors = await self.embed(texts)
                with contextlib.suppress(OSError):  # the next process requests them again
                    await asyncio.to_thread(_write, file, vectors)
            self._cached = {fingerprint: vectors}
        return vectors

    def _failure(self, reason: str) -> str:
        return f"{self._redacted.address} returned no embeddings: {self._redacted(reason)}"


def _read(file: Path, count: int) -> list[Vector] | None:
    """The cached vectors; None if the file is missing or invalid."""
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
