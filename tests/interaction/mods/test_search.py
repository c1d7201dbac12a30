"""Searching, as people and agents of a running network do it."""

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
from tests.interaction.mods.workspace import DESK, later, refused, refusing, workspace
from tests.interaction.peers import Peer, eventually, soon
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


def search() -> SearchMod:
    return SearchMod(ModConfig())


def documents() -> DocumentsMod:
    return DocumentsMod(DocumentsConfig())


def edits() -> EditsMod:
    return EditsMod(EditsConfig())


async def say(peer: Peer, to: str, text: str, **more: Any) -> str:
    """The id of the message."""
    return f"m{(await peer.say(to, text, **more))['seq']}"


async def found(peer: Peer, query: str, **args: Any) -> list[str]:
    return [hit["id"] for hit in (await peer.call("search", query=query, **args))["hits"]]


async def all_pages(peer: Peer, query: str, limit: int) -> list[str]:
    page = await peer.call("search", query=query, limit=limit)
    ids = [hit["id"] for hit in page["hits"]]
    while page["more"]:
        page = await peer.call("search", query=query, limit=limit, cursor=page["cursor"])
        ids += [hit["id"] for hit in page["hits"]]
    return ids


async def all_indexed(peer: Peer) -> None:
    """Until the log from before the start is indexed."""
    async with soon():
        while (await peer.call("search", query="any")).get("indexing"):
            pass


# The language of queries ------------------------------------------------------------------------


@pytest.mark.behaviour("M-170", "M-171")
async def test_whatever_is_typed_is_words_phrases_exclusions_and_beginnings() -> None:
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
            assert sorted(await found(ann, query)) == sorted(ids), query
        for query in ('say "hi', "NEAR(a b)", "a AND OR NOT", "col:umn", "a^2 {b}", "x' OR 1=1 --"):
            id = await say(ann, "bob", f"you may type {query} here, and more words")
            assert await found(bob, query) == [id]
        for query in ("(", "-only -not", "x*", " ".join(f"w{n}" for n in range(30)), "..."):
            error = await refusing(bob, "search", query=query)
            assert (error.code, error.message[:7]) == ("bad_request", "query: "), query


QUERIES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


@pytest.mark.behaviour("M-171")
@settings(max_examples=examples(10), deadline=None)
@given(queries=st.lists(QUERIES, min_size=1))
async def test_no_query_breaks_anything(queries: list[str]) -> None:
    async with workspace([search()], "ann", "bob") as (network, ann, _):
        await say(ann, "bob", "hello")
        for query in queries:
            with suppress(OperationError):
                await found(ann, query)
        assert not network.hub.services.mods.failures


# What is found ----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-172")
async def test_hits_can_be_narrowed_to_a_thread_a_sender_and_a_time() -> None:
    async with workspace([search()], "ann", "bob", "cat") as (_, ann, bob, _cat):
        first = await say(ann, "bob", "the plan one")
        second = await say(bob, DESK, "the plan two")
        under = (await ann.call("reply", message_id=second, text="the plan three"))["id"]
        assert sorted(await found(ann, "plan", thread=DESK)) == sorted([second, under])
        assert await found(ann, "plan", thread="bob") == [first]
        assert await found(ann, "plan", by="bob") == [second]
        assert await found(ann, "plan", after="2001-01-01", before="2002-01-01T12:00") == []
        assert len(await found(ann, "plan", after="2001-01-01T00:00:00Z")) == 3
        three = (await ann.say(["bob", "cat"], "the plan for three"))["seq"]
        assert await found(ann, "plan", thread="dm.ann.bob") == [first]
        assert await found(ann, "plan", thread="dm.ann.bob.cat") == [f"m{three}"]


@pytest.mark.behaviour("M-173")
async def test_a_hit_shows_where_the_words_stand_and_pages_have_every_hit_once() -> None:
    async with workspace([search()], "ann", "bob") as (_, ann, bob):
        await say(ann, "bob", "padding " * 200 + "the Café is here\nby the river " + "more " * 200)
        (hit,) = (await bob.call("search", query="cafe"))["hits"]
        assert "the Café is here by the river" in hit["snippet"]
        assert len(hit["snippet"]) <= 210
        assert (hit["kind"], hit["by"], hit["thread_id"]) == ("messages", "ann", "dm.ann.bob")
        assert "score" not in hit
        said = [await say(ann, "bob", f"plan {'x ' * n}") for n in range(25)]
        seen: list[str] = []
        cursor, more = "", True
        while more:
            page = await bob.call("search", query="plan", limit=7, cursor=cursor)
            seen += [hit["id"] for hit in page["hits"]]
            cursor, more = page.get("cursor", ""), page["more"]
            await say(ann, "bob", "plan")  # meanwhile
        assert sorted(seen) == sorted(said)
        assert seen[0] == said[0]  # where it is most of the text


