"""Files in a running network: uploads, attachments, limits, failures and restarts."""

from __future__ import annotations

import base64
import gzip
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from hubbub.errors import UserError
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.files.schemas import CHUNK
from hubbub.protocol.messages import Message
from tests.interaction.mods.files_harness import (
    PNG,
    TEXT,
    attach,
    b64,
    begin,
    contents,
    folder_of,
    network,
    sha,
    upload,
)
from tests.interaction.mods.workspace import advance, refusal, refused
from tests.interaction.peers import Peer, eventually
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore

BIG = bytes(range(256)) * 2000
GONE = f"u{'0' * 16}"


async def ids(peer: Peer, **which: Any) -> list[str]:
    return [file["id"] for file in (await peer.call("list_files", **which))["files"]]


# Uploads and downloads --------------------------------------------------------------------------


@pytest.mark.behaviour("M-110", "M-111")
async def test_an_upload_resumes_and_is_downloaded_unchanged() -> None:
    async with network("ann", "bot") as (net, ann, bot):
        begun = await ann.call("begin_upload", name="x.bin", size=len(BIG), thread="channel.desk")
        id, first = begun["upload"], b64(BIG[:CHUNK])
        for _ in range(2):  # a repeated chunk changes nothing
            answer = await ann.call("upload_chunk", upload=id, offset=0, data=first)
            assert answer["received"] == CHUNK
        again = await net.join("ann")
        assert (await again.call("upload_state", upload=id))["received"] == CHUNK
        for at in range(CHUNK, len(BIG), CHUNK):
            await again.call("upload_chunk", upload=id, offset=at, data=b64(BIG[at : at + CHUNK]))
        file = await again.call("finish_upload", upload=id)
        assert await ann.call("finish_upload", upload=id) == file
        assert (file["id"], file["name"], file["size"]) == ("f1", "x.bin", len(BIG))
        assert (file["sha256"], file["uploaded_by"]) == (sha(BIG), "ann")
        assert file["media_type"] == "application/octet-stream"
        data, more = b"", True
        while more:
            part = await bot.call("download_chunk", id="f1", offset=len(data))
            data, more = data + base64.b64decode(part["data"]), part["more"]
        assert data == BIG
        assert (await bot.call("list_files"))["files"] == [file]
        assert await bot.call("file_info", id="f1") == file


@pytest.mark.behaviour("M-110", "M-112")
async def test_identical_content_is_stored_once_and_removed_with_its_last_file() -> None:
    async with network("ann", "bot") as (net, ann, bot):
        await upload(ann, "a.md", TEXT)
        await bot.call("write_file", name="b.md", text=TEXT.decode(), thread="channel.desk")
        assert contents(net)["objects"] == {sha(TEXT)}
        await ann.call("delete_file", id="f1")
        assert (await bot.call("read_file", id="f2"))["lines"] == 5
        await bot.call("delete_file", id="f2")
        await eventually(lambda: not contents(net))
        for n in range(3, 13, 2):
            await bot.call("write_file", name="x.md", text=str(n), thread="channel.desk")
            await bot.call("write_file", name="own.md", text=str(n))
        await bot.call("share_file", id="f6", thread="channel.desk")
        listed, page = list[str](), await ann.call("list_files", limit=2)
        while page["more"]:
            listed += [file["id"] for file in page["files"]]
            page = await ann.call("list_files", limit=2, before=listed[-1])
        listed += [file["id"] for file in page["files"]]
        assert listed == ["f11", "f9", "f7", "f6", "f5", "f3"]
        assert len(await ids(bot)) == 10


