"""Stores of the log. `open_store` creates one from the `store` line of a config.

sqlite, connection, location   the store in SQLite; `lock`: one hub per file
writer, records, index         writing a batch
reads, events, searches, control, mods   queries
migrate, checksums, verify     the schema, and detection of damage
backups, branch, offline       copies, alternative continuations, access without a hub
postgres                       the same queries on Postgres
"""

from __future__ import annotations

from collections.abc import Callable

from hubbub.config.paths import POSTGRES
from hubbub.errors import UserError
from hubbub.network.ports import Store
from hubbub.network.store.location import cluster_extra, parse_url
from hubbub.network.store.offline import (
    add_token_offline,
    hub_runs_on,
    list_tokens_offline,
    read_head_offline,
    revoke_tokens_offline,
)
from hubbub.network.store.sqlite import SqliteStore

__all__ = [
    "SqliteStore",
    "add_token_offline",
    "hub_runs_on",
    "list_tokens_offline",
    "open_store",
    "read_head_offline",
    "revoke_tokens_offline",
]


def open_store(
    url: str,
    *,
    waiting: Callable[[str], None] | None = None,
    lost: Callable[[str], None] = lambda why: None,
    node: str = "",
) -> Store:
    """The store at `url` (`sqlite:<path>`, `sqlite::memory:`, `postgresql://...`); call its `open`
    next.

    With `waiting`, `open` waits while another hub owns the store, and calls `waiting` with the
    reason. `lost` is called when another hub has taken over the store, or may have because the
    server is out of reach. Both require Postgres: a file belongs to the hub that has it open.
    `node` is the name of the hub's node. Raises `UserError` for any other URL.
    """
    if url.startswith(POSTGRES):
        with cluster_extra():
            from hubbub.network.store.postgres.store import PostgresStore
        return PostgresStore(url, waiting, lost, node)
    if waiting is not None:
        raise UserError(
            f"only a store in Postgres can be taken over by another hub, and this one is {url}: "
            "leave out --standby, or move the network with `hubbub network migrate`"
        )
    return SqliteStore(parse_url(url))
