"""Searching, as people and agents of a running network do it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.documents.mod import DocumentsMod
from hubbub.mods.documents.settings import DocumentsConfig
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.files.mod import FilesMod
from hubbub.mods.files.settings import FilesConfig
from hubbub.mods.rows import Statement
from hubbub.mods.search.mod import SearchMod
from hubbub.mods.searching import Findable, Hit, Search
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.hand_clock import HandClock
from tests.interaction.mods.office import ask, office, refused, say
from tests.interaction.peers import eventually
from tests.interaction.stores import MoodyStore

DESK = "channel.desk"

test_it_is_a_good_neighbour = mod_contract(SearchMod)


def search() -> SearchMod:
    return SearchMod(ModConfig())


def documents() -> DocumentsMod:
    return DocumentsMod(DocumentsConfig())


def edits() -> EditsMod:
    return EditsMod(EditsConfig())


async def found(client: Client, query: str, **args: object) -> list[str]:
    answer = await ask(client, "search", query=query, **args)
    return [hit["id"] for hit in answer["hits"]]


async def all_indexed(client: Client) -> None:
    """Until the log from before the start is indexed."""
    async with asyncio.timeout(30):
        while (await ask(client, "search", query="any")).get("indexing"):  # noqa: ASYNC110  no event
            await asyncio.sleep(0)


# The language of queries ------------------------------------------------------------------------


@pytest.mark.behaviour("M-170")
async def test_words_phrases_exclusions_and_beginnings_find_what_they_say() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        one = await say(ann, "bob", "The annual budget report is late")
        two = await say(bob, "ann", "A report on the annual BUDGÉT, a draft")
        assert sorted(await found(ann, "report budget")) == [one, two]
        assert await found(ann, '"budget report"') == [one]
        assert await found(ann, "budget -draft") == [one]
        assert await found(ann, 'report -"budget report"') == [two]
        assert await found(ann, "dra*") == [two]
        assert await found(bob, "nothing like it") == []


@pytest.mark.behaviour("M-170")
async def test_texts_without_spaces_between_words_are_found_by_any_part() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        chinese = await say(ann, "bob", "我们明天讨论预算报告")
        japanese = await say(ann, "bob", "会議はカフェです。")
        assert await found(bob, "预算") == [chinese]
        assert await found(bob, "カフェ") == [japanese]
        assert await found(bob, "算预") == []


@pytest.mark.behaviour("M-171")
@pytest.mark.parametrize(
    "query",
    ['say "hello', "NEAR(a b)", "a AND OR NOT", "col:umn", "a^2 {b}", "it's", "(", "x' OR 1=1 --"],
)
async def test_whatever_is_typed_is_words(query: str) -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        told = f"you may type {query} here, and more words"
        id = await say(ann, "bob", told)
        if any(letter.isalnum() for letter in query):
            assert await found(bob, query) == [id]
        else:
            assert (await refused(bob, "search", query=query)).code == "bad_request"


@pytest.mark.behaviour("M-171")
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(query=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
async def test_no_query_breaks_anything(query: str) -> None:
    async with office(search()) as network:
        ann = await network.join("ann", "human")
        await say(ann, "bob", "hello")
        with suppress(OperationError):
            await found(ann, query)
        assert not network.hub.mods.failures


@pytest.mark.behaviour("M-171")
@pytest.mark.parametrize("query", ["-only -not", "x*", " ".join(f"w{n}" for n in range(30)), "..."])
async def test_what_cannot_be_looked_for_is_a_clear_error(query: str) -> None:
    async with office(search()) as network:
        ann = await network.join("ann", "human")
        error = await refused(ann, "search", query=query)
        assert error.code == "bad_request"
        assert error.message.startswith("query: ")


# What is found ----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-172")
async def test_hits_can_be_narrowed_to_a_thread_a_sender_and_a_time() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        first = await say(ann, "bob", "the plan one")
        second = await say(bob, DESK, "the plan two")
        under = (await ask(ann, "reply", message_id=second, text="the plan three"))["seq"]
        assert sorted(await found(ann, "plan", thread=DESK)) == sorted([second, f"m{under}"])
        assert await found(ann, "plan", thread="bob") == [first]
        assert await found(ann, "plan", by="bob") == [second]
        assert await found(ann, "plan", after="2001-01-01", before="2002-01-01T12:00") == []
        assert len(await found(ann, "plan", after="2001-01-01T00:00:00Z")) == 3


@pytest.mark.behaviour("M-172")
async def test_a_group_whose_name_begins_like_a_direct_thread_is_another_thread() -> None:
    async with office(search()) as network:
        ann = await network.join("ann", "human")
        for name in ("bob", "tom"):
            await network.join(name, "human")
        two = await say(ann, "bob", "the plan for two")
        three = await ask(ann, "send_text_message", to=["bob", "tom"], text="the plan for three")
        assert await found(ann, "plan", thread="dm.ann.bob") == [two]
        assert await found(ann, "plan", thread="dm.ann.bob.tom") == [f"m{three['seq']}"]


@pytest.mark.behaviour("M-173")
async def test_a_hit_shows_the_place_where_the_words_stand() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        await say(ann, "bob", "padding " * 200 + "the Café is here\nby the river " + "more " * 200)
        (hit,) = (await ask(bob, "search", query="cafe"))["hits"]
        assert "the Café is here by the river" in hit["snippet"]
        assert len(hit["snippet"]) <= 210
        assert (hit["kind"], hit["by"], hit["thread_id"]) == ("messages", "ann", "dm.ann.bob")
        assert "score" not in hit


@pytest.mark.behaviour("M-173")
async def test_pages_have_every_hit_once_whatever_is_said_meanwhile() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        said = [await say(ann, "bob", f"plan {'x ' * n}") for n in range(25)]
        seen: list[str] = []
        cursor, more = "", True
        while more:
            page = await ask(bob, "search", query="plan", limit=7, cursor=cursor)
            seen += [hit["id"] for hit in page["hits"]]
            cursor, more = page.get("cursor", ""), page["more"]
            await say(ann, "bob", "plan")
        assert sorted(seen) == sorted(said)
        assert seen[0] == said[0]  # where it is most of the text


# Who finds it -----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-174")
async def test_nobody_finds_what_others_say_directly_owners_neither() -> None:
    async with office(search()) as network:
        ann = await network.join("ann", "human")
        olga, cat = await network.join("olga", "human"), await network.join("cat", "human")
        bot, dog = await network.join("bot"), await network.join("dog")
        secret = await say(ann, "bob", "the secret word")
        among = await say(bot, "dog", "a secret among agents")
        mine = await say(cat, "olga", "no secret")
        assert await found(ann, "secret") == [secret]
        assert await found(bot, "secret") == await found(dog, "secret") == [among]
        assert await found(olga, "secret") == await found(cat, "secret") == [mine]
        told = await ask(olga, "search", query="secret word")
        assert (told["hits"], told["more"]) == ([], False)
        assert (await refused(olga, "search", query="secret", thread="dm.ann.bob")).code == (
            await refused(olga, "search", query="secret", thread="dm.ann.zoe")
        ).code


@pytest.mark.behaviour("M-174")
async def test_who_has_left_a_channel_finds_nothing_of_it_and_pages_are_full_all_the_same() -> None:
    async with office(search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        await ask(ann, "create_channel", name="talk")
        await ask(bob, "join_channel", channel="talk")
        for n in range(10):
            await say(ann, "channel.talk", f"plan {n}")
        mine = [await say(ann, "bob", f"our plan {n}") for n in range(3)]
        assert len(await found(bob, "plan", limit=50)) == 13
        await ask(bob, "leave_channel", channel="talk")
        page = await ask(bob, "search", query="plan", limit=2)
        assert {hit["id"] for hit in page["hits"]} < set(mine)
        assert len(page["hits"]) == 2
        assert page["more"]


# Edits ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-175")
async def test_of_an_edited_message_the_latest_text_is_found_and_of_a_deleted_one_nothing() -> None:
    async with office(edits(), search()) as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        id = await say(ann, "bob", "the first words")
        await ask(ann, "edit_message", message_id=id, text="the second words")
        assert await found(bob, "first") == []
        (hit,) = (await ask(bob, "search", query="second"))["hits"]
        assert (hit["id"], hit["snippet"]) == (id, "the second words")
        await ask(ann, "edit_message", message_id=id, text="the third words")
        assert await found(bob, "second") == []
        assert await found(bob, "words") == [id]
        await ask(ann, "delete_message", message_id=id)
        for word in ("first", "second", "third", "words"):
            assert await found(ann, word) == []


# The log from before ----------------------------------------------------------------------------


@pytest.mark.behaviour("M-176")
async def test_what_was_said_before_the_mod_was_there_is_indexed_in_the_background(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with office(edits(), store=store) as network:
        ann = await network.join("ann", "human")
        said = [await say(ann, "bob", f"plan {n}") for n in range(450)]
        await ask(ann, "edit_message", message_id=said[0], text="changed")
        await ask(ann, "delete_message", message_id=said[1])
    for _ in range(2):  # the second time there is nothing to do
        async with office(edits(), search(), store=store) as network:
            ann = await network.join("ann", "human")
            await all_indexed(ann)
            pages = [await ask(ann, "search", query="plan", limit=50)]
            while pages[-1]["more"]:
                cursor = pages[-1]["cursor"]
                pages.append(await ask(ann, "search", query="plan", limit=50, cursor=cursor))
            hits = [hit["id"] for page in pages for hit in page["hits"]]
            assert sorted(hits) == sorted(said[2:])
            assert await found(ann, "changed") == [said[0]]


@pytest.mark.behaviour("M-176")
async def test_gaps_in_the_index_are_closed_at_the_next_start(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    said: list[str] = []
    for mods in ([search()], [], [search()], []):
        async with office(*mods, store=store) as network:
            ann = await network.join("ann", "human")
            said.append(await say(ann, "bob", "plan"))
    async with office(search(), store=store) as network:
        ann = await network.join("ann", "human")
        await all_indexed(ann)
        assert sorted(await found(ann, "plan")) == sorted(said)


@pytest.mark.behaviour("M-176")
async def test_what_is_deleted_while_its_text_waits_to_be_indexed_is_never_found(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with office(edits(), store=store) as network:
        ann = await network.join("ann", "human")
        one, two = await say(ann, "bob", "the old words"), await say(ann, "bob", "other old words")
    moody = MoodyStore(store)
    async with office(edits(), search(), store=moody) as network:
        mod = network.hub.mods.pipeline.mods[-1]
        assert isinstance(mod, SearchMod)
        ann = await network.join("ann", "human")
        await ask(ann, "delete_message", message_id=one)
        await ask(ann, "edit_message", message_id=two, text="new words")
        await all_indexed(ann)
        assert await found(ann, "old") == []
        assert await found(ann, "words") == [two]


@pytest.mark.behaviour("M-176")
@pytest.mark.parametrize("late", [0, 1, 2])
async def test_entries_are_indexed_in_any_order(late: int) -> None:
    """A message, its edit and its deletion."""
    async with office(edits(), search()) as network:
        ann = await network.join("ann", "human")
        mod = network.hub.mods.pipeline.mods[-1]
        assert isinstance(mod, SearchMod)
        id = await say(ann, "bob", "the old words")
        await ask(ann, "edit_message", message_id=id, text="new words")
        deleted = await say(ann, "bob", "more words")
        await ask(ann, "delete_message", message_id=deleted)
        log = [m for m in await mod.host.log(0, 100) if m.thread_id == "dm.ann.bob"]
        wiped = ("DELETE FROM search_message", "DELETE FROM search_amendment")
        await mod.host.keep([Statement(sql) for sql in (*wiped, WIPE)])
        for message in [*log[late:], *log[:late], *log]:
            await mod._index.keep([message], 0)
        assert await found(ann, "words") == [id]
        assert await found(ann, "new") == [id]
        assert await found(ann, "old") == await found(ann, "more") == []


WIPE = "INSERT INTO search_text (search_text) VALUES ('delete-all')"


@pytest.mark.behaviour("M-176")
async def test_indexing_goes_on_when_the_disk_has_refused() -> None:
    clock, moody = HandClock(), MoodyStore()
    async with office(search(), store=moody, clock=clock) as network:
        (mod,) = network.hub.mods.pipeline.mods
        assert isinstance(mod, SearchMod)
        ann = await network.join("ann", "human")
        id = await say(ann, "bob", "plan")
        await mod.host.keep([Statement("DELETE FROM search_message"), Statement(WIPE)])
        assert await found(ann, "plan") == []
        moody.failing = 1
        await mod.start()
        await eventually(lambda: moody.failing == 0)
        assert await found(ann, "plan") == []
        clock.wall += 11
        network.hub.mods.look()
        await all_indexed(ann)
        assert await found(ann, "plan") == [id]


# Documents --------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-177")
async def test_documents_are_found_by_title_latest_text_and_comments_beside_messages() -> None:
    async with office(documents(), search()) as network:
        ann, cat = await network.join("ann", "human"), await network.join("cat", "human")
        made = await ask(
            ann, "create_document", title="Harbour plan", text="old berths", thread=DESK
        )
        id = made["id"]
        await ask(ann, "write_document", id=id, base_version=1, text="# Quays\n\nnew berths")
        await ask(ann, "comment_on_document", id=id, text="who pays for cranes?")
        said = await say(ann, DESK, "the berths are ours")
        assert await found(ann, "harbour") == [id]
        assert await found(ann, "old") == []
        assert await found(ann, "cranes") == [id]
        hits = (await ask(ann, "search", query="berths"))["hits"]
        assert {hit["id"] for hit in hits} == {id, said}
        (hit,) = (await ask(ann, "search", query="quays", kinds=["documents"]))["hits"]
        assert (hit["title"], hit["snippet"]) == ("Harbour plan", "# Quays new berths")
        assert await found(ann, "berths", kinds=["messages"]) == [said]
        assert await found(ann, "harbour OR cranes") == []
        assert await found(cat, "berths") == await found(cat, "harbour") == []
        error = await refused(ann, "search", query="berths", kinds=["files"])
        assert "no files" in error.message


@pytest.mark.behaviour("M-177")
async def test_pages_go_through_messages_and_documents_together() -> None:
    async with office(documents(), search()) as network:
        ann = await network.join("ann", "human")
        all_of_it: set[str] = set()
        for n in range(6):
            args: dict[str, object] = {"title": f"Plan {n}", "text": "x " * n, "thread": DESK}
            all_of_it.add((await ask(ann, "create_document", **args))["id"])
            all_of_it.add(await say(ann, DESK, f"plan {'x ' * n}"))
        seen: list[str] = []
        cursor = ""
        for _ in range(4):
            page = await ask(ann, "search", query="plan", limit=3, cursor=cursor)
            seen += [hit["id"] for hit in page["hits"]]
            cursor = page.get("cursor", "")
        assert not page["more"]
        assert len(seen) == len(set(seen)) == 12
        assert set(seen) == all_of_it


@pytest.mark.behaviour("M-177")
async def test_documents_from_before_can_be_found_after_a_start(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with office(documents(), store=store) as network:
        ann = await network.join("ann", "human")
        id = (await ask(ann, "create_document", title="Plan", text="quays", thread=DESK))["id"]
        (mod,) = network.hub.mods.pipeline.mods
        await mod.host.keep([Statement("DELETE FROM documents_found")])
    async with office(documents(), search(), store=store) as network:
        ann = await network.join("ann", "human")
        async with asyncio.timeout(30):
            while await found(ann, "quays") != [id]:  # noqa: ASYNC110  it has no event
                await asyncio.sleep(0)


@pytest.mark.behaviour("M-179")
async def test_hits_with_content_from_outside_say_so_and_so_does_the_answer() -> None:
    async with office(FilesMod(FilesConfig()), search()) as network:
        ann, bot = await network.join("ann", "human"), await network.join("bot")
        await say(bot, DESK, "seen in the web: quays", outside=True)
        own = await say(bot, DESK, "berths")
        file: dict[str, object] = {"name": "a.txt", "thread": DESK, "text": "cranes"}
        await ask(bot, "write_file", outside=True, **file)
        for query, outside in (("quays", True), ("berths", False), ("cranes", True)):
            answer = await ask(ann, "search", query=query)
            assert [hit["outside"] for hit in answer["hits"]] == [outside]
            assert answer["outside"] is outside
        assert await found(ann, "berths") == [own]


# A mod that says more than it may ----------------------------------------------------------------


class Broken(Mod):
    """Has things to be found, and no table."""

    name = "broken"
    finds: ClassVar[Findable] = "files"

    async def found(self, search: Search) -> Sequence[Hit]:
        raise ValueError("nothing is here")


@pytest.mark.behaviour("M-178")
async def test_a_mod_that_cannot_be_asked_is_told_and_the_rest_is_found() -> None:
    async with office(Broken(ModConfig()), search()) as network:
        ann = await network.join("ann", "human")
        id = await say(ann, "bob", "the plan")
        told = await ask(ann, "search", query="plan")
        assert [hit["id"] for hit in told["hits"]] == [id]
        assert "files" in told["note"]