@pytest.mark.behaviour("M-121")
async def test_a_long_text_is_read_in_parts() -> None:
    text = "\n".join(f"line {n} {'ü' * 500}" for n in range(1, 301))
    async with network("ann", max_text="200KB") as (_, ann):
        await upload(ann, "x.log", text.encode())
        lines, more, n = list[str](), True, 0
        while more:
            part = await ann.call("read_file", id="f1", first_line=len(lines) + 1, numbers=False)
            lines += part["text"].split("\n")
            assert (part["last"], part["lines"]) == (len(lines), 300)
            more, n = part["more"], n + 1
        assert "\n".join(lines) == text
        assert n > 3
        some = await ann.call("read_file", id="f1", first_line=299, last_line=299)
        assert (some["text"].startswith("299| line 299 ü"), some["more"]) == (True, True)
        assert await refused(ann, "read_file", id="f1", first_line=301) == "bad_request"
        await upload(ann, "long.log", text.encode() * 3)
        assert (await ann.call("read_file", id="f2"))["cut"]
        await upload(ann, "cat.png", PNG)
        error = await refusal(ann, "read_file", id="f3")
        assert (error.code, "from image/png" in error.message) == ("not_found", True)


async def test_only_the_uploader_is_signalled_about_a_file_without_a_thread() -> None:
    async with network("ann", "bot") as (_, ann, bot):
        await upload(ann, "x.txt", b"some words", thread=None)
        await ann.call("delete_file", id="f1")
        signals = [await ann.signal("mod.files") for _ in range(2)]
        assert [each["data"]["kind"] for each in signals] == ["added", "deleted"]
        await bot.sync()
        assert not [each for each in bot.signals if each["type"] == "mod.files"]


# Messages and threads ---------------------------------------------------------------------------


@pytest.mark.behaviour("M-113", "M-129")
async def test_a_message_describes_its_files_and_marks_them_untrusted() -> None:
    async with network("ann", "bot", excerpt=40) as (_, ann, bot):
        file = await upload(ann, "plan.md", TEXT, thread=None)
        assert "thread" not in file
        assert await refused(bot, "read_file", id="f1") == "not_found"
        message = await attach(ann, "f1")
        assert message["attachments"] == [
            {
                "name": "plan.md",
                "media_type": "text/markdown",
                "uri": "file:f1",
                "size": len(TEXT),
                "excerpt": TEXT.decode().rstrip(),
            }
        ]
        assert message["untrusted"] is True
        assert (await bot.call("read_file", id="f1"))["text"].startswith("1| # Plan\n2| \n3| one")
        assert (await bot.call("file_info", id="f1"))["thread"] == "channel.desk"
        await bot.call("write_file", name="own.md", text="a" * 100)
        await bot.call("write_file", name="copy.md", text="of others", untrusted=True)
        await upload(bot, "c.png", PNG)
        marks = [
            (await attach(bot, *files)).get("untrusted", False)
            for files in (["f2"], ["f3"], ["f2", "f3"])
        ]
        assert marks == [False, True, True]
        assert [(await ann.call("read_file", id=id))["untrusted"] for id in ("f2", "f3")] == [
            False, True,
        ]  # fmt: skip
        shown = (await attach(bot, "f2", "f3", "f4"))["attachments"]  # which share the limit
        assert [each.get("excerpt") for each in shown] == ["a" * 19 + "…", "of others", None]


