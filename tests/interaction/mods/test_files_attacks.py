"""What a network refuses of files, and what is nobody else's."""

from __future__ import annotations

import asyncio
import gzip
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubbub.client import Client
from hubbub.errors import OperationError, UserError
from hubbub.protocol.messages import Message
from tests.interaction.hand_clock import HandClock
from tests.interaction.mods.files_rig import (
    PNG,
    ask,
    b64,
    begin,
    contents,
    folder_of,
    network,
    refused,
    sha,
    upload,
)
from tests.interaction.peers import eventually

TEXT = b"# Plan\n\none\ntwo\nthree\n"
EMPTY: dict[str, set[str]] = {"objects": set(), "uploads": set(), "texts": set()}


@pytest.mark.behaviour("M-114")
async def test_a_file_is_there_only_for_those_who_read_one_of_its_threads() -> None:
    async with network() as local:
        ann, eve = await local.join("ann", "human"), await local.join("eve")
        olga = await local.join("olga", "human")
        await upload(ann, "plan.md", TEXT)
        for who in (eve, olga):
            assert (await ask(who, "list_files"))["files"] == []
            for name in ("file_info", "read_file", "download_chunk", "delete_file"):
                there, none = [await refused(who, name, id=id) for id in ("f1", "f2")]
                assert there.code == none.code == "not_found"
                assert there.message.replace("f1", "f2") == none.message
            assert (await refused(who, "share_file", id="f1", thread="broadcast")).code == (
                "not_found"
            )
            sent = await refused_attachment(who, "f1")
            assert sent.replace("f1", "f2") == await refused_attachment(who, "f2")
            assert (await refused(who, "list_files", thread="channel.desk")).code == (
                "unknown_thread"
            )


async def refused_attachment(client: Client, id: str) -> str:
    files = [{"name": "x", "uri": f"file:{id}"}]
    error = await refused(client, "send_text_message", to="ann", text="x", attachments=files)
    assert error.code == "rejected"
    return error.message


@pytest.mark.behaviour("M-114")
async def test_an_upload_is_there_only_for_who_has_begun_it() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id, other = await begin(ann, "plan.md", TEXT, thread="channel.desk"), "u" + "0" * 16
        for name, args in (
            ("upload_chunk", {"offset": 0, "data": b64(b"evil")}),
            ("upload_state", {}),
            ("finish_upload", {}),
            ("cancel_upload", {}),
        ):
            there, none = [await refused(bot, name, upload=u, **args) for u in (id, other)]
            assert there.code == none.code == "not_found"
            assert there.message.replace(id, other) == none.message
        assert (await ask(ann, "finish_upload", upload=id))["sha256"] == sha(TEXT)


@pytest.mark.behaviour("M-115")
async def test_parts_that_do_not_fit_are_refused_and_change_nothing() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        begun = await ask(ann, "begin_upload", name="x.bin", size=10)
        id = begun["upload"]
        await ask(ann, "upload_chunk", upload=id, offset=0, data=b64(b"12345"))
        for offset, data, code in (
            (6, b"7", "bad_request"),
            (5, b"678901", "too_large"),
            (10, b"x", "too_large"),
            (2**40, b"x", "too_large"),
            (0, b"x2345", "conflict"),
            (3, b"456", "conflict"),
            (4, b"56", "conflict"),
        ):
            error = await refused(ann, "upload_chunk", upload=id, offset=offset, data=b64(data))
            assert error.code == code, (offset, data)
            assert error.details["received"] == 5
            assert "5 of 10 bytes are here" in error.message
        for bad in ("????", "AAA", "AAAA\n", "Zm9v=Zg=", "ÀÀÀÀ", ""):
            error = await refused(ann, "upload_chunk", upload=id, offset=5, data=bad)
            assert error.code == "bad_request", bad
        large = await refused(ann, "upload_chunk", upload=id, offset=5, data="A" * 204_804)
        assert large.code == "bad_request"
        early = await refused(ann, "finish_upload", upload=id)
        assert (early.code, early.details["received"]) == ("bad_request", 5)
        await ask(ann, "upload_chunk", upload=id, offset=5, data=b64(b"67890"))
        assert (await ask(ann, "finish_upload", upload=id))["sha256"] == sha(b"1234567890")