@pytest.mark.behaviour("M-174")
async def test_nobody_finds_what_others_say_or_said_in_a_channel_that_it_has_left() -> None:
    people = ("ann", "bob", "olga", "cat", "bot", "dot")
    async with workspace([search()], *people) as (_, ann, bob, olga, cat, bot, dot):
        secret = await say(ann, "bob", "the secret word")
        among = await say(bot, "dot", "a secret among agents")
        mine = await say(cat, "olga", "no secret")
        assert await found(ann, "secret") == [secret]
        assert await found(bot, "secret") == await found(dot, "secret") == [among]
        assert await found(olga, "secret") == await found(cat, "secret") == [mine]
        told = await olga.call("search", query="secret word")
        assert (told["hits"], told["more"]) == ([], False)
        there, gone = [
            await refused(olga, "search", query="secret", thread=f"dm.ann.{who}")
            for who in ("bob", "zoe")
        ]
        assert there == gone
        for n in range(10):
            await say(ann, DESK, f"plan {n}")
        ours = [await say(ann, "bob", f"our plan {n}") for n in range(3)]
        assert len(await found(bob, "plan", limit=50)) == 13
        await bob.call("leave_channel", channel="desk")
        page = await bob.call("search", query="plan", limit=2)
        ids = [hit["id"] for hit in page["hits"]]
        assert (set(ids) < set(ours), len(ids), page["more"]) == (True, 2, True)


@pytest.mark.behaviour("M-175")
async def test_of_an_edited_message_the_latest_text_is_found_and_of_a_deleted_one_nothing() -> None:
    async with workspace([edits(), search()], "ann", "bob") as (_, ann, bob):
        id = await say(ann, "bob", "the first words")
        await ann.call("edit_message", message_id=id, text="the second words")
        assert await found(bob, "first") == []
        (hit,) = (await bob.call("search", query="second"))["hits"]
        assert (hit["id"], hit["snippet"]) == (id, "the second words")
        await ann.call("edit_message", message_id=id, text="the third words")
        assert await found(bob, "second") == []
        assert await found(bob, "words") == [id]
        await ann.call("delete_message", message_id=id)
        for word in ("first", "second", "third", "words"):
            assert await found(ann, word) == []


# The log from before ----------------------------------------------------------------------------