@pytest.mark.behaviour("M-128", "M-130")
async def test_unknown_files_are_refused_and_other_attachments_unchanged() -> None:
    async with network("ann", "bot", "eve") as (_, ann, bot, eve):
        for uri in ("file:f1", "file:", "file:../x", "FILE:f1", "file:///etc/passwd", "file:f01"):
            files = [{"name": "x", "uri": uri}]
            error = await refusal(ann, "send_text_message", to="bot", text="x", attachments=files)
            assert (error.code, "no file" in error.message) == ("rejected", True), uri
        given = {"name": "x", "uri": "https://example.org/x", "media_type": "text/html"}
        forged = {**given, "excerpt": "trust me", "gone": True}
        sent = await ann.say("bot", "x", attachments=[forged])
        message = await bot.call("read_message", id=sent["id"])
        assert (message["attachments"], message["untrusted"]) == ([given], False)
        await upload(ann, "plan.md", TEXT)
        many = [{"name": "x", "uri": "file:f1"}] * 21
        error = await refusal(ann, "send_text_message", to="bot", text="x", attachments=many)
        assert "the limit is 20" in error.message
        sent = await ann.say("bot", "x", attachments=[given, {"name": "x", "uri": "FILE:f1"}])
        shown = (await bot.call("read_message", id=sent["id"]))["attachments"]
        assert [(each["name"], each["uri"]) for each in shown] == [
            ("x", given["uri"]), ("plan.md", "file:f1"),
        ]  # fmt: skip
        assert await refused(ann, "share_file", id="f1", thread="channel.x") == "unknown_channel"
        assert (await ann.call("share_file", id="f1", thread="channel.yard"))["id"] == "f1"
        assert (await eve.call("file_info", id="f1"))["thread"] == "channel.yard"
        await ann.call("share_file", id="f1", thread="eve")
        assert await ids(eve, thread="channel.yard") == await ids(ann) == ["f1"]


@pytest.mark.behaviour("M-114")
async def test_files_are_for_readers_of_their_threads_and_uploads_for_uploaders() -> None:
    async with network("ann", "bot", "eve", "olga") as (net, ann, bot, eve, olga):
        await upload(ann, "plan.md", TEXT)
        for who in (eve, olga):
            assert await ids(who) == []
            for name in ("file_info", "read_file", "download_chunk", "delete_file"):
                hidden, missing = [await refusal(who, name, id=id) for id in ("f1", "f2")]
                assert hidden.code == missing.code == "not_found"
                assert hidden.message.replace("f1", "f2") == missing.message
            assert await refused(who, "share_file", id="f1", thread="broadcast") == "not_found"
            hidden, missing = [
                await refusal(
                    who, "send_text_message", to="ann", text="x",
                    attachments=[{"name": "x", "uri": f"file:{id}"}],
                )
                for id in ("f1", "f2")
            ]  # fmt: skip
            assert (hidden.code, hidden.message.replace("f1", "f2")) == (
                "rejected", missing.message,
            )  # fmt: skip
            assert await refused(who, "list_files", thread="channel.desk") == "unknown_thread"
        sent = await eve.call("post_to_channel", channel="yard", text="unchecked")
        body = await eve.call("read_message", id=sent["id"])
        files = [{"name": "x", "uri": uri} for uri in ("file:f1", "file:x")]
        message = Message.model_validate({**body, "attachments": files})
        mod = net.hub.services.mods.pipeline.mods[0]
        await mod.host.write(mod.on_stored(message))
        assert await refused(eve, "read_file", id="f1") == "not_found"
        id = await begin(ann, "other.md", TEXT, thread="channel.desk")
        for name in ("upload_chunk", "upload_state", "finish_upload", "cancel_upload"):
            args = {"offset": 0, "data": b64(b"evil")} if name == "upload_chunk" else {}
            hidden, missing = [await refusal(bot, name, upload=u, **args) for u in (id, GONE)]
            assert hidden.code == missing.code == "not_found"
            assert hidden.message.replace(id, GONE) == missing.message
        assert (await ann.call("finish_upload", upload=id))["sha256"] == sha(TEXT)


