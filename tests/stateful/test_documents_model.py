"""Several writers of one document, with stale bases, a store that fails and a hub that comes back:
whatever was accepted is in the history, and goes only when somebody removes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hubbub.mods.documents.edits import applied
from hubbub.mods.documents.mod import DocumentsMod
from hubbub.mods.documents.settings import DocumentsConfig
from hubbub.mods.documents.words import LineEdit
from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

WRITERS = ("ann", "bob", "cat")
FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    channels={"desk": {"members": "all"}},
)


class Change(NamedTuple):
    """An edit that somebody is about to make."""

    who: str
    back: int
    """By so many versions the base is stale."""
    at: int
    size: int
    lines: int
    """How many new ones stand there afterwards."""
    twice: bool
    """Asked for a second time with its cid, as after a lost connection."""


CHANGES = st.builds(
    Change,
    st.sampled_from(WRITERS),
    st.integers(0, 3),
    st.integers(0, 12),
    st.integers(0, 3),
    st.integers(0, 2),
    st.booleans(),
)


class Accepted(NamedTuple):
    """An edit, as its author made it of the version that was read."""

    base: int
    added: set[str]
    removed: set[str]


class DocumentsMachine(RuleBasedStateMachine):
    """The model: every version as it was first read, and what each accepted edit added."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.versions: dict[int, list[str]] = {}
        self.accepted: dict[int, Accepted] = {}
        self.new = 0
        self.cids = 0
        self.begin()
        made = self.life.run(
            self.ask("ann", "create_document", title="x", thread="channel.desk", text="a\nb\nc")
        )
        assert made["op"] == "result", made
        self.life.run(self.check())

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        mods = [DocumentsMod(DocumentsConfig())]
        self.life = HubLife(FILE, self.store, mods)
        join = self.life.network.join
        self.peers: dict[str, Peer] = {name: self.life.run(join(name)) for name in WRITERS}

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.folder.cleanup()

    async def ask(self, who: str, name: str, **args: Any) -> Frame:
        peer = self.peers[who]
        return await peer.answer(await peer.post(name, **args))

    @rule()
    @precondition(lambda self: len(self.versions) > 2)
    def restart(self) -> None:
        self.life.end()
        self.begin()
        self.life.run(self.check())

    @rule(
        changes=st.lists(CHANGES, min_size=1, max_size=5),
        failing=st.sampled_from([0, 0, 0, 1, 2]),
    )
    def one_breath(self, changes: list[Change], failing: int) -> None:
        self.store.failing = failing
        self.life.run(self.breathe(changes))
        self.store.failing = 0
        self.life.run(self.check())

    async def breathe(self, changes: list[Change]) -> None:
        """All at once."""
        made = await asyncio.gather(*map(self.make, changes))
        latest = len(self.versions)
        for accepted, answers in made:
            saved = set[int]()
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] == "store_unavailable", answer
                    continue
                data = answer["value"]
                if data["status"] in ("saved", "merged"):
                    saved.add(data["version"])
                elif data["status"] == "conflict":
                    assert data["conflicts"]
                    assert data["advice"]
            assert len(saved) <= 1, "one write, one version"
            for version in saved:
                assert version > latest
                assert version not in self.accepted
                self.accepted[version] = accepted

    async def make(self, change: Change) -> tuple[Accepted, list[Frame]]:
        base = max(1, len(self.versions) - change.back)
        lines = self.versions[base]
        first = min(change.at, len(lines)) + 1
        last = min(first - 1 + change.size, len(lines))
        new = [f"line {self.new + n}" for n in range(change.lines)]
        self.new += change.lines
        self.cids += 1
        edit = {"first": first, "last": last, "text": "\n".join(new)}
        text = applied(lines, [LineEdit(**edit)])
        asked: dict[str, Any] = {"id": "d1", "base_version": base, "cid": f"c{self.cids}"}
        peer = self.peers[change.who]
        refs = [
            await (
                peer.post("edit_document", edits=[edit], **asked)
                if change.at % 2
                else peer.post("write_document", text="\n".join(text), **asked)
            )
            for _ in range(1 + change.twice)
        ]
        edited = Accepted(base, set(new), set(lines) - set(text))
        return edited, [await peer.answer(ref) for ref in refs]

    async def check(self) -> None:
        """What must hold whenever nothing is under way."""
        answer = await self.ask("ann", "document_history", id="d1", limit=200)
        told = {each["version"]: each for each in answer["value"]["versions"]}
        latest = answer["value"]["document"]["version"]
        assert sorted(told) == list(range(1, latest + 1)), "versions are dense"
        for version in range(1, latest + 1):
            await self.check_version(version)
        assert sorted(self.accepted) == list(range(2, latest + 1)), "what was told as saved"
        for version, accepted in self.accepted.items():
            assert told[version]["base"] == accepted.base
            assert accepted.added <= set(self.versions[version]), "accepted, and in its version"
            gone = set(self.versions[version - 1]) - set(self.versions[version])
            assert gone <= accepted.removed, "lines go only when somebody removes them"

    async def check_version(self, version: int) -> None:
        read = await self.ask("bob", "read_document", id="d1", version=version, numbers=False)
        lines = read["value"]["text"].split("\n")
        assert self.versions.setdefault(version, lines) == lines, "a version never changes"
        if version > 1:
            diff = await self.ask("cat", "diff_document", id="d1", old=version - 1, new=version)
            assert patched(self.versions[version - 1], diff["value"]["diff"]) == lines


def patched(lines: list[str], diff: str) -> list[str]:
    """The text that a unified difference makes of the lines."""
    made: list[str] = []
    done = 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            start, _, size = line.split()[1][1:].partition(",")
            upto = int(start) - (size != "0")
            made += lines[done:upto]
            done = upto
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert lines[done] == line[1:]
            done += 1
            made += [line[1:]] if line[0] == " " else []
    return made + lines[done:]


TestDocuments = pytest.mark.behaviour("M-41", "M-43", "M-44", "M-48")(DocumentsMachine.TestCase)
TestDocuments.settings = settings(max_examples=examples(40), stateful_step_count=12, deadline=None)
