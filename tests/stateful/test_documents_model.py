"""Several writers edit one document, with stale bases, store failures and restarts: each accepted
edit is in the history, and lines only disappear when an edit removes them."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hubbub.mods.api import Mod
from hubbub.mods.documents.mod import DocumentsConfig, DocumentsMod
from hubbub.mods.documents.schemas import LineEdit
from hubbub.mods.documents.text import apply_edits
from tests.interaction.peers import Frame
from tests.stateful.mod_life import FAILING, ModMachine, as_test

pytestmark = pytest.mark.behaviour("M-41", "M-43", "M-44", "M-48")


class Change(NamedTuple):
    """A requested edit."""

    who: str
    back: int
    """The age of its base in versions."""
    at: int
    size: int
    """The number of lines to replace."""
    lines: int
    """The number of new lines."""
    twice: bool


CHANGES = st.builds(
    Change,
    st.sampled_from(sorted(ModMachine.people)),
    st.integers(0, 3),
    st.integers(0, 12),
    st.integers(0, 3),
    st.integers(0, 2),
    st.booleans(),
)


class Accepted(NamedTuple):
    """An accepted edit, relative to the version that its author read."""

    base: int
    added: set[str]
    removed: set[str]


class DocumentsMachine(ModMachine):
    """The model: every version as first read, and the lines that each edit added or removed."""

    def mods(self) -> list[Mod]:
        return [DocumentsMod(DocumentsConfig())]

    def prepare(self) -> None:
        self.versions: dict[int, list[str]] = {}
        self.accepted: dict[int, Accepted] = {}
        self.new = 0
        args = {"title": "x", "thread": "channel.desk", "text": "a\nb\nc"}
        self.run(self.value("ann", "create_document", **args))
        self.run(self.check())

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=5), failing=FAILING)
    def edit(self, changes: list[Change], failing: int) -> None:
        self.at_once(failing, lambda: self.make_all(changes))

    async def make_all(self, changes: list[Change]) -> None:
        results = await asyncio.gather(*map(self.make, changes))
        latest = len(self.versions)
        for accepted, answers in results:
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
            assert len(saved) <= 1, "a write made two versions"
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
        edit = {"first": first, "last": last, "text": "\n".join(new)}
        text = apply_edits(lines, [LineEdit(**edit)])
        name, how = "write_document", dict[str, Any](text="\n".join(text))
        if change.at % 2:
            name, how = "edit_document", {"edits": [edit]}
        args = {"id": "d1", "base_version": base, **how}
        edit_ = Accepted(base, set(new), set(lines) - set(text))
        return edit_, await self.repeated(change.who, name, change.twice, **args)

    async def check(self) -> None:
        history = await self.value("ann", "document_history", id="d1", limit=200)
        versions = {each["version"]: each for each in history["versions"]}
        latest = history["document"]["version"]
        assert sorted(versions) == list(range(1, latest + 1)), "versions have gaps"
        for version in range(1, latest + 1):
            text = await self.value("bob", "read_document", id="d1", version=version, numbers=False)
            lines = text["text"].split("\n")
            assert self.versions.setdefault(version, lines) == lines, "a version changed"
        assert sorted(self.accepted) == list(range(2, latest + 1))
        for version, accepted in self.accepted.items():
            assert versions[version]["base"] == accepted.base
            assert accepted.added <= set(self.versions[version]), "an accepted line is missing"
            gone = set(self.versions[version - 1]) - set(self.versions[version])
            assert gone <= accepted.removed, "a line disappeared that no edit removed"


TestDocuments = as_test(DocumentsMachine, 20)
