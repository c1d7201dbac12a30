"""Searches in a running network."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.documents.mod import DocumentsConfig, DocumentsMod
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.operation import Statement
from hubbub.mods.search.mod import SearchMod
from hubbub.mods.text_search import Findable, SearchHit, SearchQuery
from tests.examples import examples
from tests.interaction.mods.files_harness import files_mod
from tests.interaction.mods.workspace import DESK, advance, refusal, refused, workspace
from tests.interaction.peers import Peer, soon
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


def search() -> SearchMod:
    return SearchMod(ModConfig())


def documents() -> DocumentsMod:
    return DocumentsMod(DocumentsConfig())


def edits() -> EditsMod:
    return EditsMod(EditsConfig())


async def say(peer: Peer, to: str, text: str, **more: Any) -> str:
    """Send a message; its id."""
    return f"m{(await peer.say(to, text, **more))['seq']}"


async def find(peer: Peer, query: str, **args: Any) -> list[str]:
    return [hit["id"] for hit in (await peer.call("search", query=query, **args))["hits"]]


async def all_pages(peer: Peer, query: str, limit: int) -> list[str]:
    page = await peer.call("search", query=query, limit=limit)
    ids = [hit["id"] for hit in page["hits"]]
    while page["more"]:
        page = await peer.call("search", query=query, limit=limit, cursor=page["cursor"])
        ids += [hit["id"] for hit in page["hits"]]
    return ids


async def all_indexed(peer: Peer) -> None:
    """Wait until messages from before the start are indexed."""
    async with soon():
        while (await peer.call("search", query="any")).get("indexing"):
            pass


# Queries ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-170", "M-171")
async def test_a_query_has_words_phrases_exclusions_and_prefixes() -> None:
    async with workspace([search()], "ann", "bob") as (_, ann, bob):
        one = await say(ann, "bob", "The annual budget report is late")
        two = await say(bob, "ann", "A report on the annual BUDGÉT, a draft")
        chinese = await say(ann, "bob", "我们明天讨论预算报告")
        japanese = await say(ann, "bob", "会議はカフェです。")
        for query, ids in (
            ("report budget", [one, two]),
            ('"budget report"', [one]),
            ("budget -draft", [one]),
            ('report -"budget report"', [two]),
            ("dra*", [two]),
            ("nothing like it", []),
            ("预算", [chinese]),
            ("カフェ", [japanese]),
            ("算预", []),
        ):
            assert sorted(await find(ann, query)) == sorted(ids), query
        for query in ('say "hi', "NEAR(a b)", "a AND OR NOT", "col:umn", "a^2 {b}", "x' OR 1=1 --"):
            id = await say(ann, "bob", f"you may type {query} here, and more words")
            assert await find(bob, query) == [id]
        for query in ("(", "-only -not", "x*", " ".join(f"w{n}" for n in range(30)), "..."):
            error = await refusal(bob, "search", query=query)
            assert (error.code, error.message[:7]) == ("bad_request", "query: "), query


QUERIES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


@pytest.mark.behaviour("M-171")
@settings(max_examples=examples(10), deadline=None)
@given(queries=st.lists(QUERIES, min_size=1))
async def test_no_query_makes_the_mod_fail(queries: list[str]) -> None:
    async with workspace([search()], "ann", "bob") as (network, ann, _):
        await say(ann, "bob", "hello")
        for query in queries:
            with suppress(OperationError):
                await find(ann, query)
        assert not network.hub.services.mods.failures


# Hits -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-172")
async def test_hits_can_be_filtered_by_thread_sender_and_time() -> None:
    async with workspace([search()], "ann", "bob", "cat") as (_, ann, bob, _cat):
        first = await say(ann, "bob", "the plan one")
        second = await say(bob, DESK, "the plan two")
        under = (await ann.call("reply", message_id=second, text="the plan three"))["id"]
        assert sorted(await find(ann, "plan", thread=DESK)) == sorted([second, under])
        assert await find(ann, "plan", thread="bob") == [first]
        assert await find(ann, "plan", by="bob") == [second]
        assert await find(ann, "plan", after="2001-01-01", before="2002-01-01T12:00") == []
        assert len(await find(ann, "plan", after="2001-01-01T00:00:00Z")) == 3
        three = (await ann.say(["bob", "cat"], "the plan for three"))["seq"]
        assert await find(ann, "plan", thread="dm.ann.bob") == [first]
        assert await find(ann, "plan", thread="dm.ann.bob.cat") == [f"m{three}"]


@pytest.mark.behaviour("M-173")
async def test_a_hit_has_a_snippet_and_pages_have_each_hit_once() -> None:
    async with workspace([search()], "ann", "bob") as (_, ann, bob):
        await say(ann, "bob", "padding " * 200 + "the Café is here\nby the river " + "more " * 200)
        (hit,) = (await bob.call("search", query="cafe"))["hits"]
        assert "the Café is here by the river" in hit["snippet"]
        assert len(hit["snippet"]) <= 210
        assert (hit["kind"], hit["by"], hit["thread_id"]) == ("messages", "ann", "dm.ann.bob")
        assert "score" not in hit
        sent = [await say(ann, "bob", f"plan {'x ' * n}") for n in range(25)]
        hits: list[str] = []
        cursor, more = "", True
        while more:
            page = await bob.call("search", query="plan", limit=7, cursor=cursor)
            hits += [hit["id"] for hit in page["hits"]]
            cursor, more = page.get("cursor", ""), page["more"]
            await say(ann, "bob", "plan")  # later messages do not shift the pages
        assert sorted(hits) == sorted(sent)
        assert hits[0] == sent[0]  # the shortest text


@pytest.mark.behaviour("M-174")
async def test_a_search_finds_only_messages_the_reader_can_read() -> None:
    people = ("ann", "bob", "olga", "cat", "bot", "dot")
    async with workspace([search()], *people) as (_, ann, bob, olga, cat, bot, dot):
        secret = await say(ann, "bob", "the secret word")
        among = await say(bot, "dot", "a secret among agents")
        mine = await say(cat, "olga", "no secret")
        assert await find(ann, "secret") == [secret]
        assert await find(bot, "secret") == await find(dot, "secret") == [among]
        assert await find(olga, "secret") == await find(cat, "secret") == [mine]
        answer = await olga.call("search", query="secret word")
        assert (answer["hits"], answer["more"]) == ([], False)
        hidden, missing = [
            await refused(olga, "search", query="secret", thread=f"dm.ann.{who}")
            for who in ("bob", "zoe")
        ]
        assert hidden == missing
        for n in range(10):
            await say(ann, DESK, f"plan {n}")
        ours = [await say(ann, "bob", f"our plan {n}") for n in range(3)]
        assert len(await find(bob, "plan", limit=50)) == 13
        await bob.call("leave_channel", channel="desk")
        page = await bob.call("search", query="plan", limit=2)
        ids = [hit["id"] for hit in page["hits"]]
        assert (set(ids) < set(ours), len(ids), page["more"]) == (True, 2, True)


@pytest.mark.behaviour("M-175")
async def test_only_the_latest_text_is_found_and_nothing_deleted() -> None:
    async with workspace([edits(), search()], "ann", "bob") as (_, ann, bob):
        id = await say(ann, "bob", "the first words")
        await ann.call("edit_message", message_id=id, text="the second words")
        assert await find(bob, "first") == []
        (hit,) = (await bob.call("search", query="second"))["hits"]
        assert (hit["id"], hit["snippet"]) == (id, "the second words")
        await ann.call("edit_message", message_id=id, text="the third words")
        assert await find(bob, "second") == []
        assert await find(bob, "words") == [id]
        await ann.call("delete_message", message_id=id)
        for word in ("first", "second", "third", "words"):
            assert await find(ann, word) == []


# Indexing ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-176")
async def test_messages_from_before_the_mod_are_indexed_in_the_background(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([edits()], "ann", "bob", store=store) as (_, ann, _bob):
        sent = [await say(ann, "bob", f"plan {n}") for n in range(450)]
        await ann.call("edit_message", message_id=sent[0], text="changed")
        await ann.call("delete_message", message_id=sent[1])
    for mods in ([edits(), search()], [edits()], [edits(), search()]):  # a gap is closed later
        async with workspace(mods, "ann", store=store) as (_, ann):
            sent.append(await say(ann, "bob", "plan"))
            if len(mods) == 2:
                await all_indexed(ann)
                assert sorted(await all_pages(ann, "plan", 50)) == sorted(sent[2:])
                assert await find(ann, "changed") == [sent[0]]


@pytest.mark.behaviour("M-176")
async def test_a_message_deleted_before_it_is_indexed_is_never_found(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([edits()], "ann", "bob", store=store) as (_, ann, _bob):
        one, two = await say(ann, "bob", "the old words"), await say(ann, "bob", "other old words")
    async with workspace([edits(), search()], "ann", store=MoodyStore(store)) as (_, ann):
        await ann.call("delete_message", message_id=one)
        await ann.call("edit_message", message_id=two, text="new words")
        await all_indexed(ann)
        assert await find(ann, "old") == []
        assert await find(ann, "words") == [two]


WIPE = "INSERT INTO search_text (search_text) VALUES ('delete-all')"


@pytest.mark.behaviour("M-176")
async def test_entries_are_indexed_in_any_order() -> None:
    """The entries are messages, an edit and a deletion."""
    mod = search()
    async with workspace([edits(), mod], "ann", "bob") as (_, ann, _bob):
        id = await say(ann, "bob", "the old words")
        await ann.call("edit_message", message_id=id, text="new words")
        deleted = await say(ann, "bob", "more words")
        await ann.call("delete_message", message_id=deleted)
        log = [m for m in await mod.host.log(0, 100) if m.thread_id == "dm.ann.bob"]
        for late in (0, 1, 2):
            wipe = ("DELETE FROM search_message", "DELETE FROM search_amendment", WIPE)
            await mod.host.write([Statement(sql) for sql in wipe])
            for message in [*log[late:], *log[:late], *log]:
                await mod._index.add([message], 0)
            assert await find(ann, "words") == await find(ann, "new") == [id]
            assert await find(ann, "old") == await find(ann, "more") == []


@pytest.mark.behaviour("M-176")
async def test_indexing_resumes_after_a_failed_write() -> None:
    clock, moody, mod = HandClock(), MoodyStore(), search()
    async with workspace([mod], "ann", "bob", store=moody, clock=clock) as (network, ann, _):
        id = await say(ann, "bob", "plan")
        await mod.host.write([Statement("DELETE FROM search_message"), Statement(WIPE)])
        assert await find(ann, "plan") == []
        moody.failing = 1
        await mod.start()
        await moody.until(lambda: moody.failing == 0)
        assert await find(ann, "plan") == []
        advance(network, clock, 11)
        await all_indexed(ann)
        assert await find(ann, "plan") == [id]


# Other mods -------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-177")
async def test_documents_are_found_by_title_latest_text_and_comments(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    mods = [documents(), search()]
    async with workspace(mods, "ann", "cat", store=store) as (_, ann, cat):
        args = {"title": "Harbour plan", "text": "old berths", "thread": DESK}
        id = (await ann.call("create_document", **args))["id"]
        await ann.call("write_document", id=id, base_version=1, text="# Quays\n\nnew berths")
        await ann.call("comment_on_document", id=id, text="who pays for cranes?")
        sent = await say(ann, DESK, "the berths are ours")
        assert await find(ann, "harbour") == await find(ann, "cranes") == [id]
        assert await find(ann, "old") == await find(ann, "harbour OR cranes") == []
        assert set(await find(ann, "berths")) == {id, sent}
        (hit,) = (await ann.call("search", query="quays", kinds=["documents"]))["hits"]
        assert (hit["title"], hit["snippet"]) == ("Harbour plan", "# Quays new berths")
        assert await find(ann, "berths", kinds=["messages"]) == [sent]
        assert await find(cat, "berths") == await find(cat, "harbour") == []
        error = await refusal(ann, "search", query="berths", kinds=["files"])
        assert "no files" in error.message
        both: set[str] = set()
        for n in range(6):
            args = {"title": f"Crew {n}", "text": "x " * n, "thread": DESK}
            both.add((await ann.call("create_document", **args))["id"])
            both.add(await say(ann, DESK, f"crew {'x ' * n}"))
        hits = await all_pages(ann, "crew", 3)
        assert (len(hits), set(hits)) == (12, both)
        await mods[0].host.write([Statement("DELETE FROM documents_found")])
    async with workspace([documents(), search()], "ann", store=store) as (_, ann), soon():
        while await find(ann, "quays") != [id]:
            pass  # older documents are indexed in the background


@pytest.mark.behaviour("M-179")
async def test_untrusted_hits_are_marked_and_mark_the_answer() -> None:
    async with workspace([files_mod(), search()], "ann", "bot") as (_, ann, bot):
        await say(bot, DESK, "seen in the web: quays", untrusted=True)
        await say(bot, DESK, "berths")
        file = {"name": "a.txt", "thread": DESK, "text": "cranes"}
        await bot.call("write_file", untrusted=True, **file)
        for query, untrusted in (("quays", True), ("berths", False), ("cranes", True)):
            answer = await ann.call("search", query=query)
            assert [hit["untrusted"] for hit in answer["hits"]] == [untrusted]
            assert answer["untrusted"] is untrusted


class Broken(Mod):
    """Fails on every search."""

    name = "broken"
    finds: ClassVar[Findable] = "files"

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        raise ValueError("nothing is here")


@pytest.mark.behaviour("M-178")
async def test_a_mod_that_fails_to_search_is_noted_in_the_answer() -> None:
    async with workspace([Broken(ModConfig()), search()], "ann", "bob") as (_, ann, _bob):
        id = await say(ann, "bob", "the plan")
        answer = await ann.call("search", query="plan")
        assert [hit["id"] for hit in answer["hits"]] == [id]
        assert "files" in answer["note"]
