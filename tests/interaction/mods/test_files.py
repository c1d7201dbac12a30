"""Files, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.files.mod import FilesMod
from hubbub.mods.files.words import CHUNK
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.mods.files_rig import (
    PNG,
    ask,
    attach,
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
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-110")(mod_contract(FilesMod))

TEXT = b"# Plan\n\none\ntwo\nthree\n"
EMPTY: dict[str, set[str]] = {"objects": set(), "uploads": set(), "texts": set()}
BIG = bytes(range(256)) * 2000


@pytest.mark.behaviour("M-110")
async def test_a_file_that_is_uploaded_in_parts_is_downloaded_as_it_was() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        file = await upload(ann, "data.bin", BIG, sha256=sha(BIG))
        assert (file["id"], file["name"], file["size"]) == ("f1", "data.bin", len(BIG))
        assert (file["sha256"], file["uploaded_by"]) == (sha(BIG), "ann")
        assert file["media_type"] == "application/octet-stream"
        got, more = b"", True
        while more:
            part = await ask(bot, "download_chunk", id="f1", offset=len(got))
            got, more = got + base64.b64decode(part["data"]), part["more"]
        assert got == BIG
        assert (await ask(bot, "list_files"))["files"] == [file]
        assert await ask(bot, "file_info", id="f1") == file


@pytest.mark.behaviour("M-111")
async def test_an_upload_goes_on_where_it_was_and_repeated_parts_change_nothing() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        begun = await ask(ann, "begin_upload", name="x.bin", size=len(BIG), thread="channel.desk")
        id, first = begun["upload"], b64(BIG[:CHUNK])
        for _ in range(2):
            told = await ask(ann, "upload_chunk", upload=id, offset=0, data=first)
            assert told["received"] == CHUNK
        again = await local.join("ann", "human")
        told = await ask(again, "upload_state", upload=id)
        assert told["received"] == CHUNK
        for at in range(CHUNK, len(BIG), CHUNK):
            await ask(again, "upload_chunk", upload=id, offset=at, data=b64(BIG[at : at + CHUNK]))
        file = await ask(again, "finish_upload", upload=id)
        assert file["sha256"] == sha(BIG)
        assert await ask(ann, "finish_upload", upload=id) == file
        assert len((await ask(ann, "list_files"))["files"]) == 1


@pytest.mark.behaviour("M-112")
async def test_a_content_lies_there_once_for_all_its_files_and_goes_with_the_last() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        one = await upload(ann, "a.md", TEXT)
        two = await ask(bot, "write_file", name="b.md", text=TEXT.decode(), thread="channel.desk")
        assert one["sha256"] == two["sha256"] == sha(TEXT)
        assert contents(local)["objects"] == {sha(TEXT)}
        await ask(ann, "delete_file", id=one["id"])
        assert (await ask(bot, "read_file", id=two["id"]))["lines"] == 5
        await ask(bot, "delete_file", id=two["id"])
        await eventually(lambda: contents(local) == EMPTY)


@pytest.mark.behaviour("M-113")
async def test_a_message_shows_of_its_files_what_they_are() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        file = await upload(ann, "plan.md", TEXT, thread=None)
        assert (await refused(bot, "read_file", id="f1")).code == "not_found"
        sent = await attach(ann, "f1")
        message = await ask(bot, "read_message", id=sent["id"])
        assert message["attachments"] == [
            {
                "name": "plan.md",
                "media_type": "text/markdown",
                "uri": "file:f1",
                "size": len(TEXT),
                "excerpt": TEXT.decode().rstrip(),
            }
        ]
        assert message["outside"] is True
        assert (await ask(bot, "read_file", id="f1"))["text"].startswith("1| # Plan\n2| \n3| one")
        assert "thread" not in file
        assert (await ask(bot, "file_info", id="f1"))["thread"] == "channel.desk"


@pytest.mark.behaviour("M-121")
async def test_a_long_text_is_read_in_parts() -> None:
    text = "\n".join(f"line {n} {'ü' * 500}" for n in range(1, 301))
    async with network(max_text="200KB") as local:
        ann = await local.join("ann", "human")
        await upload(ann, "x.log", text.encode())
        lines, more, n = list[str](), True, 0
        while more:
            part = await ask(ann, "read_file", id="f1", first_line=len(lines) + 1, numbers=False)
            lines += part["text"].split("\n")
            assert (part["last"], part["lines"]) == (len(lines), 300)
            more, n = part["more"], n + 1
        assert "\n".join(lines) == text
        assert n > 3
        some = await ask(ann, "read_file", id="f1", first_line=299, last_line=299)
        assert some["text"].startswith("299| line 299 ü")
        assert some["more"]
        assert (await refused(ann, "read_file", id="f1", first_line=301)).code == "bad_request"
        await upload(ann, "long.log", text.encode() * 3)
        assert (await ask(ann, "read_file", id="f2"))["cut"]
        await upload(ann, "cat.png", PNG)
        error = await refused(ann, "read_file", id="f3")
        assert (error.code, "from image/png" in error.message) == ("not_found", True)


@pytest.mark.behaviour("M-122")
async def test_a_deleted_file_is_gone_and_its_messages_say_so() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        olga = await local.join("olga", "human")
        await upload(ann, "plan.md", TEXT)
        sent = await attach(ann, "f1")
        assert (await refused(bot, "delete_file", id="f1")).code == "forbidden"
        deleted = await ask(ann, "delete_file", id="f1")
        assert deleted["deleted_by"] == "ann"
        assert await ask(bot, "file_info", id="f1") == deleted
        for name in ("read_file", "download_chunk", "delete_file"):
            assert "was deleted by ann" in (await refused(bot, name, id="f1")).message
            assert "for you" in (await refused(olga, name, id="f1")).message
        (shown,) = (await ask(bot, "read_message", id=sent["id"]))["attachments"]
        assert shown["gone"] is True
        assert "excerpt" not in shown
        assert (await ask(bot, "list_files"))["files"] == []
        await ask(bot, "write_file", name="b.md", text="x", thread="broadcast")
        assert (await ask(olga, "delete_file", id="f2"))["deleted_by"] == "olga"


@pytest.mark.behaviour("M-122")
async def test_a_file_is_deleted_once() -> None:
    async with network() as local:
        ann, olga = await local.join("ann", "human"), await local.join("olga", "human")
        await upload(ann, "plan.md", TEXT, thread="broadcast")
        answers = await asyncio.gather(
            *(who.call("delete_file", id="f1") for who in (ann, olga)), return_exceptions=True
        )
        assert sum(isinstance(answer, OperationError) for answer in answers) == 1


@pytest.mark.behaviour("M-123")
async def test_files_outlive_the_hub_and_what_was_under_way_is_removed(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with network(store) as local:
        ann = await local.join("ann", "human")
        await upload(ann, "plan.md", TEXT, thread=None)
        await attach(ann, "f1")
        id = await begin(ann, "other.md", b"other")
        folder = folder_of(local)
    (folder / "objects" / sha(b"nobody's")).write_bytes(b"nobody's")
    (folder / "objects" / "link").symlink_to(tmp_path)
    async with network(store) as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        assert contents(local) == {
            "objects": {sha(TEXT)}, "texts": {f"{sha(TEXT)}.plain"}, "uploads": set(),
        }  # fmt: skip
        assert (await ask(bot, "read_file", id="f1"))["lines"] == 5
        assert (await refused(ann, "finish_upload", upload=id)).code == "not_found"
        assert (await upload(ann, "b.md", b"b"))["id"] == "f2"
        await ask(ann, "delete_file", id="f1")
    async with network(store) as local:
        ann = await local.join("ann", "human")
        assert contents(local)["objects"] == {sha(b"b")}
        assert (await ask(ann, "file_info", id="f1"))["deleted_by"] == "ann"
        assert (await upload(ann, "c.md", b"c"))["id"] == "f3"


@pytest.mark.behaviour("M-124")
async def test_what_the_store_refuses_can_be_finished_later() -> None:
    store = MoodyStore()
    async with network(store) as local:
        ann = await local.join("ann", "human")

        async def fails(name: str, /, **args: str) -> None:
            store.failing = 1
            with pytest.raises((OperationError, StoreUnavailable)):
                await ann.post(name, **args)

        id = await begin(ann, "plan.md", TEXT, thread="channel.desk")
        await fails("finish_upload", upload=id)
        assert (await ask(ann, "list_files"))["files"] == []
        again = await ask(ann, "upload_chunk", upload=id, offset=0, data=b64(TEXT))
        assert again["received"] == len(TEXT)
        file = await ask(ann, "finish_upload", upload=id)
        assert (await ask(ann, "read_file", id=file["id"]))["lines"] == 5
        await fails("write_file", name="b.md", text="b")
        await eventually(lambda: contents(local)["objects"] == {sha(TEXT)})
        other = await begin(ann, "c.md", b"c")
        await fails("finish_upload", upload=other)
        await ask(ann, "cancel_upload", upload=other)
        assert contents(local)["objects"] == {sha(TEXT)}
        await fails("delete_file", id=file["id"])
        assert (await ask(ann, "read_file", id=file["id"]))["lines"] == 5
        assert [each["id"] for each in (await ask(ann, "list_files"))["files"]] == [file["id"]]


@pytest.mark.behaviour("M-128")
async def test_a_file_is_shared_with_another_thread() -> None:
    async with network() as local:
        ann, eve = await local.join("ann", "human"), await local.join("eve")
        await upload(ann, "plan.md", TEXT)
        error = await refused(ann, "share_file", id="f1", thread="channel.none")
        assert error.code == "unknown_channel"
        assert (await ask(ann, "share_file", id="f1", thread="channel.yard"))["id"] == "f1"
        assert (await ask(eve, "file_info", id="f1"))["thread"] == "channel.yard"
        assert [f["id"] for f in (await ask(ann, "list_files"))["files"]] == ["f1"]
        await ask(ann, "share_file", id="f1", thread="eve")
        told = await ask(eve, "list_files", thread="channel.yard")
        assert [f["id"] for f in told["files"]] == ["f1"]


@pytest.mark.behaviour("M-130")
async def test_attachments_that_are_no_files_here_are_refused_and_others_stay_as_they_are() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        for uri in ("file:f1", "file:", "file:../x", "FILE:f1", "file:///etc/passwd", "file:f01"):
            files = [{"name": "x", "uri": uri}]
            error = await refused(ann, "send_text_message", to="bot", text="x", attachments=files)
            assert (error.code, "no file" in error.message) == ("rejected", True)
        given = {"name": "x", "uri": "https://example.org/x", "media_type": "text/html"}
        forged = {**given, "excerpt": "trust me", "gone": True}
        sent = await ask(ann, "send_text_message", to="bot", text="x", attachments=[forged])
        message = await ask(bot, "read_message", id=sent["id"])
        assert message["attachments"] == [given]
        assert not message.get("outside")
        await upload(ann, "plan.md", TEXT)
        many = [{"name": "x", "uri": "file:f1"}] * 21
        error = await refused(ann, "send_text_message", to="bot", text="x", attachments=many)
        assert "at most 20 files" in error.message
        both = [given, {"name": "x", "uri": "FILE:f1"}]
        sent = await ask(ann, "send_text_message", to="bot", text="x", attachments=both)
        message = await ask(bot, "read_message", id=sent["id"])
        assert [each["name"] for each in message["attachments"]] == ["x", "plan.md"]
        assert message["attachments"][1]["uri"] == "file:f1"


@pytest.mark.behaviour("M-113", "M-129")
async def test_a_message_is_from_outside_if_one_of_its_files_is() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        await ask(bot, "write_file", name="own.md", text="my own")
        await ask(bot, "write_file", name="copy.md", text="of others", outside=True)
        marks = []
        for ids in (["f1"], ["f2"], ["f1", "f2"]):
            files = [{"name": "x", "uri": f"file:{id}"} for id in ids]
            sent = await ask(bot, "send_text_message", to="ann", text="x", attachments=files)
            marks.append((await ask(ann, "read_message", id=sent["id"])).get("outside", False))
        assert marks == [False, True, True]
        assert not (await ask(ann, "read_file", id="f1"))["outside"]
        assert (await ask(ann, "read_file", id="f2"))["outside"]


WITHOUT_STORE = """
import asyncio
from tests.interaction.mods.files_rig import folder_of, network

