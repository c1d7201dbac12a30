"""Uploads, files and attachments, with store failures and kills: the folder has exactly the content
of the files, and participants read only the files they can see."""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hubbub.mods.api import Mod
from hubbub.mods.files.mod import FilesMod
from hubbub.mods.files.uploads import FilesConfig
from tests.examples import examples
from tests.interaction.peers import eventually
from tests.stateful.mod_life import ModMachine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.behaviour("M-111", "M-112", "M-114", "M-120", "M-123", "M-124"),
]

PEOPLE = ("ann", "bob", "cat")
OWNER = "ann"
"""Of the network: an open one, where everybody is who is no agent."""
CHANNELS = {"desk": ("ann", "bob"), "yard": ("bob", "cat")}
CONTENTS = (b"one", b"two\ntwo", b"three", b"\x00\x01\x02\x03", b"five five five")
QUOTA, TOTAL = 40, 30
"""Bytes, few enough to reach both."""

WHO = st.sampled_from(PEOPLE)
THREADS = st.sampled_from([None, "desk", "yard"])
FAILING = st.sampled_from([0, 0, 0, 1])


class StoredFile(NamedTuple):
    """A file in the model."""

    content: bytes
    owner: str
    channels: frozenset[str]

    def readers(self) -> set[str]:
        return {self.owner, *(who for c in self.channels for who in CHANNELS[c])}


class OpenUpload(NamedTuple):
    content: bytes
    owner: str
    channel: str | None
    received: int


