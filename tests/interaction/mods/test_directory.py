"""The directory of agents and their skills, in a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.api import ModConfig
from hubbub.mods.directory.mod import DirectoryMod
from hubbub.protocol.messages import Card
from tests.interaction.mods.workspace import refused, workspace
from tests.interaction.peers import Peer
from tests.interaction.stores import MoodyStore

AGENTS: dict[str, Any] = {
    "lena": {"card": {"description": "Translates contracts", "skills": ["translation", "German"],
                      "cost": "0.02 a page", "inputs": ["text", "language"]}},
    "otto": {"card": {"description": "Answers questions about German law", "skills": ["law"]}},
    "zara": {"card": {"description": "Draws charts", "skills": ["plots"],
                      "availability": "nights"}},
}  # fmt: skip


def directory(*who: str, store: Any = "sqlite::memory:") -> Any:
    return workspace([DirectoryMod(ModConfig())], *who, store=store, agents=AGENTS)


async def best(peer: Peer, need: str, **args: Any) -> list[str]:
    return [agent["id"] for agent in (await peer.call("find_agent", need=need, **args))["agents"]]


@pytest.mark.behaviour("M-180", "M-183")
async def test_agents_are_found_by_need_best_match_first() -> None:
    async with directory("ann", "bob") as (network, ann, bob):
        answer = await ann.call("find_agent", need="Who can translate a German contract?")
        assert [(a["id"], a["why"]) for a in answer["agents"]] == [
            ("lena", ["translate", "german", "contract"]), ("otto", ["german"]),
        ]  # fmt: skip
        lena = answer["agents"][0]
        assert (lena["cost"], lena["inputs"], lena["present"]) == (
            "0.02 a page", "text, language", False,
        )  # fmt: skip
        assert await best(ann, "charts at night") == ["zara"]
        assert await best(ann, "otto") == ["otto"]
        assert (await ann.call("find_agent", need="law or German", limit=1))["more"]
        answer = await ann.call("find_agent", need="cook")
        assert (answer["agents"], "list_agents" in answer["advice"]) == ([], True)
        for odd in ('"', "NEAR(", "-", "a* OR b", "德语"):
            await ann.call("find_agent", need=odd)
        assert not network.hub.services.mods.failures
        # People have cards too, and are included on request.
        await bob.call("update_card", skills=["German", "law"], description="The lawyer")
        assert await best(ann, "law") == ["otto"]
        assert sorted(await best(ann, "law", people=True)) == ["bob", "otto"]
        assert await best(bob, "lawyer", people=True) == []  # never the caller
        for args, ids, more in (
            ({}, ["lena", "otto", "zara"], False),
            ({"limit": 2}, ["lena", "otto"], True),
            ({"limit": 2, "after": "otto"}, ["zara"], False),
        ):
            page = await ann.call("list_agents", **args)
            assert ([card["id"] for card in page["agents"]], page["more"]) == (ids, more)
        assert await refused(ann, "read_card", participant="nobody") == "unknown_participant"


@pytest.mark.behaviour("M-181", "M-183")
async def test_absent_agents_come_after_equally_good_present_ones() -> None:
    async with directory("ann") as (network, ann):
        for name in ("aaa", "bbb", "000"):
            peer = await network.join(name, "agent", card={"skills": ["plumbing"]})
        await peer.close()
        await network.gone("000")
        await ann.say("aaa", "do this")
        answer = await ann.call("find_agent", need="plumbing")
        assert [(a["id"], a["present"], a["open"]) for a in answer["agents"]] == [
            ("bbb", True, 0), ("aaa", True, 1), ("000", False, 0),
        ]  # fmt: skip
        assert await best(ann, "plumbing", present=True) == ["bbb", "aaa"]
        odd = Card.model_validate(
            {"description": "x " * 1500, "inputs": {"a": [1]}, "cost": 3, "team": "blue moon"}
        )
        await network.join("odd", "agent", card=odd.model_dump(mode="json", exclude_none=True))
        card = await ann.call("read_card", participant="odd")
        assert (card["inputs"], card["cost"], card["more"]) == (
            '{"a": [1]}', "3", {"team": "blue moon"},
        )  # fmt: skip
        assert len(card["description"]) == 2000
        assert await best(ann, "moon") == ["odd"]


@pytest.mark.behaviour("M-182", "M-184")
async def test_a_participant_can_change_its_card_permanently(tmp_path: Path) -> None:
    path = f"sqlite:{tmp_path / 'x.db'}"
    moody = MoodyStore(path)
    async with directory("ann", store=moody) as (network, ann):
        lena = await network.join("lena", "agent")
        changed = await lena.call("update_card", skills=["cooking"], availability="weekends")
        assert (changed["skills"], changed["cost"]) == (["cooking"], "0.02 a page")
        assert await best(ann, "cooking") == ["lena"]
        assert await best(ann, "translation") == ["lena"]  # from her description
        moody.failing = 1
        assert await refused(lena, "update_card", cost="free") == "store_unavailable"
        card = await ann.call("read_card", participant="lena")
        assert card["cost"] == "0.02 a page"
        before = len(moody.batches)
        await best(ann, "cooking")
        assert len(moody.batches) == before, "a search does not index again"
    async with directory("ann", store=path) as (network, ann):
        lena = await network.join("lena", "agent")
        assert await best(ann, "cooking on weekends") == ["lena"]
        card = await ann.call("read_card", participant="lena")
        assert (card["skills"], card["availability"]) == (["cooking"], "weekends")
        await lena.call("update_card", skills=[], availability="")
        card = await ann.call("read_card", participant="lena")
        assert (card["skills"], card["availability"]) == (["translation", "German"], "")
        assert await best(ann, "cooking") == []
