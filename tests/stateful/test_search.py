"""Search finds exactly the current messages, whatever is sent, edited, deleted and restarted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.search.mod import SearchMod
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import config

pytestmark = pytest.mark.slow


FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    channels={"desk": {"members": ["ann", "bob"]}},
)


async def ask(client: Client, name: str, /, **args: JsonValue) -> dict[str, Any]:
    answer = await client.call(name, cid=None, **args)
    assert isinstance(answer, dict)
    return answer


WORDS = ("ash", "elm", "oak")
PLACES = ("channel.desk", "bob", "cat")
READERS = {"ann": {*PLACES}, "bob": {"channel.desk", "bob"}, "cat": {"cat"}}

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
number = st.integers(0, 30)


class Send(NamedTuple):
    place: str
    text: str


class Edit(NamedTuple):
    number: int
    text: str


class Delete(NamedTuple):
    number: int


class Restart(NamedTuple):
    searching: bool
    """Whether the network has the mod afterwards."""


Step = Send | Edit | Delete | Restart
steps = st.lists(
    st.one_of(
        st.builds(Send, st.sampled_from(PLACES), text),
        st.builds(Send, st.sampled_from(PLACES), text),
        st.builds(Edit, number, text),
        st.builds(Delete, number),
        st.builds(Restart, st.booleans()),
    ),
    max_size=20,
)


class Messages:
    """The current messages: place and latest text by id."""

    def __init__(self) -> None:
        self.texts: dict[str, tuple[str, str]] = {}

    def pick(self, number: int) -> str | None:
        ids = list(self.texts)
        return ids[number % len(ids)] if ids else None

    def with_word(self, word: str, reader: str) -> set[str]:
        return {
            id
            for id, (place, text) in self.texts.items()
            if place in READERS[reader] and word in text.split()
        }


async def apply(ann: Client, step: Step, messages: Messages) -> None:
    match step:
        case Send(place, text):
            sent = await ask(ann, "send_text_message", to=place, text=text)
            messages.texts[sent["id"]] = (place, text)
        case Edit(number, text):
            id = messages.pick(number)
            if id is not None and messages.texts[id][1] != text:
                await ask(ann, "edit_message", message_id=id, text=text)
                messages.texts[id] = (messages.texts[id][0], text)
        case Delete(number):
            id = messages.pick(number)
            if id is not None:
                await ask(ann, "delete_message", message_id=id)
                del messages.texts[id]


async def check(clients: dict[str, Client], messages: Messages) -> None:
    async with asyncio.timeout(30):
        ann = clients["ann"]
        while (await ask(ann, "search", query="ash")).get("indexing"):  # noqa: ASYNC110  no event
            await asyncio.sleep(0)
    for reader, client in clients.items():
        for word in WORDS:
            answer = await ask(client, "search", query=word, limit=50)
            ids = [hit["id"] for hit in answer["hits"]]
            assert len(ids) == len(set(ids))
            assert set(ids) == messages.with_word(word, reader)
            assert all(word in hit["snippet"] for hit in answer["hits"])


async def play(steps: list[Step], store: str) -> None:
    """Applies the steps, with a new network after each restart."""
    messages = Messages()
    rounds: list[tuple[bool, list[Step]]] = [(True, [])]
    for step in steps:
        if isinstance(step, Restart):
            rounds.append((step.searching, []))
        else:
            rounds[-1][1].append(step)
    for searching, round_ in [*rounds, (True, [])]:
        mods: list[Mod] = [EditsMod(EditsConfig())]
        mods += [SearchMod(ModConfig())] if searching else []
        async with LocalNetwork(FILE, store=store, mods=mods) as network:
            clients = {name: await network.join(name, "human") for name in READERS}
            for step in round_:
                await apply(clients["ann"], step, messages)
            if searching:
                await check(clients, messages)
            assert not network.hub.services.mods.failures


@pytest.mark.behaviour("M-194")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
async def test_search_finds_exactly_the_messages_a_reader_can_see(
    steps: list[Step],
) -> None:
    with TemporaryDirectory() as folder:
        await play(steps, f"sqlite:{Path(folder) / 'x.db'}")
