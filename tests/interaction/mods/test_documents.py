"""Shared documents in a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.documents.mod import DocumentsConfig, DocumentsMod
from tests.interaction.mods.workspace import DESK, refused, workspace
from tests.interaction.peers import Peer
from tests.interaction.stores import MoodyStore

TEXT = "# Plan\n\none\ntwo\nthree"


def documents(**settings: int) -> list[DocumentsMod]:
    return [DocumentsMod(DocumentsConfig(**settings))]


async def create(peer: Peer, text: str = TEXT, thread: str = DESK) -> str:
    document = await peer.call("create_document", title="Plan", text=text, thread=thread)
    return str(document["id"])


async def text_of(peer: Peer, id: str, **which: Any) -> str:
    return str((await peer.call("read_document", id=id, numbers=False, **which))["text"])


def lines(first: int, last: int, text: str) -> list[dict[str, Any]]:
    return [{"first": first, "last": last, "text": text}]


@pytest.mark.behaviour("M-40", "M-43")
async def test_every_version_of_a_document_stays_readable(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(documents(), "ann", "bot", store=store) as (_, ann, bot):
        id = await create(ann)
        (listed,) = (await bot.call("list_documents"))["documents"]
        assert (listed["id"], listed["title"], listed["created_by"]) == (id, "Plan", "ann")
        part = await bot.call("read_document", id=id, first=3, last=4)
        assert (part["text"], part["lines"]) == ("3| one\n4| two", 5)
        for n in (1, 2):
            await bot.call("write_document", id=id, base_version=n, text=f"v{n + 1}", note="why")
        history = await ann.call("document_history", id=id, limit=2)
        assert [(v["version"], v["base"], v["author"]) for v in history["versions"]] == [
            (3, 2, "bot"), (2, 1, "bot"),
        ]  # fmt: skip
        assert history["more"]
        assert await text_of(ann, id, version=1) == TEXT
        diff = await ann.call("diff_document", id=id, old=2)
        assert diff["diff"].split("\n")[-2:] == ["-v2", "+v3"]
        assert await refused(ann, "diff_document", id=id, old=9) == "not_found"
    async with workspace(documents(), "ann", store=store) as (_, ann):
        assert await create(ann) == "d2"
        assert await text_of(ann, "d1", version=1) == TEXT


@pytest.mark.behaviour("M-41", "M-42")
async def test_edits_of_different_lines_are_merged_and_conflicts_are_explained() -> None:
    mods = documents()
    async with workspace(mods, "ann", "bot") as (_, ann, bot):
        id = await create(ann)
        edits = [
            (ann, lines(3, 3, "ONE")),
            (bot, lines(5, 5, "THREE")),
            (ann, lines(1, 1, "# New")),
        ]
        refs = [
            (who, await who.post("edit_document", id=id, base_version=1, edits=each))
            for who, each in edits
        ]
        answers = [(await who.answer(ref))["value"] for who, ref in refs]
        assert sorted(a["version"] for a in answers) == [2, 3, 4]
        assert sorted(a["status"] for a in answers) == ["merged", "merged", "saved"]
        assert await text_of(bot, id) == "# New\n\nONE\ntwo\nTHREE"
        assert not len(mods[0]._queues)

        id = await create(ann)
        new = lines(3, 3, "ONE") + lines(1, 0, "top\nof it")
        await ann.call("edit_document", id=id, base_version=1, edits=new)
        same = await bot.call("edit_document", id=id, base_version=1, edits=new)
        assert (same["status"], same["version"]) == ("unchanged", 2)
        mine = lines(3, 3, "1") + lines(5, 5, "3")
        refused_edit = await bot.call("edit_document", id=id, base_version=1, edits=mine)
        assert (refused_edit["status"], refused_edit["version"]) == ("conflict", 2)
        (conflict,) = refused_edit["conflicts"]
        assert conflict == {"first": 5, "last": 5, "was": "one", "now": "ONE", "yours": "1"}
        assert "base_version 2" in refused_edit["advice"]
        assert (await bot.call("read_document", id=id))["version"] == 2
        again = lines(5, 5, "ONE, or 1") + lines(7, 7, "3")
        saved = await bot.call("edit_document", id=id, base_version=2, edits=again)
        assert saved["status"] == "saved"
        assert await text_of(ann, id) == "top\nof it\n# Plan\n\nONE, or 1\ntwo\n3"


@pytest.mark.behaviour("M-44", "M-48")
async def test_a_write_happens_once_per_cid_and_not_if_the_store_fails() -> None:
    store = MoodyStore()
    async with workspace(documents(), "ann", store=store) as (_, ann):
        new: dict[str, Any] = {"title": "Plan", "text": TEXT, "thread": DESK}
        document = await ann.call("create_document", cid="c1", **new)
        assert await ann.call("create_document", cid="c1", **new) == document
        id = document["id"]
        edit: dict[str, Any] = {"id": id, "base_version": 1, "edits": lines(3, 3, "ONE")}
        for name, args in (("edit_document", edit), ("create_document", new)):
            store.failing = 1
            assert await refused(ann, name, **args) == "store_unavailable"
        saved = await ann.call("edit_document", cid="c2", **edit)
        assert saved["version"] == 2
        await ann.call("write_document", id=id, base_version=2, text=TEXT)
        assert await ann.call("edit_document", cid="c2", **edit) == saved
        assert (await ann.call("read_document", id=id))["version"] == 3
        comment: dict[str, Any] = {"cid": "c3", "id": id, "text": "why?", "line": 3}
        refs = [await ann.post("comment_on_document", **comment) for _ in range(2)]
        first, second = [(await ann.answer(ref))["value"] for ref in refs]
        assert first == second
        assert len((await ann.call("read_document_comments", id=id))["comments"]) == 1
        assert [each["id"] for each in (await ann.call("list_documents"))["documents"]] == [id]
        assert await create(ann) != id


@pytest.mark.behaviour("M-45")
async def test_comments_are_read_and_resolved_once() -> None:
    async with workspace(documents(), "ann", "bot") as (_, ann, bot):
        id = await create(ann)
        for n in range(3):
            await ann.call("comment_on_document", id=id, text=f"no {n}", line=n + 1)
        code = await refused(ann, "comment_on_document", id=id, text="?", line=6)
        assert code == "bad_request"
        page = await bot.call("read_document_comments", id=id, limit=2)
        assert [c["text"] for c in page["comments"]] == ["no 0", "no 1"]
        assert page["more"]
        for who in (bot, ann):
            done = await who.call("resolve_document_comment", id=id, comment=1)
            assert done["resolved_by"] == "bot"
        unresolved = await bot.call("read_document_comments", id=id)
        assert [c["id"] for c in unresolved["comments"]] == [2, 3]
        everything = await bot.call("read_document_comments", id=id, resolved=True)
        assert len(everything["comments"]) == 3
        assert await refused(bot, "resolve_document_comment", id=id, comment=9) == "not_found"


@pytest.mark.behaviour("M-46")
async def test_a_document_is_readable_only_by_current_readers_of_its_thread() -> None:
    async with workspace(documents(), "ann", "bot", "olga") as (_, ann, bot, olga):
        id = await create(ann)
        await bot.call("leave_channel", channel="desk")
        edit = {"id": id, "base_version": 1, "edits": lines(1, 1, "x")}
        assert await refused(bot, "read_document", id=id) == "not_found"
        assert await refused(bot, "edit_document", **edit) == "not_found"
        assert (await bot.call("list_documents"))["documents"] == []
        await ann.say("bot", "hello")
        ours = await create(ann, "", "bot")
        assert (await bot.call("read_document", id=ours))["text"] == "1| "
        assert await refused(olga, "read_document", id=ours) == "not_found"


@pytest.mark.behaviour("M-47")
async def test_long_lists_and_texts_are_paged_and_limited() -> None:
    async with workspace(documents(), "ann") as (_, ann):
        ids = [await create(ann, "x" * 100) for _ in range(5)]
        page = await ann.call("list_documents", limit=3)
        assert ([each["id"] for each in page["documents"]], page["more"]) == (ids[:1:-1], True)
        rest = await ann.call("list_documents", before=ids[2], thread=DESK)
        assert ([each["id"] for each in rest["documents"]], rest["more"]) == (ids[1::-1], False)
        long = await create(ann, "\n".join(["x" * 999] * 100))
        part = await ann.call("read_document", id=long)
        assert (part["first"], part["last"], part["lines"]) == (1, 60, 100)
        assert (await ann.call("read_document", id=long, first=61))["last"] == 100
        await ann.call("write_document", id=long, base_version=1, text="")
        assert (await ann.call("diff_document", id=long, old=1))["cut"]
    async with workspace(documents(max_size=30, max_lines=6), "ann") as (_, ann):
        for wrong, code in (
            ({"text": "x" * 31}, "too_large"),
            ({"text": "\n" * 6}, "too_large"),
            ({"title": "a\nb"}, "bad_request"),
        ):
            args = {"title": "t", "thread": DESK, **wrong}
            assert await refused(ann, "create_document", **args) == code
        much: dict[str, Any] = {"id": await create(ann), "base_version": 1}
        for first, last, text, code in (
            (6, 5, "x" * 20, "too_large"),
            (6, 5, "\n\n", "too_large"),
            (7, 7, "", "bad_request"),
            (1, 6, "", "bad_request"),
            (4, 2, "", "bad_request"),
        ):
            edits = lines(first, last, text)
            assert await refused(ann, "edit_document", **much, edits=edits) == code
        assert (await ann.call("read_document", id=much["id"]))["version"] == 1
