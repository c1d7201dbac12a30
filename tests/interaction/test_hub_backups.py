"""Logs that are restored to an older state, and clients that have received more."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hubbub.client import Client
from hubbub.errors import StoreUnavailable, UserError
from hubbub.network.store.backups import back_up, restore
from hubbub.network.store.verify import verify_log
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
    (line,) = capsys.readouterr().err.splitlines()
    assert "shorter than what a client has seen" in line
    assert "end=0" in line


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


@pytest.mark.behaviour("S-16")
async def test_a_backup_leaves_out_attachments_that_the_hub_deletes_while_they_are_copied(
    tmp_path: Path,
) -> None:
    """A link to nothing is such a file: it is listed, and gone when it is opened."""
    await run_hub(tmp_path, 1, 2)
    uploads = tmp_path / "hub.files" / "files" / "uploads"
    uploads.mkdir(parents=True)
    (uploads / "kept").write_text("content")
    (uploads / "moved").symlink_to(tmp_path / "nowhere")
    assert back_up(URL.format(tmp_path), tmp_path / "copy.db") == 2
    copies = tmp_path / "copy.files" / "files" / "uploads"
    assert [file.name for file in copies.iterdir()] == ["kept"]


@pytest.mark.behaviour("S-16")
async def test_a_damaged_store_is_not_backed_up_and_the_reason_is_one_line(tmp_path: Path) -> None:
    await run_hub(tmp_path, 1, 2)
    database, copy = tmp_path / "hub.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(database)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'message'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    with pytest.raises(StoreUnavailable, match=r"^\S+/hub\.db is damaged \([^\n]+\): use an older"):
        back_up(URL.format(tmp_path), copy)
    assert not copy.exists()


@pytest.mark.behaviour("S-16")
async def test_a_backup_that_fails_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    await run_hub(tmp_path, 1, 2)
    url, backups = URL.format(tmp_path), tmp_path / "backups"
    with pytest.raises(UserError, match=r"the folder .*backups does not exist: create it first"):
        back_up(url, backups / "copy.db")
    backups.mkdir()
    special = tmp_path / "hub.files" / "pipe"
    special.parent.mkdir()
    os.mkfifo(special)  # an attachment that cannot be copied
    reason = r"monday\.db cannot be written: `\S*/hub\.files/pipe` is a named pipe$"
    with pytest.raises(StoreUnavailable, match=reason):
        back_up(url, backups / "monday.db")
    assert not list(backups.iterdir())
    special.unlink()
    with pytest.raises(UserError, match=r"name the backup monday\.db"):
        back_up(url, backups / "monday.files")
    assert back_up(url, backups / "monday.db") == 2


@pytest.mark.behaviour("S-16")
async def test_a_full_disk_is_reported_with_the_file_that_could_not_be_written(
    tmp_path: Path,
) -> None:
    await run_hub(tmp_path, 1, 50)
    backup = tmp_path / "backup.db"
    back_up(URL.format(tmp_path), backup)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "hub.db"
    with small_disk(), pytest.raises(StoreUnavailable, match=r"other/hub\.db cannot be written"):
        restore(URL.format(other.parent), backup, replace=False)
    with small_disk(), pytest.raises(StoreUnavailable, match=r"other/b\.db cannot be written"):
        back_up(URL.format(tmp_path), other.with_name("b.db"))
    assert not list(other.parent.iterdir())


@contextmanager
def small_disk() -> Iterator[None]:
    """No file can grow beyond 64 KiB."""
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.SIG_IGN
    handler = signal.signal(signal.SIGXFSZ, ignored)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.behaviour("S-16")
async def test_a_restored_log_is_not_changed_by_the_journal_of_the_store_that_it_replaces(
    tmp_path: Path,
) -> None:
    """A hub that is killed while it migrates a restored store leaves a journal beside it."""
    url, database, journal = (
        URL.format(tmp_path),
        tmp_path / "hub.db",
        tmp_path / "hub.db-journal",
    )
    await run_hub(tmp_path, 1, 30)
    back_up(url, tmp_path / "old.db")
    await run_hub(tmp_path, 31, 200)
    back_up(url, tmp_path / "new.db")
    restore(url, tmp_path / "old.db", replace=True)
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE message SET body = body || body")
        killed = database.read_bytes(), journal.read_bytes()
    database.write_bytes(killed[0])
    journal.write_bytes(killed[1])
    assert restore(url, tmp_path / "new.db", replace=True) == 200
    assert verify_log(url) == 200


@pytest.mark.behaviour("S-16")
async def test_a_store_behind_a_link_is_restored_where_the_link_points(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link, url = tmp_path / "hub.db", URL.format(tmp_path)
    link.symlink_to(tmp_path / "disk" / "real.db")
    (tmp_path / "disk" / "real.db").touch()
    await run_hub(tmp_path, 1, 3)
    back_up(url, tmp_path / "copy.db")
    await run_hub(tmp_path, 4, 5)
    assert restore(url, tmp_path / "copy.db", replace=True) == 3
    assert link.is_symlink()
    assert [file.name for file in link.resolve().parent.iterdir()] == ["real.db"]
    assert verify_log(url) == 3
