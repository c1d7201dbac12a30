"""Shared documents, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client
from hubbub.config.models import ChannelConfig, HumanConfig, NetworkConfig, NetworkFile
from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.documents.mod import DocumentsMod
from hubbub.mods.documents.settings import DocumentsConfig
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork
from tests.interaction.stores import MoodyStore

TEXT = "# Plan\n\none\ntwo\nthree"


def network(store: str | Store = "sqlite::memory:", **config: int) -> LocalNetwork:
    file = NetworkFile(
        network=NetworkConfig(auth="open"),
        humans={"olga": HumanConfig(roles=["owner"]), "ann": HumanConfig()},
        channels={"desk": ChannelConfig(members=["ann", "bot"])},
    )
    return LocalNetwork(file, store=store, mods=[DocumentsMod(DocumentsConfig(**config))])


async def ask(client: Client, name: str, **args: object) -> dict[str, Any]:
    answer = await client.call(name, **args)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    return answer


async def create(client: Client, text: str = TEXT, **args: object) -> str:
    answer = await ask(
        client, "create_document", title="Plan", text=text, thread="channel.desk", **args
    )
    return str(answer["id"])


def line(first: int, last: int, text: str) -> list[dict[str, object]]:
    return [{"first": first, "last": last, "text": text}]


async def refused(client: Client, name: str, **args: object) -> str:
    with pytest.raises(OperationError) as caught:
        await ask(client, name, **args)
    return caught.value.code


@pytest.mark.behaviour("M-40")
async def test_a_document_is_created_listed_and_read_with_line_numbers() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        (found,) = (await ask(bot, "list_documents"))["documents"]
        assert (found["id"], found["title"], found["created_by"]) == (id, "Plan", "ann")
        read = await ask(bot, "read_document", id=id, first=3, last=4)
        assert (read["text"], read["lines"]) == ("3| one\n4| two", 5)
        plain = await ask(bot, "read_document", id=id, numbers=False)
        assert plain["text"] == TEXT


@pytest.mark.behaviour("M-41")
async def test_edits_of_one_version_that_touch_different_places_are_merged() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        edits = [(ann, line(3, 3, "ONE")), (bot, line(5, 5, "THREE")), (ann, line(1, 1, "# New"))]
        answers = await asyncio.gather(
            *(ask(who, "edit_document", id=id, base_version=1, edits=e) for who, e in edits)
        )
        assert sorted(a["version"] for a in answers) == [2, 3, 4]
        assert sorted(a["status"] for a in answers) == ["merged", "merged", "saved"]
        read = await ask(bot, "read_document", id=id, numbers=False)
        assert read["text"] == "# New\n\nONE\ntwo\nTHREE"
        mod = local.hub.mods.pipeline.mods[0]
        assert isinstance(mod, DocumentsMod)
        assert not len(mod._queues)


@pytest.mark.behaviour("M-42")
async def test_a_conflict_saves_nothing_and_tells_what_to_do() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        new = line(3, 3, "ONE") + line(1, 0, "top\nof it")
        await ask(ann, "edit_document", id=id, base_version=1, edits=new)
        mine = line(3, 3, "1") + line(5, 5, "3")
        told = await ask(bot, "edit_document", id=id, base_version=1, edits=mine)
        assert (told["status"], told["version"]) == ("conflict", 2)
        (place,) = told["conflicts"]
        assert place == {"first": 5, "last": 5, "was": "one", "now": "ONE", "yours": "1"}
        assert "base_version 2" in told["advice"]
        assert (await ask(bot, "read_document", id=id))["version"] == 2
        again = line(place["first"], place["last"], "ONE, or 1") + line(7, 7, "3")
        done = await ask(bot, "edit_document", id=id, base_version=2, edits=again)
        assert done["status"] == "saved"
        read = await ask(ann, "read_document", id=id, numbers=False)
        assert read["text"] == "top\nof it\n# Plan\n\nONE, or 1\ntwo\n3"


@pytest.mark.behaviour("M-43")
async def test_every_version_stays_readable_with_its_author_and_its_differences() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        for n in (1, 2):
            await ask(bot, "write_document", id=id, base_version=n, text=f"v{n + 1}", note="why")
        history = await ask(ann, "document_history", id=id, limit=2)
        assert [(v["version"], v["base"], v["author"]) for v in history["versions"]] == [
            (3, 2, "bot"), (2, 1, "bot"),
        ]  # fmt: skip
        assert history["more"]
        first = await ask(ann, "read_document", id=id, version=1, numbers=False)
        assert first["text"] == TEXT
        diff = await ask(ann, "diff_document", id=id, old=2)
        assert diff["diff"].split("\n")[-2:] == ["-v2", "+v3"]
        assert await refused(ann, "diff_document", id=id, old=9) == "not_found"


@pytest.mark.behaviour("M-44")
async def test_a_write_that_is_repeated_with_its_cid_happens_once() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        args = {"title": "Plan", "text": TEXT, "thread": "channel.desk"}
        one = await ask(ann, "create_document", cid="c1", **args)
        assert await ask(ann, "create_document", cid="c1", **args) == one
        assert len((await ask(ann, "list_documents"))["documents"]) == 1
        id = one["id"]
        edit: dict[str, object] = {"id": id, "base_version": 1, "edits": line(3, 3, "ONE")}
        saved = await ask(ann, "edit_document", cid="c2", **edit)
        await ask(ann, "write_document", id=id, base_version=2, text=TEXT)
        assert await ask(ann, "edit_document", cid="c2", **edit) == saved
        assert (await ask(ann, "read_document", id=id))["version"] == 3
        both = [
            ask(ann, "comment_on_document", cid="c3", id=id, text="why?", line=3) for _ in range(2)
        ]
        first, second = await asyncio.gather(*both)
        assert first == second
        assert len((await ask(ann, "read_document_comments", id=id))["comments"]) == 1


@pytest.mark.behaviour("M-45")
async def test_comments_are_read_and_resolved_once() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        for n in range(3):
            await ask(ann, "comment_on_document", id=id, text=f"no {n}", line=n + 1)
        assert await refused(ann, "comment_on_document", id=id, text="?", line=6) == "bad_request"
        page = await ask(bot, "read_document_comments", id=id, limit=2)
        assert [c["text"] for c in page["comments"]] == ["no 0", "no 1"]
        assert page["more"]
        done = await ask(bot, "resolve_document_comment", id=id, comment=1)
        assert done["resolved_by"] == "bot"
        again = await ask(ann, "resolve_document_comment", id=id, comment=1)
        assert again["resolved_by"] == "bot"
        left = await ask(bot, "read_document_comments", id=id)
        assert [c["id"] for c in left["comments"]] == [2, 3]
        everything = await ask(bot, "read_document_comments", id=id, resolved=True)
        assert len(everything["comments"]) == 3
        assert await refused(bot, "resolve_document_comment", id=id, comment=9) == "not_found"


OPERATIONS: dict[str, dict[str, object]] = {
    "read_document": {},
    "document_history": {},
    "diff_document": {"old": 1},
    "edit_document": {"base_version": 1, "edits": line(1, 1, "x")},
    "write_document": {"base_version": 1, "text": "x"},
    "comment_on_document": {"text": "x"},
    "read_document_comments": {},
    "resolve_document_comment": {"comment": 1},
}


@pytest.mark.behaviour("M-46")
@pytest.mark.parametrize("name", [*OPERATIONS, "list_documents", "create_document"])
@pytest.mark.parametrize(
    ("who", "kind", "member"),
    [
        ("ann", "human", True),
        ("bot", "agent", True),
        ("cat", "human", False),
        ("dog", "agent", False),
        ("olga", "human", False),
    ],
)
async def test_who_reads_the_thread_may_do_everything_and_nobody_else_anything(
    name: str, who: str, kind: Any, member: bool
) -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        id = await create(ann)
        await ask(ann, "comment_on_document", id=id, text="mine")
        caller = ann if who == "ann" else await local.join(who, kind)
        if name == "list_documents":
            found = (await ask(caller, name))["documents"]
            assert [each["id"] for each in found] == ([id] if member else [])
            args: dict[str, object] = {"thread": "channel.desk"}
        elif name == "create_document":
            args = {"title": "t", "thread": "channel.desk"}
        else:
            args = {"id": id, **OPERATIONS[name]}
        if member:
            await ask(caller, name, **args)
        else:
            assert await refused(caller, name, **args) in ("not_found", "unknown_thread")


@pytest.mark.behaviour("M-46")
async def test_who_has_left_the_thread_reads_its_documents_no_longer() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        id = await create(ann)
        await ask(bot, "leave_channel", channel="desk")
        assert await refused(bot, "read_document", id=id) == "not_found"
        edit: dict[str, object] = {"id": id, "base_version": 1, "edits": line(1, 1, "x")}
        assert await refused(bot, "edit_document", **edit) == "not_found"
        assert (await ask(bot, "list_documents"))["documents"] == []


@pytest.mark.behaviour("M-46")
async def test_a_document_of_two_is_for_these_two() -> None:
    async with network() as local:
        ann, bot = await local.join("ann", "human"), await local.join("bot")
        olga = await local.join("olga", "human")
        await ann.call("send_text_message", to="bot", text="hello")
        made = await ask(ann, "create_document", title="Ours", thread="bot")
        read = await ask(bot, "read_document", id=made["id"])
        assert read["text"] == "1| "
        assert await refused(olga, "read_document", id=made["id"]) == "not_found"


@pytest.mark.behaviour("M-47")
async def test_long_lists_and_texts_come_in_parts() -> None:
    async with network() as local:
        ann = await local.join("ann", "human")
        ids = [await create(ann, "x" * 100) for _ in range(5)]
        page = await ask(ann, "list_documents", limit=3)
        assert [each["id"] for each in page["documents"]] == ids[:1:-1]
        assert page["more"]
        rest = await ask(ann, "list_documents", before=ids[2], thread="channel.desk")
        assert [each["id"] for each in rest["documents"]] == ids[1::-1]
        assert not rest["more"]
        long = await create(ann, "\n".join(["x" * 999] * 100))
        part = await ask(ann, "read_document", id=long)
        assert (part["first"], part["last"], part["lines"]) == (1, 60, 100)
        part = await ask(ann, "read_document", id=long, first=61)
        assert part["last"] == 100
        await ask(ann, "write_document", id=long, base_version=1, text="")
        assert (await ask(ann, "diff_document", id=long, old=1))["cut"]


@pytest.mark.behaviour("M-47")
async def test_texts_have_a_size_limit_and_titles_one_line() -> None:
    async with network(max_size=30, max_lines=6) as local:
        ann = await local.join("ann", "human")
        big: dict[str, object] = {"title": "t", "thread": "channel.desk", "text": "x" * 31}
        assert await refused(ann, "create_document", **big) == "too_large"
        assert await refused(ann, "create_document", **{**big, "text": "\n" * 6}) == "too_large"
        assert (
            await refused(ann, "create_document", title="a\nb", thread="channel.desk") != "internal"
        )
        id = await create(ann)
        much: dict[str, object] = {"id": id, "base_version": 1}
        for text in ("x" * 20, "\n\n"):
            code = await refused(ann, "edit_document", **much, edits=line(6, 5, text))
            assert code == "too_large"
        for first, last in ((7, 7), (1, 6), (4, 2)):
            code = await refused(ann, "edit_document", **much, edits=line(first, last, ""))
            assert code == "bad_request"
        assert (await ask(ann, "read_document", id=id))["version"] == 1


@pytest.mark.behaviour("M-48")
async def test_what_the_store_refuses_leaves_nothing_and_holds_nobody_up() -> None:
    store = MoodyStore()
    async with network(store) as local:
        ann = await local.join("ann", "human")
        id = await create(ann)
        edit: dict[str, Any] = {"id": id, "base_version": 1, "edits": line(3, 3, "ONE")}
        store.failing = 1
        with pytest.raises((OperationError, StoreUnavailable)):
            await ann.post("edit_document", **edit)
        store.failing = 1
        with pytest.raises((OperationError, StoreUnavailable)):
            await ann.post("create_document", title="x", thread="channel.desk")
        assert (await ask(ann, "edit_document", **edit))["version"] == 2
        ids = [each["id"] for each in (await ask(ann, "list_documents"))["documents"]]
        assert ids == [id]
        assert await create(ann) not in ids


@pytest.mark.behaviour("M-43")
async def test_documents_are_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    for n in (1, 2):
        async with network(store) as local:
            ann = await local.join("ann", "human")
            if n == 1:
                assert await create(ann) == "d1"
            assert await create(ann) == f"d{n + 1}"
            read = await ask(ann, "read_document", id="d1", numbers=False)
            assert read["text"] == TEXT
