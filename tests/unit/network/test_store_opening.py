"""Opening and closing a SQLite store: file types, schema versions, damage and locks."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.errors import HubbubError, StoreUnavailable, StoreVersionError, UserError
from hubbub.network.store import open_store
from hubbub.network.store.migrate import APPLICATION_ID, latest_version
from hubbub.testing.store_rows import body, direct, message, opened, write


def database(path: Path, *statements: str) -> str:
    """The URL of a SQLite file created by these statements."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
    return f"sqlite:{path}"


async def filled(path: Path) -> str:
    """The URL of a closed store with 300 messages."""
    store = open_store(f"sqlite:{path}")
    async with opened(store):
        await store.append(direct(1, 300))
    return f"sqlite:{path}"


async def refusal(url: str, kind: type[HubbubError] = UserError) -> str:
    """The message with which `open` refuses."""
    with pytest.raises(kind) as refused:
        await open_store(url).open()
    return str(refused.value)


async def test_a_url_names_a_file_in_a_folder_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in ("", "hubbub.db", "postgres://host/db", "sqlite:", "sqlite"):
        with pytest.raises(UserError, match=r"write sqlite:<file>, for example sqlite:hubbub\.db"):
            open_store(url)
    with pytest.raises(UserError, match="nowhere does not exist"):
        open_store(f"sqlite:{tmp_path}/nowhere/hubbub.db")
    with pytest.raises(UserError, match=r"is a folder: name a file in it"):
        open_store(f"sqlite:{tmp_path}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.db").touch()  # an empty file becomes a store
    for name in ("net.db", "relative.db"):
        async with opened(open_store(f"sqlite:{name}")) as state:
            assert state.head == 0
        assert (tmp_path / name).stat().st_size > 0