@pytest.mark.behaviour("M-115")
async def test_parts_that_come_at_once_are_taken_one_after_the_other() -> None:
    async with network() as local:
        people = [await local.join("ann", "human") for _ in range(3)]
        begun = await ask(people[0], "begin_upload", name="x.bin", size=9)
        id = begun["upload"]
        same = [ask(p, "upload_chunk", upload=id, offset=0, data=b64(b"123")) for p in people]
        assert [told["received"] for told in await asyncio.gather(*same)] == [3, 3, 3]
        parts = (b"456", b"xyz", b"4")
        calls = zip(people, parts, strict=True)
        answers = await asyncio.gather(
            *(p.call("upload_chunk", upload=id, offset=3, data=b64(d)) for p, d in calls),
            return_exceptions=True,
        )
        assert not isinstance(answers[0], BaseException)
        assert isinstance(answers[1], OperationError)
        assert answers[2] == answers[0], "the same bytes are there already"
        told = await ask(people[1], "upload_state", upload=id)
        assert told["received"] == 6


@pytest.mark.behaviour("M-115")
async def test_an_empty_file_and_a_content_that_is_not_the_promised_one_are_refused() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        for size in (0, -1):
            error = await refused(ann, "begin_upload", name="x.md", size=size)
            assert error.code == "bad_request"
        assert (await refused(ann, "write_file", name="x.md", text="")).code == "bad_request"
        for wrong in ("0" * 63, "X" * 64):
            error = await refused(ann, "begin_upload", name="x", size=1, sha256=wrong)
            assert error.code == "bad_request"
        id = await begin(ann, "x.md", TEXT, sha256=sha(b"something else"))
        error = await refused(ann, "finish_upload", upload=id)
        assert (error.code, sha(TEXT) in error.message) == ("rejected", True)
        assert (await refused(ann, "upload_state", upload=id)).code == "not_found"
        assert contents(local) == EMPTY


@pytest.mark.behaviour("M-116")
async def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        for name in (
            "../../x",
            "/etc/passwd",
            "..\\x",
            "C:\\x",
            "a\0b",
            "x\u202egnp",
            "nul",
            "x" * 999,
        ):
            error = await refused(ann, "begin_upload", name=name, size=1)
            assert error.code == "bad_request"
            error = await refused(ann, "write_file", name=name, text="x")
            assert error.code == "bad_request"
        assert contents(local) == EMPTY


@pytest.mark.behaviour("M-117")
async def test_what_is_not_what_it_claims_is_refused_and_nothing_of_it_stays() -> None:
    async with network(types=["image/*", ".md"]) as local:
        ann = await local.join("ann", "human")
        for name, data, words in (
            ("cat.png", b"\x7fELF" + bytes(100), "a program"),
            ("cat.png", b"<!doctype html><script>", "HTML"),
            ("plan.txt", TEXT, "text/plain is not taken"),
            ("plan.md", b"\x00\x01", "octet-stream is not taken"),
        ):
            id = await begin(ann, name, data, media_type="image/png")
            error = await refused(ann, "finish_upload", upload=id)
            assert (error.code, words in error.message) == ("rejected", True), error
        assert contents(local) == EMPTY
        assert (await upload(ann, "cat.png", PNG))["media_type"] == "image/png"
        assert (await upload(ann, "cat.gif", PNG))["media_type"] == "image/png"


@pytest.mark.behaviour("M-118")
async def test_a_bomb_is_refused_and_nothing_of_it_stays() -> None:
    async with network(max_unpacked="1MB") as local:
        ann = await local.join("ann", "human")
        id = await begin(ann, "logs.gz", gzip.compress(bytes(2_000_000)))
        error = await refused(ann, "finish_upload", upload=id)
        assert (error.code, "unpacks to more" in error.message) == ("rejected", True)
        assert contents(local) == EMPTY


