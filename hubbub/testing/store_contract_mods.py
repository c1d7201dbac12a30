"""The part of the store contract about the tables of mods."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.errors import StoreUnavailable, UserError
from hubbub.mods.operation import Statement, Value
from hubbub.network.ports import DuplicateCids, Store
from hubbub.network.queries import ModSelect, ModsWithTables, SettledCall
from hubbub.network.records import CallSettled, ModRows
from hubbub.network.stored import Settled
from hubbub.testing.store_contract_log import StoreMaker
from hubbub.testing.store_rows import direct, message, opened, write

__all__ = ["DurableModsContract", "ModsContract"]

VOTES = "CREATE TABLE polls_vote (who TEXT PRIMARY KEY, choice TEXT NOT NULL); -- one each"
WEIGHTS = "ALTER TABLE polls_vote ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;"
MEDDLING = (
    "CREATE TABLE other (x);",
    "CREATE TABLE polls_two (x); CREATE TABLE poll (x);",
    "CREATE INDEX polls_i ON message (sender);",
    "CREATE TRIGGER polls_t AFTER INSERT ON message BEGIN DELETE FROM polls_vote; END;",
    "CREATE TABLE polls_two AS SELECT * FROM message;",
    "ALTER TABLE message ADD COLUMN x;",
    "DROP TABLE message;",
    "DELETE FROM message;",
    "UPDATE mod_schema SET version = 9;",
    "PRAGMA user_version = 9;",
    "ATTACH ':memory:' AS polls_x;",
    "CREATE TEMP TABLE polls_two (x);",
    "COMMIT;",
)
FORBIDDEN = [
    Statement("INSERT INTO polls_nowhere VALUES (1)"),
    Statement("no SQL"),
    Statement("INSERT INTO polls_vote VALUES (?, ?)", ("cy",)),
    Statement("INSERT INTO polls_vote VALUES ('cy', ?)", (2**70,)),
    Statement("INSERT INTO polls_vote VALUES ('cy', ?)", ("\ud800",)),
    Statement("INSERT INTO polls_vote VALUES ('cy', 'x'); DELETE FROM polls_vote"),
    Statement("INSERT OR ROLLBACK INTO polls_vote VALUES ('ann', 'x')"),
    Statement("INSERT INTO polls_vote VALUES ('cy', zeroblob(2000000000))"),
    Statement("DELETE FROM message"),
    Statement("INSERT INTO polls_vote SELECT sender, body FROM message"),
    Statement("UPDATE mod_schema SET version = 9"),
    Statement("CREATE TABLE polls_two (x)"),
    Statement("PRAGMA user_version = 9"),
    Statement("COMMIT"),
]
UNREADABLE = (
    "SELECT body FROM message",
    "SELECT who FROM polls_vote WHERE who IN (SELECT sender FROM message)",
    "SELECT * FROM sqlite_master",
    "INSERT INTO polls_vote VALUES ('cy', 'x')",
    "DELETE FROM polls_vote RETURNING who",
    "WITH x AS (SELECT 1) UPDATE polls_vote SET choice = 'x'",
    "SELECT nothing FROM polls_vote",
    "SELECT 1; SELECT 2",
    "PRAGMA table_info(message)",
    "BEGIN",
)
SCHEMA_BY_HAND = (
    "UPDATE sqlite_master SET sql = 'x'",
    "UPDATE sqlite_master SET name = 'x' WHERE type = 'table'",
    "DELETE FROM sqlite_master",
)
ALL = "SELECT who, choice FROM polls_vote ORDER BY who"


def vote(who: str, choice: str = "yes") -> Statement:
    return Statement("INSERT INTO polls_vote (who, choice) VALUES (?, ?)", (who, choice))


def polls(*statements: Statement, settled: CallSettled | None = None) -> ModRows:
    return ModRows("polls", statements, settled)


async def voters(store: Store) -> list[Value]:
    return [who for who, _ in await store.read(ModSelect("polls", ALL, ()))]


class PollsFixture(StoreMaker):
    @pytest.fixture
    async def polling(self, store: Store) -> Store:
        """A store with the mod `polls`."""
        await store.admit_mod("polls", {1: VOTES})
        return store


class SchemaContract(PollsFixture):
    """Scripts that create tables."""

    async def test_the_scripts_of_a_mod_run_in_order_and_once(self, store: Store) -> None:
        assert await store.read(ModsWithTables()) == []
        await store.admit_mod("quiet", {})
        await store.admit_mod("polls", {2: WEIGHTS, 1: VOTES})
        await store.admit_mod("edits", {1: "CREATE TABLE edits_x (x);"})
        assert await store.read(ModsWithTables()) == ["edits", "polls"]
        await write(store, polls(vote("ann")))
        await store.admit_mod("polls", {1: VOTES, 2: WEIGHTS})
        assert await store.read(ModSelect("polls", "SELECT * FROM polls_vote", ())) == [
            ("ann", "yes", 1)
        ]
        with pytest.raises(UserError, match=r"polls have version 2.*up to 1: update the mod"):
            await store.admit_mod("polls", {1: VOTES})

    async def test_a_script_that_changes_other_tables_has_no_effect(self, polling: Store) -> None:
        await write(polling, polls(vote("ann")), messages=[message(1)])
        for script in MEDDLING:
            with pytest.raises(UserError, match=r"polls: its script 0002 fails.*begin with polls_"):
                await polling.admit_mod("polls", {1: VOTES, 2: script})
            assert await voters(polling) == ["ann"], script
            assert await polling.message(1) is not None
        await polling.admit_mod("polls", {1: VOTES, 2: "CREATE TABLE polls_two (y);"})
        assert await polling.read(ModSelect("polls", "SELECT y FROM polls_two", ())) == []

    async def test_a_failed_script_leaves_earlier_scripts_applied(self, store: Store) -> None:
        half = "CREATE TABLE polls_half (x); INSERT INTO polls_nowhere VALUES (1);"
        with pytest.raises(UserError, match="script 0002 fails: no such table: polls_nowhere"):
            await store.admit_mod("polls", {1: VOTES, 2: half})
        await write(store, polls(vote("ann")))
        await store.admit_mod("polls", {1: VOTES, 2: "CREATE TABLE polls_half (x UNIQUE);"})
        assert await voters(store) == ["ann"]

    async def test_a_mod_can_have_triggers_views_and_indexes(self, polling: Store) -> None:
        more = """
        CREATE TABLE polls_count (choice TEXT PRIMARY KEY, n INTEGER);
        CREATE TRIGGER polls_counted AFTER INSERT ON polls_vote BEGIN
            INSERT INTO polls_count VALUES (new.choice, 1) ON CONFLICT DO UPDATE SET n = n + 1;
        END;
        CREATE INDEX polls_by_choice ON polls_vote (choice);
        CREATE VIEW polls_won AS SELECT choice FROM polls_count ORDER BY n DESC LIMIT 1;
        """
        await polling.admit_mod("polls", {1: VOTES, 2: more})
        await write(polling, polls(vote("ann", "no"), vote("bob"), vote("cy")))
        assert await polling.read(ModSelect("polls", "SELECT * FROM polls_won", ())) == [("yes",)]

    async def test_mods_with_overlapping_names_cannot_both_have_tables(self, store: Store) -> None:
        await store.admit_mod("polls", {1: VOTES})
        await store.admit_mod("late_old", {1: "CREATE TABLE late_old_x (x);"})
        for other in ("turn", "polls_old", "late"):
            for scripts in ({}, {1: f"CREATE TABLE {other}_y (x);"}):
                with pytest.raises(UserError, match=f"mod {other}: tables .* already exist"):
                    await store.admit_mod(other, scripts)
        for _ in range(2):
            await store.admit_mod("quiet", {})

    async def test_a_full_disk_is_not_reported_as_an_error_of_a_script(self, store: Store) -> None:
        big = f"{VOTES}\nINSERT INTO polls_vote VALUES ('ann', printf('%.*c', 100000, 'x'));"
        async with self.refusing(store):
            with pytest.raises(StoreUnavailable):
                await store.admit_mod("polls", {1: big})
        await store.admit_mod("polls", {1: big})
        assert await voters(store) == ["ann"]


class RowsContract(PollsFixture):
    """Rows that mods write with a batch, and read."""

    async def test_the_rows_of_a_group_are_written_together_or_not_at_all(
        self, polling: Store
    ) -> None:
        good, bad = polls(vote("ann"), vote("bob")), polls(vote("cy"), vote("ann"))
        last = polls(vote("dora"))
        batch = direct(1, 2)
        batch.records += [good, bad, last]
        await polling.append(batch)
        assert [good.refused, last.refused] == [None, None]
        assert "UNIQUE" in str(bad.refused)
        assert await voters(polling) == ["ann", "bob", "dora"]
        assert len(await polling.log(0, 9, 9)) == 2

    async def test_a_refused_statement_affects_only_its_own_group(self, polling: Store) -> None:
        await write(polling, polls(vote("ann")), messages=[message(1)])
        for number, statement in enumerate(FORBIDDEN, 2):
            bad, good = polls(vote("bob"), statement), polls(vote(f"z{number:02}"))
            await write(polling, bad, good, messages=[message(number)])
            assert bad.refused is not None, statement
            assert await voters(polling) == ["ann", *(f"z{n:02}" for n in range(2, number + 1))]
        assert len(await polling.log(0, 99, 99)) == len(FORBIDDEN) + 1

    async def test_a_statement_can_require_a_number_of_changed_rows(self, polling: Store) -> None:
        await write(polling, polls(vote("ann", "no"), vote("bob", "no"), vote("cat")))
        change = "UPDATE polls_vote SET choice = 'yes' WHERE choice = ?"
        late = polls(vote("cy"), Statement(change, ("maybe",), rows=1))
        await write(polling, late)
        assert str(late.refused) == "0 rows changed instead of 1"
        both = polls(Statement(change, ("no",), rows=2))
        await write(polling, both)
        assert both.refused is None
        in_list = "WHERE who IN (SELECT value FROM json_each(?))"  # a list is one value
        select = f"SELECT choice FROM polls_vote {in_list}"
        assert await polling.read(ModSelect("polls", select, ('["bob", "cat"]',))) == [("yes",)] * 2
        await write(polling, polls(Statement(f"DELETE FROM polls_vote {in_list}", ('["bob"]',))))
        assert await voters(polling) == ["ann", "cat"]

    async def test_groups_see_the_rows_of_earlier_groups_and_can_be_retried(
        self, polling: Store
    ) -> None:
        claim = Statement("UPDATE polls_vote SET choice = 'b' WHERE choice = 'a'", rows=1)
        first, second = polls(claim), polls(claim)
        await write(polling, first)
        assert first.refused is not None
        await write(polling, polls(vote("ann", "a")), first, second)
        assert first.refused is None
        assert second.refused is not None

    async def test_a_result_is_stored_only_with_its_rows(self, polling: Store) -> None:
        first, second = CallSettled("ann", "c1", 1, "1"), CallSettled("ann", "c2", 2, "2")
        await write(polling, polls(vote("ann"), settled=first), polls(vote("ann"), settled=second))
        assert await polling.read(SettledCall("ann", "c1")) == Settled(1, None, b"1")
        assert await polling.read(SettledCall("ann", "c2")) is None
        await write(polling, polls(vote("bob"), settled=second))
        assert await polling.read(SettledCall("ann", "c2")) == Settled(2, None, b"2")

    async def test_rows_of_a_settled_call_are_a_duplicate(self, polling: Store) -> None:
        settled = CallSettled("ann", "c1", 1, "1")
        await write(polling, polls(vote("ann"), settled=settled))
        with pytest.raises(DuplicateCids) as refused:
            await write(polling, polls(vote("bob"), settled=settled), messages=[message(1)])
        assert refused.value.pairs == {("ann", "c1")}
        assert await voters(polling) == ["ann"]
        assert await polling.message(1) is None

    async def test_a_full_disk_stores_no_part_of_a_batch_with_rows(self, polling: Store) -> None:
        big = polls(vote("ann", "x" * 100_000))
        async with self.refusing(polling):
            with pytest.raises(StoreUnavailable):
                await write(polling, polls(vote("bob")), big, messages=[message(1)])
            assert await voters(polling) == []
            assert await polling.message(1) is None
        await write(polling, big, messages=[message(1)])
        assert await voters(polling) == ["ann"]

    async def test_a_mod_reads_only_its_own_tables_and_cannot_write_in_a_query(
        self, polling: Store
    ) -> None:
        statement = vote("ann")
        await write(polling, polls(statement), messages=[message(1)])
        await polling.read(ModSelect("polls", "SELECT value FROM json_each('[1]')", ()))
        for sql in (*UNREADABLE, *SCHEMA_BY_HAND):
            for _ in range(2):
                with pytest.raises(ValueError, match="polls made an invalid query"):
                    await polling.read(ModSelect("polls", sql, ()))
        with pytest.raises(ValueError, match="invalid query"):
            await polling.read(ModSelect("polls", statement.sql, ("bob", "yes")))
        for sql in SCHEMA_BY_HAND:
            meddling = polls(Statement(sql))
            await write(polling, meddling)
            assert meddling.refused is not None
        assert await voters(polling) == ["ann"]

    async def test_mods_cannot_read_or_write_the_tables_of_other_mods(self, polling: Store) -> None:
        await polling.admit_mod("tally", {1: "CREATE TABLE tally_count (word, count);"})
        with pytest.raises(ValueError, match="prohibited"):
            await polling.read(ModSelect("tally", ALL, ()))
        meddling = ModRows("tally", [vote("ann")])
        await write(polling, meddling)
        assert "not authorized" in str(meddling.refused)
        assert await voters(polling) == []

    async def test_a_mod_can_use_full_text_search(self, store: Store) -> None:
        script = "CREATE VIRTUAL TABLE notes_word USING fts5(text, tokenize = 'porter');"
        await store.admit_mod("notes", {1: script})
        insert = "INSERT INTO notes_word (rowid, text) VALUES (?, ?)"
        texts = ["ships sailing", "a ship", "nothing"]
        statements = [Statement(insert, (n, text)) for n, text in enumerate(texts)]
        await write(store, ModRows("notes", statements))
        find = "SELECT rowid FROM notes_word WHERE notes_word MATCH ? ORDER BY rowid"
        assert await store.read(ModSelect("notes", find, ("ship",))) == [(0,), (1,)]
        delete = "DELETE FROM notes_word WHERE rowid = ?"
        changed = Statement("UPDATE notes_word SET text = 'a ship too' WHERE rowid = ?", (2,))
        await write(store, ModRows("notes", [Statement(delete, (0,)), changed]))
        assert await store.read(ModSelect("notes", find, ("ship",))) == [(1,), (2,)]
        failing = ModRows("notes", [Statement(insert, (9, "ship")), Statement("no SQL")])
        await write(store, failing)
        assert failing.refused is not None
        assert await store.read(ModSelect("notes", find, ("ship",))) == [(1,), (2,)]


class ModsContract(SchemaContract, RowsContract):
    """Tables of mods."""


class DurableModsContract(StoreMaker):
    """Persistence over a restart of the hub."""

    async def test_the_tables_and_versions_of_a_mod_survive_a_restart(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store):
            await store.admit_mod("polls", {1: VOTES})
            settled = CallSettled("ann", "c1", 1, "1")
            await write(store, polls(vote("ann"), settled=settled))
        async with opened(store):
            await store.admit_mod("polls", {1: VOTES, 2: WEIGHTS})
            assert await voters(store) == ["ann"]
            with pytest.raises(DuplicateCids):
                await write(store, polls(vote("bob"), settled=settled))

    async def test_a_database_works_without_one_of_its_mods(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store):
            await store.admit_mod("polls", {1: VOTES})
            await write(store, polls(vote("ann")), messages=[message(1)])
        async with opened(store) as state:
            assert state.head == 1
            await store.append(direct(2, 2))
            await store.admit_mod("tally", {1: "CREATE TABLE tally_count (word, count);"})
        async with opened(store) as state:
            assert state.head == 2
            await store.admit_mod("polls", {1: VOTES})
            assert await voters(store) == ["ann"]
