"""The store contract on a real Postgres."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import psycopg
import pytest

from hubbub.config.paths import beside
from hubbub.errors import LogDamaged, StoreUnavailable, UserError
from hubbub.network.ports import DuplicateCids, Store
from hubbub.network.queries import LatestTurns, ModSelect, SettledCall, TokenHashes
from hubbub.network.records import (
    Batch,
    CallSettled,
    ParticipantSeen,
    ThreadCreated,
    TokenAdded,
    TurnBegun,
)
from hubbub.network.store import (
    add_token_offline,
    hub_runs_on,
    list_tokens_offline,
    open_store,
    revoke_tokens_offline,
)
from hubbub.network.store.backups import files_of
from hubbub.network.store.postgres.database import connected
from hubbub.network.store.postgres.link import Link
from hubbub.network.store.postgres.session import PostgresSession
from hubbub.network.store.postgres.transfer import transfer
from hubbub.network.store.verify import verify_log
from hubbub.network.stored import Settled
from hubbub.testing.store_contract import DurableStoreContract
from hubbub.testing.store_rows import direct, message, opened, seqs, wake, write
from tests.postgres_server import PostgresServer, running_postgres
from tests.unit.network.test_store_damage import SENT, fill_log, served

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The URL of a database without our schema."""
    with psycopg.connect(server.url()) as db:
        db.execute("DROP SCHEMA IF EXISTS hubbub CASCADE")
    return server.url()


@pytest.mark.behaviour("S-7", "M-22")
class TestPostgres(DurableStoreContract):
    @pytest.fixture(autouse=True)
    def _new_database(self, url: str) -> None:
        self.url = url

    def new_store(self, folder: Path) -> Store:
        return open_store(self.url)

    @asynccontextmanager
    async def refusing(self, store: Store) -> AsyncIterator[None]:
        """The server refuses large rows as on a full disk."""
        large = (
            "CREATE TRIGGER filled BEFORE INSERT ON {} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION f()"
        )
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("SET search_path = hubbub")
            db.execute(
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$"
            )
            db.execute(large.format("message", "length(new.body) > 50000").encode())
            db.execute(large.format("mod_page", "true").encode())
            yield
            db.execute("DROP FUNCTION f() CASCADE")


async def test_a_second_hub_is_refused_and_a_superseded_one_cannot_write(url: str) -> None:
    first, second = open_store(url), open_store(url)
    async with opened(first):
        with pytest.raises(UserError, match=r"in use by another hub \(hubbub \d+ on .*\): stop"):
            await second.open()
        await first.append(direct(1, 2))
        with psycopg.connect(url) as db:  # as by a hub that considers this one dead
            db.execute("UPDATE hubbub.owner SET fence = fence + 1")
        for batch in (direct(3, 3), Batch([TokenAdded("a" * 64, "bob")])):
            with pytest.raises(StoreUnavailable, match="another hub has taken over this store"):
                await first.append(batch)
        assert "another hub has taken over" in first.problem()
        assert seqs(await first.log(0, 9, 9)) == [1, 2]
        assert await first.read(TokenHashes("bob")) == []


@pytest.mark.behaviour("R-21")
async def test_an_owner_keeps_its_network_from_a_standby_after_postgres_restarts(
    url: str, server: PostgresServer
) -> None:
    reasons = asyncio.Queue[str]()
    standby = open_store(url, waiting=reasons.put_nowait)

    async def until(reason: str) -> None:
        while await reasons.get() != reason:
            pass

    async with opened(open_store(url)):
        takeover = asyncio.create_task(standby.open())
        reason = await reasons.get()
        assert "runs this network" in reason
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        waiting = asyncio.create_task(until(reason))
        await asyncio.wait({takeover, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not takeover.done(), "the standby has taken over"
    await takeover
    await standby.close()


async def test_a_session_that_ends_while_it_is_opened_is_a_temporary_failure(url: str) -> None:
    def connect() -> PostgresSession:
        session = connected(url)
        session.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return session

    (link := Link(connect)).start()
    with pytest.raises(StoreUnavailable, match="cannot work now: terminating connection"):
        await link.run(lambda session: session.execute("SELECT 1"))
    await link.close()


async def test_a_read_is_repeated_on_a_new_session_if_its_session_ended(url: str) -> None:
    async with opened(store := open_store(url)):
        await store.append(direct(1, 2))
        with psycopg.connect(url, autocommit=True) as db:
            ended = db.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name LIKE 'hubbub %'"
            ).fetchone()
        assert ended == (2,), "not one session to write and one to read"
        assert seqs(await store.log(0, 9, 9)) == [1, 2]


async def test_a_batch_that_was_lost_with_its_session_is_not_taken_for_a_previous_hubs(
    url: str,
) -> None:
    async with opened(first := open_store(url)):
        await write(first, ParticipantSeen("bob", "agent", "{}"))
    async with opened(store := open_store(url)):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(
                "CREATE FUNCTION hubbub.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN new; END $$"
            )
            db.execute(
                "CREATE TRIGGER lost BEFORE INSERT ON hubbub.participant FOR EACH ROW "
                "EXECUTE FUNCTION hubbub.f()"
            )
        with pytest.raises(StoreUnavailable, match="nothing of it was written"):
            await write(store, ParticipantSeen("cyd", "agent", "{}"))


async def test_a_hub_waits_for_the_promotion_of_the_replica_that_it_reaches(
    url: str, server: PostgresServer
) -> None:
    async with opened(store := open_store(url)):
        await store.append(direct(1, 2))
        await asyncio.to_thread(server.kill)
        (server.folder / "data" / "standby.signal").touch()
        await asyncio.to_thread(server.start)
        with pytest.raises(StoreUnavailable):  # its session was lost
            await store.admit_mod("polls", {})
        for refused in (store.admit_mod("polls", {}), store.log(0, 9, 9)):
            with pytest.raises(StoreUnavailable, match="server is in hot standby mode"):
                await refused
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SELECT pg_promote()")
        await store.append(direct(3, 3))
        assert seqs(await store.log(0, 9, 9)) == [1, 2, 3]


async def test_a_hub_resumes_after_a_lost_session_whatever_it_wrote_last(url: str) -> None:
    async with opened(store := open_store(url)):
        await write(store, ParticipantSeen("bob", "agent", "{}"))
        await write(store, messages=[message(1, cid="said")])
        with pytest.raises(DuplicateCids):
            await write(store, messages=[message(2, cid="said")])
        await store.append(direct(2, 3))  # messages alone need no transaction of their own
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'hubbub %'"
            )
        with suppress(StoreUnavailable):  # unless the sign of life has reconnected it
            await store.admit_mod("polls", {})
        await store.append(direct(4, 4))
        assert seqs(await store.log(0, 9, 9)) == [1, 2, 3, 4]