async def test_a_new_store_has_the_application_id_and_the_latest_schema(tmp_path: Path) -> None:
    await filled(tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (latest_version(),)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    epochs = set()
    for name in ("x.db", "y.db"):
        async with opened(open_store(f"sqlite:{tmp_path}/{name}")) as state:
            epochs.add(state.epoch)
    assert len(epochs) == 2


@pytest.mark.behaviour("S-8")
async def test_a_file_that_is_no_store_of_this_version_is_refused_unchanged(tmp_path: Path) -> None:
    newer = latest_version() + 1
    (tmp_path / "notes.db").write_text("dear diary\n" * 500, encoding="utf-8")
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere" / "y.db")
    await filled(tmp_path / "newer.db")
    database(tmp_path / "newer.db", f"PRAGMA user_version = {newer}")
    database(tmp_path / "theirs.db", "CREATE TABLE theirs (x)")
    database(tmp_path / "marked.db", "PRAGMA application_id = 77")
    await filled(tmp_path / "odd.db")
    (tmp_path / "odd.db-wal").mkdir()
    names = ("notes", "newer", "theirs", "marked", "odd")
    before = {name: (tmp_path / f"{name}.db").read_bytes() for name in names}
    for name, kind, text in (
        ("notes", UserError, "notes.db is not a database: configure another file as the store"),
        ("link", UserError, "link.db cannot be opened: No such file or directory"),
        ("theirs", StoreVersionError, "database of another program: configure another file"),
        ("marked", StoreVersionError, "another program"),
        ("newer", StoreVersionError, f"schema version {newer}"),
        ("newer", StoreVersionError, f"up to {latest_version()}: update Hubbub"),
        ("odd", UserError, "odd.db cannot be used as a store: unable to open database file"),
    ):
        assert text in await refusal(f"sqlite:{tmp_path}/{name}.db", kind)
    assert {name: (tmp_path / f"{name}.db").read_bytes() for name in names} == before


@pytest.mark.behaviour("S-8")
async def test_a_truncated_or_overwritten_file_is_refused_as_damaged(tmp_path: Path) -> None:
    url = await filled(tmp_path / "x.db")
    whole = (tmp_path / "x.db").read_bytes()
    overwritten = bytearray(whole)
    for page in range(4096, len(whole), 4096):
        overwritten[page : page + 64] = b"\xff" * 64
    for content in (whole[: 3 * 4096], overwritten):
        (tmp_path / "x.db").write_bytes(content)
        assert "x.db is damaged: restore a backup" in await refusal(url, StoreUnavailable)


@pytest.mark.behaviour("S-9")
async def test_a_second_hub_is_refused_with_the_process_that_has_the_store(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/x.db"
    first = open_store(url)
    async with opened(first):
        assert f"x.db is in use by another hub (process {os.getpid()})" in await refusal(url)
        os.link(tmp_path / "x.db", tmp_path / "same.db")
        (tmp_path / "other.db").symlink_to(tmp_path / "x.db")
        for name in ("same.db", "other.db"):
            assert "in use by another hub" in await refusal(f"sqlite:{tmp_path}/{name}")
        await first.append(direct(1, 1))
    async with opened(open_store(url)) as state:
        assert state.head == 1


@pytest.mark.behaviour("S-14")
async def test_only_the_owner_can_read_the_database_files(tmp_path: Path) -> None:
    def modes() -> set[int]:
        return {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}

    before = os.umask(0)
    try:
        for _ in range(2):
            async with opened(open_store(f"sqlite:{tmp_path}/x.db")):
                assert len(os.listdir(tmp_path)) == 3
                assert modes() == {0o600}
            (tmp_path / "x.db").chmod(0o644)
    finally:
        os.umask(before)


@pytest.mark.behaviour("S-13")
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
async def test_a_store_with_deleted_or_replaced_files_refuses_writes(
    tmp_path: Path, end: str
) -> None:
    url, file = await filled(tmp_path / "x.db"), tmp_path / f"x.db{end}"
    for replaced in (True, False):
        store = open_store(url)
        await store.open()
        os.utime(tmp_path, (1, 1))  # an old folder whose files need no check
        assert [store.problem(), store.problem()] == ["", ""]
        copy = file.read_bytes()
        file.unlink()
        if replaced:
            (tmp_path / "new").write_bytes(copy)
            (tmp_path / "new").rename(file)
        for _ in range(2):
            with pytest.raises(
                StoreUnavailable, match=r"deleted, moved or replaced.*stop the hub, restore"
            ):
                await store.append(direct(301, 301))
            assert f"x.db{end} was" in store.problem()
        await store.close()


@pytest.mark.slow
@pytest.mark.behaviour("S-9")
async def test_a_store_stays_locked_until_its_process_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from hubbub.network.store import open_store\n"
        "async def main():\n"
        f"    store = open_store('sqlite:{tmp_path}/x.db')\n"
        "    await store.open(); print('open', flush=True); sys.stdin.read()\n"
        "asyncio.run(main())"
    )
    url = await filled(tmp_path / "x.db")
    os.link(tmp_path / "x.db", tmp_path / "same.db")
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"open\n"
    for name, process in (("x.db", other.pid), ("same.db", "unknown")):
        assert f"process {process}" in await refusal(f"sqlite:{tmp_path}/{name}")
    other.kill()
    await other.wait()
    async with opened(open_store(url)):
        pass


def ended(threads: set[threading.Thread]) -> bool:
    """Whether all of these threads end."""
    for thread in threads:
        thread.join(5)
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("place", ["x.db", ":memory:"])
async def test_close_leaves_no_thread_and_no_extra_file(tmp_path: Path, place: str) -> None:
    before = set(threading.enumerate())
    store = open_store(f"sqlite:{place if place == ':memory:' else tmp_path / place}")
    await store.open()
    await store.append(direct(1, 10))
    await store.events("bob", 0, 9, 9, own=False)
    begun = set(threading.enumerate()) - before
    assert bool(begun) == (place != ":memory:")
    await store.close()
    assert ended(begun)
    assert os.listdir(tmp_path) == ([] if place == ":memory:" else ["x.db"])


async def test_a_failed_open_leaves_no_thread_and_no_lock(tmp_path: Path) -> None:
    url = database(tmp_path / "x.db", "CREATE TABLE theirs (x)")
    before = set(threading.enumerate())
    await refusal(url, StoreVersionError)
    assert ended(set(threading.enumerate()) - before)
    (tmp_path / "x.db").unlink()
    async with opened(open_store(url)):
        pass


async def test_appended_messages_survive_without_a_close(tmp_path: Path) -> None:
    """Copies the files as a killed hub leaves them behind."""
    store, left = open_store(f"sqlite:{tmp_path}/x.db"), tmp_path / "left"
    left.mkdir()
    async with opened(store):
        await store.append(direct(1, 40))
        await write(store, messages=[message(41, cid="c")])
        for file in (tmp_path / "x.db", tmp_path / "x.db-wal"):
            shutil.copy(file, left)
    again = open_store(f"sqlite:{left}/x.db")
    async with opened(again) as state:
        assert state.head == 41
        assert await again.message(40) == body(40)


@pytest.mark.slow
def test_a_program_that_fails_with_an_open_store_exits(tmp_path: Path) -> None:
    code = (
        "import asyncio; from hubbub.network.store import open_store\n"
        "async def main():\n"
        f"    await open_store('sqlite:{tmp_path}/x.db').open()\n"
        "    raise SystemExit(7)\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 7