@pytest.mark.behaviour("M-122")
async def test_a_deleted_file_is_gone_and_marked_in_its_messages() -> None:
    async with network("ann", "bot", "olga") as (_, ann, bot, olga):
        await upload(ann, "plan.md", TEXT)
        sent = await attach(ann, "f1")
        assert await refused(bot, "delete_file", id="f1") == "forbidden"
        deleted = await ann.call("delete_file", id="f1")
        assert deleted["deleted_by"] == "ann"
        assert await bot.call("file_info", id="f1") == deleted
        for name in ("read_file", "download_chunk", "delete_file"):
            assert "was deleted by ann" in (await refusal(bot, name, id="f1")).message
            assert "that you can see" in (await refusal(olga, name, id="f1")).message
        (shown,) = (await bot.call("read_message", id=sent["id"]))["attachments"]
        assert (shown["gone"], "excerpt" in shown) == (True, False)
        assert await ids(bot) == []
        await upload(ann, "b.md", b"x", thread="broadcast")  # of author and owner, one deletes it
        refs = [(who, await who.post("delete_file", id="f2")) for who in (olga, ann)]
        answers = [(await who.answer(ref))["op"] for who, ref in refs]
        assert sorted(answers) == ["error", "result"]


@pytest.mark.behaviour("M-114")
async def test_a_message_shares_its_files_until_it_is_deleted() -> None:
    async with network("ann", "bot", extra=[EditsMod(EditsConfig())]) as (_, ann, bot):
        await upload(ann, "plan.md", TEXT, thread=None)
        for message in [await attach(ann, "f1"), await attach(ann, "f1")]:
            assert await ids(bot) == await ids(bot, thread="channel.desk") == ["f1"]
            await ann.call("delete_message", message_id=message["id"])
        assert await refused(bot, "read_file", id="f1") == "not_found"
        assert await ids(bot, thread="channel.desk") == []
        assert await ids(ann) == ["f1"]


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-115")
async def test_chunks_that_do_not_fit_are_refused_and_change_nothing() -> None:
    async with network("ann") as (net, ann):
        id = (await ann.call("begin_upload", name="x.bin", size=10))["upload"]
        await ann.call("upload_chunk", upload=id, offset=0, data=b64(b"12345"))
        for offset, data, code in (
            (6, b"7", "bad_request"),
            (5, b"678901", "too_large"),
            (10, b"x", "too_large"),
            (2**40, b"x", "too_large"),
            (0, b"x2345", "conflict"),
            (3, b"456", "conflict"),
            (4, b"56", "conflict"),
        ):
            error = await refusal(ann, "upload_chunk", upload=id, offset=offset, data=b64(data))
            assert (error.code, error.details["received"]) == (code, 5), (offset, data)
            assert "5 of 10 bytes were received" in error.message
        for bad in ("????", "AAA", "AAAA\n", "Zm9v=Zg=", "ÀÀÀÀ", "", "A" * 204_804):
            code = await refused(ann, "upload_chunk", upload=id, offset=5, data=bad)
            assert code == "bad_request", bad
        early = await refusal(ann, "finish_upload", upload=id)
        assert (early.code, early.details["received"]) == ("bad_request", 5)
        people = [await net.join("ann") for _ in range(3)]  # concurrent chunks
        parts = zip(people, (b"678", b"xyz", b"6"), strict=True)
        refs = [await p.post("upload_chunk", upload=id, offset=5, data=b64(d)) for p, d in parts]
        answers = [await p.answer(ref) for p, ref in zip(people, refs, strict=True)]
        assert [answer["op"] for answer in answers] == ["result", "error", "result"]
        assert answers[0]["value"] == answers[2]["value"], "the same bytes were received"
        await ann.call("upload_chunk", upload=id, offset=8, data=b64(b"90"))
        assert (await ann.call("finish_upload", upload=id))["sha256"] == sha(b"1234567890")


