"""Edits and deletions of the same messages at once, with store failures and restarts: events,
threads read later and the history agree."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hubbub.mods.api import Mod
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.protocol.messages import Message, amended
from tests.interaction.peers import Frame
from tests.stateful.mod_life import FAILING, ModMachine, as_test

pytestmark = pytest.mark.behaviour("M-87", "M-88")
IDS = ("m1", "m2")


class Change(NamedTuple):
    """An edit or deletion by ann, on one of her sockets."""

    socket: int
    verb: str
    id: str
    twice: bool


CHANGES = st.builds(
    Change,
    st.integers(0, 2),
    st.sampled_from(["edit", "edit", "edit", "delete"]),
    st.sampled_from(IDS),
    st.booleans(),
)


class EditsMachine(ModMachine):
    """The model: the texts of each message in the order of the log, from the answers alone."""

    people = {}  # noqa: RUF012  # they join with their cursors

    def mods(self) -> list[Mod]:
        return [EditsMod(EditsConfig())]

    def begin(self) -> None:
        super().begin()
        join = self.life.network.join
        received = getattr(self, "received", {})
        for n in range(3):
            self.peers[str(n)] = self.run(join("ann"))
        cursor = {"epoch": self.peers["0"].hello["epoch"], "seq": max(received, default=0)}
        self.peers["bob"] = self.run(join("bob", cursor=cursor))

    def prepare(self) -> None:
        self.texts: dict[str, dict[int, str | None]] = {}
        """By message and position; None if deleted."""
        self.received: dict[int, Message] = {}
        for id in IDS:
            self.texts[id] = {self.run(self.peers["0"].say("bob", id))["seq"]: id}

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=6), failing=FAILING)
    def change(self, changes: list[Change], failing: int) -> None:
        self.at_once(failing, lambda: self.make_all(changes))

    async def make_all(self, changes: list[Change]) -> None:
        for change, text, answers in await asyncio.gather(*map(self.make, changes)):
            results = [answer["value"] for answer in answers if answer["op"] == "result"]
            assert len({value["seq"] for value in results}) <= 1, "a repetition took effect"
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] in ("store_unavailable", "not_found"), answer
            if results:
                self.texts[change.id][results[0]["seq"]] = text

    async def make(self, change: Change) -> tuple[Change, str | None, list[Frame]]:
        text = f"text {self.cids}" if change.verb == "edit" else None
        args = {"message_id": change.id} | ({} if text is None else {"text": text})
        name = f"{change.verb}_message"
        return change, text, await self.repeated(str(change.socket), name, change.twice, **args)

    def versions(self, id: str) -> list[str | None]:
        """Oldest first, up to a deletion."""
        texts = [text for _, text in sorted(self.texts[id].items())]
        return texts[: texts.index(None) + 1] if None in texts else texts

    async def check(self) -> None:
        """Thread, events and history are those of the model."""
        page = await self.value("bob", "read_thread", thread="direct_ann", limit=100)
        read = {each["id"]: Message.model_validate(each) for each in page["messages"]}
        for frame in await self.peers["bob"].sync():
            message = Message.model_validate(frame["message"])
            self.received[message.seq] = message
        for id in IDS:
            versions = self.versions(id)
            changes = [m for m in self.received.values() if m.amends and m.amends.message_id == id]
            folded = amended(self.received[int(id[1:])], sorted(changes, key=lambda m: m.seq))
            if len(page["messages"]) < 100:
                assert (read[id].content, read[id].amended) == (folded.content, folded.amended)
            assert folded.content == (versions[-1] or "")
            answer = await self.value("0", "message_history", message_id=id, limit=50)
            history = [None if v["kind"] == "deleted" else v["content"] for v in answer["versions"]]
            assert history == versions[-50:]


TestEdits = as_test(EditsMachine, 25, 10)
