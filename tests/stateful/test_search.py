"""Search against a plain reading of everything, whatever is said, edited, deleted and restarted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub.client import Client
from hubbub.clock import Clock
from hubbub.config.models import (
    ChannelConfig,
    HumanConfig,
    Limits,
    NetworkConfig,
    NetworkFile,
)
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.search.mod import SearchMod
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork

pytestmark = pytest.mark.slow


def office(
    *mods: Mod,
    store: str | Store = "sqlite::memory:",
    clock: Clock | None = None,
    **more: Any,  # other parts of the YAML
) -> LocalNetwork:
    file = NetworkFile(
        network=NetworkConfig(
            auth="open", limits=Limits(burst=100_000, calls_per_second=1_000_000)
        ),
        humans={"olga": HumanConfig(roles=["owner"]), "ann": HumanConfig(), "bob": HumanConfig()},
        channels={"desk": ChannelConfig(members=["ann", "bob", "bot"])},
        **more,
    )
    return LocalNetwork(file, store=store, clock=clock, mods=mods)


async def ask(client: Client, name: str, /, **args: object) -> dict[str, Any]:
    answer = await client.call(name, **args)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    return answer


async def refused(client: Client, name: str, /, **args: object) -> OperationError:
    """The error that the call is answered with."""
    with pytest.raises(OperationError) as caught:
        await ask(client, name, **args)
    return caught.value


async def say(client: Client, to: str, text: str, **more: object) -> str:
    """The id of the message."""
    answer = await ask(client, "send_text_message", to=to, text=text, **more)
    return f"m{answer['seq']}"


WORDS = ("ash", "elm", "oak")
PLACES = ("channel.desk", "bob", "cat")
READERS = {"ann": {*PLACES}, "bob": {"channel.desk", "bob"}, "cat": {"cat"}}

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
number = st.integers(0, 30)


class Say(NamedTuple):
    place: str
    text: str


class Edit(NamedTuple):
    number: int
    text: str


class Delete(NamedTuple):
    number: int


class Restart(NamedTuple):
    searching: bool
    """Whether the mod is in the network then."""


Step = Say | Edit | Delete | Restart
steps = st.lists(
    st.one_of(
        st.builds(Say, st.sampled_from(PLACES), text),
        st.builds(Say, st.sampled_from(PLACES), text),
        st.builds(Edit, number, text),
        st.builds(Delete, number),
        st.builds(Restart, st.booleans()),
    ),
    max_size=20,
)


class Said:
    """What stands in the threads, by message: where, and the latest text."""

    def __init__(self) -> None:
        self.texts: dict[str, tuple[str, str]] = {}

    def one(self, number: int) -> str | None:
        ids = list(self.texts)
        return ids[number % len(ids)] if ids else None

    def with_word(self, word: str, reader: str) -> set[str]:
        return {
            id
            for id, (place, text) in self.texts.items()
            if place in READERS[reader] and word in text.split()
        }


async def do(ann: Client, step: Step, said: Said) -> None:
    match step:
        case Say(place, text):
            said.texts[await say(ann, place, text)] = (place, text)
        case Edit(number, text):
            id = said.one(number)
            if id is not None and said.texts[id][1] != text:
                await ask(ann, "edit_message", message_id=id, text=text)
                said.texts[id] = (said.texts[id][0], text)
        case Delete(number):
            id = said.one(number)
            if id is not None:
                await ask(ann, "delete_message", message_id=id)
                del said.texts[id]


async def check(clients: dict[str, Client], said: Said) -> None:
    async with asyncio.timeout(30):
        ann = clients["ann"]
        while (await ask(ann, "search", query="ash")).get("indexing"):  # noqa: ASYNC110  no event
            await asyncio.sleep(0)
    for reader, client in clients.items():
        for word in WORDS:
            answer = await ask(client, "search", query=word, limit=50)
            found = [hit["id"] for hit in answer["hits"]]
            assert len(found) == len(set(found))
            assert set(found) == said.with_word(word, reader)
            assert all(word in hit["snippet"] for hit in answer["hits"])


async def play(steps: list[Step], store: str) -> None:
    """The steps between two restarts are one network."""
    said = Said()
    rounds: list[tuple[bool, list[Step]]] = [(True, [])]
    for step in steps:
        if isinstance(step, Restart):
            rounds.append((step.searching, []))
        else:
            rounds[-1][1].append(step)
    for searching, round_ in [*rounds, (True, [])]:
        mods: list[Mod] = [EditsMod(EditsConfig())]
        mods += [SearchMod(ModConfig())] if searching else []
        async with office(*mods, store=store) as network:
            clients = {name: await network.join(name, "human") for name in READERS}
            for step in round_:
                await do(clients["ann"], step, said)
            if searching:
                await check(clients, said)
            assert not network.hub.services.mods.failures


@pytest.mark.behaviour("M-194")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
async def test_search_finds_what_stands_there(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        await play(steps, f"sqlite:{Path(folder) / 'x.db'}")