@pytest.mark.behaviour("M-115", "M-116", "M-117", "M-118")
async def test_unaccepted_files_are_refused_and_leave_nothing_behind() -> None:
    settings: Any = {"types": ["image/*", ".md", ".gz"], "max_unpacked": "1MB"}
    async with network("ann", **settings) as (net, ann):
        names = ("../../x", "/etc/passwd", "..\\x", "C:\\x", "x\u202egnp", "nul", "x" * 999)
        wrong: list[Any] = [{"size": 0}, {"size": -1}, {"sha256": "0" * 63}, {"sha256": "X" * 64}]
        for each in (*wrong, *({"name": name} for name in names)):
            args = {"name": "x.md", "size": 1, **each}
            assert await refused(ann, "begin_upload", **args) == "bad_request", each
        for name, text in (*((name, "x") for name in names), ("x.md", "")):
            assert await refused(ann, "write_file", name=name, text=text) == "bad_request", name
        for name, data, more, reason in (
            ("x.md", TEXT, {"sha256": sha(b"else")}, sha(TEXT)),
            ("cat.png", b"\x7fELF" + bytes(100), {"media_type": "image/png"}, "a program"),
            ("cat.png", b"<!doctype html><script>", {}, "HTML"),
            ("plan.txt", TEXT, {"media_type": "image/png"}, "text/plain is not accepted"),
            ("plan.md", b"\x00\x01", {}, "octet-stream is not accepted"),
            ("logs.gz", gzip.compress(bytes(2_000_000)), {}, "unpacks to more"),
        ):
            id = await begin(ann, name, data, **more)
            error = await refusal(ann, "finish_upload", upload=id)
            assert (error.code, reason in error.message) == ("rejected", True), error
            assert await refused(ann, "upload_state", upload=id) == "not_found"
        assert contents(net) == {}
        assert (await upload(ann, "cat.gif", PNG))["media_type"] == "image/png"


@pytest.mark.behaviour("M-119")
async def test_symbolic_links_in_the_folder_are_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(TEXT)
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with network("ann", store=store) as (net, ann):
        await upload(ann, "plan.md", TEXT)
        folder = folder_of(net)
        for path in (folder / "objects" / sha(TEXT), folder / "texts" / f"{sha(TEXT)}.plain"):
            path.unlink()
            path.symlink_to(secret)
        for name in ("read_file", "download_chunk"):
            error = await refusal(ann, name, id="f1")
            assert (error.code, "symbolic link" in error.message) == ("not_found", True)
        id = (await ann.call("begin_upload", name="y.md", size=4))["upload"]
        (folder / "uploads" / id).symlink_to(secret)
        error = await refusal(ann, "upload_chunk", upload=id, offset=0, data=b64(b"evil"))
        assert "symbolic link" in error.message
        await ann.call("cancel_upload", upload=id)
        assert secret.read_bytes() == TEXT
        assert (await upload(ann, "again.md", TEXT))["id"] == "f2"
        assert (await ann.call("read_file", id="f1"))["lines"] == 5, "restored by the upload"
        shutil.move(folder / "objects", tmp_path / "elsewhere")
        (folder / "objects").symlink_to(tmp_path / "elsewhere")
        assert "symbolic link" in (await refusal(ann, "download_chunk", id="f1")).message
    with pytest.raises(UserError, match="not a link"):
        async with network(store=store):
            pass
    assert (tmp_path / "elsewhere" / sha(TEXT)).exists()


@pytest.mark.behaviour("M-120")
async def test_files_have_limits_and_deleting_frees_room() -> None:
    limits: Any = {"max_size": 100, "quota": 150, "total": 250, "max_files": 4, "max_uploads": 2}
    async with network("ann", "bot", **limits) as (_, ann, bot):
        assert await refused(ann, "write_file", name="x", text="ü" * 51) == "too_large"

        async def assert_refused(peer: Peer, size: int, code: str, reason: str) -> None:
            error = await refusal(peer, "begin_upload", name="x", size=size)
            assert (error.code, reason in error.message) == (code, True), error

        await assert_refused(ann, 101, "too_large", "the limit is 100")
        await upload(ann, "a", b"a" * 100)
        id = (await ann.call("begin_upload", name="b", size=30))["upload"]
        await assert_refused(ann, 30, "limit", "20 of 150 bytes left")
        await ann.call("begin_upload", name="c", size=5)
        await assert_refused(ann, 5, "limit", "2 uploads in progress")
        await ann.call("cancel_upload", upload=id)
        await upload(bot, "b", b"b" * 100)
        await assert_refused(bot, 50, "limit", "the network has 45 of")
        await bot.call("delete_file", id="f2")
        for n in range(2):
            await upload(bot, "c", b"%d" % n)
        await assert_refused(bot, 1, "limit", "has 4 files")


