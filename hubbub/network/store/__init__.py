"""Stores: where the log is kept. `open_store` makes one from the `store` line of a config."""

from __future__ import annotations

from hubbub.config.paths import POSTGRES
from hubbub.network.ports import Store
from hubbub.network.store.offline import (
    add_token_offline,
    list_tokens_offline,
    revoke_tokens_offline,
)
from hubbub.network.store.place import cluster_extra, parse_url
from hubbub.network.store.sqlite import SqliteStore

__all__ = [
    "SqliteStore",
    "add_token_offline",
    "list_tokens_offline",
    "open_store",
    "revoke_tokens_offline",
]


def open_store(url: str) -> Store:
    """The store that `url` names (`sqlite:<path>`, `sqlite::memory:`, `postgresql://...`); call
    its `open` next.

    Raises `UserError` for anything else.
    """
    if url.startswith(POSTGRES):
        with cluster_extra():
            from hubbub.network.store.postgres.store import PostgresStore
        return PostgresStore(url)
    return SqliteStore(parse_url(url))
