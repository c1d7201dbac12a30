"""Several who edit and delete the same messages at once, with a store that fails and a hub that
comes back: whoever heard it all, whoever reads it later and the history agree."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.protocol.amending import amended
from hubbub.protocol.messages import Message
from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

IDS = ("m1", "m2")
FILE = config(network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}})


class Ask(NamedTuple):
    """What ann asks for, on one of her sockets."""

    socket: int
    verb: Literal["edit", "delete"]
    id: str
    twice: bool
    """A second time with the same cid, as after a lost connection."""


ASKS = st.builds(
    Ask,
    st.integers(0, 2),
    st.sampled_from(["edit", "edit", "edit", "delete"]),
    st.sampled_from(IDS),
    st.booleans(),
)


class EditsMachine(RuleBasedStateMachine):
    """The model: the texts of each message in the order of the log, by the answers alone."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.texts: dict[str, dict[int, str | None]] = {}
        """By message and position; None: deleted."""
        self.number = 0
        self.heard: dict[int, Message] = {}
        self.begin()
        for id in IDS:
            sent = self.life.run(self.sockets[0].say("bob", id))
            self.texts[id] = {sent["seq"]: id}

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        self.life = HubLife(FILE, self.store, [EditsMod(EditsConfig())])
        join = self.life.network.join
        self.sockets: list[Peer] = [self.life.run(join("ann")) for _ in range(3)]
        cursor = max(self.heard, default=0)
        epoch = self.sockets[0].hello["epoch"]
        self.bob = self.life.run(join("bob", cursor={"epoch": epoch, "seq": cursor}))

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.folder.cleanup()

    @rule()
    def restart(self) -> None:
        self.life.end()
        self.begin()
        self.life.run(self.check())

    @rule(asks=st.lists(ASKS, min_size=1, max_size=6), failing=st.sampled_from([0, 0, 0, 1, 2]))
    def one_breath(self, asks: list[Ask], failing: int) -> None:
        self.store.failing = failing
        self.life.run(self.breathe(asks))
        self.store.failing = 0
        self.life.run(self.check())

    async def breathe(self, asks: list[Ask]) -> None:
        """All at once."""
        for ask, text, answers in await asyncio.gather(*map(self.ask, asks)):
            fine = [answer["value"] for answer in answers if answer["op"] == "result"]
            assert len({value["seq"] for value in fine}) <= 1, "a repetition happens once"
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] in ("store_unavailable", "not_found"), answer
            if fine:
                self.texts[ask.id][fine[0]["seq"]] = text

    async def ask(self, ask: Ask) -> tuple[Ask, str | None, list[Frame]]:
        self.number += 1
        peer, cid, text = self.sockets[ask.socket], f"c{self.number}", f"text {self.number}"
        args: dict[str, Any] = {"message_id": ask.id}
        if ask.verb == "edit":
            args["text"] = text
        refs = [
            await peer.post(f"{ask.verb}_message", cid=cid, **args) for _ in range(1 + ask.twice)
        ]
        answers = [await peer.answer(ref) for ref in refs]
        return ask, text if ask.verb == "edit" else None, answers

    def versions(self, id: str) -> list[str | None]:
        """Oldest first; nothing counts after a deletion."""
        texts = [text for _, text in sorted(self.texts[id].items())]
        return texts[: texts.index(None) + 1] if None in texts else texts

    async def check(self) -> None:
        """Reading, having heard and the history all say what the model says."""
        page = await self.bob.call("read_thread", thread="direct_ann", limit=100)
        read = {each["id"]: Message.model_validate(each) for each in page["messages"]}
        for frame in await self.bob.sync():
            message = Message.model_validate(frame["message"])
            self.heard[message.seq] = message
        for id in IDS:
            versions = self.versions(id)
            changes = [m for m in self.heard.values() if m.amends and m.amends.message_id == id]
            folded = amended(self.heard[int(id[1:])], sorted(changes, key=lambda m: m.seq))
            if len(page["messages"]) < 100:
                assert (read[id].content, read[id].amended) == (folded.content, folded.amended)
            assert folded.content == (versions[-1] or "")
            told = await self.sockets[0].call("message_history", message_id=id, limit=50)
            said = [None if v["kind"] == "deleted" else v["content"] for v in told["versions"]]
            assert said == versions[-50:]


TestEdits = pytest.mark.behaviour("M-87", "M-88")(EditsMachine.TestCase)
TestEdits.settings = settings(max_examples=examples(25), stateful_step_count=10, deadline=None)