@pytest.mark.behaviour("M-396")
async def test_simultaneous_uploads_share_the_quota_and_are_bounded() -> None:
    async with network("ann", "eve", max_size=100, quota=150, max_uploads=3) as (_, ann, eve):
        large = [await ann.post("begin_upload", name=f"{n}", size=100) for n in range(5)]
        large += [await ann.post("write_file", name=f"w{n}", text="x" * 100) for n in range(5)]
        small = [await eve.post("begin_upload", name=f"{n}", size=1) for n in range(10)]
        for peer, refs, accepted in ((ann, large, 1), (eve, small, 3)):
            answers = [(await peer.answer(ref))["op"] for ref in refs]
            assert answers.count("result") == accepted


@pytest.mark.behaviour("M-120")
async def test_an_idle_upload_expires_and_new_settings_apply_at_once() -> None:
    clock = HandClock()
    async with network("ann", "olga", clock=clock, upload_idle="10m") as (net, ann, olga):
        id = (await ann.call("begin_upload", name="x", size=4))["upload"]
        for received in (1, 2):
            advance(net, clock, 500)
            part = b64(b"ab"[received - 1 : received])
            answer = await ann.call("upload_chunk", upload=id, offset=received - 1, data=part)
            assert answer["received"] == received
        advance(net, clock, 601)
        await eventually(lambda: not contents(net))
        error = await refusal(ann, "upload_chunk", upload=id, offset=2, data=b64(b"cd"))
        assert (error.code, "Start it again" in error.message) == ("not_found", True)
        await upload(ann, "plan.md", TEXT)
        wrong = {"types": ["no type at all"]}
        error = await refusal(olga, "configure_mod", name="files", settings=wrong)
        assert "types" in error.message
        settings = {"types": [".PNG"], "max_size": 1000}
        await olga.call("configure_mod", name="files", settings=settings)
        assert await refused(ann, "begin_upload", name="x", size=1001) == "too_large"
        id = await begin(ann, "b.md", b"b")
        assert ".png" in (await refusal(ann, "finish_upload", upload=id)).message
        assert (await upload(ann, "cat.png", PNG))["id"] == "f2"
        assert (await ann.call("read_file", id="f1"))["lines"] == 5


# Failing disks and restarts ---------------------------------------------------------------------


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Within it, no file can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.behaviour("M-395")
async def test_a_full_disk_is_a_temporary_error_and_the_upload_resumes() -> None:
    data = b"line\n" * 20_000
    async with network("ann") as (net, ann):
        id = (await ann.call("begin_upload", name="a.txt", size=len(data)))["upload"]
        part = {"upload": id, "offset": 0, "data": b64(data)}
        with small_disk(30_000):
            assert (await refusal(ann, "upload_chunk", **part)).temporary
            assert (await ann.call("upload_state", upload=id))["received"] == 0
            assert (await refusal(ann, "write_file", name="b", text=data.decode())).temporary
        assert (await ann.call("upload_chunk", **part))["received"]
        cancelled = await begin(ann, "b.txt", data)
        with small_disk(30_000):  # no room for the extracted text
            for each in (id, cancelled):
                assert (await refusal(ann, "finish_upload", upload=each)).temporary
        await ann.call("cancel_upload", upload=cancelled)
        await eventually(lambda: contents(net) == {"uploads": {id, f"{id}.text"}})
        assert (await ann.call("finish_upload", upload=id))["sha256"] == sha(data)
        await eventually(lambda: "uploads" not in contents(net))
        assert contents(net)["objects"] == {sha(data)}
        assert await ids(ann) == ["f1"]


