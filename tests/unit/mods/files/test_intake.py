"""File contents that are uploaded and released at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.mods.files.repository import ContentStore
from hubbub.mods.files.uploads import ContentManager, FilesConfig, OpenUpload

DATA = b"the same bytes"


class Contents:
    """A content manager with its store and the hashes in use by files."""

    def __init__(self, folder: Path):
        self.store, self.in_use = ContentStore(folder), set[str]()
        self.uploads = 0
        self.store.prepare(())
        self.manager = ContentManager(self.store, self.is_in_use)

    def stored(self, folder: str = "objects") -> set[str]:
        return {path.name for path in (self.store.folder / folder).iterdir()}

    def upload(self) -> OpenUpload:
        self.uploads += 1
        id = f"u{self.uploads}"
        self.store.write(id, 0, DATA)
        return OpenUpload(id, "ann", None, "x.md", len(DATA), None, None, untrusted=True)

    async def is_in_use(self, sha256: str) -> bool:
        return sha256 in self.in_use


@pytest.mark.behaviour("M-112")
async def test_a_content_being_uploaded_survives_the_release_of_its_last_file(
    tmp_path: Path,
) -> None:
    contents = Contents(tmp_path)
    sha256 = (await contents.manager.take(contents.upload(), FilesConfig())).sha256
    await contents.manager.release(sha256)
    assert contents.stored() == {sha256}
    again = await contents.manager.take(contents.upload(), FilesConfig())
    await contents.manager.release(again.sha256, held=True)
    assert contents.stored() == {sha256}, "the first upload still holds it"
    contents.in_use.add(sha256)
    contents.manager.unhold(sha256)
    await contents.manager.release(sha256)
    assert contents.stored() == {sha256}, "a file uses it"
    contents.in_use.remove(sha256)
    await contents.manager.release(sha256)
    assert contents.stored() == set()
    assert contents.stored("uploads") == set()
