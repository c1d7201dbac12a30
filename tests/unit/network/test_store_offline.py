"""Token commands without a hub or beside a running one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.errors import StoreVersionError, UserError
from hubbub.network.queries import TokenHashes
from hubbub.network.store import (
    add_token_offline,
    list_tokens_offline,
    open_store,
    revoke_tokens_offline,
)
from hubbub.testing.store_rows import direct, opened

ANN, BOB = "a" * 64, "b" * 64


@pytest.mark.behaviour("D-2")
async def test_tokens_can_change_without_a_hub_and_beside_a_running_one(
    tmp_path: Path,
) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    assert await list_tokens_offline(url) == {}
    await add_token_offline(url, ANN, "ann")
    store = open_store(url)
    async with opened(store) as state:
        assert len(state.epoch) == 26
        await store.append(direct(1, 5))
        for sha256, name in ((BOB, "bob"), ("c" * 64, "bob")):
            await add_token_offline(url, sha256, name)
        assert await list_tokens_offline(url) == {"ann": 1, "bob": 2}
        assert await store.read(TokenHashes("ann")) == [ANN]
        await revoke_tokens_offline(url, "ann")
        assert await store.read(TokenHashes("ann")) == []
        assert set(await store.read(TokenHashes("bob"))) == {BOB, "c" * 64}
        await store.append(direct(6, 9))


async def test_tokens_are_refused_for_anything_but_a_hubs_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="in memory belongs to its hub"):
        await add_token_offline("sqlite::memory:", ANN, "ann")
    (tmp_path / "x.db").write_text("dear diary\n" * 500, encoding="utf-8")
    with pytest.raises(UserError, match="is not a database"):
        await revoke_tokens_offline(f"sqlite:{tmp_path}/x.db", "ann")
    with closing(sqlite3.connect(tmp_path / "y.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreVersionError, match="another program"):
        await add_token_offline(f"sqlite:{tmp_path}/y.db", ANN, "ann")


async def test_the_schema_is_never_migrated_under_a_running_hub(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    async with opened(open_store(url)):
        with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as db:
            db.execute("PRAGMA user_version = 0")  # as written by an older version
        with pytest.raises(StoreVersionError, match="older schema and a hub is running"):
            await add_token_offline(url, ANN, "ann")