@pytest.mark.behaviour("M-124")
async def test_an_operation_that_the_store_refuses_can_be_repeated() -> None:
    store = MoodyStore()
    async with network("ann", store=store) as (net, ann):

        async def assert_fails(name: str, /, **args: str) -> None:
            store.failing = 1
            assert await refused(ann, name, **args) == "store_unavailable"

        id = await begin(ann, "plan.md", TEXT, thread="channel.desk")
        await assert_fails("finish_upload", upload=id)
        assert await ids(ann) == []
        again = await ann.call("upload_chunk", upload=id, offset=0, data=b64(TEXT))
        assert again["received"] == len(TEXT)
        file = await ann.call("finish_upload", upload=id)
        await assert_fails("write_file", name="b.md", text="b")
        await eventually(lambda: contents(net)["objects"] == {sha(TEXT)})
        other = await begin(ann, "c.md", b"c")
        await assert_fails("finish_upload", upload=other)
        await ann.call("cancel_upload", upload=other)
        assert contents(net)["objects"] == {sha(TEXT)}
        await assert_fails("delete_file", id=file["id"])
        assert (await ann.call("read_file", id=file["id"]))["lines"] == 5
        assert await ids(ann) == [file["id"]]


@pytest.mark.behaviour("M-123")
async def test_files_survive_a_restart_and_unfinished_uploads_do_not(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with network("ann", store=store) as (net, ann):
        await upload(ann, "plan.md", TEXT, thread=None)
        await attach(ann, "f1")
        id = await begin(ann, "other.md", b"other")
        folder = folder_of(net)
    (folder / "objects" / sha(b"nobody's")).write_bytes(b"nobody's")
    (folder / "objects" / "link").symlink_to(tmp_path)
    async with network("ann", "bot", store=store) as (net, ann, bot):
        assert contents(net) == {"objects": {sha(TEXT)}, "texts": {f"{sha(TEXT)}.plain"}}
        assert (await bot.call("read_file", id="f1"))["lines"] == 5
        assert await refused(ann, "finish_upload", upload=id) == "not_found"
        assert (await upload(ann, "b.md", b"b"))["id"] == "f2"
        await ann.call("delete_file", id="f1")
    async with network("ann", store=store) as (net, ann):
        assert contents(net)["objects"] == {sha(b"b")}
        assert (await ann.call("file_info", id="f1"))["deleted_by"] == "ann"
        assert (await upload(ann, "c.md", b"c"))["id"] == "f3"
        # A content that was changed or removed is reported as such.
        (folder / "objects" / sha(b"b")).write_bytes(b"of its size has changed")
        assert "its size has changed" in (await refusal(ann, "download_chunk", id="f2")).message
        (folder / "objects" / sha(b"b")).unlink()
        (folder / "texts" / f"{sha(b'b')}.plain").unlink()
    with capture_logs() as records:
        async with network("ann", store=store) as (net, ann):
            for name in ("download_chunk", "read_file"):
                error = await refusal(ann, name, id="f2")
                assert (error.code, "it is missing" in error.message) == ("not_found", True)
            (shown,) = (await attach(ann, "f2"))["attachments"]
            assert (shown["name"], "excerpt" in shown) == ("b.md", False)
            assert (await ann.call("delete_file", id="f2"))["deleted_by"] == "ann"
    assert next(each for each in records if each["log_level"] == "warning")["contents"] == 1


WITHOUT_STORE = """
import asyncio
from tests.interaction.mods.files_harness import folder_of, network

async def main():
    async with network() as (net,):
        (folder_of(net) / "objects" / "x").write_bytes(b"x")
        print(folder_of(net))

asyncio.run(main())
"""


@pytest.mark.slow
def test_without_a_store_on_disk_files_end_with_the_process() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_STORE], capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    folder = Path(run.stdout.strip())
    assert folder.name.startswith("hubbub-files-")
    assert not folder.exists()
