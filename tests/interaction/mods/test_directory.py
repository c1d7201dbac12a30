"""Finding who can do something, in a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client
from hubbub.mods.api import ModConfig
from hubbub.mods.directory.mod import DirectoryMod
from hubbub.protocol.messages import Card
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.network import LocalNetwork
from tests.interaction.mods.office import ask, office, refused, say
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = mod_contract(DirectoryMod)

AGENTS: dict[str, Any] = {
    "lena": {"card": {"description": "Translates contracts", "skills": ["translation", "German"],
                      "cost": "0.02 a page", "inputs": ["text", "language"]}},
    "otto": {"card": {"description": "Answers questions about German law", "skills": ["law"]}},
    "zara": {"card": {"description": "Draws charts", "skills": ["plots"],
                      "availability": "nights"}},
}  # fmt: skip


def directory(store: Any = "sqlite::memory:", **more: Any) -> LocalNetwork:
    return office(DirectoryMod(ModConfig()), store=store, agents=AGENTS, **more)


async def best(client: Client, need: str, **args: object) -> list[str]:
    answer = await ask(client, "find_agent", need=need, **args)
    return [agent["id"] for agent in answer["agents"]]


@pytest.mark.behaviour("M-180")
async def test_agents_are_found_by_need_the_best_first_with_the_words_that_fit() -> None:
    async with directory() as network:
        ann = await network.join("ann", "human")
        answer = await ask(ann, "find_agent", need="Who can translate a German contract?")
        assert [(a["id"], a["why"]) for a in answer["agents"]] == [
            ("lena", ["translate", "german", "contract"]),
            ("otto", ["german"]),
        ]
        (lena, _) = answer["agents"]
        assert (lena["cost"], lena["inputs"], lena["present"]) == (
            "0.02 a page", "text, language", False,
        )  # fmt: skip
        assert await best(ann, "charts at night") == ["zara"]
        assert await best(ann, "otto") == ["otto"]
        assert (await ask(ann, "find_agent", need="law or German", limit=1))["more"]


@pytest.mark.behaviour("M-180")
async def test_who_fits_nobody_is_told_what_to_do() -> None:
    async with directory() as network:
        ann = await network.join("ann", "human")
        answer = await ask(ann, "find_agent", need="cook")
        assert answer["agents"] == []
        assert "list_agents" in answer["advice"]
        for odd in ('"', "NEAR(", "-", "a* OR b", "德语"):
            await ask(ann, "find_agent", need=odd)
        assert not network.hub.mods.failures


@pytest.mark.behaviour("M-181")
async def test_absent_agents_stay_findable_and_come_after_equals_who_are_there() -> None:
    async with directory() as network:
        ann = await network.join("ann", "human")
        for name in ("aaa", "bbb"):
            await network.join(name, card=Card(skills=("plumbing",)))
        gone = await network.join("000", card=Card(skills=("plumbing",)))
        await gone.__aexit__(None, None, None)
        await ask(ann, "list_participants")
        await say(ann, "aaa", "do this")
        answer = await ask(ann, "find_agent", need="plumbing")
        assert [(a["id"], a["present"], a["open"]) for a in answer["agents"]] == [
            ("bbb", True, 0), ("aaa", True, 1), ("000", False, 0),
        ]  # fmt: skip
        assert await best(ann, "plumbing", present=True) == ["bbb", "aaa"]


@pytest.mark.behaviour("M-182")
async def test_a_card_is_changed_by_its_participant_and_stays_so(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with directory(store) as network:
        ann, lena = await network.join("ann", "human"), await network.join("lena")
        changed = await ask(lena, "update_card", skills=["cooking"], availability="weekends")
        assert (changed["skills"], changed["cost"]) == (["cooking"], "0.02 a page")
        assert await best(ann, "cooking") == ["lena"]
        assert await best(ann, "translation") == ["lena"]  # of her description
    async with directory(store) as network:
        ann, lena = await network.join("ann", "human"), await network.join("lena")
        assert await best(ann, "cooking on weekends") == ["lena"]
        card = await ask(ann, "read_card", participant="lena")
        assert (card["skills"], card["availability"]) == (["cooking"], "weekends")
        await ask(lena, "update_card", skills=[], availability="")
        card = await ask(ann, "read_card", participant="lena")
        assert (card["skills"], card["availability"]) == (["translation", "German"], "")
        assert await best(ann, "cooking") == []


@pytest.mark.behaviour("M-182")
async def test_what_the_disk_refuses_is_not_on_the_card() -> None:
    moody = MoodyStore()
    async with directory(moody) as network:
        bot = await network.join("bot")
        await best(bot, "law")
        moody.failing = 1
        with pytest.raises(Exception, match="store_unavailable"):
            await bot.post("update_card", description="a cook")
        assert (await ask(bot, "read_card", participant="bot"))["description"] == ""


@pytest.mark.behaviour("M-183")
async def test_people_may_have_cards_and_are_found_when_they_are_meant() -> None:
    async with directory() as network:
        ann, bob = await network.join("ann", "human"), await network.join("bob", "human")
        await ask(bob, "update_card", skills=["German", "law"], description="The lawyer")
        assert await best(ann, "law") == ["otto"]
        assert sorted(await best(ann, "law", people=True)) == ["bob", "otto"]
        assert await best(bob, "lawyer", people=True) == []  # nobody looks for himself
        listed = (await ask(ann, "list_agents"))["agents"]
        assert [card["id"] for card in listed] == ["lena", "otto", "zara"]


@pytest.mark.behaviour("M-183")
async def test_agents_are_listed_in_pages_by_name() -> None:
    async with directory() as network:
        ann = await network.join("ann", "human")
        page = await ask(ann, "list_agents", limit=2)
        assert ([card["id"] for card in page["agents"]], page["more"]) == (["lena", "otto"], True)
        rest = await ask(ann, "list_agents", limit=2, after="otto")
        assert ([card["id"] for card in rest["agents"]], rest["more"]) == (["zara"], False)
        error = await refused(ann, "read_card", participant="nobody")
        assert error.code == "unknown_participant"


@pytest.mark.behaviour("M-183")
async def test_cards_of_any_shape_are_told() -> None:
    async with directory() as network:
        ann = await network.join("ann", "human")
        odd = Card.model_validate(
            {"description": "x " * 1500, "inputs": {"a": [1]}, "cost": 3, "team": "blue moon"}
        )
        await network.join("odd", card=odd)
        card = await ask(ann, "read_card", participant="odd")
        assert (card["inputs"], card["cost"], card["more"]) == (
            '{"a": [1]}', "3", {"team": "blue moon"},
        )  # fmt: skip
        assert len(card["description"]) == 2000
        assert await best(ann, "moon") == ["odd"]


@pytest.mark.behaviour("M-184")
async def test_nothing_is_indexed_twice_and_joining_writes_nothing() -> None:
    moody = MoodyStore()
    async with directory(moody) as network:
        ann = await network.join("ann", "human")
        await best(ann, "law")
        before = len(moody.batches)
        await best(ann, "law")
        assert len(moody.batches) == before