async def main():
    async with network() as local:
        (folder_of(local) / "objects" / "x").write_bytes(b"x")
        print(folder_of(local))

asyncio.run(main())
"""


def test_without_a_store_on_disk_files_go_with_the_process() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_STORE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    folder = Path(run.stdout.strip())
    assert folder.name.startswith("hubbub-files-")
    assert not folder.exists()


@pytest.mark.behaviour("M-113")
async def test_files_of_a_message_share_the_room_for_their_texts() -> None:
    async with network(excerpt=20) as local:
        ann = await local.join("ann", "human")
        await upload(ann, "a.md", b"a" * 100)
        await upload(ann, "b.md", b"bbb")
        await upload(ann, "c.png", PNG)
        files = [{"name": "", "uri": f"file:f{n}"} for n in (1, 2, 3)]
        sent = await ask(ann, "post_to_channel", channel="desk", text="x", attachments=files)
        message = await ask(ann, "read_message", id=sent["id"])
        excerpts = [each.get("excerpt") for each in message["attachments"]]
        assert excerpts == ["a" * 10 + "…", "bbb", None]


@pytest.mark.behaviour("M-110")
async def test_files_are_listed_page_by_page() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        for n in range(5):
            await ask(bot, "write_file", name=f"{n}.md", text=str(n), thread="channel.desk")
            await ask(bot, "write_file", name=f"own {n}.md", text=str(n))
        await ask(bot, "share_file", id="f4", thread="channel.desk")
        ids, page = list[str](), await ask(ann, "list_files", limit=2)
        while page["more"]:
            ids += [file["id"] for file in page["files"]]
            page = await ask(ann, "list_files", limit=2, before=ids[-1])
        ids += [file["id"] for file in page["files"]]
        assert ids == ["f9", "f7", "f5", "f4", "f3", "f1"]
        assert len((await ask(bot, "list_files"))["files"]) == 10


@pytest.mark.behaviour("M-123")
async def test_a_content_that_somebody_has_taken_away_is_told_as_missing(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with network(store) as local:
        ann = await local.join("ann", "human")
        await upload(ann, "plan.md", TEXT)
        (folder_of(local) / "objects" / sha(TEXT)).write_bytes(b"shorter")
        assert "another size" in (await refused(ann, "download_chunk", id="f1")).message
        (folder_of(local) / "objects" / sha(TEXT)).unlink()
        (folder_of(local) / "texts" / f"{sha(TEXT)}.plain").unlink()
    with capture_logs() as told:
        async with network(store) as local:
            ann = await local.join("ann", "human")
            for name in ("download_chunk", "read_file"):
                error = await refused(ann, name, id="f1")
                assert (error.code, "it is missing" in error.message) == ("not_found", True)
            sent = await attach(ann, "f1")
            (shown,) = (await ask(ann, "read_message", id=sent["id"]))["attachments"]
            assert (shown["name"], "excerpt" in shown) == ("plan.md", False)
            assert (await ask(ann, "delete_file", id="f1"))["deleted_by"] == "ann"
    assert next(each for each in told if each["log_level"] == "warning")["contents"] == 1