@pytest.mark.behaviour("M-119")
async def test_links_in_the_folder_are_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(TEXT)
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with network(store) as local:
        ann = await local.join("ann", "human")
        await upload(ann, "plan.md", TEXT)
        folder = folder_of(local)
        for place in (folder / "objects" / sha(TEXT), folder / "texts" / f"{sha(TEXT)}.plain"):
            place.unlink()
            place.symlink_to(secret)
        for name in ("read_file", "download_chunk"):
            error = await refused(ann, name, id="f1")
            assert (error.code, "symbolic link" in error.message) == ("not_found", True)
        id = (await ask(ann, "begin_upload", name="y.md", size=4))["upload"]
        (folder / "uploads" / id).symlink_to(secret)
        error = await refused(ann, "upload_chunk", upload=id, offset=0, data=b64(b"evil"))
        assert "symbolic link" in error.message
        await ask(ann, "cancel_upload", upload=id)
        assert secret.read_bytes() == TEXT
        assert (await upload(ann, "again.md", TEXT))["id"] == "f2"
        assert (await ask(ann, "read_file", id="f1"))["lines"] == 5, "the content came back"
        shutil.move(folder / "objects", tmp_path / "elsewhere")
        (folder / "objects").symlink_to(tmp_path / "elsewhere")
        assert "symbolic link" in (await refused(ann, "download_chunk", id="f1")).message
    with pytest.raises(UserError, match="no link"):
        async with network(store):
            pass
    assert (tmp_path / "elsewhere" / sha(TEXT)).exists()


@pytest.mark.behaviour("M-120")
async def test_files_have_limits_and_what_is_deleted_makes_room() -> None:
    async with network(max_size=100, quota=150, total=250, max_files=4, max_uploads=2) as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        error = await refused(ann, "begin_upload", name="x", size=101)
        assert (error.code, "at most 100 bytes" in error.message) == ("too_large", True)
        assert (await refused(ann, "write_file", name="x", text="ü" * 51)).code == "too_large"
        await upload(ann, "a", b"a" * 100)
        open_ = (await ask(ann, "begin_upload", name="b", size=30))["upload"]
        error = await refused(ann, "begin_upload", name="c", size=30)
        assert (error.code, "20 are left" in error.message) == ("limit", True)
        await ask(ann, "begin_upload", name="c", size=5)
        error = await refused(ann, "begin_upload", name="d", size=5)
        assert (error.code, "2 uploads of yours" in error.message) == ("limit", True)
        await ask(ann, "cancel_upload", upload=open_)
        await upload(bot, "b", b"b" * 100)
        error = await refused(bot, "begin_upload", name="c", size=50)
        assert (error.code, "room for 45 bytes" in error.message) == ("limit", True)
        await ask(bot, "delete_file", id="f2")
        for n in range(2):
            await upload(bot, "c", b"%d" % n)
        error = await refused(bot, "begin_upload", name="c", size=1)
        assert (error.code, "its 4 files" in error.message) == ("limit", True)


@pytest.mark.behaviour("M-120")
async def test_an_idle_upload_is_given_up() -> None:
    clock = HandClock()
    async with network(clock=clock, upload_idle="10m") as local:
        ann = await local.join("ann", "human")
        id = (await ask(ann, "begin_upload", name="x", size=4))["upload"]
        for received in (1, 2):
            clock.wall += 500
            local.hub.mods.look()
            part = b64(b"ab"[received - 1 : received])
            told = await ask(ann, "upload_chunk", upload=id, offset=received - 1, data=part)
            assert told["received"] == received
        clock.wall += 601
        local.hub.mods.look()
        await eventually(lambda: contents(local) == EMPTY)
        error = await refused(ann, "upload_chunk", upload=id, offset=2, data=b64(b"cd"))
        assert (error.code, "begin it again" in error.message) == ("not_found", True)


