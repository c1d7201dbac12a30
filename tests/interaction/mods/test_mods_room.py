"""Tables and operations of mods in a running hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel, JsonValue

from hubbub.client import Client
from hubbub.errors import OperationError, UserError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, Commit, Statement, operation
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Input
from hubbub.testing.network import LocalNetwork

TABLES = "CREATE TABLE tally_count (word TEXT PRIMARY KEY, count INTEGER NOT NULL);"
ADD = "INSERT INTO tally_count VALUES (?, 1) ON CONFLICT (word) DO UPDATE SET count = count + 1"


class Word(Input):
    word: str


class Count(BaseModel):
    count: int


class Claim(Input):
    word: str
    expected: int


class Tally(Mod):
    """Counts words."""

    name = "tally"
    migrations = "tally_tables"
    thread = True

    def on_stored(self, message: Message) -> Sequence[Statement]:
        return [Statement(ADD, (word,)) for word in message.text.split()]

    @operation()
    async def tally_of(self, call: Calling, args: Word) -> Count:
        """Return how often a word occurred."""
        rows = await self.host.rows("SELECT count FROM tally_count WHERE word = ?", args.word)
        return Count(count=rows[0][0] if rows else 0)

    @operation(permission="write", output=Count)
    def tally_set(self, call: Calling, args: Claim) -> Commit:
        """Increase the count if it has the expected value."""
        sql = "UPDATE tally_count SET count = count + 1 WHERE word = ? AND count = ?"
        statement = Statement(sql, (args.word, args.expected), rows=1)
        return Commit([statement], Count(count=args.expected + 1))

    @operation(permission="write", output=Count)
    def tally_meddle(self, call: Calling, args: Word) -> Commit:
        """Write to a table of the hub."""
        return Commit([Statement("DELETE FROM message")], Count(count=0))


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "0001_tally.sql").write_text(TABLES)
    monkeypatch.setattr(Tally, "migrations", str(folder))
    return folder


def tally(**config: JsonValue) -> Tally:
    return Tally(ModConfig.model_validate(config))


async def count(client: Client, word: str) -> JsonValue:
    answer = await client.call("tally_of", word=word)
    assert isinstance(answer, dict)
    return answer["count"]


async def test_a_mods_rows_are_written_with_the_message_unless_they_conflict(
    tables: Path, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with LocalNetwork(store=store, mods=[tally()]) as network:
        ann = await network.join("ann", "human")
        await ann.call("broadcast_text_message", text="ho ho ho")
        assert await count(ann, "ho") == 3
        assert await ann.call("tally_set", word="ho", expected=3) == {"count": 4}
        for name, args, message in (
            ("tally_set", {"word": "ho", "expected": 3}, "conflict"),
            ("tally_meddle", {"word": "x"}, "not authorized"),  # a table of the hub
        ):
            with pytest.raises(OperationError, match=message) as caught:
                await ann.call(name, **args)
            assert caught.value.code == "conflict"
        assert await count(ann, "ho") == 4
    (tables / "0002_more.sql").write_text("CREATE INDEX tally_counts ON tally_count (count);")
    async with LocalNetwork(store=store, mods=[tally()]) as network:
        assert await count(await network.join("ann", "human"), "ho") == 4
    (tables / "0003_bad.sql").write_text("CREATE TABLE other (x TEXT);")
    with pytest.raises(UserError, match=r"script 0003 fails.*tally_"):
        async with LocalNetwork(store=store, mods=[tally()]):
            pass


class Greedy(Mod):
    """Has no tables, and a name that tables of the hub begin with."""

    name = "turn"


class Elder(Mod):
    """Has no tables, and a name that begins like another mod's."""

    name = "tally_old"


@pytest.mark.behaviour("M-71")
async def test_a_mod_cannot_have_a_name_that_existing_tables_begin_with(
    tables: Path, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with LocalNetwork(store=store, mods=[tally()]):
        pass
    for kind in (Greedy, Elder):
        with pytest.raises(UserError, match=f"the mod {kind.name}: tables .* already exist"):
            async with LocalNetwork(store=store, mods=[kind(ModConfig())]):
                pass
