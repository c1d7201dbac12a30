"""Contents that come and go at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.mods.files.repository import ContentStore
from hubbub.mods.files.uploads import ContentManager, FilesConfig, OpenUpload

DATA = b"the same bytes"


class Desk:
    """An intake with nothing around it."""

    def __init__(self, folder: Path):
        self.vault, self.files = ContentStore(folder), set[str]()
        self.uploads = 0
        self.vault.prepare(())
        self.intake = ContentManager(self.vault, self.has)

    def there(self, place: str = "objects") -> set[str]:
        return {path.name for path in (self.vault.folder / place).iterdir()}

    def coming(self) -> OpenUpload:
        self.uploads += 1
        id = f"u{self.uploads}"
        coming = OpenUpload(id, "ann", None, "x.md", len(DATA), None, None, untrusted=True)
        self.vault.write(coming.id, 0, DATA)
        return coming

    async def has(self, sha256: str) -> bool:
        return sha256 in self.files


@pytest.mark.behaviour("M-112")
async def test_a_content_that_is_being_brought_stays_though_its_last_file_goes(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    sha256 = (await desk.intake.take(desk.coming(), FilesConfig())).sha256
    await desk.intake.release(sha256)
    assert desk.there() == {sha256}
    again = await desk.intake.take(desk.coming(), FilesConfig())
    await desk.intake.release(again.sha256, held=True)
    assert desk.there() == {sha256}, "the first one still holds it"
    desk.files.add(sha256)
    desk.intake.unhold(sha256)
    await desk.intake.release(sha256)
    assert desk.there() == {sha256}, "a file has it"
    desk.files.remove(sha256)
    await desk.intake.release(sha256)
    assert desk.there() == set()
    assert desk.there("uploads") == set()