@pytest.mark.behaviour("M-114")
async def test_a_message_that_nobody_has_checked_opens_no_file_of_others() -> None:
    async with network() as local:
        ann, eve = await local.join("ann", "human"), await local.join("eve")
        await upload(ann, "plan.md", TEXT)
        said = await ask(eve, "post_to_channel", channel="yard", text="imported, let us say")
        body = await ask(eve, "read_message", id=said["id"])
        message = Message.model_validate(
            {**body, "attachments": [{"name": "x", "uri": uri} for uri in ("file:f1", "file:x")]}
        )
        mod = local.hub.mods.pipeline.mods[0]
        assert list(mod.on_stored(message)) == []
        assert (await refused(eve, "read_file", id="f1")).code == "not_found"


@pytest.mark.behaviour("M-120")
async def test_new_settings_hold_at_once_and_what_is_there_stays() -> None:
    async with network() as local:
        ann, olga = await local.join("ann", "human"), await local.join("olga", "human")
        await upload(ann, "plan.md", TEXT)
        wrong = await refused(
            olga, "configure_mod", name="files", settings={"types": ["no type at all"]}
        )
        assert "types" in wrong.message
        settings = {"types": [".PNG"], "max_size": 1000}
        await ask(olga, "configure_mod", name="files", settings=settings)
        assert (await refused(ann, "begin_upload", name="x", size=1001)).code == "too_large"
        id = await begin(ann, "b.md", b"b")
        assert ".png" in (await refused(ann, "finish_upload", upload=id)).message
        assert (await upload(ann, "cat.png", PNG))["id"] == "f2"
        assert (await ask(ann, "read_file", id="f1"))["lines"] == 5


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """While it is entered, no file grows beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.behaviour("M-395")
async def test_a_full_disk_is_told_as_temporary_and_the_upload_goes_on_when_there_is_room() -> None:
    data = b"line\n" * 20_000
    async with network() as local:
        ann = await local.join("ann", "human")
        id = (await ask(ann, "begin_upload", name="a.txt", size=len(data)))["upload"]
        with small_disk(30_000):
            error = await refused(ann, "upload_chunk", upload=id, offset=0, data=b64(data))
            assert error.temporary
            assert (await ask(ann, "upload_state", upload=id))["received"] == 0
            text = data.decode()
            assert (await refused(ann, "write_file", name="b.txt", text=text)).temporary
        assert (await ask(ann, "upload_chunk", upload=id, offset=0, data=b64(data)))["received"]
        with small_disk(30_000):  # the text that is read from it finds no room
            assert (await refused(ann, "finish_upload", upload=id)).temporary
        await eventually(lambda: contents(local)["objects"] == set())
        assert (await ask(ann, "finish_upload", upload=id))["sha256"] == sha(data)
        await eventually(lambda: contents(local)["uploads"] == set())
        assert contents(local)["objects"] == {sha(data)}
        assert len((await ask(ann, "list_files"))["files"]) == 1


@pytest.mark.behaviour("M-395")
async def test_of_an_upload_given_up_on_a_full_disk_nothing_stays() -> None:
    data = b"line\n" * 20_000
    async with network() as local:
        ann = await local.join("ann", "human")
        id = await begin(ann, "a.txt", data)
        with small_disk(30_000):
            assert (await refused(ann, "finish_upload", upload=id)).temporary
        await ask(ann, "cancel_upload", upload=id)
        assert contents(local) == EMPTY


@pytest.mark.behaviour("M-396")
async def test_uploads_that_begin_at_once_share_the_quota_and_are_bounded() -> None:
    async with network(max_size=100, quota=150, max_uploads=3) as local:
        ann, eve = await local.join("ann", "human"), await local.join("eve")
        calls = [ann.call("begin_upload", name=f"{n}", size=100) for n in range(5)]
        calls += [ann.call("write_file", name=f"w{n}", text="x" * 100) for n in range(5)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(not isinstance(each, BaseException) for each in answers) == 1
        small = [eve.call("begin_upload", name=f"{n}", size=1) for n in range(10)]
        answers = await asyncio.gather(*small, return_exceptions=True)
        assert sum(not isinstance(each, BaseException) for each in answers) == 3