class FilesMachine(ModMachine):
    """The model: files by id, uploads by id."""

    people = {"ann": "human", "bob": "agent", "cat": "agent"}  # noqa: RUF012
    channels = CHANNELS

    def mods(self) -> list[Mod]:
        return [FilesMod(FilesConfig(quota=QUOTA, total=TOTAL, max_uploads=3))]

    def prepare(self) -> None:
        self.files: dict[str, StoredFile] = {}
        self.gone: set[str] = set()

    def begin(self) -> None:
        self.uploads: dict[str, OpenUpload] = {}  # none survives a restart
        super().begin()

    def call(self, who: str, name: str, /, **args: Any) -> tuple[Any, str]:
        """The answer, or the code of the error."""
        answer = self.run(self.ask(who, name, **args))
        if answer["op"] == "error":
            return None, str(answer["code"])
        return answer["value"], ""

    # Calls --------------------------------------------------------------------------------------

    @rule(who=WHO, content=st.sampled_from(CONTENTS), channel=THREADS)
    def begin_upload(self, who: str, content: bytes, channel: str | None) -> None:
        thread = None if channel is None else f"channel.{channel}"
        args: dict[str, Any] = {"name": "x.md", "size": len(content), "thread": thread}
        answer, code = self.call(who, "begin_upload", **args)
        if channel is not None and who not in CHANNELS[channel]:
            assert code in ("forbidden", "unknown_thread"), code
        elif not self.has_room(who, len(content)):
            assert code == "limit"
        else:
            self.uploads[answer["upload"]] = OpenUpload(content, who, channel, 0)

    def has_room(self, who: str, size: int) -> bool:
        mine = [up for up in self.uploads.values() if up.owner == who]
        coming = sum(len(up.content) for up in mine)
        used = sum(len(f.content) for f in self.files.values() if f.owner == who)
        total = sum(map(len, {f.content for f in self.files.values()}))
        total += sum(len(up.content) for up in self.uploads.values())
        return len(mine) < 3 and used + coming + size <= QUOTA and total + size <= TOTAL

    @precondition(lambda self: self.uploads)
    @rule(data=st.data(), back=st.integers(-1, 2), size=st.integers(1, 9))
    def upload_chunk(self, data: st.DataObject, back: int, size: int) -> None:
        id = data.draw(st.sampled_from(list(self.uploads)))
        up = self.uploads[id]
        offset = max(0, up.received - back)
        part = up.content[offset : offset + size]
        if not part:
            return
        encoded = base64.b64encode(part).decode()
        answer, code = self.call(up.owner, "upload_chunk", upload=id, offset=offset, data=encoded)
        end = offset + len(part)
        if offset > up.received:
            assert code == "bad_request"
        elif offset < up.received < end:
            assert code == "conflict"
        else:
            self.uploads[id] = up._replace(received=max(up.received, end))
            assert answer["received"] == self.uploads[id].received

    @precondition(lambda self: self.uploads)
    @rule(data=st.data(), failing=FAILING)
    def finish_upload(self, data: st.DataObject, failing: int) -> None:
        id = data.draw(st.sampled_from(list(self.uploads)))
        up = self.uploads[id]
        self.store.failing = failing
        answer, code = self.call(up.owner, "finish_upload", upload=id)
        self.store.failing = 0
        if up.received < len(up.content):
            assert code == "bad_request"
        elif failing:
            assert code == "store_unavailable"
        else:
            channels = frozenset({up.channel} - {None})
            self.add(answer, StoredFile(up.content, up.owner, channels))  # type: ignore[arg-type]
            del self.uploads[id]

    def add(self, answer: Any, file: StoredFile) -> None:
        assert answer["id"] not in {*self.files, *self.gone}, "an id was reused"
        assert answer["sha256"] == hashlib.sha256(file.content).hexdigest()
        self.files[answer["id"]] = file

    @precondition(lambda self: self.uploads)
    @rule(data=st.data())
    def cancel_upload(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(list(self.uploads)))
        answer, _ = self.call(self.uploads.pop(id).owner, "cancel_upload", upload=id)
        assert answer == {"done": True}

    @rule(who=WHO, text=st.sampled_from(["one", "new"]), failing=FAILING)
    def write_file(self, who: str, text: str, failing: int) -> None:
        room = self.has_room(who, len(text))
        self.store.failing = failing
        answer, code = self.call(who, "write_file", name="y.md", text=text)
        self.store.failing = 0
        if not room:
            assert code == "limit"
        elif failing:
            assert code == "store_unavailable"
        else:
            self.add(answer, StoredFile(text.encode(), who, frozenset()))

    @precondition(lambda self: self.files)
    @rule(data=st.data(), who=WHO, channel=st.sampled_from(sorted(CHANNELS)), share=st.booleans())
    def attach_or_share(self, data: st.DataObject, who: str, channel: str, share: bool) -> None:
        id = data.draw(st.sampled_from(list(self.files)))
        file = self.files[id]
        if share:
            _, code = self.call(who, "share_file", id=id, thread=f"channel.{channel}")
        else:
            files = [{"name": "x", "uri": f"file:{id}"}]
            _, code = self.call(
                who, "post_to_channel", channel=channel, text="x", attachments=files
            )
        if who in file.readers() and who in CHANNELS[channel]:
            assert code == ""
            self.files[id] = file._replace(channels=file.channels | {channel})
        else:
            assert code in ("not_found", "rejected", "forbidden", "unknown_thread"), code

    @precondition(lambda self: self.files)
    @rule(data=st.data(), who=WHO, failing=FAILING)
    def delete_file(self, data: st.DataObject, who: str, failing: int) -> None:
        id = data.draw(st.sampled_from(list(self.files)))
        file = self.files[id]
        self.store.failing = failing
        _, code = self.call(who, "delete_file", id=id)
        self.store.failing = 0
        if who not in file.readers():
            assert code == "not_found"
        elif who not in (file.owner, OWNER):
            assert code == "forbidden"
        elif failing:
            assert code == "store_unavailable"
        else:
            assert code == ""
            self.gone.add(id)
            del self.files[id]

    # Crashes ------------------------------------------------------------------------------------

    @rule()
    def crash(self) -> None:
        """The next hub starts on a copy of the folder while the hub was running."""
        self.run(self.check())
        here = Path(self.folder.name)
        there = here / "crashed"
        shutil.copytree(here / "x.files", there)
        (there / "files" / "objects" / ("0" * 64)).write_bytes(b"moved, but not yet in a row")
        self.life.end()
        shutil.rmtree(here / "x.files")
        there.rename(here / "x.files")
        self.begin()
        self.run(self.check())

    @rule()
    def look(self) -> None:
        self.run(self.check())

    async def check(self) -> None:
        """Asserts what must hold while nothing is in flight."""
        folder = Path(self.folder.name) / "x.files" / "files"
        stored = {hashlib.sha256(f.content).hexdigest() for f in self.files.values()}
        uploading = {hashlib.sha256(up.content).hexdigest() for up in self.uploads.values()}

        def names(place: str) -> set[str]:
            return {path.name.partition(".")[0] for path in (folder / place).iterdir()}

        def is_consistent() -> bool:
            objects = names("objects")
            others = names("texts") <= objects and names("uploads") <= set(self.uploads)
            return stored <= objects <= stored | uploading and others

        await eventually(is_consistent)  # deleted files are removed a moment later
        for who in PEOPLE:
            listed = (await self.ask(who, "list_files"))["value"]["files"]
            mine = {id for id, file in self.files.items() if who in file.readers()}
            assert {file["id"] for file in listed} == mine
        for id, file in self.files.items():
            chunk = await self.ask(file.owner, "download_chunk", id=id)
            assert base64.b64decode(chunk["value"]["data"]) == file.content


TestFiles = FilesMachine.TestCase
TestFiles.settings = settings(max_examples=examples(10), stateful_step_count=25, deadline=None)