async def test_a_database_without_synchronous_commit_is_refused_with_the_fix(
    url: str,
) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("ALTER DATABASE postgres SET synchronous_commit = off")
        try:
            with pytest.raises(UserError, match="run `ALTER DATABASE postgres SET synchronous_com"):
                await open_store(url).open()
        finally:
            db.execute("ALTER DATABASE postgres RESET synchronous_commit")


async def test_a_restored_log_has_a_new_epoch(url: str, server: PostgresServer) -> None:
    async with opened(open_store(url)) as state:
        before = state.epoch
    async with opened(store := open_store(url)) as state:
        assert (state.epoch, len(state.runs)) == (before, 2)
        await store.append(direct(1, 2))
    dump = server.dump()
    with psycopg.connect(url) as db:
        db.execute("DROP SCHEMA hubbub CASCADE")
    server.restore(dump)
    async with opened(store := open_store(url)) as state:
        assert (state.epoch != before, state.head, len(state.runs)) == (True, 2, 1)
        await store.append(direct(3, 3))
        assert seqs(await store.log(0, 9, 9)) == [1, 2, 3]


async def test_a_hub_does_not_continue_on_an_older_copy_of_its_log(
    url: str, server: PostgresServer
) -> None:
    lost = asyncio.Queue[str]()
    async with opened(store := open_store(url, lost=lost.put_nowait)):
        await store.append(direct(1, 2))
        dump = server.dump()
        await store.append(direct(3, 3))
        with psycopg.connect(url) as db:  # as a replica that is promoted before it has all
            db.execute("DROP SCHEMA hubbub CASCADE")
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'hubbub %'"
            )
        server.restore(dump)
        with pytest.raises(StoreUnavailable, match="lacks messages that this hub has confirmed"):
            await store.append(direct(4, 4))
        assert "lacks messages" in await lost.get()
    async with opened(store := open_store(url)) as state:
        assert state.head == 2
        await store.append(direct(3, 3))


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        ("DELETE FROM hubbub.meta", "the schema hubbub in .* is incomplete.*: drop the schema"),
        ("DROP TABLE hubbub.owner CASCADE", "cannot be used as a store: relation .owner. does not"),
    ],
)
async def test_an_incompletely_restored_database_is_refused_with_the_reason(
    url: str, lost: str, reason: str
) -> None:
    async with opened(open_store(url)):
        pass
    with psycopg.connect(url) as db:
        db.execute(lost.encode())
    for refused in (open_store(url).open(), list_tokens_offline(url)):
        with pytest.raises(UserError, match=reason):
            await refused


async def test_a_damaged_message_is_reported_and_not_returned(url: str) -> None:
    async with opened(store := open_store(url)):
        await store.append(direct(1, 3))
        with psycopg.connect(url) as db:
            db.execute("UPDATE hubbub.message SET body = set_byte(body, 3, 0) WHERE seq = 2")
        with pytest.raises(LogDamaged, match="m2"):
            await store.message(2)
        with pytest.raises(LogDamaged, match="m2"):
            await asyncio.to_thread(verify_log, url)
    with psycopg.connect(url) as db:
        db.execute("DELETE FROM hubbub.message WHERE seq = 3")
    with pytest.raises(
        LogDamaged, match="written up to m3 and lacks m3; restore a backup of the d"
    ):
        await open_store(url).open()


