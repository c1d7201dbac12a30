"""Token tools beside a hub, in another process or without any hub."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hubbub.errors import StoreVersionError, UserError
from hubbub.network.store import (
    add_token_offline,
    list_tokens_offline,
    open_store,
    revoke_tokens_offline,
)
from hubbub.testing.store_rows import direct

ANN, BOB = "a" * 64, "b" * 64


async def test_a_token_added_before_the_first_hub_is_there_when_it_opens(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    await add_token_offline(url, ANN, "ann")
    store = open_store(url)
    state = await store.open()
    assert len(state.epoch) == 26
    assert await store.token_hashes("ann") == [ANN]
    await store.close()


@pytest.mark.behaviour("D-2")
async def test_a_running_hub_sees_tokens_change(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    store = open_store(url)
    await store.open()
    await store.append(direct(1, 5))
    await add_token_offline(url, ANN, "ann")
    await add_token_offline(url, BOB, "bob")
    assert await store.token_hashes("ann") == [ANN]
    await revoke_tokens_offline(url, "ann")
    assert await store.token_hashes("ann") == []
    assert await store.token_hashes("bob") == [BOB]
    await store.append(direct(6, 9))
    await store.close()


async def test_tokens_are_counted_by_participant(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    assert await list_tokens_offline(url) == {}
    for sha256, name in ((ANN, "bob"), (BOB, "bob"), ("c" * 64, "ann")):
        await add_token_offline(url, sha256, name)
    assert await list_tokens_offline(url) == {"ann": 1, "bob": 2}


async def test_a_store_in_memory_keeps_no_tokens() -> None:
    with pytest.raises(UserError, match="in memory belongs to its hub"):
        await add_token_offline("sqlite::memory:", ANN, "ann")


async def test_a_database_of_another_program_gets_no_token(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db")
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(StoreVersionError, match="another program"):
        await add_token_offline(f"sqlite:{tmp_path}/x.db", ANN, "ann")


async def test_a_file_that_is_no_database_gets_no_token(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("dear diary\n" * 500, encoding="utf-8")
    with pytest.raises(UserError, match="is not a database"):
        await revoke_tokens_offline(f"sqlite:{tmp_path}/x.db", "ann")


async def test_the_schema_is_never_changed_under_a_running_hub(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    store = open_store(url)
    await store.open()
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    db.execute("PRAGMA user_version = 0")  # as an older program would have left it
    db.close()
    with pytest.raises(StoreVersionError, match="older schema and a hub is running"):
        await add_token_offline(url, ANN, "ann")
    await store.close()
