"""Logs that are restored to an older state, and clients that have received more."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.client import Client
from hubbub.errors import StoreUnavailable, UserError
from hubbub.network.store.backups import back_up, restore
from hubbub.protocol.frames import Cursor, Event
from hubbub.testing.network import LocalNetwork

URL = "sqlite:{}/hub.db"


async def texts(client: Client, count: int) -> list[str]:
    """The next messages, all of which are acknowledged."""
    contents: list[str] = []
    async for item in client.events():
        if isinstance(item, Event):
            contents.append(str(item.message.content))
            await client.ack(item.seq)
            if len(contents) == count:
                break
    return contents


async def send_numbers(ann: Client, first: int, last: int) -> list[str]:
    numbers = [str(number) for number in range(first, last + 1)]
    for number in numbers:
        await ann.call("send_text_message", to="bob", text=number)
    return numbers


async def run_hub(folder: Path, first: int, last: int) -> Cursor:
    """One run of a hub in which ann sends bob these numbers. Returns his cursor after them."""
    async with LocalNetwork(store=URL.format(folder)) as network:
        ann = await network.join("ann", "human")
        async with Client(network.transport(), "bob", "human") as bob:
            numbers = await send_numbers(ann, first, last)
            assert await texts(bob, len(numbers)) == numbers
            assert bob.cursor is not None
            return bob.cursor


@pytest.mark.behaviour("S-15")
async def test_a_client_ahead_of_a_restored_log_starts_from_scratch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has grown beyond the client's position again, so that the position alone is valid."""
    await run_hub(tmp_path, 1, 5)
    shutil.copy(tmp_path / "hub.db", tmp_path / "copy.db")
    ahead = await run_hub(tmp_path, 6, 15)
    shutil.copy(tmp_path / "copy.db", tmp_path / "hub.db")
    async with LocalNetwork(store=URL.format(tmp_path)) as network:
        ann = await network.join("ann", "human")
        numbers = await send_numbers(ann, 106, 130)
        async with Client(network.transport(), "bob", "human", cursor=ahead) as bob:
            assert not bob.ready.resumed
            assert await texts(bob, 25) == numbers
        await ann.call("send_text_message", to="bob", text="commits the notice before it")
        page = await ann.call("read_thread", thread="broadcast")
        assert "bob has seen more of the log than it now holds" in str(page)
    assert capsys.readouterr().err.count("shorter than what a client has seen") == 1


@pytest.mark.behaviour("S-15")
async def test_a_client_that_the_log_covers_resumes_in_any_later_run(tmp_path: Path) -> None:
    early = await run_hub(tmp_path, 1, 5)
    await run_hub(tmp_path, 6, 8)
    async with (
        LocalNetwork(store=URL.format(tmp_path)) as network,
        Client(network.transport(), "bob", "human", cursor=early) as bob,
    ):
        assert bob.ready.resumed
        assert await texts(bob, 3) == ["6", "7", "8"]


@pytest.mark.behaviour("S-15")
async def test_a_client_resumes_only_if_the_log_has_its_last_received_event(tmp_path: Path) -> None:
    early = await run_hub(tmp_path, 1, 5)
    async with LocalNetwork(store=URL.format(tmp_path)) as network:
        for received, resumes in ((5, True), (6, False)):
            cursor = early.model_copy(update={"seq": 4, "received": received})
            async with Client(network.transport(), "bob", "human", cursor=cursor) as bob:
                assert bob.ready.resumed is resumes


@pytest.mark.behaviour("S-16")
async def test_a_backup_of_a_running_hub_restores_files_and_messages_with_a_new_epoch(
    tmp_path: Path,
) -> None:
    url, backup = URL.format(tmp_path), tmp_path / "backup.db"
    files = tmp_path / "hub.files" / "files"
    files.mkdir(parents=True)
    (files / "one").write_text("content")
    async with LocalNetwork(store=url) as network:
        ann = await network.join("ann", "human")
        bob = await network.join("bob", "human")
        await send_numbers(ann, 0, 2)
        assert back_up(url, backup) == 3
        await ann.call("send_text_message", to="bob", text="later")
        with pytest.raises(UserError, match="in use by another hub"):
            restore(url, backup, replace=True)
        await texts(bob, 4)
        cursor = bob.cursor
    with pytest.raises(UserError, match="already exists: name a new file"):
        back_up(url, backup)
    with pytest.raises(UserError, match="use --replace to overwrite it"):
        restore(url, backup, replace=False)
    (files / "two").write_text("later")
    unreadable = backup.with_suffix(".files") / "files" / "gone"
    unreadable.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        restore(url, backup, replace=True)
    assert sorted(file.name for file in files.iterdir()) == ["one", "two"]
    unreadable.unlink()
    assert restore(url, backup, replace=True) == 3
    assert [file.name for file in files.iterdir()] == ["one"]
    assert (tmp_path / "hub.db").stat().st_mode & 0o777 == backup.stat().st_mode & 0o777 == 0o600
    async with (
        LocalNetwork(store=url) as network,
        Client(network.transport(), "bob", "human", cursor=cursor) as bob,
    ):
        assert not bob.ready.resumed
        assert bob.ready.head == 3


@pytest.mark.behaviour("S-8")
async def test_an_unreadable_record_is_reported_with_its_file_and_the_remedy(
    tmp_path: Path,
) -> None:
    await run_hub(tmp_path, 1, 1)
    with closing(sqlite3.connect(tmp_path / "hub.db")) as db, db:
        db.execute("UPDATE participant SET kind = 'hum\x01n' WHERE id = 'ann'")
    with pytest.raises(
        StoreUnavailable, match=r"hub\.db has a record that cannot be read .*restore"
    ):
        await run_hub(tmp_path, 2, 2)


@pytest.mark.behaviour("S-16")
def test_restoring_from_a_file_that_is_no_backup_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    url, wrong = URL.format(tmp_path), tmp_path / "wrong.db"
    (tmp_path / "hub.db").write_bytes(b"precious")
    with pytest.raises(UserError, match="does not exist"):
        restore(url, wrong, replace=True)
    wrong.write_text("dear diary\n" * 500)
    with pytest.raises(UserError, match=r"wrong\.db is not a database"):
        restore(url, wrong, replace=True)
    with pytest.raises(UserError, match="is not a database"):
        restore(URL.format(tmp_path / "none"), wrong, replace=False)
    assert not list((tmp_path / "none").iterdir())
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(UserError, match="another program"):
        restore(url, tmp_path / "theirs.db", replace=True)
    assert (tmp_path / "hub.db").read_bytes() == b"precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "hub.db",
        "none",
        "theirs.db",
        "wrong.db",
    ]