@pytest.mark.behaviour("M-176")
async def test_what_was_said_before_the_mod_was_there_is_indexed_in_the_background(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([edits()], "ann", "bob", store=store) as (_, ann, _bob):
        said = [await say(ann, "bob", f"plan {n}") for n in range(450)]
        await ann.call("edit_message", message_id=said[0], text="changed")
        await ann.call("delete_message", message_id=said[1])
    for mods in ([edits(), search()], [edits()], [edits(), search()]):  # gaps are closed
        async with workspace(mods, "ann", store=store) as (_, ann):
            said.append(await say(ann, "bob", "plan"))
            if len(mods) == 2:
                await all_indexed(ann)
                assert sorted(await all_pages(ann, "plan", 50)) == sorted(said[2:])
                assert await found(ann, "changed") == [said[0]]


@pytest.mark.behaviour("M-176")
async def test_what_is_deleted_while_its_text_waits_to_be_indexed_is_never_found(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([edits()], "ann", "bob", store=store) as (_, ann, _bob):
        one, two = await say(ann, "bob", "the old words"), await say(ann, "bob", "other old words")
    async with workspace([edits(), search()], "ann", store=MoodyStore(store)) as (_, ann):
        await ann.call("delete_message", message_id=one)
        await ann.call("edit_message", message_id=two, text="new words")
        await all_indexed(ann)
        assert await found(ann, "old") == []
        assert await found(ann, "words") == [two]


WIPE = "INSERT INTO search_text (search_text) VALUES ('delete-all')"


@pytest.mark.behaviour("M-176")
async def test_entries_are_indexed_in_any_order() -> None:
    """A message, its edit and its deletion."""
    mod = search()
    async with workspace([edits(), mod], "ann", "bob") as (_, ann, _bob):
        id = await say(ann, "bob", "the old words")
        await ann.call("edit_message", message_id=id, text="new words")
        deleted = await say(ann, "bob", "more words")
        await ann.call("delete_message", message_id=deleted)
        log = [m for m in await mod.host.log(0, 100) if m.thread_id == "dm.ann.bob"]
        for late in (0, 1, 2):
            wiped = ("DELETE FROM search_message", "DELETE FROM search_amendment", WIPE)
            await mod.host.write([Statement(sql) for sql in wiped])
            for message in [*log[late:], *log[:late], *log]:
                await mod._index.add([message], 0)
            assert await found(ann, "words") == await found(ann, "new") == [id]
            assert await found(ann, "old") == await found(ann, "more") == []


@pytest.mark.behaviour("M-176")
async def test_indexing_goes_on_when_the_disk_has_refused() -> None:
    clock, moody, mod = HandClock(), MoodyStore(), search()
    async with workspace([mod], "ann", "bob", store=moody, clock=clock) as (network, ann, _):
        id = await say(ann, "bob", "plan")
        await mod.host.write([Statement("DELETE FROM search_message"), Statement(WIPE)])
        assert await found(ann, "plan") == []
        moody.failing = 1
        await mod.start()
        await eventually(lambda: moody.failing == 0)
        assert await found(ann, "plan") == []
        later(network, clock, 11)
        await all_indexed(ann)
        assert await found(ann, "plan") == [id]


# What other mods have ---------------------------------------------------------------------------


@pytest.mark.behaviour("M-177")
async def test_documents_are_found_by_title_latest_text_and_comments_beside_messages(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    mods = [documents(), search()]
    async with workspace(mods, "ann", "cat", store=store) as (_, ann, cat):
        args = {"title": "Harbour plan", "text": "old berths", "thread": DESK}
        id = (await ann.call("create_document", **args))["id"]
        await ann.call("write_document", id=id, base_version=1, text="# Quays\n\nnew berths")
        await ann.call("comment_on_document", id=id, text="who pays for cranes?")
        said = await say(ann, DESK, "the berths are ours")
        assert await found(ann, "harbour") == await found(ann, "cranes") == [id]
        assert await found(ann, "old") == await found(ann, "harbour OR cranes") == []
        assert set(await found(ann, "berths")) == {id, said}
        (hit,) = (await ann.call("search", query="quays", kinds=["documents"]))["hits"]
        assert (hit["title"], hit["snippet"]) == ("Harbour plan", "# Quays new berths")
        assert await found(ann, "berths", kinds=["messages"]) == [said]
        assert await found(cat, "berths") == await found(cat, "harbour") == []
        error = await refusing(ann, "search", query="berths", kinds=["files"])
        assert "no files" in error.message
        both: set[str] = set()
        for n in range(6):
            args = {"title": f"Crew {n}", "text": "x " * n, "thread": DESK}
            both.add((await ann.call("create_document", **args))["id"])
            both.add(await say(ann, DESK, f"crew {'x ' * n}"))
        seen = await all_pages(ann, "crew", 3)
        assert (len(seen), set(seen)) == (12, both)
        await mods[0].host.write([Statement("DELETE FROM documents_found")])
    async with workspace([documents(), search()], "ann", store=store) as (_, ann), soon():
        while await found(ann, "quays") != [id]:
            pass  # those from before can be found soon after a start


@pytest.mark.behaviour("M-179")
async def test_hits_with_content_from_outside_say_so_and_so_does_the_answer() -> None:
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
    """Has things to be found, and no table."""

    name = "broken"
    finds: ClassVar[Findable] = "files"

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        raise ValueError("nothing is here")


@pytest.mark.behaviour("M-178")
async def test_a_mod_that_cannot_be_asked_is_told_and_the_rest_is_found() -> None:
    async with workspace([Broken(ModConfig()), search()], "ann", "bob") as (_, ann, _bob):
        id = await say(ann, "bob", "the plan")
        told = await ann.call("search", query="plan")
        assert [hit["id"] for hit in told["hits"]] == [id]
        assert "files" in told["note"]