@pytest.mark.behaviour("S-17")
async def test_no_message_with_a_flipped_bit_is_served(url: str) -> None:
    await fill_log(url)
    chance = random.Random(94)
    damaged = chance.sample(sorted(SENT), 8)
    async with opened(store := open_store(url)):
        with psycopg.connect(url, autocommit=True) as db:
            for seq in damaged:
                flipped = bytearray(SENT[seq])
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
                change = "UPDATE hubbub.message SET body = %s WHERE seq = %s"
                db.execute(change, (bytes(flipped), seq))
        for seq in damaged:
            with pytest.raises(LogDamaged, match=f"m{seq} "):
                await store.message(seq)
        assert await served(store) == []


async def test_a_damaged_log_is_not_transferred_and_the_reason_says_what_to_do(
    url: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.db"
    async with opened(source := open_store(f"sqlite:{path}")):
        await source.append(direct(1, 3))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE message SET sum = sum + 1 WHERE seq = 2")
    with pytest.raises(LogDamaged, match=r"m2 is damaged.*`hubbub network restore"):
        await asyncio.to_thread(transfer, f"sqlite:{path}", url, lambda done, total: None)


async def test_tokens_are_added_and_revoked_while_a_hub_runs(url: str) -> None:
    async with opened(store := open_store(url)):
        await add_token_offline(url, "a" * 64, "bob")
        assert await store.read(TokenHashes("bob")) == ["a" * 64]
        assert await list_tokens_offline(url) == {"bob": 1}
        assert await asyncio.to_thread(hub_runs_on, url)
        await revoke_tokens_offline(url, "bob")
        assert await store.read(TokenHashes("bob")) == []
    assert not await asyncio.to_thread(hub_runs_on, url)


async def test_an_unreachable_store_is_reported_without_its_password() -> None:
    store = open_store("postgresql://hubbub:secret@127.0.0.1:1/net")
    with pytest.raises(StoreUnavailable, match=r"database net on 127\.0\.0\.1 cannot be") as error:
        await store.open()
    assert "secret" not in str(error.value)


async def test_a_sqlite_network_is_transferred_to_postgres_despite_an_interruption(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = f"sqlite:{tmp_path / 'log.db'}"
    table = "CREATE TABLE polls_vote (who TEXT); INSERT INTO polls_vote VALUES ('ann');"
    async with opened(source := open_store(file)) as state:
        epoch = state.epoch
        await source.admit_mod("polls", {1: table})
        await write(
            source,
            *(ParticipantSeen("bob", "agent", "{}"), ThreadCreated(1, "dm.alice.bob")),
            *(CallSettled("ann", "call", 7, '"\\u0000"'), TokenAdded("a" * 64, "bob")),
            TurnBegun("bob-m1", "bob", 5.5, "{}", (1,)),
            messages=[message(1, cid="said")],
            deliveries=[wake("bob", 1), wake("carol", 1)],
        )
        for first in range(2, 12_002, 1000):
            await source.append(direct(first, first + 999))

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(transfer, file, url, interrupt)
    with pytest.raises(UserError, match="has an unfinished copy"):
        await open_store(url).open()
    (tmp_path / "log.files").mkdir()
    (tmp_path / "log.files" / "note").write_text("attached")
    (tmp_path / "log.files" / "lost").symlink_to(tmp_path / "nowhere")
    begun: list[int] = []
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        await asyncio.to_thread(transfer, file, url, lambda done, _: begun.append(done))
    assert begun[0] == 5000, "messages were copied again"
    with pytest.raises(UserError, match="has an unfinished copy"):
        await open_store(url).open()
    (tmp_path / "log.files" / "lost").unlink()
    assert await asyncio.to_thread(transfer, file, url, lambda done, total: None) == 12_001
    folder = beside(url)
    assert folder is not None
    assert (files_of(folder) / "note").read_text() == "attached"
    async with opened(store := open_store(url)) as state:
        assert (state.epoch, state.head, len(state.runs)) == (epoch, 12_001, 2)
        assert seqs(await store.events("carol", 0, 12_001, 9, own=False)) == [1]
        assert await store.read(ModSelect("polls", "SELECT who FROM polls_vote", ())) == [("ann",)]
        assert await store.read(SettledCall("ann", "call")) == Settled(7, None, b'"\\u0000"')
        with pytest.raises(DuplicateCids):
            await write(store, messages=[message(12_002, cid="said")])
        await write(store, TurnBegun("bob-m2", "bob", 5.5, "{}", (2,)))
        turns = await store.read(LatestTurns(None, 9))
        assert [turn.id for turn in turns] == ["bob-m2", "bob-m1"]
    with pytest.raises(UserError, match="already has a network"):
        await asyncio.to_thread(transfer, file, url, interrupt)
